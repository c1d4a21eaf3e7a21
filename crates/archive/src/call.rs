//! Runs a message at a block, over any state, and discards what it changes.
//!
//! In the order in which a message passes through: [`overrides`] turn the block and the state into what the
//! caller wants them to be, [`message`] fills in what the request leaves out, [`machine`] runs it while
//! [`limits`] enforces time, memory and cancellation, and [`error`] translates failures into the messages of geth.

mod error;
mod host; // what the interpreter runs in
mod machine;
mod message;
mod overrides;
mod precompiles;
mod reader;
mod limits;

#[cfg(test)]
pub(crate) mod tests;

pub use error::CallError;
pub(crate) use error::{CallRejection, Halt};
pub use limits::{CallLimits, Deadline, StopReason};
pub use overrides::Overrides;

use crate::{chain::BlockRules, state::StateSource};
use alloy_consensus::Header;
use alloy_evm::EvmEnv;
use alloy_primitives::{Address, Bytes, U256};
use alloy_rpc_types_eth::TransactionRequest;
use limits::LimitTracker;
use machine::Machine;
use overrides::Overlay;
use reader::StateReader;
use revm::{
    Database,
    context::{
        TxEnv,
        result::{EVMError, ExecutionResult, ResultGas},
    },
    primitives::hardfork::SpecId,
};
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Runs a message at the block with this header, on the state that `source` shows, and gives what it returns.
///
/// A creation gives the code that it would leave behind.
pub fn call<S: StateSource>(
    source: S,
    rules: BlockRules<'_>,
    header: &Header,
    request: TransactionRequest,
    overrides: Overrides,
    limits: &CallLimits,
) -> Result<Bytes, CallError> {
    catch_panic(|| {
        let mut prepared = PreparedCall::new(source, rules, header, request, overrides, limits)?;
        let gas = prepared.gas_asked().unwrap_or(limits.gas_cap).min(limits.gas_cap);
        match prepared.run(gas)? {
            CallResult::Returned { output, .. } => Ok(output),
            CallResult::Reverted { data } => Err(CallError::Reverted { data }),
            CallResult::Halted(halt) => Err(CallError::Halted(halt)),
        }
    })
}

/// Turns a panic into an error, because callers choose the code and the data that run here.
///
/// The closure owns what it changes, so no half-changed value survives the panic.
pub(crate) fn catch_panic<T>(work: impl FnOnce() -> Result<T, CallError>) -> Result<T, CallError> {
    catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<String>().map(String::as_str);
        let text = text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("no message");
        Err(CallError::Panicked { message: text.to_owned() })
    })
}

/// The result of a message that passed validation and ran.
#[derive(Debug)]
pub(crate) enum CallResult {
    /// It succeeded.
    Returned { output: Bytes, gas: ResultGas },
    /// It reverted and returned the remaining gas.
    Reverted { data: Bytes },
    /// The EVM halted it, which consumed all of its gas.
    Halted(Halt),
}

/// A message that is ready to run any number of times, each time from the same state.
pub(crate) struct PreparedCall<'l, S> {
    env: EvmEnv,
    has_eip1283: bool,
    tx: TxEnv,
    gas: Option<u64>,
    reader: StateReader<'l, S>,
}

impl<'l, S: StateSource> PreparedCall<'l, S> {
    pub(crate) fn new(
        source: S,
        rules: BlockRules<'_>,
        header: &Header,
        request: TransactionRequest,
        overrides: Overrides,
        limits: &'l CallLimits,
    ) -> Result<Self, CallError> {
        let mut tracker = LimitTracker::new(limits);
        let mut env = overrides::block_env(rules, header, overrides.block.as_ref())?;
        env.cfg_env.memory_limit = limits.memory_bytes_max;
        let overlay = Overlay::new(overrides, env.cfg_env.spec)?;
        let gas = request.gas;
        let tx = message::fill_in(request, &mut env, &mut tracker)?;
        let has_eip1283 = rules.has_eip1283(env.block_env.number.saturating_to());
        Ok(Self { env, has_eip1283, tx, gas, reader: StateReader::new(source, overlay, tracker) })
    }

    /// The gas that the request named, if it did.
    pub(crate) fn gas_asked(&self) -> Option<u64> {
        self.gas
    }

    /// The fork whose rules the message runs by.
    pub(crate) fn spec(&self) -> SpecId {
        self.env.cfg_env.spec
    }

    /// The gas limit of the block that the message sees.
    pub(crate) fn block_gas_limit(&self) -> u64 {
        self.env.block_env.gas_limit
    }

    /// The message, with every default filled in.
    pub(crate) fn message(&self) -> &TxEnv {
        &self.tx
    }

    /// An account's balance before the message.
    pub(crate) fn balance(&mut self, address: Address) -> Result<U256, CallError> {
        let account = self.reader.basic(address).map_err(CallError::from)?;
        Ok(account.map_or(U256::ZERO, |account| account.balance))
    }

    /// Whether an account has code before the message.
    pub(crate) fn has_code(&mut self, address: Address) -> Result<bool, CallError> {
        let account = self.reader.basic(address).map_err(CallError::from)?;
        Ok(account.is_some_and(|account| !account.is_empty_code_hash()))
    }

    /// Runs the message with this much gas.
    pub(crate) fn run(&mut self, gas: u64) -> Result<CallResult, CallError> {
        self.reader.limits.start()?;
        let tx = TxEnv { gas_limit: gas, ..self.tx.clone() };
        let result = Machine::new(&mut self.reader, &self.env, tx, self.has_eip1283).run();
        // The tracker's reason is more precise than the EVM error that it caused.
        if let Some(stop) = self.reader.limits.stopped() {
            return Err(CallError::Stopped(stop));
        }
        match result {
            Ok(ExecutionResult::Success { output, gas, .. }) => {
                Ok(CallResult::Returned { output: output.into_data(), gas })
            }
            Ok(ExecutionResult::Revert { output, .. }) => Ok(CallResult::Reverted { data: output }),
            Ok(ExecutionResult::Halt { reason, .. }) => Ok(error::halted(reason, self.reader.limits.fault())),
            Err(EVMError::Transaction(cause)) => {
                Err(CallError::Refused(error::refusal(cause, &self.tx, &self.env.cfg_env)))
            }
            Err(EVMError::Database(cause)) => Err(cause.into()),
            Err(EVMError::Header(cause)) => Err(CallError::Internal(cause.to_string())),
            Err(EVMError::Custom(cause)) => Err(CallError::Internal(cause)),
            Err(EVMError::CustomAny(cause)) => Err(CallError::Internal(cause.to_string())),
        }
    }
}
