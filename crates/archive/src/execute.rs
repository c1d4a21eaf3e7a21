//! Executes a block on the EVM: what the protocol does before its transactions, the transactions, and what the
//! protocol does after them.
//!
//! The EVM is revm. The steps around the transactions are written here because `alloy-evm`'s block executor differs
//! from Ethereum in some of them: it drains the DAO after the transactions, accepts request contracts
//! without code, gives system calls more gas, and accepts deposit logs of any layout.

mod dao; // the balances that the DAO fork moves
mod deposits; // deposit logs → deposit requests
mod system; // calls of the protocol itself

use crate::{
    chain::{Block, BlockRules, Transaction},
    check::ExecutionSummary,
    eip1283,
    state::{StateChanges, StateSource, WorkingState},
    store::StoreError,
};
use alloy_consensus::{Eip658Value, Receipt as PlainReceipt, ReceiptEnvelope, Transaction as _};
use alloy_eips::eip7685::Requests;
use alloy_evm::{FromRecoveredTx, block::state_changes::post_block_balance_increments};
use alloy_hardforks::EthereumHardforks;
use alloy_primitives::{Address, B256, Bloom};
use revm::{
    Context, DatabaseCommit, ExecuteEvm, MainBuilder, MainContext, MainnetEvm,
    context::{ContextTr, TxEnv, result::EVMError},
    database_interface::DatabaseCommitExt,
    handler::MainnetContext,
};
pub(crate) use system::SystemFault;

/// The receipt of a transaction, with its bloom.
pub type Receipt = ReceiptEnvelope;

/// The EVM on the state that a block changes.
type BlockEvm<S> = MainnetEvm<MainnetContext<WorkingState<S>>>;

/// The result of executing a block.
#[derive(Debug)]
pub struct BlockExecutionResult {
    /// A receipt per transaction, in order.
    pub receipts: Vec<Receipt>,
    /// Requests of the block to the consensus layer (EIP-7685).
    pub requests: Requests,
    pub gas_used: u64,
    pub blob_gas_used: u64,
    pub changes: StateChanges,
    pub state_root: B256,
}

impl BlockExecutionResult {
    /// Returns the values that the header must commit to.
    pub(crate) fn outcome(&self) -> ExecutionSummary {
        ExecutionSummary {
            gas_used: self.gas_used,
            receipts_root: self.receipts_root(),
            logs_bloom: self.logs_bloom(),
            blob_gas_used: self.blob_gas_used,
            requests_hash: Some(self.requests.requests_hash()),
            state_root: self.state_root,
        }
    }

    /// The union of the receipts' blooms.
    pub fn logs_bloom(&self) -> Bloom {
        self.receipts.iter().fold(Bloom::ZERO, |bloom, receipt| bloom | *receipt.logs_bloom())
    }

    pub fn receipts_root(&self) -> B256 {
        alloy_consensus::proofs::calculate_receipt_root(&self.receipts)
    }
}

/// Gives the state root after some changes: asked at the end of a block, and after each transaction before
/// Byzantium.
pub trait RootAfter {
    type Error: std::error::Error + Send + Sync + 'static;
    /// Applies further changes, and gives the root after them.
    fn root_after(&mut self, changes: &StateChanges) -> Result<B256, Self::Error>;
}

/// Executes a block on the state that its parent left.
///
/// `senders` are those of its transactions. Nothing is compared with the header here.
pub fn execute_block<S, R>(
    rules: BlockRules<'_>,
    block: &Block,
    senders: &[Address],
    source: S,
    roots: &mut R,
) -> Result<BlockExecutionResult, ExecutionFault>
where
    S: StateSource,
    R: RootAfter,
{
    let mut run = BlockRun::new(rules, block, source);
    let receipts_carry_roots = !rules.is_byzantium_active_at_block(block.header.number);
    let mut changes = StateChanges::default();

    run.before_transactions()?;
    for (index, (transaction, sender)) in block.body.transactions.iter().zip(senders).enumerate() {
        run.execute_transaction(transaction, *sender)
            .map_err(|cause| ExecutionFault::Transaction { index, cause })?;
        if receipts_carry_roots {
            let step = run.evm.ctx.db_mut().take_changes();
            let root = roots.root_after(&step).map_err(ExecutionFault::root)?;
            changes.extend(step);
            run.set_root_of_last_receipt(root);
        }
    }
    let requests = run.after_transactions()?;
    let last_step = run.evm.ctx.db_mut().take_changes();
    let state_root = roots.root_after(&last_step).map_err(ExecutionFault::root)?;
    changes.extend(last_step);
    let BlockRun { receipts, gas_used, blob_gas_used, .. } = run;
    Ok(BlockExecutionResult { receipts, requests, gas_used, blob_gas_used, changes, state_root })
}

/// A block under execution.
struct BlockRun<'a, S: StateSource> {
    rules: BlockRules<'a>,
    block: &'a Block,
    evm: BlockEvm<S>,
    receipts: Vec<Receipt>,
    gas_used: u64,
    blob_gas_used: u64,
}

