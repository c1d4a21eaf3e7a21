//! Executes a block: its system calls, transactions, rewards and withdrawals, by `alloy-evm`'s executor.

use crate::{
    chain::{Block, Rules, Transaction},
    check::Outcome,
    state::{Changes, StateSource, WorkingState},
    store::StoreError,
};
use alloy_consensus::{Eip658Value, Receipt as PlainReceipt, ReceiptEnvelope, TxType};
use alloy_eips::{eip7685::Requests, eip7928::compute_block_access_list_hash};
use alloy_evm::{
    Evm, EvmFactory,
    block::{BalIndexedDatabase, BlockExecutionError, BlockExecutor},
    eth::{
        EthBlockExecutionCtx, EthBlockExecutor, EthEvmFactory,
        receipt_builder::{ReceiptBuilder, ReceiptBuilderCtx},
    },
};
use alloy_hardforks::EthereumHardforks;
use alloy_primitives::{Address, B256, Bloom};
use revm::database_interface::bal::BalDatabase;
use std::borrow::Cow;

/// The receipt of a transaction, with its bloom.
pub type Receipt = ReceiptEnvelope;

/// What executing a block gave.
#[derive(Debug)]
pub struct Executed {
    /// A receipt per transaction, in order.
    pub receipts: Vec<Receipt>,
    /// What the block asks of the consensus layer (EIP-7685).
    pub requests: Requests,
    /// Gas used by all transactions.
    pub gas_used: u64,
    /// Blob gas used by all transactions.
    pub blob_gas_used: u64,
    /// Hash of what the block read and wrote (EIP-7928), from Amsterdam on.
    pub access_list_hash: Option<B256>,
    /// What the block changed.
    pub changes: Changes,
    /// The state root after the block.
    pub state_root: B256,
}

impl Executed {
    /// What the header of the block must say.
    pub(crate) fn outcome(&self) -> Outcome {
        Outcome {
            gas_used: self.gas_used,
            receipts_root: self.receipts_root(),
            logs_bloom: self.logs_bloom(),
            blob_gas_used: self.blob_gas_used,
            requests_hash: Some(self.requests.requests_hash()),
            block_access_list_hash: self.access_list_hash,
            state_root: self.state_root,
        }
    }

    /// The union of the receipts' blooms.
    pub fn logs_bloom(&self) -> Bloom {
        self.receipts.iter().fold(Bloom::ZERO, |bloom, receipt| bloom | *receipt.logs_bloom())
    }

    /// The root over the receipts.
    pub fn receipts_root(&self) -> B256 {
        alloy_consensus::proofs::calculate_receipt_root(&self.receipts)
    }
}

/// Gives the state root after some changes: asked at the end of a block, and after each transaction before
/// Byzantium.
pub trait RootAfter {
    /// What can go wrong.
    type Error: std::error::Error + Send + Sync + 'static;
    /// Applies further changes, and gives the root after them.
    fn root_after(&mut self, changes: &Changes) -> Result<B256, Self::Error>;
}

/// Executes a block on the state that its parent left.
///
/// `senders` are those of its transactions. Nothing is compared with the header here.
pub fn execute_block<S, R>(
    rules: Rules<'_>,
    block: &Block,
    senders: &[Address],
    source: S,
    roots: &mut R,
) -> Result<Executed, ExecutionFault>
where
    S: StateSource,
    R: RootAfter,
{
    let state = working_state(rules, block, source);
    let evm = EthEvmFactory::default().create_evm(state, rules.evm_env(&block.header));
    let mut executor = EthBlockExecutor::new(evm, context(block), rules, Receipts);
    let receipts_carry_roots = !rules.is_byzantium_active_at_block(block.header.number);
    let mut changes = Changes::default();

    executor.apply_pre_execution_changes().map_err(ExecutionFault::system)?;
    for (index, (transaction, sender)) in block.body.transactions.iter().zip(senders).enumerate() {
        let transaction = alloy_consensus::transaction::Recovered::new_unchecked(transaction, *sender);
        executor
            .execute_transaction_with_index(transaction, index)
            .map_err(|cause| ExecutionFault::transaction(index, cause))?;
        if receipts_carry_roots {
            let step = executor.evm_mut().db_mut().take_changes();
            let root = roots.root_after(&step).map_err(ExecutionFault::root)?;
            changes.extend(step);
            if let Some(receipt) = executor.receipts.last_mut() {
                set_root(receipt, root);
            }
        }
    }
    executor.evm_mut().db_mut().set_bal_index(block.body.transactions.len() as u64 + 1);
    let (mut evm, result) = executor.finish().map_err(ExecutionFault::system)?;
    let last_step = evm.db_mut().take_changes();
    let access_list = evm.db_mut().bal_state.take_built_alloy_bal();
    let state_root = roots.root_after(&last_step).map_err(ExecutionFault::root)?;
    changes.extend(last_step);
    Ok(Executed {
        receipts: result.receipts,
        requests: result.requests,
        gas_used: result.gas_used,
        blob_gas_used: result.blob_gas_used,
        access_list_hash: access_list.map(|accounts| compute_block_access_list_hash(&accounts)),
        changes,
        state_root,
    })
}

