//! Reads of stored blocks, on one unchanging view of the file.

use super::{
    BlocksFileLimits,
    ranges::Ranges,
    rows::{StoredBody, StoredHeader, StoredReceipts},
    tables::{BLOCK_NUMBERS, BODIES, CHAIN, HEADERS, RANGES, RECEIPTS, TRANSACTION_PLACES},
};
use crate::store::StoreError;
use alloy_primitives::B256;
use redb::{Database, ReadOnlyTable, ReadableDatabase, ReadableTable, ReadableTableMetadata};
use std::ops::{ControlFlow, RangeInclusive};

pub(super) const CHAIN_ID: &str = "chain_id";
pub(super) const GENESIS: &str = "genesis";

/// Which chain the blocks are of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StoredChainId {
    pub chain_id: u64,
    /// The hash of block 0, where it is known.
    pub genesis: Option<B256>,
}

/// The file as of one commit.
pub struct BlocksFileSnapshot {
    chain: Option<StoredChainId>,
    ranges: Ranges,
    header_count: u64,
    headers: ReadOnlyTable<u64, &'static [u8]>,
    bodies: ReadOnlyTable<u64, &'static [u8]>,
    receipts: ReadOnlyTable<u64, &'static [u8]>,
    block_numbers: ReadOnlyTable<&'static [u8; 32], u64>,
    transaction_places: ReadOnlyTable<&'static [u8; 32], (u64, u32)>,
}

impl std::fmt::Debug for BlocksFileSnapshot {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("BlocksFileSnapshot").field("ranges", &self.ranges).finish_non_exhaustive()
    }
}

impl BlocksFileSnapshot {
    pub(super) fn take(database: &Database) -> Result<Self, StoreError> {
        let transaction = database.begin_read()?;
        let headers = transaction.open_table(HEADERS)?;
        Ok(Self {
            chain: read_chain(&transaction.open_table(CHAIN)?)?,
            ranges: read_ranges(&transaction.open_table(RANGES)?)?,
            header_count: headers.len()?,
            headers,
            bodies: transaction.open_table(BODIES)?,
            receipts: transaction.open_table(RECEIPTS)?,
            block_numbers: transaction.open_table(BLOCK_NUMBERS)?,
            transaction_places: transaction.open_table(TRANSACTION_PLACES)?,
        })
    }

    /// Which chain it is, once that is stored.
    pub fn chain(&self) -> Option<StoredChainId> {
        self.chain
    }

    /// Numbers of the blocks that are stored whole, upwards, in ranges that do not touch.
    pub fn ranges(&self) -> impl DoubleEndedIterator<Item = RangeInclusive<u64>> + '_ {
        self.ranges.iter()
    }

    pub fn block_count(&self) -> u64 {
        self.ranges.count()
    }

    /// Of how many blocks the header is known.
    pub fn header_count(&self) -> u64 {
        self.header_count
    }

    /// Whether there is more than `limits` allow.
    pub(super) fn is_over(&self, limits: BlocksFileLimits) -> bool {
        let is_over = |count: u64, most: Option<u64>| most.is_some_and(|most| count > most);
        is_over(self.block_count(), limits.blocks_max) || is_over(self.header_count, limits.headers_max)
    }

    pub fn header(&self, number: u64) -> Result<Option<StoredHeader>, StoreError> {
        match self.headers.get(number)? {
            Some(row) => Ok(Some(StoredHeader::read(number, row.value())?)),
            None => Ok(None),
        }
    }

    /// Hands over the headers from the block `top` with this hash downwards, as far as each is the parent of the one above
    /// it. Returns the block at which they end: the next one that is not there, if any of the range.
    pub fn headers_down(
        &self,
        top: (u64, B256),
        lowest: u64,
        mut take: impl FnMut(&StoredHeader) -> ControlFlow<()>,
    ) -> Result<Option<(u64, B256)>, StoreError> {
        let (mut number, mut hash) = top;
        for row in self.headers.range(lowest..=number)?.rev() {
            let (found, row) = row?;
            let header = StoredHeader::read(found.value(), row.value())?;
            if header.number != number || header.hash != hash {
                break;
            }
            if take(&header).is_break() {
                break;
            }
            let Some(below) = number.checked_sub(1).filter(|below| *below >= lowest) else {
                return Ok(None);
            };
            (number, hash) = (below, header.parent);
        }
        Ok((number >= lowest).then_some((number, hash)))
    }

    pub fn body(&self, number: u64) -> Result<Option<StoredBody>, StoreError> {
        Ok(self.bodies.get(number)?.map(|row| StoredBody(row.value().to_vec())))
    }

    pub fn receipts(&self, number: u64) -> Result<Option<StoredReceipts>, StoreError> {
        Ok(self.receipts.get(number)?.map(|row| StoredReceipts(row.value().to_vec())))
    }

    /// The number of a block that is stored whole.
    pub fn number_of(&self, hash: &B256) -> Result<Option<u64>, StoreError> {
        Ok(self.block_numbers.get(&hash.0)?.map(|number| number.value()))
    }

    /// The number of the block of a transaction, and its place in it.
    pub fn place(&self, transaction: &B256) -> Result<Option<(u64, u32)>, StoreError> {
        Ok(self.transaction_places.get(&transaction.0)?.map(|place| place.value()))
    }
}

fn read_chain(
    table: &impl ReadableTable<&'static str, &'static [u8]>,
) -> Result<Option<StoredChainId>, StoreError> {
    let corrupt = || crate::rows::CorruptRow { table: "chain" };
    let Some(chain_id) = table.get(CHAIN_ID)? else { return Ok(None) };
    let chain_id = u64::from_be_bytes(chain_id.value().try_into().map_err(|_| corrupt())?);
    let genesis = match table.get(GENESIS)? {
        Some(hash) => Some(B256::try_from(hash.value()).map_err(|_| corrupt())?),
        None => None,
    };
    Ok(Some(StoredChainId { chain_id, genesis }))
}

pub(super) fn read_ranges(table: &impl ReadableTable<u64, u64>) -> Result<Ranges, StoreError> {
    let mut ranges = Ranges::default();
    for row in table.iter()? {
        let (lowest, newest) = row?;
        if newest.value() < lowest.value() {
            return Err(crate::rows::CorruptRow { table: "ranges" }.into());
        }
        ranges.0.insert(lowest.value(), newest.value());
    }
    Ok(ranges)
}
