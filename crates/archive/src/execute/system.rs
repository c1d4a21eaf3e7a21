//! Calls that the protocol itself makes to contracts, before and after the transactions of a block.

use super::BlockEvm;
use crate::state::StateSource;
use alloy_eips::{
    eip2935::HISTORY_STORAGE_ADDRESS,
    eip4788::{BEACON_ROOTS_ADDRESS, SYSTEM_ADDRESS},
    eip7002::{WITHDRAWAL_REQUEST_PREDEPLOY_ADDRESS, WITHDRAWAL_REQUEST_TYPE},
    eip7251::{CONSOLIDATION_REQUEST_PREDEPLOY_ADDRESS, CONSOLIDATION_REQUEST_TYPE},
    eip7685::Requests,
};
use alloy_primitives::{Address, B256, Bytes, KECCAK256_EMPTY};
use revm::{
    Database, DatabaseCommit, ExecuteEvm,
    context::{
        ContextSetters, ContextTr, TxEnv,
        result::{EVMError, ExecutionResult, HaltReason},
    },
    handler::{EthFrame, Handler, MainnetHandler, SystemCallTx},
};

/// The gas of a system call, by EIP-4788, 2935, 7002 and 7251. revm's own constant is higher, because it
/// includes the state gas of a fork to come.
const SYSTEM_CALL_GAS: u64 = 30_000_000;

/// The contracts that collect requests, in the order of the requests: name, address, type.
const REQUEST_CONTRACTS: [(&str, Address, u8); 2] = [
    ("withdrawal requests (EIP-7002)", WITHDRAWAL_REQUEST_PREDEPLOY_ADDRESS, WITHDRAWAL_REQUEST_TYPE),
    (
        "consolidation requests (EIP-7251)",
        CONSOLIDATION_REQUEST_PREDEPLOY_ADDRESS,
        CONSOLIDATION_REQUEST_TYPE,
    ),
];

/// Why a step of the protocol around the transactions makes a block invalid.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the texts name the fields")]
pub enum SystemFault {
    #[error("the contract for {name} at {address} has no code")]
    NoCode { name: &'static str, address: Address },
    #[error("the contract for {name} at {address} failed: {reason}")]
    Failed { name: &'static str, address: Address, reason: String },
    #[error("the system call to {address} cannot be executed: {reason}")]
    Evm { address: Address, reason: String },
    #[error(
        "the deposit log {log} of transaction {transaction}: {field}: expected {expected}, found {found}"
    )]
    DepositLog { transaction: usize, log: usize, field: &'static str, expected: usize, found: String },
}

/// Hands the hash of the parent to the history contract (EIP-2935). A contract without code or that fails changes
/// nothing.
pub(super) fn store_parent_hash<S: StateSource>(
    evm: &mut BlockEvm<S>,
    hash: B256,
) -> Result<(), SystemFault> {
    system_call(evm, HISTORY_STORAGE_ADDRESS, hash.0.into()).map(drop)
}

/// Hands the root of the parent beacon block to its contract (EIP-4788). A contract without code or that fails
/// changes nothing.
pub(super) fn store_beacon_root<S: StateSource>(
    evm: &mut BlockEvm<S>,
    root: B256,
) -> Result<(), SystemFault> {
    system_call(evm, BEACON_ROOTS_ADDRESS, root.0.into()).map(drop)
}

/// Collects the requests of withdrawals and consolidations. Here a contract without code or that fails makes the
/// block invalid.
pub(super) fn append_requests<S: StateSource>(
    evm: &mut BlockEvm<S>,
    requests: &mut Requests,
) -> Result<(), SystemFault> {
    for (name, address, kind) in REQUEST_CONTRACTS {
        if !has_code(evm, address)? {
            return Err(SystemFault::NoCode { name, address });
        }
        let failed = |reason| Err(SystemFault::Failed { name, address, reason });
        let output = match system_call(evm, address, Bytes::new())? {
            ExecutionResult::Success { output, .. } => output.into_data(),
            ExecutionResult::Revert { output, .. } => return failed(format!("reverted with {output}")),
            ExecutionResult::Halt { reason, .. } => return failed(format!("halted with {reason:?}")),
        };
        if !output.is_empty() {
            requests.push_request_with_type(kind, output);
        }
    }
    Ok(())
}

fn has_code<S: StateSource>(evm: &mut BlockEvm<S>, address: Address) -> Result<bool, SystemFault> {
    let account = evm.ctx.db_mut().basic(address);
    let account = account.map_err(|cause| SystemFault::Evm { address, reason: cause.to_string() })?;
    Ok(account.is_some_and(|account| account.code_hash != KECCAK256_EMPTY))
}

fn system_call<S: StateSource>(
    evm: &mut BlockEvm<S>,
    address: Address,
    data: Bytes,
) -> Result<ExecutionResult<HaltReason>, SystemFault> {
    let mut message = TxEnv::new_system_tx_with_caller(SYSTEM_ADDRESS, address, data);
    message.gas_limit = SYSTEM_CALL_GAS;
    evm.ctx.set_tx(message);
    let result = MainnetHandler::<_, EVMError<S::Error>, EthFrame>::default()
        .run_system_call(evm)
        .map_err(|cause| SystemFault::Evm { address, reason: cause.to_string() })?;
    let state = evm.finalize();
    evm.ctx.db_mut().commit(state);
    Ok(result)
}
