//! Reads of block data and of the state as of a block, on one unchanging view of the archive.

mod logs;
mod state_at;

pub use logs::{FoundLogs, LogLimits, LogsError};
pub(crate) use state_at::StateAt;
pub(crate) use state_at::{account_as_of, code_by_hash, storage_as_of};

use crate::{
    chain::{Block, ChainSpec, Transaction},
    rows::{BlockRow, BlockSummary, ReceiptRow, TransactionRow},
    store::{ACCOUNTS_CACHED, AccountCache, META_HEAD, SnapshotShared, StoreError},
    tables::{
        ACCOUNTS, BLOCK_NUMBERS, BLOCKS, CODE, LOG_INDEX, LOGS, META, RAW_RECORDS, RECEIPTS, STORAGE,
        TRANSACTION_ORDINALS, TRANSACTIONS,
    },
};
use alloy_consensus::{BlockBody, Header, Typed2718};
use alloy_eips::{eip2718::Decodable2718, eip4895::Withdrawals};
use alloy_primitives::{Address, B256};
use redb::{Database, ReadOnlyTable, ReadableDatabase, ReadableTable};
use std::{ops::Range, sync::Arc};

/// A block without its transactions.
#[derive(Debug, Clone)]
pub struct BlockData {
    /// Hash, size, and where its transactions and logs are.
    pub summary: BlockSummary,
    pub header: Header,
    pub uncles: Vec<Header>,
    /// Its withdrawals, from Shanghai on.
    pub withdrawals: Option<Withdrawals>,
}

/// A transaction and its position in the chain.
#[derive(Debug, Clone)]
pub struct TransactionData {
    pub transaction: Transaction,
    pub hash: B256,
    /// Who signed it.
    pub sender: Address,
    /// Its place in the block.
    pub index: u32,
    pub block: InBlock,
}

/// A receipt without its logs, and its position in the chain.
#[derive(Debug, Clone, Copy)]
pub struct ReceiptData {
    pub row: ReceiptRow,
    pub transaction_hash: B256,
    /// Place of the transaction in the block.
    pub index: u32,
    pub block: InBlock,
}

impl TransactionData {
    /// Its EIP-2718 type; zero for a legacy one.
    pub fn transaction_type(&self) -> u8 {
        self.transaction.ty()
    }
}

impl ReceiptData {
    pub fn log_ordinals(&self) -> Range<u64> {
        self.row.first_log..self.row.first_log + u64::from(self.row.logs)
    }
}

/// The fields of a block that transactions and receipts repeat.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct InBlock {
    pub number: u64,
    pub hash: B256,
    pub timestamp: u64,
    /// Its base fee, from London on.
    pub base_fee: Option<u64>,
}

/// The archive as of one commit.
pub struct Snapshot {
    shared: Arc<SnapshotShared>,
    cached_accounts: Arc<AccountCache>,
    head: u64,
    head_hash: B256,
    head_header: Header,
    blocks: ReadOnlyTable<u64, &'static [u8]>,
    block_numbers: ReadOnlyTable<&'static [u8; 32], u64>,
    transactions: ReadOnlyTable<u64, &'static [u8]>,
    transaction_ordinals: ReadOnlyTable<&'static [u8; 32], (u64, u64)>,
    receipts: ReadOnlyTable<u64, &'static [u8]>,
    pub(crate) logs: ReadOnlyTable<u64, &'static [u8]>,
    pub(crate) log_index: ReadOnlyTable<&'static [u8; 37], &'static [u8]>,
    raw_records: ReadOnlyTable<u64, &'static [u8]>,
    accounts: ReadOnlyTable<&'static [u8; 28], &'static [u8]>,
    storage: ReadOnlyTable<&'static [u8; 60], &'static [u8]>,
    code: ReadOnlyTable<&'static [u8; 32], &'static [u8]>,
}

impl Snapshot {
    /// The database as it is now. `before` is the snapshot that was taken before it.
    pub(crate) fn take(
        database: &Database,
        shared: Arc<SnapshotShared>,
        before: Option<&Self>,
    ) -> Result<Self, StoreError> {
        let transaction = database.begin_read()?;
        let head = read_head(&transaction.open_table(META)?)?;
        let blocks = transaction.open_table(BLOCKS)?;
        let (head_hash, head_header) = {
            let row = blocks.get(head)?.ok_or(StoreError::MissingRow("the head block"))?;
            let row = BlockRow::read(row.value())?;
            (row.summary.hash, row.header()?)
        };
        let cached_accounts = match before {
            Some(before) if hash_of(&blocks, before.head)? == Some(before.head_hash) => {
                Arc::clone(&before.cached_accounts)
            }
            _ => Arc::new(AccountCache::new(ACCOUNTS_CACHED)),
        };
        Ok(Self {
            shared,
            cached_accounts,
            head,
            head_hash,
            head_header,
            blocks,
            block_numbers: transaction.open_table(BLOCK_NUMBERS)?,
            transactions: transaction.open_table(TRANSACTIONS)?,
            transaction_ordinals: transaction.open_table(TRANSACTION_ORDINALS)?,
            receipts: transaction.open_table(RECEIPTS)?,
            logs: transaction.open_table(LOGS)?,
            log_index: transaction.open_table(LOG_INDEX)?,
            raw_records: transaction.open_table(RAW_RECORDS)?,
            accounts: transaction.open_table(ACCOUNTS)?,
            storage: transaction.open_table(STORAGE)?,
            code: transaction.open_table(CODE)?,
        })
    }

