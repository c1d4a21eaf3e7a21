//! The values that a filter allows at one place: a log belongs to a group if it has one of them.

use roaring::RoaringBitmap;
use std::{collections::BTreeMap, ops::RangeInclusive};

use super::{
    chunk::{self, Chunk},
    error::QueryError,
    stop::StopCheck,
    term::{IndexKey, IndexTable, Term, chunk_of},
    union::Union,
};

/// To find a row costs about as much as to step over this many; a longer gap is crossed by a new search.
const MISSES_MAX: u32 = 4;

/// A group with more terms than this is not weighed: looking for its rows is most of the work of reading them.
const WEIGHED_TERMS_MAX: usize = 16;

#[derive(Debug)]
pub(super) struct TermGroup(Vec<Term>);

impl TermGroup {
    /// Terms in key order, so that neighbours in the index are read one after the other, and each only once.
    pub(super) fn new(terms: impl IntoIterator<Item = Term>) -> Self {
        let mut terms: Vec<_> = terms.into_iter().collect();
        terms.sort_unstable();
        terms.dedup();
        Self(terms)
    }

    /// How many bytes of index the group has in these chunks, a measure of how many logs it lets through.
    /// The count stops when it is above `enough`.
    pub(super) fn weigh(
        &self,
        index: &impl IndexTable,
        chunks: &RangeInclusive<u32>,
        enough: usize,
        stop_check: &mut StopCheck<'_>,
    ) -> Result<usize, QueryError> {
        if self.0.len() > WEIGHED_TERMS_MAX {
            return Ok(usize::MAX);
        }
        let mut bytes = 0;
        for term in &self.0 {
            for row in rows(index, term, chunks)? {
                stop_check.step()?;
                bytes += row?.1.value().len();
                if bytes > enough {
                    return Ok(bytes);
                }
            }
        }
        Ok(bytes)
    }

    /// Everything that the group has in these chunks, in chain order.
    pub(super) fn load(
        &self,
        index: &impl IndexTable,
        chunks: &RangeInclusive<u32>,
        stop_check: &mut StopCheck<'_>,
    ) -> Result<Vec<Chunk>, QueryError> {
        let mut found = BTreeMap::<u32, Union>::new();
        for term in &self.0 {
            stop_check.step()?;
            for row in rows(index, term, chunks)? {
                stop_check.step()?;
                let (key, row) = row?;
                let number = chunk_of(key.value());
                found.entry(number).or_default().add(chunk::decode(number, row.value())?);
            }
        }
        Ok(found.into_iter().map(|(number, union)| Chunk { number, lows: union.finish() }).collect())
    }

    /// Keeps of `found` what the group has too. Reads no other chunks than those.
    pub(super) fn narrow(
        &self,
        index: &impl IndexTable,
        found: &mut Vec<Chunk>,
        stop_check: &mut StopCheck<'_>,
    ) -> Result<(), QueryError> {
        let mut kept = vec![Union::default(); found.len()];
        for term in &self.0 {
            for_each_shared(index, term, found, stop_check, |at, lows| kept[at].add(lows & &found[at].lows))?;
        }
        for (chunk, union) in found.iter_mut().zip(kept) {
            chunk.lows = union.finish();
        }
        found.retain(|chunk| !chunk.is_empty());
        Ok(())
    }
}

/// The rows of a term in these chunks.
fn rows<'t>(
    index: &'t impl IndexTable,
    term: &Term,
    chunks: &RangeInclusive<u32>,
) -> Result<redb::Range<'t, &'static IndexKey, &'static [u8]>, QueryError> {
    let (first, last) = (term.key(*chunks.start()), term.key(*chunks.end()));
    Ok(index.range::<&IndexKey>(&first..=&last)?)
}

/// Hands over each row of a term whose chunk is among `wanted`, with its place there.
///
/// Both sides may be sparse or dense. The walk jumps on whichever side is behind, so it takes about as many
/// steps as the shorter of the two.
fn for_each_shared(
    index: &impl IndexTable,
    term: &Term,
    wanted: &[Chunk],
    stop_check: &mut StopCheck<'_>,
    mut each: impl FnMut(usize, RoaringBitmap),
) -> Result<(), QueryError> {
    let Some(last) = wanted.last().map(|chunk| chunk.number) else { return Ok(()) };
    let mut at = 0;
    while let Some(next) = wanted.get(at) {
        let mut misses = 0;
        let mut rows = rows(index, term, &(next.number..=last))?;
        while misses < MISSES_MAX {
            stop_check.step()?;
            let Some(row) = rows.next() else { return Ok(()) };
            let (key, row) = row?;
            let number = chunk_of(key.value());
            at += wanted[at..].partition_point(|chunk| chunk.number < number);
            match wanted.get(at) {
                None => return Ok(()),
                Some(chunk) if chunk.number == number => {
                    each(at, chunk::decode(number, row.value())?);
                    at += 1;
                    misses = 0;
                }
                Some(_) => misses += 1,
            }
        }
    }
    Ok(())
}
