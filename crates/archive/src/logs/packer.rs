//! From new logs to packs.

use redb::{ReadableTable, Table};

use super::{
    error::{DamagedLogRow, IndexError},
    pack::{
        BLOCK_BYTES, DATA_ELSEWHERE, PACK_LOGS, PACKED_DATA_MAX, Pack, TRANSACTION_BYTES, data_key, pack_of,
    },
    row::{LogRow, check_topics},
};

type WritableLogTable<'txn> = Table<'txn, u64, &'static [u8]>;

/// Appends the logs of a block to those that are there, in chain order. The last pack is mostly not full, and is
/// rewritten by the next block that has logs.
pub(crate) struct LogPacker<'t, 'txn> {
    table: &'t mut WritableLogTable<'txn>,
    next: u64,
    pack: PackBuilder,
}

impl<'t, 'txn> LogPacker<'t, 'txn> {
    /// Goes on behind the logs that are there. `next` is the ordinal of the first new one.
    pub(crate) fn resume(table: &'t mut WritableLogTable<'txn>, next: u64) -> Result<Self, IndexError> {
        let there = next % PACK_LOGS;
        let mut pack = PackBuilder::default();
        if there > 0 {
            let damaged = |what| DamagedLogRow { what, ordinal: next - 1 };
            let row = table.get(pack_of(next))?.ok_or(damaged("no row"))?;
            let last = Pack::decode(row.value()).filter(|last| last.len() == there);
            pack = PackBuilder::of(&last.ok_or(damaged("the row"))?);
        }
        Ok(Self { table, next, pack })
    }

    /// Appends a log, and gives the ordinal that it got.
    pub(crate) fn push(&mut self, log: &LogRow<'_>) -> Result<u64, IndexError> {
        check_topics(log.topics)?;
        let ordinal = self.next;
        if log.data.len() > PACKED_DATA_MAX {
            self.table.insert(data_key(ordinal), log.data)?;
        }
        self.pack.push(log);
        self.next += 1;
        if self.next.is_multiple_of(PACK_LOGS) {
            self.write(ordinal)?;
        }
        Ok(ordinal)
    }

    /// Writes the pack that is not full.
    pub(crate) fn finish(mut self) -> Result<(), IndexError> {
        if self.next.is_multiple_of(PACK_LOGS) {
            return Ok(());
        }
        self.write(self.next)
    }

    fn write(&mut self, ordinal: u64) -> Result<(), IndexError> {
        self.table.insert(pack_of(ordinal), self.pack.row().as_slice())?;
        self.pack.clear();
        Ok(())
    }

    #[cfg(test)]
    pub(super) fn next(&self) -> u64 {
        self.next
    }
}

/// A pack that still grows, part by part.
#[derive(Debug, Default)]
struct PackBuilder {
    blocks: Vec<[u8; BLOCK_BYTES]>,
    transactions: Vec<[u8; TRANSACTION_BYTES]>,
    places: Vec<[u8; 5]>,
    logs: Vec<u8>,
}

impl PackBuilder {
    fn of(pack: &Pack<'_>) -> Self {
        Self {
            blocks: pack.blocks.to_vec(),
            transactions: pack.transactions.to_vec(),
            places: pack.places.to_vec(),
            logs: pack.logs.to_vec(),
        }
    }

    fn clear(&mut self) {
        self.blocks.clear();
        self.transactions.clear();
        self.places.clear();
        self.logs.clear();
    }

    fn push(&mut self, log: &LogRow<'_>) {
        let block = place_of(&mut self.blocks, block_bytes(log));
        let transaction = place_of(&mut self.transactions, transaction_bytes(log, block));
        let (elsewhere, data) =
            if log.data.len() > PACKED_DATA_MAX { (DATA_ELSEWHERE, &[][..]) } else { (0, log.data) };
        self.logs.extend_from_slice(&log.log_index.to_be_bytes());
        self.logs.extend_from_slice(log.address.as_slice());
        self.logs.push(log.topics.len() as u8 | elsewhere); // At most TOPICS_MAX, checked by who pushes.
        self.logs.extend(log.topics.iter().flatten());
        self.logs.extend_from_slice(data);
        let [a, b, c, d] = (self.logs.len() as u32).to_be_bytes(); // 32 logs of at most 2.2 KB.
        self.places.push([transaction, a, b, c, d]);
    }

    fn row(&self) -> Vec<u8> {
        let counts = [self.places.len(), self.blocks.len(), self.transactions.len()];
        [
            &counts.map(|count| count as u8)[..], // At most PACK_LOGS.
            self.blocks.as_flattened(),
            self.transactions.as_flattened(),
            self.places.as_flattened(),
            &self.logs,
        ]
        .concat()
    }
}

/// The place of the last item, which is this one: added if it was another. Chain order has equal ones together.
fn place_of<const N: usize>(items: &mut Vec<[u8; N]>, item: [u8; N]) -> u8 {
    if items.last() != Some(&item) {
        items.push(item);
    }
    (items.len() - 1) as u8 // At most PACK_LOGS.
}

fn block_bytes(log: &LogRow<'_>) -> [u8; BLOCK_BYTES] {
    let mut bytes = [0; BLOCK_BYTES];
    bytes[..8].copy_from_slice(&log.block.number.to_be_bytes());
    bytes[8..40].copy_from_slice(log.block.hash.as_slice());
    bytes[40..].copy_from_slice(&log.block.timestamp.to_be_bytes());
    bytes
}

fn transaction_bytes(log: &LogRow<'_>, block: u8) -> [u8; TRANSACTION_BYTES] {
    let mut bytes = [0; TRANSACTION_BYTES];
    bytes[0] = block;
    bytes[1..5].copy_from_slice(&log.transaction_index.to_be_bytes());
    bytes[5..].copy_from_slice(log.transaction_hash.as_slice());
    bytes
}
