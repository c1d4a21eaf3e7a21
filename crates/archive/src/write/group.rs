//! A group of blocks that become durable together: the open tables of one transaction, and how a proven block
//! is written into them.

use crate::{
    chain::{Block, Transaction},
    check::CheckedBlock,
    execute::{BlockExecutionResult, Receipt},
    logs::{LogBlock, LogIndexer, LogPacker, LogRow},
    read::{account_as_of, code_by_hash, hash_of, storage_as_of},
    rows::{
        AccountRow, BlockRow, BlockSummary, ReceiptRow, Recipient, TransactionOutcome, TransactionRow,
        account_key, storage_key,
    },
    state::{AccountChange, AccountState, StateChanges, StateSource},
    store::{META_HEAD, StoreError},
    tables::{
        ACCOUNTS, BLOCK_NUMBERS, BLOCKS, CODE, LOG_INDEX, LOGS, META, RAW_RECORDS, RECEIPTS, STORAGE,
        TRANSACTION_ORDINALS, TRANSACTIONS, TRIE_NODES,
    },
};
use alloy_consensus::{Eip658Value, Transaction as _, TxReceipt, Typed2718};
use alloy_eips::eip2718::Encodable2718;
use alloy_primitives::{Address, B256, TxKind, U256, map::AddressMap};
use alloy_trie::EMPTY_ROOT_HASH;
use redb::{ReadableTable, Table, WriteTransaction};
use revm::state::Bytecode;
use std::cell::OnceCell;

type BytesTable<'txn, K> = Table<'txn, K, &'static [u8]>;

/// The tables of block data.
pub(crate) struct BlockTables<'txn> {
    pub(crate) blocks: BytesTable<'txn, u64>,
    block_numbers: Table<'txn, &'static [u8; 32], u64>,
    transactions: BytesTable<'txn, u64>,
    transaction_ordinals: Table<'txn, &'static [u8; 32], (u64, u64)>,
    receipts: BytesTable<'txn, u64>,
    logs: BytesTable<'txn, u64>,
    pub(crate) log_index: BytesTable<'txn, &'static [u8; 37]>,
    pub(crate) meta: BytesTable<'txn, &'static str>,
}

/// The tables of the state.
pub(crate) struct StateTables<'txn> {
    pub(crate) accounts: BytesTable<'txn, &'static [u8; 28]>,
    storage: BytesTable<'txn, &'static [u8; 60]>,
    code: BytesTable<'txn, &'static [u8; 32]>,
    pub(crate) trie_nodes: BytesTable<'txn, &'static [u8]>,
}

impl<'txn> BlockTables<'txn> {
    pub(crate) fn open(transaction: &'txn WriteTransaction) -> Result<Self, StoreError> {
        transaction.open_table(RAW_RECORDS)?;
        Ok(Self {
            blocks: transaction.open_table(BLOCKS)?,
            block_numbers: transaction.open_table(BLOCK_NUMBERS)?,
            transactions: transaction.open_table(TRANSACTIONS)?,
            transaction_ordinals: transaction.open_table(TRANSACTION_ORDINALS)?,
            receipts: transaction.open_table(RECEIPTS)?,
            logs: transaction.open_table(LOGS)?,
            log_index: transaction.open_table(LOG_INDEX)?,
            meta: transaction.open_table(META)?,
        })
    }

    /// Writes a proven block, and gives the row that it got.
    pub(crate) fn store(
        &mut self,
        new: &NewBlock<'_>,
        parent_summary: Option<&BlockSummary>,
        indexer: &mut LogIndexer,
    ) -> Result<BlockSummary, StoreError> {
        let summary = new.summary_after(parent_summary);
        let (header, body) = (&new.block.header, &new.block.body);
        let row = BlockRow::write(&summary, header, &body.ommers, body.withdrawals.as_ref());
        self.blocks.insert(header.number, row.as_slice())?;
        self.block_numbers.insert(&summary.hash.0, header.number)?;
        self.store_transactions(new, &summary)?;
        self.store_receipts(new, &summary)?;
        self.store_logs(new, &summary, indexer)?;
        self.meta.insert(META_HEAD, header.number.to_be_bytes().as_slice())?;
        Ok(summary)
    }

    fn store_transactions(&mut self, new: &NewBlock<'_>, summary: &BlockSummary) -> Result<(), StoreError> {
        let (mut row, mut encoded) = (Vec::new(), Vec::new());
        for (ordinal, (transaction, sender)) in (summary.first_transaction..).zip(new.transactions()) {
            let hash = *transaction.tx_hash();
            encoded.clear();
            transaction.encode_2718(&mut encoded);
            TransactionRow { hash, sender, encoded: &encoded }.write(&mut row);
            self.transactions.insert(ordinal, row.as_slice())?;
            self.transaction_ordinals.insert(&hash.0, (new.block.header.number, ordinal))?;
        }
        Ok(())
    }

