//! The answer of a query: which logs match, how many, and the logs themselves.

use std::{
    cmp::Ordering,
    ops::{ControlFlow, Range},
};

use redb::ReadableTable;

use super::{
    chunk::Chunk,
    error::{DamagedLogRow, QueryError},
    pack::{Pack, PackedLog, data_key, pack_of},
    row::LogRef,
    stop::StopConditions,
};

/// How many logs are read between two checks of the deadline: about a hundred microseconds of work.
const LOGS_PER_CHECK: usize = 256;

/// Packs at most this far apart are read by walking over those between; to find one anew costs about as much
/// as that many steps.
const GAP_MAX: u64 = 4;

/// The logs, in a read or in a write transaction.
pub(crate) trait LogTable: ReadableTable<u64, &'static [u8]> {}
impl<T: ReadableTable<u64, &'static [u8]>> LogTable for T {}

/// Ordinals in chain order.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Matches {
    // One of the two is empty: either every log of a range matches, or the index says which.
    range: Range<u64>,
    chunks: Vec<Chunk>,
    len: u64,
}

impl Matches {
    /// Every log of the range.
    pub(crate) fn all(range: Range<u64>) -> Self {
        let len = range.end.saturating_sub(range.start);
        Self { range, chunks: Vec::new(), len }
    }

    /// Adds chunks that lie after those that are there.
    pub(super) fn extend(&mut self, chunks: Vec<Chunk>) {
        self.len += chunks.iter().map(Chunk::len).sum::<u64>();
        self.chunks.extend(chunks);
    }

    pub(crate) fn len(&self) -> u64 {
        self.len
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.len == 0
    }

    pub(crate) fn ordinals(&self) -> impl Iterator<Item = u64> + '_ {
        self.range.clone().chain(self.chunks.iter().flat_map(Chunk::ordinals))
    }

    /// The match with number `n` from 0, if there are as many.
    pub(super) fn nth(&self, n: u64) -> Option<u64> {
        if n >= self.len {
            return None;
        }
        let mut before = self.range.end.saturating_sub(self.range.start);
        if n < before {
            return Some(self.range.start + n);
        }
        for chunk in &self.chunks {
            if n - before < chunk.len() {
                return chunk.nth(n - before);
            }
            before += chunk.len();
        }
        None
    }
}

/// Hands over the logs of the matches in chain order, until there are no more or `each` breaks off.
pub(crate) fn read<B>(
    logs: &impl LogTable,
    matches: &Matches,
    stop: StopConditions<'_>,
    mut each: impl FnMut(u64, LogRef<'_>) -> ControlFlow<B>,
) -> Result<ControlFlow<B>, QueryError> {
    let mut ordinals = matches.ordinals();
    let mut batch = Vec::with_capacity(LOGS_PER_CHECK);
    loop {
        stop.check()?;
        batch.clear();
        batch.extend(ordinals.by_ref().take(LOGS_PER_CHECK));
        if batch.is_empty() {
            return Ok(ControlFlow::Continue(()));
        }
        for run in batch.chunk_by(|a, b| pack_of(*b) - pack_of(*a) <= GAP_MAX) {
            let flow = read_run(logs, run, &mut each)?;
            if flow.is_break() {
                return Ok(flow);
            }
        }
    }
}

/// Reads logs whose packs lie close together, with one search.
fn read_run<B>(
    logs: &impl LogTable,
    run: &[u64],
    each: &mut impl FnMut(u64, LogRef<'_>) -> ControlFlow<B>,
) -> Result<ControlFlow<B>, QueryError> {
    let ([first, ..], [.., last]) = (run, run) else { return Ok(ControlFlow::Continue(())) };
    let missing = |ordinal| DamagedLogRow { what: "no row", ordinal };
    if pack_of(*first) == pack_of(*last) {
        let row = logs.get(pack_of(*first))?.ok_or(missing(*first))?;
        return read_pack(logs, row.value(), run, each);
    }
    let mut rows = logs.range(pack_of(*first)..=pack_of(*last))?;
    for wanted in run.chunk_by(|a, b| pack_of(*a) == pack_of(*b)) {
        let [ordinal, ..] = wanted else { continue };
        let row = loop {
            let (key, row) = rows.next().ok_or(missing(*ordinal))??;
            match key.value().cmp(&pack_of(*ordinal)) {
                Ordering::Less => {}
                Ordering::Equal => break row,
                Ordering::Greater => return Err(missing(*ordinal).into()),
            }
        };
        let flow = read_pack(logs, row.value(), wanted, each)?;
        if flow.is_break() {
            return Ok(flow);
        }
    }
    Ok(ControlFlow::Continue(()))
}

/// Hands over logs of one pack.
fn read_pack<B>(
    logs: &impl LogTable,
    row: &[u8],
    wanted: &[u64],
    each: &mut impl FnMut(u64, LogRef<'_>) -> ControlFlow<B>,
) -> Result<ControlFlow<B>, QueryError> {
    let pack = Pack::decode(row);
    for ordinal in wanted.iter().copied() {
        let damaged = |what| DamagedLogRow { what, ordinal };
        let log = pack.and_then(|pack| pack.log(ordinal)).ok_or(damaged("the row"))?;
        let flow = match log {
            PackedLog::Whole(log) => each(ordinal, log),
            PackedLog::WithoutData(log) => {
                let data = logs.get(data_key(ordinal))?.ok_or(damaged("no data"))?;
                each(ordinal, LogRef { data: data.value(), ..log })
            }
        };
        if flow.is_break() {
            return Ok(flow);
        }
    }
    Ok(ControlFlow::Continue(()))
}
