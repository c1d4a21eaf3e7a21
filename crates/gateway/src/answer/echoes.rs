//! Large answers are given again for as long as someone still reads them.
//!
//! An answer of megabytes is in memory until its last caller has read it, which takes longer than to compute it. Who
//! asks the same in the meantime gets the same bytes. Nothing is kept for this: an answer that nobody reads any more is
//! gone. And nothing can be out of date: a query names its blocks by their hashes.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;

use super::held::Trace;
use super::{Answer, Provenance};
use crate::params::Query;
use crate::resolve::BlockRef;

/// Traces of answers that are gone are thrown away when there are twice as many as after the last time, or this many.
const TRACES_MIN: usize = 16;

#[derive(Debug, Default)]
pub(super) struct Echoes {
    known: Mutex<Known>,
}

#[derive(Debug, Default)]
struct Known {
    // The default hasher is keyed: callers choose what is hashed here.
    answers: HashMap<Arc<Query<BlockRef>>, (Provenance, Trace)>,
    clean_at: usize,
}

impl Echoes {
    /// The answer to `query`, if someone still reads it.
    pub(super) fn again(&self, query: &Query<BlockRef>) -> Option<Answer> {
        let known = self.known.lock();
        let (provenance, trace) = known.answers.get(query)?;
        Some(Answer { provenance: *provenance, shared: Some(trace.follow()?) })
    }

    /// Remembers an answer for as long as someone reads it.
    pub(super) fn note(&self, query: Arc<Query<BlockRef>>, provenance: Provenance, trace: Trace) {
        let mut known = self.known.lock();
        known.answers.insert(query, (provenance, trace));
        if known.answers.len() >= known.clean_at {
            known.answers.retain(|_, (_, trace)| trace.is_warm());
            known.clean_at = TRACES_MIN.max(known.answers.len() * 2);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::answer::Held;
    use crate::answer::held::COUNTED_BYTES_MIN;

    fn query(number: u64) -> Arc<Query<BlockRef>> {
        let block = BlockRef { number, hash: Default::default() };
        Arc::new(Query::BlockReceipts { block })
    }

    #[test]
    fn an_answer_is_given_again_until_nobody_reads_it() {
        let (echoes, held) = (Echoes::default(), Held::new(usize::MAX));
        let (first, trace) = held.hold_traced(vec![7; COUNTED_BYTES_MIN]);
        echoes.note(query(1), Provenance::archive(None), trace.unwrap());
        assert!(echoes.again(&query(2)).is_none());
        let second = echoes.again(&query(1)).unwrap().shared.unwrap();
        assert_eq!(first, second);
        assert_eq!(held.bytes(), COUNTED_BYTES_MIN, "both are the same bytes");
        drop(first);
        let third = echoes.again(&query(1)).unwrap();
        drop((second, third));
        assert!(echoes.again(&query(1)).is_none());
        assert_eq!(held.bytes(), 0);
    }

    #[test]
    fn traces_do_not_pile_up() {
        let (echoes, held) = (Echoes::default(), Held::new(usize::MAX));
        for number in 0..1_000 {
            let (_read, trace) = held.hold_traced(vec![7; COUNTED_BYTES_MIN]);
            echoes.note(query(number), Provenance::archive(None), trace.unwrap());
        }
        assert!(echoes.known.lock().answers.len() <= TRACES_MIN);
    }

    #[test]
    fn small_answers_leave_no_trace() {
        assert!(Held::new(usize::MAX).hold_traced(vec![7; 100]).1.is_none());
    }
}
