//! The embedded chain: where its work is done.
//!
//! Rows of the method table marked `Inline` are answered on the thread of their connection, straight into the reply. Rows
//! marked `Pooled` are given a moment there too; what takes longer starts over in threads of its own, behind a bounded
//! queue, under a deadline, and equal ones in flight share one answer.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::echoes::Echoes;
use super::flights::Flights;
use super::moment::Moments;
use super::threads::Threads;
use super::{Answer, Budget, Failure, Held, Limits, Provenance, Source, Timings};
use crate::methods::{Deadline, Method, Work};
use crate::params::Query;
use crate::resolve::BlockRef;

/// A source that holds the chain itself, and the machinery that guards it.
pub(super) struct Embedded {
    source: Arc<dyn Source>,
    threads: Arc<Threads>,
    flights: Arc<Flights<Query<BlockRef>>>,
    echoes: Arc<Echoes>,
    moments: Moments,
    held: Held,
    timings: Arc<Timings>,
    limits: Limits,
}

impl Embedded {
    pub(super) fn new(
        source: Arc<dyn Source>,
        threads: Arc<Threads>,
        held: Held,
        timings: Arc<Timings>,
        limits: Limits,
    ) -> Self {
        let (flights, echoes) = (Arc::default(), Arc::default());
        Self { source, threads, flights, echoes, moments: Moments::default(), held, timings, limits }
    }

    pub(super) fn source(&self) -> &dyn Source {
        &*self.source
    }

    pub(super) async fn answer(
        &self,
        method: &Method,
        query: Query<BlockRef>,
        out: &mut Vec<u8>,
    ) -> Result<Answer, Failure> {
        match method.work {
            Work::Inline => {
                let provenance = contained(&*self.source, &query, &Budget::default(), out)?;
                Ok(Answer { provenance, shared: None })
            }
            Work::Pooled(deadline) => match self.in_a_moment(&query, deadline, out) {
                Some(answered) => answered,
                None => self.pooled(query, deadline).await,
            },
        }
    }

    /// The answer to heavy work that turns out to be light; nothing if it does not, or if this is no time to try.
    fn in_a_moment(
        &self,
        query: &Query<BlockRef>,
        deadline: Deadline,
        out: &mut Vec<u8>,
    ) -> Option<Result<Answer, Failure>> {
        // A history of fees is many reads between two looks at the clock. What is under way already is shared.
        if deadline == Deadline::Fees || self.flights.has(query) {
            return None;
        }
        let attempt = self.moments.begin(self.time(deadline).0)?;
        let start = out.len();
        match contained(&*self.source, query, &attempt.budget, out) {
            Err(Failure::QueryTimeout | Failure::CallTimeout(_)) => {
                out.truncate(start);
                self.moments.failed(&attempt);
                None
            }
            answered => {
                self.timings.of(deadline).record(attempt.took());
                Some(answered.map(|provenance| Answer { provenance, shared: None }))
            }
        }
    }

    /// How long heavy work may take, and what is said when it takes longer.
    fn time(&self, deadline: Deadline) -> (Duration, Failure) {
        match deadline {
            Deadline::Logs => (self.limits.log_timeout, Failure::QueryTimeout),
            Deadline::Call => (self.limits.call_timeout, Failure::CallTimeout(self.limits.call_timeout)),
            Deadline::Fees => (self.limits.call_timeout, Failure::QueryTimeout),
        }
    }

    async fn pooled(&self, query: Query<BlockRef>, deadline: Deadline) -> Result<Answer, Failure> {
        let (time, failure) = self.time(deadline);
        if let Some(again) = self.echoes.again(&query) {
            return Ok(again);
        }
        let work = |query: Arc<Query<BlockRef>>, abandoned| {
            let (source, held, timings) =
                (Arc::clone(&self.source), self.held.clone(), Arc::clone(&self.timings));
            let echoes = Arc::clone(&self.echoes);
            let queued = Instant::now();
            let budget = Budget { deadline: Some(queued + time), abandoned: Some(abandoned), brief: false };
            move || {
                let begun = Instant::now();
                timings.waits.record(begun - queued);
                if budget.stopped() {
                    return Err(failure);
                }
                if held.is_full() {
                    return Err(Failure::OverCapacity);
                }
                let mut out = Vec::new();
                let answered = contained(&*source, &query, &budget, &mut out);
                timings.of(deadline).record(begun.elapsed());
                let provenance = answered?;
                let (shared, trace) = held.hold_traced(out);
                // Logs hang on nothing but the blocks that the query names.
                if let (Some(trace), Deadline::Logs) = (trace, deadline) {
                    echoes.note(query, provenance, trace);
                }
                Ok(Answer { provenance, shared: Some(shared) })
            }
        };
        self.flights.join(query, &self.threads, work).await
    }
}

/// A panic in a source costs one call its answer, and nothing else.
fn contained(
    source: &dyn Source,
    query: &Query<BlockRef>,
    budget: &Budget,
    out: &mut Vec<u8>,
) -> Result<Provenance, Failure> {
    let answer = catch_unwind(AssertUnwindSafe(|| source.answer(query, budget, out)));
    answer.unwrap_or_else(|_| Err(Failure::Broken("a source panicked".to_owned())))
}