    pub fn chain(&self) -> &ChainSpec {
        &self.shared.chain
    }

    pub fn head(&self) -> u64 {
        self.head
    }

    pub fn head_hash(&self) -> B256 {
        self.head_hash
    }

    pub fn head_gas_limit(&self) -> u64 {
        self.head_header.gas_limit
    }

    /// Returns the number of the block with this hash, or `None` if the archive does not have it.
    pub fn number_of(&self, hash: B256) -> Result<Option<u64>, StoreError> {
        Ok(self.block_numbers.get(&hash.0)?.map(|number| number.value()))
    }

    pub fn genesis_hash(&self) -> Result<B256, StoreError> {
        Ok(self.summary(0)?.ok_or(StoreError::MissingRow("the genesis block"))?.hash)
    }

    /// Where a block stands and what belongs to it.
    pub fn summary(&self, number: u64) -> Result<Option<BlockSummary>, StoreError> {
        self.with_block(number, |row| Ok(row.summary))
    }

    pub fn header(&self, number: u64) -> Result<Option<Header>, StoreError> {
        // Most calls are about the head.
        if number == self.head {
            return Ok(Some(self.head_header.clone()));
        }
        self.with_block(number, |row| Ok(row.header()?))
    }

    /// A block as it was imported.
    pub(crate) fn whole_block(&self, number: u64) -> Result<Block, StoreError> {
        let data = self.block(number)?.ok_or(StoreError::MissingRow("a block"))?;
        let transactions = self.transactions(number)?.into_iter().map(|data| data.transaction).collect();
        let body = BlockBody { transactions, ommers: data.uncles, withdrawals: data.withdrawals };
        Ok(Block { header: data.header, body })
    }

    /// A block without its transactions.
    pub fn block(&self, number: u64) -> Result<Option<BlockData>, StoreError> {
        self.with_block(number, |row| {
            Ok(BlockData {
                summary: row.summary,
                header: row.header()?,
                uncles: row.uncles()?,
                withdrawals: row.withdrawals()?,
            })
        })
    }

    /// An uncle by its place in a block.
    pub fn uncle(&self, number: u64, index: usize) -> Result<Option<Header>, StoreError> {
        let uncles = self.with_block(number, |row| Ok(row.uncles()?))?;
        Ok(uncles.and_then(|uncles| uncles.into_iter().nth(index)))
    }

    pub fn transaction(&self, hash: B256) -> Result<Option<TransactionData>, StoreError> {
        let Some((number, ordinal)) = self.ordinal_of(hash)? else { return Ok(None) };
        let (summary, block) = self.in_block(number)?;
        self.transaction_in(&summary, block, ordinal).map(Some)
    }

    /// A transaction by its place in a block.
    pub fn transaction_at(&self, number: u64, index: u64) -> Result<Option<TransactionData>, StoreError> {
        let Some(ordinal) = self.ordinal_at(number, index)? else { return Ok(None) };
        let (summary, block) = self.in_block(number)?;
        self.transaction_in(&summary, block, ordinal).map(Some)
    }

    /// All transactions of a block, in order.
    pub fn transactions(&self, number: u64) -> Result<Vec<TransactionData>, StoreError> {
        let (summary, block) = self.in_block(number)?;
        let ordinals = ordinals(summary.first_transaction, summary.transactions);
        ordinals.map(|ordinal| self.transaction_in(&summary, block, ordinal)).collect()
    }

    /// The hashes of a block's transactions, in order.
    pub fn transaction_hashes(&self, summary: &BlockSummary) -> Result<Vec<B256>, StoreError> {
        let rows = self.transactions.range(ordinals(summary.first_transaction, summary.transactions))?;
        rows.map(|row| Ok(TransactionRow::read(row?.1.value())?.hash)).collect()
    }