    fn store_receipts(&mut self, new: &NewBlock<'_>, summary: &BlockSummary) -> Result<(), StoreError> {
        let mut row = Vec::new();
        let mut counters = BlockCounters { first_log: summary.first_log, logs: 0, gas: 0 };
        let receipts = new.transactions().zip(new.receipts);
        for (ordinal, ((transaction, sender), receipt)) in (summary.first_transaction..).zip(receipts) {
            new.receipt_row(transaction, sender, receipt, &counters).write(&mut row);
            self.receipts.insert(ordinal, row.as_slice())?;
            counters.logs += receipt.logs().len() as u32;
            counters.gas = receipt.cumulative_gas_used();
        }
        Ok(())
    }

    fn store_logs(
        &mut self,
        new: &NewBlock<'_>,
        summary: &BlockSummary,
        indexer: &mut LogIndexer,
    ) -> Result<(), StoreError> {
        if summary.logs == 0 {
            return Ok(());
        }
        let (number, timestamp) = (new.block.header.number, summary.timestamp);
        let block = LogBlock { number, hash: summary.hash, timestamp };
        let mut packer = LogPacker::resume(&mut self.logs, summary.first_log)?;
        let receipts = new.transactions().zip(new.receipts).enumerate();
        let logs = receipts.flat_map(|(index, ((transaction, _), receipt))| {
            receipt.logs().iter().map(move |log| (index, transaction, log))
        });
        for (log_index, (index, transaction, log)) in logs.enumerate() {
            let ordinal = packer.push(&LogRow {
                block: &block,
                transaction_index: index as u32,
                transaction_hash: transaction.tx_hash(),
                log_index: log_index as u32,
                address: &log.address,
                topics: log.data.topics(),
                data: &log.data.data,
            })?;
            indexer.add(ordinal, &log.address, log.data.topics())?;
        }
        Ok(packer.finish()?)
    }
}

/// Logs and gas of a block before one of its transactions.
struct BlockCounters {
    first_log: u64,
    logs: u32,
    gas: u64,
}

/// A block that was proven, with what its execution gave.
pub(crate) struct NewBlock<'a> {
    pub(crate) block: &'a Block,
    pub(crate) hash: B256,
    pub(crate) size: u32,
    pub(crate) total_difficulty: U256,
    pub(crate) senders: &'a [Address],
    pub(crate) receipts: &'a [Receipt],
    pub(crate) blob_gas_price: u128,
}

impl<'a> NewBlock<'a> {
    fn transactions(&self) -> impl Iterator<Item = (&'a Transaction, Address)> {
        self.block.body.transactions.iter().zip(self.senders.iter().copied())
    }

    fn summary_after(&self, parent: Option<&BlockSummary>) -> BlockSummary {
        let logs: usize = self.receipts.iter().map(|receipt| receipt.logs().len()).sum();
        BlockSummary {
            hash: self.hash,
            total_difficulty: self.total_difficulty,
            timestamp: self.block.header.timestamp,
            base_fee: self.block.header.base_fee_per_gas,
            size: self.size,
            first_transaction: parent
                .map_or(0, |parent| parent.first_transaction + u64::from(parent.transactions)),
            transactions: self.block.body.transactions.len() as u32,
            first_log: parent.map_or(0, |parent| parent.first_log + u64::from(parent.logs)),
            logs: logs as u32,
        }
    }

    fn receipt_row(
        &self,
        transaction: &Transaction,
        sender: Address,
        receipt: &Receipt,
        before: &BlockCounters,
    ) -> ReceiptRow {
        let outcome = match receipt.status_or_post_state() {
            Eip658Value::Eip658(success) => TransactionOutcome::Status(success),
            Eip658Value::PostState(root) => TransactionOutcome::Root(root),
        };
        let to = match transaction.kind() {
            TxKind::Call(address) => Recipient::Called(address),
            TxKind::Create => Recipient::Created(sender.create(transaction.nonce())),
        };
        let blob_gas_used = transaction.blob_gas_used().unwrap_or(0);
        ReceiptRow {
            transaction_type: transaction.ty(),
            outcome,
            cumulative_gas_used: receipt.cumulative_gas_used(),
            gas_used: receipt.cumulative_gas_used() - before.gas,
            effective_gas_price: transaction.effective_gas_price(self.block.header.base_fee_per_gas),
            from: sender,
            to,
            blob_gas_used,
            blob_gas_price: if blob_gas_used > 0 { self.blob_gas_price } else { 0 },
            first_log: before.first_log + u64::from(before.logs),
            logs: receipt.logs().len() as u32,
            bloom: *receipt.logs_bloom(),
        }
    }
}

