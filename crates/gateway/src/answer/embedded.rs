//! The embedded chain: where its work is done.
//!
//! Rows of the method table marked `Inline` are answered on the thread of their connection, straight into the reply. Rows
//! marked `Pooled` are given a moment there too; what takes longer starts over in threads of its own, behind a bounded
//! queue, under a deadline, and equal ones in flight share one answer. What is asked for a second time is kept.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;

use super::cache::{Asked, Cache, Kept, Key};
use super::flights::Flights;
use super::held::Readers;
use super::inline_try::InlineTries;
use super::threads::Threads;
use super::{Answer, Budget, Failure, Held, Limits, Origin, Provenance, Source, Timings};
use crate::callers::{Account, AccountId};
use crate::methods::{Deadline, Method, Work};
use crate::params::Query;
use crate::resolve::BlockRef;

/// A source that holds the chain itself, and the machinery that guards it.
pub(super) struct Embedded {
    source: Arc<dyn Source>,
    threads: Arc<Threads>,
    flights: Arc<Flights<Query<BlockRef>>>,
    cache: Arc<Cache>,
    inline_tries: InlineTries,
    held: Held,
    timings: Arc<Timings>,
    limits: Limits,
}

impl Embedded {
    pub(super) fn new(
        source: Arc<dyn Source>,
        threads: Arc<Threads>,
        cache: Arc<Cache>,
        held: Held,
        timings: Arc<Timings>,
        limits: Limits,
    ) -> Self {
        let (flights, inline_tries) = (Arc::default(), InlineTries::default());
        Self { source, threads, flights, cache, inline_tries, held, timings, limits }
    }

    pub(super) fn source(&self) -> &dyn Source {
        &*self.source
    }

    pub(super) async fn answer(
        &self,
        account: &Account,
        method: &Method,
        query: Query<BlockRef>,
        out: &mut Vec<u8>,
    ) -> Result<Answer, Failure> {
        if !self.cache.is_on() || !is_composed(&query) {
            return self.work_out(account, method, query, None, out).await;
        }
        // A chain of our own moves seldom, so all that is kept may hang on its head.
        let asked = Asked { query: &query, head: Some(self.source.head().hash) };
        if let Some(Kept { result, block, readers, .. }) = self.cache.get(&asked) {
            let provenance = Provenance::of(Origin::Cache, block);
            let shared = self.held.lend(&result, &readers).ok_or(Failure::OverCapacity)?;
            return Ok(Answer { provenance, shared: Some(shared) });
        }
        let key = self.cache.was_missed_before(&asked).then(|| asked.key());
        self.work_out(account, method, query, key, out).await
    }

    /// Works an answer out, and keeps it if there is a key for it.
    async fn work_out(
        &self,
        account: &Account,
        method: &Method,
        query: Query<BlockRef>,
        key: Option<Key>,
        out: &mut Vec<u8>,
    ) -> Result<Answer, Failure> {
        let start = out.len();
        let provenance = match method.work {
            Work::Inline => contained(&*self.source, &query, &Budget::default(), out)?,
            Work::Pooled(deadline) => match self.try_inline(account, &query, deadline, out) {
                Some(answered) => answered?,
                None => return self.pooled(account.id, query, deadline, key).await,
            },
        };
        if let Some(key) = key {
            self.cache.keep(key, kept(Bytes::copy_from_slice(&out[start..]), provenance));
        }
        Ok(Answer { provenance, shared: None })
    }

    /// The answer to pooled work that finishes within an inline try; `None` if it does not or is not tried.
    fn try_inline(
        &self,
        account: &Account,
        query: &Query<BlockRef>,
        deadline: Deadline,
        out: &mut Vec<u8>,
    ) -> Option<Result<Provenance, Failure>> {
        // A history of fees is many reads between two looks at the clock. What is under way already is shared.
        if deadline == Deadline::Fees || self.flights.has(query) {
            return None;
        }
        let attempt = self.inline_tries.begin(account, self.time(deadline).0)?;
        let start = out.len();
        match contained(&*self.source, query, &attempt.budget, out) {
            Err(Failure::QueryTimeout | Failure::CallTimeout(_)) => {
                out.truncate(start);
                self.inline_tries.failed(account, &attempt);
                None
            }
            answered => {
                self.timings.of(deadline).record(attempt.took());
                Some(answered)
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

    async fn pooled(
        &self,
        account: AccountId,
        query: Query<BlockRef>,
        deadline: Deadline,
        key: Option<Key>,
    ) -> Result<Answer, Failure> {
        let (time, failure) = self.time(deadline);
        let work = |query: Arc<Query<BlockRef>>, abandoned| {
            let (source, held, timings) =
                (Arc::clone(&self.source), self.held.clone(), Arc::clone(&self.timings));
            let cache = Arc::clone(&self.cache);
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
                if let Some(key) = key {
                    out.shrink_to_fit();
                    let result = Bytes::from(out);
                    cache.keep(key, kept(result.clone(), provenance));
                    return Ok(Answer { provenance, shared: Some(held.hold_bytes(result)) });
                }
                Ok(Answer { provenance, shared: Some(held.hold(out)) })
            }
        };
        self.flights.join(query, account, &self.threads, work).await
    }
}

fn kept(result: Bytes, provenance: Provenance) -> Kept {
    Kept { result, block: provenance.block, deep_in: None, count: 0, readers: Readers::default() }
}

/// Whether an answer is put together from many rows or by running code. A single value is read as fast as it would be
/// found among those that are kept.
fn is_composed(query: &Query<BlockRef>) -> bool {
    matches!(
        query,
        Query::FeeHistory { .. }
            | Query::Block { .. }
            | Query::BlockReceipts { .. }
            | Query::Uncle { .. }
            | Query::TransactionByIndex { .. }
            | Query::TransactionByHash { .. }
            | Query::TransactionReceipt { .. }
            | Query::RawBlockTransactions { .. }
            | Query::Logs { .. }
            | Query::Call { .. }
            | Query::EstimateGas { .. }
    )
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