/// The state that a block runs on. From Amsterdam on it takes down what the block reads and writes.
fn working_state<S: StateSource>(rules: Rules<'_>, block: &Block, source: S) -> BalDatabase<WorkingState<S>> {
    let state = BalDatabase::new(WorkingState::new(source));
    if rules.is_amsterdam_active_at_timestamp(block.header.timestamp) {
        return state.with_bal_builder();
    }
    state
}

fn context(block: &Block) -> EthBlockExecutionCtx<'_> {
    EthBlockExecutionCtx {
        parent_hash: block.header.parent_hash,
        parent_beacon_block_root: block.header.parent_beacon_block_root,
        ommers: &block.body.ommers,
        withdrawals: block.body.withdrawals.as_ref().map(|withdrawals| Cow::Borrowed(withdrawals.as_slice())),
        extra_data: block.header.extra_data.clone(),
        tx_count_hint: Some(block.body.transactions.len()),
        slot_number: block.header.slot_number,
    }
}

/// Before Byzantium a receipt carries the state root in place of the status.
fn set_root(receipt: &mut Receipt, root: B256) {
    if let ReceiptEnvelope::Legacy(receipt) = receipt {
        receipt.receipt.status = Eip658Value::PostState(root);
    }
}

/// Makes receipts of our transaction type.
#[derive(Debug, Clone, Copy)]
struct Receipts;

impl ReceiptBuilder for Receipts {
    type Transaction = Transaction;
    type Receipt = Receipt;

    fn build_receipt<E: Evm>(&self, ctx: ReceiptBuilderCtx<'_, TxType, E>) -> Receipt {
        let receipt = PlainReceipt {
            status: Eip658Value::Eip658(ctx.result.is_success()),
            cumulative_gas_used: ctx.cumulative_gas_used,
            logs: ctx.result.into_logs(),
        };
        Receipt::from_typed(ctx.tx_type, receipt)
    }
}

/// Why a block cannot be executed.
#[derive(Debug, thiserror::Error)]
pub enum ExecutionFault {
    /// A transaction is not valid where it stands.
    #[error("transaction {index}: {cause}")]
    Transaction {
        /// Its place in the block.
        index: usize,
        /// What is wrong with it.
        cause: Box<BlockExecutionError>,
    },
    /// A system call or the end of the block failed.
    #[error("outside of the transactions: {0}")]
    System(Box<BlockExecutionError>),
    /// A state root could not be computed.
    #[error("state root: {0}")]
    Root(Box<dyn std::error::Error + Send + Sync>),
}

impl ExecutionFault {
    /// The failure of the store behind this, if that is what it is.
    pub(crate) fn into_store_error(self) -> Result<StoreError, Self> {
        match self {
            Self::Root(cause) => cause.downcast().map(|cause| *cause).map_err(Self::Root),
            other => Err(other),
        }
    }

    fn transaction(index: usize, cause: BlockExecutionError) -> Self {
        Self::Transaction { index, cause: Box::new(cause) }
    }

    fn system(cause: BlockExecutionError) -> Self {
        Self::System(Box::new(cause))
    }

    fn root(cause: impl std::error::Error + Send + Sync + 'static) -> Self {
        Self::Root(Box::new(cause))
    }
}
