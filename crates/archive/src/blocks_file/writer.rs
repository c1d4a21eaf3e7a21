//! One transaction of the file: blocks and headers that come, and those that make room for them.

use super::{
    BlocksFileLimits,
    ranges::Ranges,
    rows::{EncodedBlock, StoredBody, StoredHeader},
    snapshot::{CHAIN_ID, GENESIS, StoredChainId, read_ranges},
    tables::{BLOCK_NUMBERS, BODIES, CHAIN, HEADERS, RANGES, RECEIPTS, TRANSACTION_PLACES},
};
use crate::store::StoreError;
use redb::{ReadableTable, ReadableTableMetadata, Table, WriteTransaction};

/// The open tables of one transaction.
pub(super) struct BlocksFileWriter<'txn> {
    chain: Table<'txn, &'static str, &'static [u8]>,
    range_rows: Table<'txn, u64, u64>,
    headers: Table<'txn, u64, &'static [u8]>,
    bodies: Table<'txn, u64, &'static [u8]>,
    receipts: Table<'txn, u64, &'static [u8]>,
    block_numbers: Table<'txn, &'static [u8; 32], u64>,
    transaction_places: Table<'txn, &'static [u8; 32], (u64, u32)>,
    ranges: Ranges,
}

impl<'txn> BlocksFileWriter<'txn> {
    /// Opens all tables, and makes those that are not there.
    pub(super) fn open(transaction: &'txn WriteTransaction) -> Result<Self, StoreError> {
        let range_rows = transaction.open_table(RANGES)?;
        Ok(Self {
            chain: transaction.open_table(CHAIN)?,
            ranges: read_ranges(&range_rows)?,
            range_rows,
            headers: transaction.open_table(HEADERS)?,
            bodies: transaction.open_table(BODIES)?,
            receipts: transaction.open_table(RECEIPTS)?,
            block_numbers: transaction.open_table(BLOCK_NUMBERS)?,
            transaction_places: transaction.open_table(TRANSACTION_PLACES)?,
        })
    }

    pub(super) fn set_chain(&mut self, chain: StoredChainId) -> Result<(), StoreError> {
        self.chain.insert(CHAIN_ID, chain.chain_id.to_be_bytes().as_slice())?;
        if let Some(genesis) = chain.genesis {
            self.chain.insert(GENESIS, genesis.as_slice())?;
        }
        Ok(())
    }

    /// Writes a whole block. Another one of the same number is replaced.
    pub(super) fn put_block(&mut self, block: &EncodedBlock) -> Result<(), StoreError> {
        let number = block.number();
        if self.ranges.contains(number) {
            self.remove_rows(number)?;
        }
        self.headers.insert(number, block.header.row().as_slice())?;
        self.bodies.insert(number, block.body.as_slice())?;
        self.receipts.insert(number, block.receipts.as_slice())?;
        self.block_numbers.insert(&block.hash().0, number)?;
        for (hash, place) in block.transactions.iter().zip(0_u32..) {
            self.transaction_places.insert(&hash.0, (number, place))?;
        }
        self.ranges.add(number);
        Ok(())
    }

    /// Writes what is known of a header. That of a block that is stored whole stays.
    pub(super) fn put_header(&mut self, header: &StoredHeader) -> Result<(), StoreError> {
        if !self.ranges.contains(header.number) {
            self.headers.insert(header.number, header.row().as_slice())?;
        }
        Ok(())
    }

    /// Drops the lowest blocks, and then the lowest headers, that are more than `limits` allow; at most `most` of either.
    pub(super) fn prune(&mut self, limits: BlocksFileLimits, most: usize) -> Result<(), StoreError> {
        let blocks = over(self.ranges.count(), limits.blocks_max).min(most as u64);
        for _ in 0..blocks {
            let Some(lowest) = self.ranges.pop_lowest() else { break };
            self.remove_rows(lowest)?;
        }
        let headers = over(self.headers.len()?, limits.headers_max).min(most as u64);
        for _ in 0..headers {
            let Some(lowest) = self.headers.first()?.map(|(number, _)| number.value()) else { break };
            if self.ranges.contains(lowest) {
                break;
            }
            self.headers.remove(lowest)?;
        }
        Ok(())
    }

    /// Removes all blocks and headers above a number.
    pub(super) fn remove_above(&mut self, number: u64) -> Result<(), StoreError> {
        while let Some(newest) = self.ranges.pop_above(number) {
            self.remove_rows(newest)?;
        }
        if let Some(first) = number.checked_add(1) {
            self.headers.retain_in(first.., |_, _| false)?;
        }
        Ok(())
    }

    /// Removes a whole block but for its header.
    fn remove_rows(&mut self, number: u64) -> Result<(), StoreError> {
        let body = self.bodies.remove(number)?.map(|row| StoredBody(row.value().to_vec()));
        self.receipts.remove(number)?;
        let header = match self.headers.get(number)? {
            Some(row) => Some(StoredHeader::read(number, row.value())?),
            None => None,
        };
        if let Some(header) = header {
            self.block_numbers.remove(&header.hash.0)?;
        }
        let Some(body) = body else { return Ok(()) };
        for transaction in &body.decode()?.body.transactions {
            let hash = transaction.tx_hash();
            // The same transaction may be in the block that has taken this one's place, or in another one.
            let is_here =
                self.transaction_places.get(&hash.0)?.is_some_and(|place| place.value().0 == number);
            if is_here {
                self.transaction_places.remove(&hash.0)?;
            }
        }
        Ok(())
    }

    /// Writes the ranges, and closes the tables.
    pub(super) fn finish(mut self) -> Result<(), StoreError> {
        let before = read_ranges(&self.range_rows)?;
        for lowest in before.0.keys() {
            self.range_rows.remove(lowest)?;
        }
        for range in self.ranges.iter() {
            self.range_rows.insert(*range.start(), *range.end())?;
        }
        Ok(())
    }
}

fn over(count: u64, most: Option<u64>) -> u64 {
    most.map_or(0, |most| count.saturating_sub(most))
}
