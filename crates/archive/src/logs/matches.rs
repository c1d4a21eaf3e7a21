//! The answer of a query: which logs match, how many, and the logs themselves.

use std::ops::{ControlFlow, Range};

use redb::ReadableTable;

use super::{
    chunk::Chunk,
    error::{Damaged, QueryError},
    row::LogRef,
    stop::Stop,
};

/// How many logs are read between two looks at the deadline: about a hundred microseconds of work.
const LOGS_PER_CHECK: usize = 256;

/// Logs at most this far apart are read by walking over those between; to find one anew costs about as much
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

    /// How many logs match.
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
    stop: Stop<'_>,
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
        for run in batch.chunk_by(|a, b| b - a <= GAP_MAX) {
            let flow = match run {
                [ordinal] => read_one(logs, *ordinal, &mut each)?,
                run => read_run(logs, run, &mut each)?,
            };
            if flow.is_break() {
                return Ok(flow);
            }
        }
    }
}

fn read_one<B>(
    logs: &impl LogTable,
    ordinal: u64,
    each: &mut impl FnMut(u64, LogRef<'_>) -> ControlFlow<B>,
) -> Result<ControlFlow<B>, QueryError> {
    let row = logs.get(ordinal)?.ok_or(Damaged { what: "no row", ordinal })?;
    Ok(each(ordinal, view(ordinal, row.value())?))
}

/// Reads ordinals that lie close together with one walk over the table.
fn read_run<B>(
    logs: &impl LogTable,
    run: &[u64],
    each: &mut impl FnMut(u64, LogRef<'_>) -> ControlFlow<B>,
) -> Result<ControlFlow<B>, QueryError> {
    let ([first, ..], [.., last]) = (run, run) else { return Ok(ControlFlow::Continue(())) };
    let mut wanted = run.iter().copied().peekable();
    for row in logs.range(*first..=*last)? {
        let (key, row) = row?;
        let Some(ordinal) = wanted.next_if(|ordinal| *ordinal <= key.value()) else { continue };
        if ordinal < key.value() {
            return Err(Damaged { what: "no row", ordinal }.into());
        }
        let flow = each(ordinal, view(ordinal, row.value())?);
        if flow.is_break() {
            return Ok(flow);
        }
    }
    match wanted.next() {
        Some(ordinal) => Err(Damaged { what: "no row", ordinal }.into()),
        None => Ok(ControlFlow::Continue(())),
    }
}

fn view(ordinal: u64, row: &[u8]) -> Result<LogRef<'_>, Damaged> {
    LogRef::decode(row).ok_or(Damaged { what: "the row", ordinal })
}
