//! From the ordinals of new logs to rows of the index.

use alloy_primitives::{Address, B256, map::HashMap};
use redb::{ReadableTable, StorageError, Table};
use roaring::RoaringBitmap;

use super::{
    chunk,
    error::IndexError,
    row::check_topics,
    term::{IndexKey, Term, chunk_of},
};

/// The memory of a row before its ordinals: key, vector, the map's control byte and its spare room.
const ROW_BYTES: usize = 128;

/// Gathers what a group of blocks adds to the index, so that a row which many logs share is rewritten once
/// per commit and not once per log.
///
/// Logs are added in chain order, and only those of blocks that were proven: there is no way to take one back
/// but [`clear`](Self::clear).
#[derive(Debug, Default)]
pub(crate) struct LogIndexer {
    // The keys hold addresses and topics that anyone may choose: the map's hasher is seeded at random.
    rows: HashMap<IndexKey, Vec<u16>>,
    lows_total: usize,
}

impl LogIndexer {
    /// Notes that the log with this ordinal has this address and these topics.
    pub(crate) fn add(&mut self, ordinal: u64, address: &Address, topics: &[B256]) -> Result<(), IndexError> {
        check_topics(topics)?;
        let (chunk, low) = chunk::split(ordinal).ok_or(IndexError::OrdinalTooLarge(ordinal))?;
        self.push(Term::address(address).key(chunk), low);
        for (position, topic) in topics.iter().enumerate() {
            self.push(Term::topic(position, topic).key(chunk), low);
        }
        self.push(Term::topic_count(topics.len()).key(chunk), low);
        Ok(())
    }

    fn push(&mut self, key: IndexKey, low: u16) {
        self.rows.entry(key).or_default().push(low);
        self.lows_total += 1;
    }

    #[cfg(test)]
    pub(crate) fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// About how much memory it holds, for the decision when to commit.
    pub(crate) fn memory_bytes(&self) -> usize {
        self.rows.len() * ROW_BYTES + self.lows_total * size_of::<u16>()
    }

    /// Forgets what was gathered since the last flush.
    pub(crate) fn clear(&mut self) {
        self.rows.clear();
        self.lows_total = 0;
    }

    /// Merges what was gathered into the table and starts afresh. After an error the transaction has to be
    /// given up; what was gathered is still there.
    pub(crate) fn flush(
        &mut self,
        table: &mut Table<'_, &'static IndexKey, &'static [u8]>,
    ) -> Result<(), IndexError> {
        // In key order, so that neighbouring rows change while their page is at hand.
        let mut gathered: Vec<_> = self.rows.iter().collect();
        gathered.sort_unstable();
        let mut row = Vec::new();
        for (key, new) in gathered {
            let mut lows: RoaringBitmap = new.iter().map(|low| u32::from(*low)).collect();
            if let Some(old) = table.get(key)? {
                lows |= chunk::decode(chunk_of(key), old.value())?;
            }
            row.clear();
            chunk::encode_into(&mut lows, &mut row).map_err(StorageError::from)?;
            table.insert(key, row.as_slice())?;
        }
        self.clear();
        Ok(())
    }
}
