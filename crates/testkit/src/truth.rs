//! Compares the answers of an archive with the model of its chain.

use crate::model::{MinedLog, Model, logs_of};
use alloy_consensus::{Eip658Value, Transaction as _, TxReceipt, Typed2718};
use alloy_primitives::{Address, B256, Bytes, Log, LogData, TxKind, U256};
use archive::{
    LogFilter, LogLimits, LogsError, Recipient, Snapshot, StateSource, StoreError, TransactionOutcome,
};
use chain_builder::BuiltBlock;
use std::{
    fmt::{self, Debug, Display},
    ops::{ControlFlow, RangeInclusive},
};

/// A chain with everything that can be asked about it.
#[derive(Debug)]
pub struct Truth {
    /// The chain.
    pub model: Model,
    addresses: Vec<Address>,
    slots: Vec<(Address, U256)>,
    filters: Vec<LogFilter>,
}

/// A fault that a comparison has found.
#[derive(Debug)]
pub enum Finding {
    /// The archive says that it cannot answer.
    Error(String),
    /// The archive gives a wrong answer.
    Wrong(String),
}

type Checked = Result<(), Finding>;

impl Truth {
    /// Collects the addresses, slots and filters that a chain can be asked about.
    pub fn new(model: Model) -> Self {
        let addresses: Vec<Address> = model.addresses().into_iter().collect();
        let slots = model.slots().into_iter().collect();
        let by_address = addresses.iter().map(|address| (vec![*address], vec![]));
        let topics: Vec<B256> = model.topics().into_iter().collect();
        let by_topic = topics.iter().flat_map(|topic| {
            (0..4).map(|position| {
                let mut topics = vec![vec![]; position];
                topics.push(vec![*topic]);
                (vec![], topics)
            })
        });
        let filters = by_address.chain(by_topic).map(|(addresses, topics)| LogFilter { addresses, topics });
        let filters = filters.collect();
        Self { model, addresses, slots, filters }
    }

    /// Compares everything: every block, every state, every filter.
    pub fn check(&self, snapshot: &Snapshot) -> Checked {
        self.check_sample(snapshot, 0..=snapshot.head())
    }

    /// Compares the head, its whole state, the filters, and some more blocks with their whole states.
    pub fn check_sample(&self, snapshot: &Snapshot, blocks: impl IntoIterator<Item = u64>) -> Checked {
        self.check_end(snapshot)?;
        self.check_filters(snapshot)?;
        for number in blocks.into_iter().chain([snapshot.head()]) {
            self.check_block(snapshot, number)?;
            self.check_state(snapshot, number)?;
        }
        Ok(())
    }

    /// Checks that nothing after the head is known.
    fn check_end(&self, snapshot: &Snapshot) -> Checked {
        let head = snapshot.head();
        let Some(known) = self.model.header(head) else {
            return Err(Finding::Wrong(format!("the head is {head}, beyond the chain's")));
        };
        let hash = snapshot.summary(head)?.map(|summary| summary.hash);
        same("hash of the head", hash, Some(known.hash()))?;
        same("a block after the head", snapshot.block(head + 1)?.map(drop), None)?;
        for later in self.model.blocks().iter().filter(|block| block.block.header.number > head).take(3) {
            same("a later hash", snapshot.number_of(later.hash)?, None)?;
            for transaction in &later.block.body.transactions {
                let hash = *transaction.tx_hash();
                same("a later transaction", snapshot.transaction(hash)?.map(|found| found.hash), None)?;
                same("a later receipt", snapshot.receipt(hash)?.map(|found| found.row), None)?;
            }
        }
        Ok(())
    }

    /// Compares a block with all that is in it.
    pub fn check_block(&self, snapshot: &Snapshot, number: u64) -> Checked {
        let Some(found) = snapshot.block(number)? else {
            return Err(Finding::Wrong(format!("block {number} is not there")));
        };
        let header = self.model.header(number).map(|header| (header.hash(), header.clone_inner()));
        same("header", Some((found.summary.hash, found.header)), header)?;
        let Some(block) = self.model.block(number) else { return Ok(()) };
        same("number", snapshot.number_of(block.hash)?, Some(number))?;
        same("uncles", found.uncles, block.block.body.ommers.clone())?;
        same("withdrawals", found.withdrawals, block.block.body.withdrawals.clone())?;
        same("size", found.summary.size as usize, block.rlp().len())?;
        self.check_transactions(snapshot, block)?;
        check_receipts(snapshot, block)?;
        let all = LogFilter::default();
        same("logs", find_logs(snapshot, &all, number..=number)?, logs_of(block))
    }

