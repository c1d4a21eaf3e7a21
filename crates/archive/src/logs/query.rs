//! A filter over a range of ordinals → the ordinals that match.

use std::ops::{Range, RangeInclusive};

use alloy_primitives::{Address, B256};

use super::{
    TOPICS_MAX,
    chunk::{self, Chunk},
    error::QueryError,
    matches::Matches,
    stop::{StopCheck, StopConditions},
    term::{IndexTable, Term},
    term_group::TermGroup,
};

/// The first stretch of chunks that is searched at once: a million logs, so a small chain is one stretch.
const STRETCH_CHUNKS_FIRST: u32 = 16;

/// The longest stretch. Stretches grow so that a rare value in a long chain needs few searches, and end here
/// because every chunk of a stretch may hold 8 KiB in memory, for the logs found and for the next group.
const STRETCH_CHUNKS_MAX: u32 = 1024;

/// The addresses and topics that a log must have.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LogFilter {
    /// The log has one of these addresses; if empty, any address.
    pub addresses: Vec<Address>,
    /// The log has at each position one of these topics; if empty, any topic, but the log must have one.
    pub topics: Vec<Vec<B256>>,
}

impl LogFilter {
    /// The conditions that have to hold together. Nothing at all where the filter lets every log through; None where it lets
    /// none through, because it has more positions than a log can have.
    fn groups(&self) -> Option<Vec<TermGroup>> {
        if self.topics.len() > TOPICS_MAX {
            return None;
        }
        let mut groups = Vec::new();
        if !self.addresses.is_empty() {
            groups.push(TermGroup::new(self.addresses.iter().map(Term::address)));
        }
        for (position, topics) in self.topics.iter().enumerate() {
            if !topics.is_empty() {
                groups.push(TermGroup::new(topics.iter().map(|topic| Term::topic(position, topic))));
            }
        }
        // A topic at the last position says that there are enough of them. A wildcard there does not.
        if self.topics.last().is_some_and(Vec::is_empty) {
            groups.push(TermGroup::new((self.topics.len()..=TOPICS_MAX).map(Term::topic_count)));
        }
        Some(groups)
    }
}

/// A filter, the ordinals to search, and the limits of the search.
#[derive(Debug, Clone)]
pub(crate) struct LogQuery<'a> {
    /// The ordinals of the logs of the block range.
    pub(crate) ordinals: Range<u64>,
    pub(crate) filter: &'a LogFilter,
    pub(crate) limit: usize,
    pub(crate) stop: StopConditions<'a>,
}

/// Finds the ordinals that match. Reads no log, and no index either where every log matches.
pub(crate) fn plan(index: &impl IndexTable, query: &LogQuery<'_>) -> Result<Matches, QueryError> {
    query.stop.check()?;
    let Some(groups) = query.filter.groups() else { return Ok(Matches::default()) };
    if groups.is_empty() {
        return within(Matches::all(query.ordinals.clone()), query.limit);
    }
    let mut stop_check = query.stop.stop_check();
    let mut matches = Matches::default();
    for chunks in stretches(&query.ordinals) {
        matches.extend(search(index, &groups, &chunks, &query.ordinals, &mut stop_check)?);
        // Chain order means that nothing further on can change which matches are the first ones.
        matches = within(matches, query.limit)?;
    }
    Ok(matches)
}

fn within(matches: Matches, limit: usize) -> Result<Matches, QueryError> {
    match matches.nth(limit as u64) {
        Some(first_beyond) => Err(QueryError::TooMany { count: matches.len(), first_beyond }),
        None => Ok(matches),
    }
}

/// The chunks of the range in chain order, in stretches that grow.
fn stretches(ordinals: &Range<u64>) -> impl Iterator<Item = RangeInclusive<u32>> + use<> {
    let bounds = (!ordinals.is_empty()).then(|| {
        // No log lies beyond what the index can count.
        let last = (ordinals.end - 1).min(chunk::ORDINALS_END - 1);
        Some((chunk::split(ordinals.start)?.0, chunk::split(last)?.0))
    });
    let mut rest = bounds.flatten();
    let mut size = STRETCH_CHUNKS_FIRST;
    std::iter::from_fn(move || {
        let (first, last) = rest?;
        let end = first.saturating_add(size - 1).min(last);
        rest = (end < last).then(|| (end + 1, last));
        size = (size * 2).min(STRETCH_CHUNKS_MAX);
        Some(first..=end)
    })
}

/// The logs that all groups let through in these chunks. The group that lets the fewest logs through comes first:
/// of the others only the chunks that are still in question are read.
fn search(
    index: &impl IndexTable,
    groups: &[TermGroup],
    chunks: &RangeInclusive<u32>,
    ordinals: &Range<u64>,
    stop_check: &mut StopCheck<'_>,
) -> Result<Vec<Chunk>, QueryError> {
    let order = by_weight(index, groups, chunks, stop_check)?;
    let Some((first, others)) = order.split_first() else { return Ok(Vec::new()) };
    let mut found = first.load(index, chunks, stop_check)?;
    for chunk in &mut found {
        chunk.clip(ordinals);
    }
    found.retain(|chunk| !chunk.is_empty());
    for group in others {
        group.narrow(index, &mut found, stop_check)?;
    }
    Ok(found)
}

fn by_weight<'g>(
    index: &impl IndexTable,
    groups: &'g [TermGroup],
    chunks: &RangeInclusive<u32>,
    stop_check: &mut StopCheck<'_>,
) -> Result<Vec<&'g TermGroup>, QueryError> {
    if let [only] = groups {
        return Ok(vec![only]);
    }
    let mut lightest = usize::MAX;
    let mut weighed = Vec::with_capacity(groups.len());
    for group in groups {
        let weight = group.weigh(index, chunks, lightest, stop_check)?;
        lightest = lightest.min(weight);
        weighed.push((weight, group));
    }
    weighed.sort_by_key(|(weight, _)| *weight);
    Ok(weighed.into_iter().map(|(_, group)| group).collect())
}