impl<'a, S: StateSource> BlockRun<'a, S> {
    fn new(rules: BlockRules<'a>, block: &'a Block, source: S) -> Self {
        let env = rules.evm_env(&block.header);
        let mut evm = Context::mainnet()
            .with_db(WorkingState::new(source))
            .with_block(env.block_env)
            .with_cfg(env.cfg_env)
            .build_mainnet();
        if rules.has_eip1283(block.header.number) {
            eip1283::install(&mut evm.instruction);
        }
        let receipts = Vec::with_capacity(block.body.transactions.len());
        Self { rules, block, evm, receipts, gas_used: 0, blob_gas_used: 0 }
    }

    fn before_transactions(&mut self) -> Result<(), ExecutionFault> {
        let header = &self.block.header;
        if self.rules.is_dao_fork_block(header.number) {
            let delete_empty = self.rules.is_spurious_dragon_active_at_block(header.number);
            dao::drain(self.evm.ctx.db_mut(), delete_empty).map_err(ExecutionFault::state)?;
        }
        if self.rules.is_prague_active_at_timestamp(header.timestamp) {
            system::store_parent_hash(&mut self.evm, header.parent_hash)?;
        }
        if let Some(root) = header.parent_beacon_block_root {
            system::store_beacon_root(&mut self.evm, root)?;
        }
        Ok(())
    }

    fn execute_transaction(
        &mut self,
        transaction: &Transaction,
        sender: Address,
    ) -> Result<(), TransactionRejection> {
        let left = self.block.header.gas_limit.saturating_sub(self.gas_used);
        let limit = transaction.gas_limit();
        if limit > left {
            return Err(TransactionRejection::GasLimit { limit, left });
        }
        let env = TxEnv::from_recovered_tx(transaction, sender);
        let done = self.evm.transact(env).map_err(|cause| match cause {
            EVMError::Transaction(cause) => TransactionRejection::Invalid(cause.to_string()),
            cause => TransactionRejection::Failed(cause.to_string()),
        })?;
        self.evm.ctx.db_mut().commit(done.state);
        self.gas_used += done.result.tx_gas_used();
        self.blob_gas_used += transaction.blob_gas_used().unwrap_or_default();
        let receipt = PlainReceipt {
            status: Eip658Value::Eip658(done.result.is_success()),
            cumulative_gas_used: self.gas_used,
            logs: done.result.into_logs(),
        };
        self.receipts.push(Receipt::from_typed(transaction.tx_type(), receipt));
        Ok(())
    }

    /// Before Byzantium a receipt carries the state root in place of the status.
    fn set_root_of_last_receipt(&mut self, root: B256) {
        if let Some(ReceiptEnvelope::Legacy(receipt)) = self.receipts.last_mut() {
            receipt.receipt.status = Eip658Value::PostState(root);
        }
    }

    /// Collects the requests of the block, then pays rewards and withdrawals.
    fn after_transactions(&mut self) -> Result<Requests, ExecutionFault> {
        let mut requests = Requests::default();
        if self.rules.is_prague_active_at_timestamp(self.block.header.timestamp) {
            let contract = self.rules.deposit_contract();
            deposits::append_requests(contract, &self.receipts, &mut requests)?;
            system::append_requests(&mut self.evm, &mut requests)?;
        }
        let withdrawals = self.block.body.withdrawals.as_ref().map(|list| list.as_slice());
        let increments = post_block_balance_increments(
            self.rules,
            &self.evm.ctx.block,
            &self.block.body.ommers,
            withdrawals,
        );
        self.evm.ctx.db_mut().increment_balances(increments).map_err(ExecutionFault::state)?;
        Ok(requests)
    }
}

/// Why a block cannot be executed.
#[derive(Debug, thiserror::Error)]
pub enum ExecutionFault {
    #[error("transaction {index}: {cause}")]
    Transaction { index: usize, cause: TransactionRejection },
    /// A system call fails, or a deposit log cannot be read.
    #[error(transparent)]
    System(#[from] SystemFault),
    #[error("state: {0}")]
    State(Box<dyn std::error::Error + Send + Sync>),
    #[error("state root: {0}")]
    Root(Box<dyn std::error::Error + Send + Sync>),
}

/// Why a transaction cannot be executed where it stands.
#[derive(Debug, thiserror::Error)]
pub enum TransactionRejection {
    #[error("gas limit: expected at most {left}, which is left in the block, found {limit}")]
    GasLimit { limit: u64, left: u64 },
    #[error("not valid: {0}")]
    Invalid(String),
    /// The EVM could not execute it; the state may be unreadable.
    #[error("cannot be executed: {0}")]
    Failed(String),
}

impl ExecutionFault {
    /// The failure of the store behind this, if that is what it is.
    pub(crate) fn into_store_error(self) -> Result<StoreError, Self> {
        match self {
            Self::Root(cause) => cause.downcast().map(|cause| *cause).map_err(Self::Root),
            Self::State(cause) => cause.downcast().map(|cause| *cause).map_err(Self::State),
            other => Err(other),
        }
    }

    fn state(cause: impl std::error::Error + Send + Sync + 'static) -> Self {
        Self::State(Box::new(cause))
    }

    fn root(cause: impl std::error::Error + Send + Sync + 'static) -> Self {
        Self::Root(Box::new(cause))
    }
}