    /// A receipt by the hash of its transaction.
    pub fn receipt(&self, hash: B256) -> Result<Option<ReceiptData>, StoreError> {
        let Some((number, ordinal)) = self.ordinal_of(hash)? else { return Ok(None) };
        let (summary, block) = self.in_block(number)?;
        self.receipt_in(&summary, block, ordinal, hash).map(Some)
    }

    /// All receipts of a block, in order; nothing where there is no such block.
    pub fn receipts(&self, number: u64) -> Result<Option<Vec<ReceiptData>>, StoreError> {
        if number > self.head {
            return Ok(None);
        }
        let (summary, block) = self.in_block(number)?;
        let hashes = self.transaction_hashes(&summary)?;
        let ordinals = ordinals(summary.first_transaction, summary.transactions);
        let receipts = ordinals.zip(hashes);
        receipts
            .map(|(ordinal, hash)| self.receipt_in(&summary, block, ordinal, hash))
            .collect::<Result<_, _>>()
            .map(Some)
    }

    /// The raw transaction records of a block, a JSON array; nothing where there are none.
    pub fn raw_records(&self, number: u64) -> Result<Option<Vec<u8>>, StoreError> {
        Ok(self.raw_records.get(number)?.map(|records| records.value().to_vec()))
    }

    /// The state as a block left it. The block must be there.
    pub fn state_at(&self, number: u64) -> StateAt<'_> {
        StateAt::new(self, number)
    }

    fn with_block<T>(
        &self,
        number: u64,
        read: impl FnOnce(BlockRow<'_>) -> Result<T, StoreError>,
    ) -> Result<Option<T>, StoreError> {
        let Some(row) = self.blocks.get(number)? else { return Ok(None) };
        read(BlockRow::read(row.value())?).map(Some)
    }

    fn in_block(&self, number: u64) -> Result<(BlockSummary, InBlock), StoreError> {
        let summary = self.summary(number)?.ok_or(StoreError::MissingRow("a block"))?;
        let (hash, timestamp, base_fee) = (summary.hash, summary.timestamp, summary.base_fee);
        Ok((summary, InBlock { number, hash, timestamp, base_fee }))
    }

    fn ordinal_of(&self, hash: B256) -> Result<Option<(u64, u64)>, StoreError> {
        Ok(self.transaction_ordinals.get(&hash.0)?.map(|found| found.value()))
    }

    fn ordinal_at(&self, number: u64, index: u64) -> Result<Option<u64>, StoreError> {
        let summary = self.summary(number)?;
        Ok(summary
            .filter(|summary| index < u64::from(summary.transactions))
            .map(|summary| summary.first_transaction + index))
    }

    fn transaction_in(
        &self,
        summary: &BlockSummary,
        block: InBlock,
        ordinal: u64,
    ) -> Result<TransactionData, StoreError> {
        let row = self.transactions.get(ordinal)?.ok_or(StoreError::MissingRow("a transaction"))?;
        let row = TransactionRow::read(row.value())?;
        let transaction = Transaction::decode_2718_exact(row.encoded).map_err(|_| row.corrupt())?;
        let index = index_in(summary, ordinal);
        Ok(TransactionData { transaction, hash: row.hash, sender: row.sender, index, block })
    }

    fn receipt_in(
        &self,
        summary: &BlockSummary,
        block: InBlock,
        ordinal: u64,
        transaction_hash: B256,
    ) -> Result<ReceiptData, StoreError> {
        let row = self.receipts.get(ordinal)?.ok_or(StoreError::MissingRow("a receipt"))?;
        let row = ReceiptRow::read(row.value())?;
        Ok(ReceiptData { row, transaction_hash, index: index_in(summary, ordinal), block })
    }
}

impl std::fmt::Debug for Snapshot {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Snapshot").field("head", &self.head).finish_non_exhaustive()
    }
}

pub(crate) fn hash_of(
    blocks: &impl ReadableTable<u64, &'static [u8]>,
    number: u64,
) -> Result<Option<B256>, StoreError> {
    let Some(row) = blocks.get(number)? else { return Ok(None) };
    Ok(Some(BlockRow::read(row.value())?.summary.hash))
}

/// Number of the newest block of an archive.
pub(crate) fn read_head(meta: &impl ReadableTable<&'static str, &'static [u8]>) -> Result<u64, StoreError> {
    let head = meta.get(META_HEAD)?.ok_or(StoreError::MissingRow("the head"))?;
    let head = <[u8; 8]>::try_from(head.value()).map_err(|_| StoreError::MissingRow("the head"))?;
    Ok(u64::from_be_bytes(head))
}

fn ordinals(first: u64, count: u32) -> Range<u64> {
    first..first + u64::from(count)
}

fn index_in(summary: &BlockSummary, ordinal: u64) -> u32 {
    u32::try_from(ordinal.saturating_sub(summary.first_transaction)).unwrap_or(u32::MAX)
}
