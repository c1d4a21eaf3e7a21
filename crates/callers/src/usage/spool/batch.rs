//! Entries that are moved to the store together.

use std::collections::BTreeMap;
use std::io;

use super::segment::read_entry;
use super::{Spool, SpoolId};
use store::{UsageCounts, UsageGroup, UsageRow};

use crate::policy::{SPOOL_FILE_BYTES, USAGE_BATCH_ROWS_MAX};

/// Entries of one spool that follow each other, summed up.
#[derive(Debug)]
pub(in crate::usage) struct SpoolBatch {
    pub(in crate::usage) id: SpoolId,
    /// The sequence number before the first entry.
    pub(in crate::usage) after: u64,
    pub(in crate::usage) through: u64,
    pub(in crate::usage) rows: Vec<UsageRow>,
}

impl Spool {
    /// The oldest entries that are not stored; `None` if all are.
    pub(in crate::usage) fn next_batch(&self) -> io::Result<Option<SpoolBatch>> {
        loop {
            let next = {
                let state = self.state.lock();
                let unstored = state.segments.iter().find(|segment| !segment.is_stored());
                unstored.map(|segment| (segment.name(), segment.unstored()))
            };
            let Some((name, (file, mut range))) = next else { return Ok(None) };
            let (mut sums, mut sequences) = (BTreeMap::new(), None);
            while sums.len() < USAGE_BATCH_ROWS_MAX
                && let Some(entry) = read_entry(&file, range.clone(), self.seed, name.format)?
            {
                range.start = entry.end;
                let first = sequences.map_or(entry.sequence, |(first, _)| first);
                sequences = Some((first, entry.sequence));
                entry.rows.into_iter().for_each(|row| add(&mut sums, row));
            }
            match sequences {
                Some((first, through)) => {
                    let rows = sums.into_iter().map(|(group, counts)| UsageRow { group, counts }).collect();
                    return Ok(Some(SpoolBatch { id: self.id, after: first - 1, through, rows }));
                }
                None => self.give_up(name.number, range.start),
            }
        }
    }

    /// Counts all entries up to this sequence number as stored, and deletes files of which nothing else is left.
    pub(in crate::usage) fn store_through(&self, sequence: u64) -> io::Result<()> {
        let mut state = self.state.lock();
        for segment in &mut state.segments {
            segment.store_through(sequence)?;
            if !segment.is_stored() {
                break;
            }
        }
        while let Some(oldest) = state.segments.front()
            && oldest.is_stored()
            && (state.segments.len() > 1 || oldest.bytes() >= SPOOL_FILE_BYTES)
            && let Some(stored) = state.segments.pop_front()
        {
            stored.remove(&self.folder)?;
        }
        Ok(())
    }

    /// Gives up the rest of a file whose next entry was damaged after it was written.
    fn give_up(&self, number: u64, offset: u64) {
        let mut state = self.state.lock();
        if let Some(segment) = state.segments.iter_mut().find(|segment| segment.name().number == number) {
            let bytes = segment.give_up_from(offset);
            let folder = self.folder.display();
            tracing::error!(%folder, file = number, bytes, "usage is lost: a file of it was damaged");
        }
    }
}

fn add(sums: &mut BTreeMap<UsageGroup, UsageCounts>, row: UsageRow) {
    sums.entry(row.group).or_default().add(&row.counts);
}
