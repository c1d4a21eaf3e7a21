//! The least gas with which a message succeeds, searched for as geth does.

mod memoized_state;
#[cfg(test)]
mod tests;

use crate::{
    call::{CallError, CallLimits, CallRejection, CallResult, Halt, Overrides, PreparedCall, catch_panic},
    chain::BlockRules,
    state::StateSource,
};
use alloy_consensus::Header;
use alloy_eips::eip4844::DATA_GAS_PER_BLOB;
use alloy_primitives::{TxKind, U256};
use alloy_rpc_types_eth::TransactionRequest;
use memoized_state::MemoizedState;
use revm::{
    context::{TxEnv, result::ResultGas},
    primitives::{eip7825::TX_GAS_LIMIT_CAP, hardfork::SpecId},
};

/// Gas of a transaction that does nothing but move value.
const TRANSFER_GAS: u64 = 21_000;

/// Gas that the EVM adds to a call with value. The calling frame needs it to be available.
const CALL_STIPEND: u64 = 2_300;

/// By how many thousandths an estimate may be too high. Wallets add more than that as a margin.
const TOLERANCE_THOUSANDTHS: u64 = 15;

/// The most runs of the search, after the first two. It doubles from 21,000 and then halves, so that even the largest gas
/// cap needs fewer; a contract whose success depends on its gas in odd ways cannot cause more.
const SEARCH_RUNS_MAX: u32 = 60;

/// Searches for the least gas with which a message succeeds at the block with this header.
pub fn estimate<S: StateSource>(
    source: S,
    rules: BlockRules<'_>,
    header: &Header,
    request: TransactionRequest,
    overrides: Overrides,
    limits: &CallLimits,
) -> Result<u64, CallError> {
    catch_panic(|| {
        let source = MemoizedState::new(source);
        let mut trial = PreparedCall::new(source, rules, header, request, overrides, limits)?;
        let highest = highest_gas(&mut trial, limits)?;
        if is_plain_transfer(&mut trial)? {
            match attempt(&mut trial, TRANSFER_GAS) {
                Ok(Some(_)) => return Ok(TRANSFER_GAS),
                // The run with the highest gas says what is wrong.
                Ok(None) | Err(CallError::Refused(_)) => {}
                Err(error) => return Err(error),
            }
        }
        let used = run_at_highest(&mut trial, highest)?;
        search(&mut trial, used, highest)
    })
}

/// The most gas that the message may have.
fn highest_gas<S: StateSource>(
    trial: &mut PreparedCall<'_, S>,
    limits: &CallLimits,
) -> Result<u64, CallError> {
    let mut highest = match trial.gas_asked() {
        Some(gas) if gas >= TRANSFER_GAS => gas,
        _ => trial.block_gas_limit(),
    };
    let spec = trial.spec();
    // From Amsterdam on the cap binds only a part of the gas.
    if spec.is_enabled_in(SpecId::OSAKA) && !spec.is_enabled_in(SpecId::AMSTERDAM) {
        highest = highest.min(TX_GAS_LIMIT_CAP);
    }
    if trial.message().gas_price != 0 {
        let balance = trial.balance(trial.message().caller)?;
        highest = highest.min(affordable_gas(trial.message(), balance)?);
    }
    Ok(highest.min(limits.gas_cap))
}

/// The gas that a balance pays for at the price that the message offers, after all else is paid.
fn affordable_gas(message: &TxEnv, balance: U256) -> Result<u64, CallRejection> {
    let available = balance.checked_sub(message.value).filter(|available| !available.is_zero());
    let available = available.ok_or(CallRejection::InsufficientFundsForTransfer)?;
    let blob_gas = U256::from(message.blob_hashes.len()) * U256::from(DATA_GAS_PER_BLOB);
    let blob_cost = blob_gas * U256::from(message.max_fee_per_blob_gas);
    if !blob_cost.is_zero() && blob_cost >= available {
        let want = blob_cost.saturating_add(message.value);
        return Err(CallRejection::InsufficientFunds { address: message.caller, have: balance, want });
    }
    Ok(((available - blob_cost) / U256::from(message.gas_price)).saturating_to())
}

/// Whether the message does nothing but move value, so that the price is known; it is tried all the same.
fn is_plain_transfer<S: StateSource>(trial: &mut PreparedCall<'_, S>) -> Result<bool, CallError> {
    match trial.message().kind {
        TxKind::Call(to) if trial.message().data.is_empty() => Ok(!trial.has_code(to)?),
        _ => Ok(false),
    }
}

/// Runs with all the gas that there may be. What fails here fails with any gas.
fn run_at_highest<S: StateSource>(
    trial: &mut PreparedCall<'_, S>,
    highest: u64,
) -> Result<ResultGas, CallError> {
    match trial.run(highest) {
        Ok(CallResult::Returned { gas, .. }) => Ok(gas),
        Ok(CallResult::Reverted { data }) => Err(CallError::Reverted { data }),
        Ok(CallResult::Halted(Halt::OutOfGas)) => Err(CallError::GasExceedsAllowance { allowance: highest }),
        Ok(CallResult::Halted(halt)) => Err(CallError::Halted(halt)),
        Err(error) if wants_more_gas(&error) => Err(CallError::GasExceedsAllowance { allowance: highest }),
        Err(error) => Err(error),
    }
}

/// Runs with some gas; gives what was used if that was enough.
fn attempt<S: StateSource>(
    trial: &mut PreparedCall<'_, S>,
    gas: u64,
) -> Result<Option<ResultGas>, CallError> {
    match trial.run(gas) {
        Ok(CallResult::Returned { gas, .. }) => Ok(Some(gas)),
        Ok(CallResult::Reverted { .. } | CallResult::Halted(_)) => Ok(None),
        Err(error) if wants_more_gas(&error) => Ok(None),
        Err(error) => Err(error),
    }
}

fn wants_more_gas(error: &CallError) -> bool {
    matches!(
        error,
        CallError::Refused(CallRejection::IntrinsicGasTooLow { .. } | CallRejection::FloorGasTooLow { .. })
    )
}

/// Narrows down the least gas from both sides: `low` always fails, `high` always succeeds.
fn search<S: StateSource>(
    trial: &mut PreparedCall<'_, S>,
    used: ResultGas,
    highest: u64,
) -> Result<u64, CallError> {
    let mut low = used.tx_gas_used().saturating_sub(1);
    let mut high = highest;
    let likely = likely_enough(used);
    if likely < high {
        match attempt(trial, likely)? {
            Some(_) => high = likely,
            None => low = likely,
        }
    }
    for _ in 0..SEARCH_RUNS_MAX {
        if low + 1 >= high || is_close_enough(low, high) {
            break;
        }
        // Most messages need little more than they use, so the lower side is tried first.
        let middle = low.midpoint(high).min(low.saturating_mul(2));
        match attempt(trial, middle)? {
            Some(_) => high = middle,
            None => low = middle,
        }
    }
    Ok(high)
}

/// The gas that most messages succeed with: what was used at the peak, what the deepest call with value needs at
/// hand, and the 64th part that each call holds back.
fn likely_enough(used: ResultGas) -> u64 {
    let peak = used.total_gas_spent().max(used.floor_gas());
    let gas = u128::from(peak.saturating_add(CALL_STIPEND)) * 64 / 63;
    u64::try_from(gas).unwrap_or(u64::MAX)
}

fn is_close_enough(low: u64, high: u64) -> bool {
    u128::from(high - low) * 1_000 < u128::from(high) * u128::from(TOLERANCE_THOUSANDTHS)
}
