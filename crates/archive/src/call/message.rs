//! Fills in what a request leaves out, as geth does for `eth_call`.

use super::{
    error::{CallError, CallRejection},
    limits::{LimitTracker, StopReason},
};
use alloy_eips::eip7702::SignedAuthorization;
use alloy_evm::EvmEnv;
use alloy_primitives::{Address, B256, TxKind};
use alloy_rpc_types_eth::TransactionRequest;
use revm::{
    context::{TxEnv, transaction::RecoveredAuthorization},
    context_interface::{either::Either, transaction::TransactionType},
    primitives::{eip4844::VERSIONED_HASH_VERSION_KZG, hardfork::SpecId},
};

/// The price that a message offers per gas.
#[derive(Debug, Clone, Copy, Default)]
struct MessageFees {
    cap: u128,
    tip: u128,
}

/// Builds the message of a request, without its gas limit.
///
/// A message that offers nothing for its gas sees a base fee of zero, so that `eth_call` needs no balance and no
/// contract sees a price below the base fee. The same goes for blob gas.
pub(super) fn fill_in(
    request: TransactionRequest,
    env: &mut EvmEnv,
    limits: &mut LimitTracker<'_>,
) -> Result<TxEnv, CallError> {
    let chain_id = env.cfg_env.chain_id;
    if let Some(have) = request.chain_id.filter(|have| *have != chain_id) {
        return Err(CallRejection::ChainId { have, want: chain_id }.into());
    }
    let caller = request.from.unwrap_or_default();
    let kind = request.to.unwrap_or(TxKind::Create);
    let fees = fees(&request, caller, env)?;
    let max_fee_per_blob_gas = blob_fee(&request, caller, env)?;
    let tx_type = transaction_type(&request, kind, caller, env.cfg_env.spec)?;
    let access_list = match tx_type {
        TransactionType::Legacy => None,
        _ => request.access_list,
    };
    Ok(TxEnv {
        tx_type: tx_type.into(),
        caller,
        gas_limit: 0,
        gas_price: fees.cap,
        gas_priority_fee: env.cfg_env.spec.is_enabled_in(SpecId::LONDON).then_some(fees.tip),
        kind,
        value: request.value.unwrap_or_default(),
        data: request.input.into_input().unwrap_or_default(),
        // The nonce is not checked, and a creation counts from the one in the state.
        nonce: 0,
        chain_id: Some(chain_id),
        access_list: access_list.unwrap_or_default(),
        blob_hashes: request.blob_versioned_hashes.unwrap_or_default(),
        max_fee_per_blob_gas,
        authorization_list: recovered(request.authorization_list.unwrap_or_default(), limits)?,
    })
}

/// Validates and returns the fees of a request. Before London only `gasPrice` has a meaning.
fn fees(
    request: &TransactionRequest,
    address: Address,
    env: &mut EvmEnv,
) -> Result<MessageFees, CallRejection> {
    let dynamic = request.max_fee_per_gas.or(request.max_priority_fee_per_gas).is_some();
    if request.gas_price.is_some() && dynamic {
        return Err(CallRejection::ConflictingFees);
    }
    if !env.cfg_env.spec.is_enabled_in(SpecId::LONDON) {
        return Ok(MessageFees { cap: request.gas_price.unwrap_or_default(), tip: 0 });
    }
    let cap = request.gas_price.or(request.max_fee_per_gas).unwrap_or_default();
    let tip = request.gas_price.or(request.max_priority_fee_per_gas).unwrap_or_default();
    if cap == 0 && tip == 0 {
        env.block_env.basefee = 0;
        return Ok(MessageFees::default());
    }
    if cap < tip {
        return Err(CallRejection::TipAboveFee { address, tip, cap });
    }
    let base_fee = env.block_env.basefee;
    if cap < u128::from(base_fee) {
        return Err(CallRejection::FeeBelowBase { address, cap, base_fee });
    }
    Ok(MessageFees { cap, tip })
}

/// Returns the price that a request offers per blob gas.
fn blob_fee(request: &TransactionRequest, address: Address, env: &mut EvmEnv) -> Result<u128, CallRejection> {
    let cap = request.max_fee_per_blob_gas.unwrap_or_default();
    let Some(hashes) = &request.blob_versioned_hashes else { return Ok(0) };
    let Some(price) = &mut env.block_env.blob_excess_gas_and_price else { return Ok(cap) };
    if cap == 0 {
        price.blob_gasprice = 0;
    }
    if cap < price.blob_gasprice && !hashes.is_empty() {
        let base_fee = price.blob_gasprice;
        return Err(CallRejection::BlobFeeBelowBase { address, cap, base_fee });
    }
    Ok(cap)
}

/// The type of transaction that can carry what a request asks for.
///
/// Contracts cannot observe the type, so the newest type of the fork stands for all earlier ones.
fn transaction_type(
    request: &TransactionRequest,
    kind: TxKind,
    sender: Address,
    spec: SpecId,
) -> Result<TransactionType, CallRejection> {
    match (&request.blob_versioned_hashes, &request.authorization_list) {
        (Some(_), Some(_)) => Err(CallRejection::TypeNotSupported),
        (Some(hashes), None) => {
            check_blobs(hashes, kind)?;
            supported(TransactionType::Eip4844, spec, SpecId::CANCUN)
        }
        (None, Some(_)) if kind.is_create() => Err(CallRejection::AuthorizationsInCreation { sender }),
        (None, Some(list)) if list.is_empty() => Err(CallRejection::NoAuthorizations { sender }),
        (None, Some(_)) => supported(TransactionType::Eip7702, spec, SpecId::PRAGUE),
        (None, None) if spec.is_enabled_in(SpecId::LONDON) => Ok(TransactionType::Eip1559),
        (None, None) if spec.is_enabled_in(SpecId::BERLIN) => Ok(TransactionType::Eip2930),
        (None, None) => Ok(TransactionType::Legacy),
    }
}

fn supported(
    tx_type: TransactionType,
    spec: SpecId,
    since: SpecId,
) -> Result<TransactionType, CallRejection> {
    if spec.is_enabled_in(since) { Ok(tx_type) } else { Err(CallRejection::TypeNotSupported) }
}

fn check_blobs(hashes: &[B256], kind: TxKind) -> Result<(), CallRejection> {
    if kind.is_create() {
        return Err(CallRejection::BlobsInCreation);
    }
    if hashes.is_empty() {
        return Err(CallRejection::NoBlobs);
    }
    match hashes.iter().position(|hash| hash[0] != VERSIONED_HASH_VERSION_KZG) {
        Some(index) => Err(CallRejection::BlobVersion { index }),
        None => Ok(()),
    }
}

/// Recovers the signers of the authorizations here, because it is slow and the EVM would not check the deadline.
fn recovered(
    list: Vec<SignedAuthorization>,
    limits: &mut LimitTracker<'_>,
) -> Result<Vec<Either<SignedAuthorization, RecoveredAuthorization>>, StopReason> {
    let recover = |signed: SignedAuthorization| {
        limits.check_limits()?;
        Ok(Either::Right(signed.into_recovered()))
    };
    list.into_iter().map(recover).collect()
}