impl<'txn> StateTables<'txn> {
    pub(crate) fn open(transaction: &'txn WriteTransaction) -> Result<Self, StoreError> {
        Ok(Self {
            accounts: transaction.open_table(ACCOUNTS)?,
            storage: transaction.open_table(STORAGE)?,
            code: transaction.open_table(CODE)?,
            trie_nodes: transaction.open_table(TRIE_NODES)?,
        })
    }

    /// Writes what a proven block changed.
    pub(crate) fn store(
        &mut self,
        number: u64,
        changes: &StateChanges,
        storage_roots: &AddressMap<B256>,
    ) -> Result<(), StoreError> {
        for (hash, code) in &changes.code {
            self.code.insert(&hash.0, code.original_byte_slice())?;
        }
        let mut row = Vec::new();
        for (address, change) in &changes.accounts {
            row.clear();
            if let Some(account) = change.account {
                let storage_root = storage_roots.get(address).copied().unwrap_or(EMPTY_ROOT_HASH);
                AccountRow { account, storage_root }.write(&mut row);
            }
            self.accounts.insert(&account_key(*address, number), row.as_slice())?;
            self.store_slots(number, *address, change)?;
        }
        Ok(())
    }

    fn store_slots(
        &mut self,
        number: u64,
        address: Address,
        change: &AccountChange,
    ) -> Result<(), StoreError> {
        if change.wiped {
            for slot in self.live_slots(address)? {
                if !change.storage.contains_key(&slot) {
                    self.storage.insert(&storage_key(address, slot, number), [].as_slice())?;
                }
            }
        }
        for (slot, value) in &change.storage {
            let value = value.to_be_bytes::<32>();
            let zeros = value.iter().take_while(|byte| **byte == 0).count();
            self.storage.insert(&storage_key(address, *slot, number), &value[zeros..])?;
        }
        Ok(())
    }

    /// The slots of an account that are not zero, in order.
    fn live_slots(&self, address: Address) -> Result<Vec<U256>, StoreError> {
        let mut live = Vec::new();
        let mut next = Some(U256::ZERO);
        let end = storage_key(address, U256::MAX, u64::MAX);
        while let Some(from) = next {
            let mut rows = self.storage.range::<&[u8; 60]>(&storage_key(address, from, 0)..=&end)?;
            let Some(row) = rows.next() else { break };
            let slot = U256::from_be_slice(&row?.0.value()[20..52]);
            if !storage_as_of(&self.storage, address, slot, u64::MAX)?.is_zero() {
                live.push(slot);
            }
            next = slot.checked_add(U256::ONE);
        }
        Ok(live)
    }
}

/// The state as the last stored block left it, read through the open tables.
pub(crate) struct LatestState<'a, 'txn> {
    blocks: &'a BlockTables<'txn>,
    state: &'a StateTables<'txn>,
    /// The first error of a read, because the EVM returns it wrapped in a form that hides its type.
    failure: OnceCell<StoreError>,
}

impl<'a, 'txn> LatestState<'a, 'txn> {
    pub(crate) fn new(blocks: &'a BlockTables<'txn>, state: &'a StateTables<'txn>) -> Self {
        Self { blocks, state, failure: OnceCell::new() }
    }

    /// The first failure of a read, if any read has failed.
    pub(crate) fn failure(&self) -> Option<StoreError> {
        self.failure.get().cloned()
    }

    fn noted<T>(&self, read: Result<T, StoreError>) -> Result<T, StoreError> {
        read.inspect_err(|cause| drop(self.failure.set(cause.clone())))
    }
}

impl StateSource for LatestState<'_, '_> {
    type Error = StoreError;

    fn account(&self, address: Address) -> Result<Option<AccountState>, StoreError> {
        let row = self.noted(account_as_of(&self.state.accounts, address, u64::MAX))?;
        Ok(row.map(|row| row.account))
    }

    fn storage(&self, address: Address, slot: U256) -> Result<U256, StoreError> {
        self.noted(storage_as_of(&self.state.storage, address, slot, u64::MAX))
    }

    fn code(&self, hash: B256) -> Result<Bytecode, StoreError> {
        self.noted(code_by_hash(&self.state.code, hash))
    }

    fn block_hash(&self, number: u64) -> Result<B256, StoreError> {
        self.noted(hash_of(&self.blocks.blocks, number).map(Option::unwrap_or_default))
    }
}

/// The result of a block's execution, ready to be written.
pub(crate) struct ProvenExecution {
    pub(crate) checked: CheckedBlock,
    pub(crate) executed: BlockExecutionResult,
    pub(crate) changed: super::roots::ChangedTries,
}