    fn check_transactions(&self, snapshot: &Snapshot, block: &BuiltBlock) -> Checked {
        let number = block.block.header.number;
        let found = snapshot.transactions(number)?;
        let expected = block.block.body.transactions.iter().zip(&block.senders).enumerate();
        same("number of transactions", found.len(), block.senders.len())?;
        for (found, (index, (transaction, sender))) in found.iter().zip(expected) {
            same("transaction", &found.transaction, transaction)?;
            let expected = (*transaction.tx_hash(), *sender, index as u32, number, block.hash);
            let summary = (found.hash, found.sender, found.index, found.block.number, found.block.hash);
            same("place of a transaction", summary, expected)?;
            let by_hash = snapshot.transaction(found.hash)?.map(|found| (found.block.number, found.index));
            same("transaction by hash", by_hash, Some((number, index as u32)))?;
        }
        Ok(())
    }

    /// Compares every account that ever was, with its code, and every slot that ever was written.
    pub(crate) fn check_state(&self, snapshot: &Snapshot, number: u64) -> Checked {
        let state = snapshot.state_at(number);
        for address in &self.addresses {
            let expected = self.model.account_at(*address, number);
            same(format_args!("account {address} at {number}"), state.account(*address)?, expected)?;
            let code = self.model.code_at(*address, number);
            same(format_args!("code of {address} at {number}"), state.code_of(*address)?, code)?;
        }
        for (address, slot) in &self.slots {
            let expected = self.model.storage_at(*address, *slot, number);
            same(
                format_args!("slot {slot} of {address} at {number}"),
                state.storage(*address, *slot)?,
                expected,
            )?;
        }
        Ok(())
    }

    /// Compares the logs of every address and of every topic at every position.
    fn check_filters(&self, snapshot: &Snapshot) -> Checked {
        let blocks = 0..=snapshot.head();
        for filter in &self.filters {
            let found = find_logs(snapshot, filter, blocks.clone())?;
            same(format_args!("{filter:?}"), found, self.model.logs(filter, blocks.clone()))?;
        }
        Ok(())
    }
}

fn check_receipts(snapshot: &Snapshot, block: &BuiltBlock) -> Checked {
    let found = snapshot.receipts(block.block.header.number)?.unwrap_or_default();
    same("number of receipts", found.len(), block.receipts.len())?;
    let mut gas_before = 0;
    for (index, (found, expected)) in found.iter().zip(&block.receipts).enumerate() {
        let (transaction, sender) = (&block.block.body.transactions[index], block.senders[index]);
        let outcome = match expected.status_or_post_state() {
            Eip658Value::Eip658(success) => TransactionOutcome::Status(success),
            Eip658Value::PostState(root) => TransactionOutcome::Root(root),
        };
        let gas = expected.cumulative_gas_used();
        let row = &found.row;
        same("outcome", row.outcome, outcome)?;
        same("gas", (row.gas_used, row.cumulative_gas_used), (gas - gas_before, gas))?;
        same("sender", row.from, sender)?;
        let to = match transaction.kind() {
            TxKind::Call(to) => Recipient::Called(to),
            TxKind::Create => Recipient::Created(sender.create(transaction.nonce())),
        };
        same("recipient", row.to, to)?;
        same("type", row.transaction_type, transaction.ty())?;
        let price = transaction.effective_gas_price(block.block.header.base_fee_per_gas);
        same("gas price", row.effective_gas_price, price)?;
        same("number of logs", row.logs as usize, expected.logs().len())?;
        same("hash of a receipt", found.transaction_hash, *transaction.tx_hash())?;
        gas_before = gas;
    }
    Ok(())
}

/// The logs that an archive finds.
pub(crate) fn find_logs(
    snapshot: &Snapshot,
    filter: &LogFilter,
    blocks: RangeInclusive<u64>,
) -> Result<Vec<MinedLog>, Finding> {
    let mut logs = Vec::new();
    let found = snapshot.logs(blocks, filter, LogLimits::NONE)?;
    let flow = found.read(|log| {
        let topics = log.topics().iter().map(|topic| B256::new(*topic)).collect();
        logs.push(MinedLog {
            block_number: log.block_number(),
            block_hash: B256::new(*log.block_hash()),
            transaction_hash: B256::new(*log.transaction_hash()),
            transaction_index: u64::from(log.transaction_index()),
            log_index: u64::from(log.log_index()),
            log: Log {
                address: Address::new(*log.address()),
                data: LogData::new_unchecked(topics, Bytes::copy_from_slice(log.data())),
            },
        });
        ControlFlow::<()>::Continue(())
    })?;
    same("end of the logs", flow.is_continue(), true)?;
    same("count of logs", found.len(), logs.len() as u64)?;
    Ok(logs)
}

fn same<T: PartialEq + Debug>(what: impl Display, found: T, expected: T) -> Checked {
    if found == expected {
        return Ok(());
    }
    Err(Finding::Wrong(format!("{what}: expected {expected:?}, found {found:?}")))
}

impl Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Error(cause) => write!(f, "no answer: {cause}"),
            Self::Wrong(what) => write!(f, "wrong answer: {what}"),
        }
    }
}

impl std::error::Error for Finding {}

impl From<StoreError> for Finding {
    fn from(cause: StoreError) -> Self {
        Self::Error(cause.to_string())
    }
}

impl From<LogsError> for Finding {
    fn from(cause: LogsError) -> Self {
        Self::Error(cause.to_string())
    }
}
