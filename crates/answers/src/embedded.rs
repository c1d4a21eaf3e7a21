//! The embedded chain: where its work is done.
//!
//! Rows of the method table marked `Inline` are answered on the thread of their connection, straight into the reply. Rows
//! marked `Pooled` are tried there for 200 µs; what takes longer starts over in its account's share of the pool, under a
//! deadline, and equal calls of one account share one answer. An answer that is requested a second time is cached.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use methods::{BlockRef, DeadlineKind, Query, WorkPlacement};
use remote::PinnedCall;
use resources::{AccountId, ChargedReaders, MemoryBudget, ThreadPool};
use sources::{
    Answer, AnswerBudget, Cache, CacheKey, CacheLookup, CachedAnswer, CurrentLimits, Failure, Flights,
    Origin, Provenance, ReplyCharge, SharedAnswer, SnapshotSource, Source, Verification,
};

use super::inline_try::InlineTries;
use crate::call_account::CallAccount;
use crate::timings::Timings;

/// The embedded chain, and the threads, cache and memory that its answers share.
pub(super) struct Embedded {
    source: Arc<dyn SnapshotSource>,
    threads: Arc<ThreadPool>,
    /// By account, because a call of another account would wait behind the jobs of this one.
    flights: Arc<Flights<(AccountId, CacheKey)>>,
    cache: Arc<Cache>,
    inline_tries: InlineTries,
    memory: MemoryBudget,
    timings: Arc<Timings>,
    limits: CurrentLimits,
}

impl Embedded {
    pub(super) fn new(
        source: Arc<dyn SnapshotSource>,
        threads: Arc<ThreadPool>,
        cache: Arc<Cache>,
        memory: MemoryBudget,
        timings: Arc<Timings>,
        limits: CurrentLimits,
    ) -> Self {
        let (flights, inline_tries) = (Arc::default(), InlineTries::default());
        Self { source, threads, flights, cache, inline_tries, memory, timings, limits }
    }

    /// Who holds the chain.
    pub(super) fn source(&self) -> &Arc<dyn SnapshotSource> {
        &self.source
    }

    /// How many calls waited for the answer to an equal one.
    pub(super) fn shared_calls(&self) -> u64 {
        self.flights.joined()
    }

    /// The chain as it is now.
    pub(super) fn snapshot(&self) -> Arc<dyn Source> {
        self.source.snapshot()
    }

    pub(super) async fn answer(
        &self,
        account: CallAccount<'_>,
        source: &Arc<dyn Source>,
        call: PinnedCall,
        out: &mut Vec<u8>,
    ) -> Result<Answer, Failure> {
        if !self.cache.is_on() || !call.method.rules.effort.is_composed() {
            return self.work_out(account, source, call, None, out).await;
        }
        let asked = lookup(source, &call.query);
        // In front of nodes, the cache also has what they said about the same head.
        let cached = self.cache.get(&asked).filter(|cached| cached.verified == Verification::Proven);
        if let Some(CachedAnswer { result, block, readers, .. }) = cached {
            let provenance = Provenance { origin: Origin::Cache, ..Provenance::archive(block) };
            let shared = self.memory.of(account.id).lend(&result, &readers)?;
            return Ok(Answer { provenance, shared: Some(shared) });
        }
        let key = self.cache.record_miss(&asked).then(|| asked.key());
        self.work_out(account, source, call, key, out).await
    }

    /// Works an answer out, and caches it if there is a key for it.
    async fn work_out(
        &self,
        account: CallAccount<'_>,
        source: &Arc<dyn Source>,
        call: PinnedCall,
        key: Option<CacheKey>,
        out: &mut Vec<u8>,
    ) -> Result<Answer, Failure> {
        let start = out.len();
        let provenance = match call.method.rules.work {
            WorkPlacement::Inline => {
                answer_catching_panic(&**source, &call.query, &AnswerBudget::default(), out)?
            }
            WorkPlacement::Pooled(deadline) => {
                match self.try_inline(account, source, &call.query, deadline, out) {
                    Some(answered) => answered?,
                    None => return self.pooled(account.id, source, call, deadline, key).await,
                }
            }
        };
        if let Some(key) = key {
            self.cache.insert(key, cached_answer(Bytes::copy_from_slice(&out[start..]), provenance));
        }
        Ok(Answer { provenance, shared: None })
    }

    /// The answer to pooled work that finishes within an inline try; `None` if it does not or is not tried.
    fn try_inline(
        &self,
        account: CallAccount<'_>,
        source: &Arc<dyn Source>,
        query: &Query<BlockRef>,
        deadline: DeadlineKind,
        out: &mut Vec<u8>,
    ) -> Option<Result<Provenance, Failure>> {
        // An equal call in flight will have the answer.
        if !self.flights.is_empty() && self.flights.has(&(account.id, lookup(source, query).key())) {
            return None;
        }
        let attempt = self.inline_tries.begin(account, self.time(deadline).0)?;
        let start = out.len();
        match answer_catching_panic(&**source, query, &attempt.budget, out) {
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
    fn time(&self, deadline: DeadlineKind) -> (Duration, Failure) {
        let limits = self.limits.now();
        match deadline {
            DeadlineKind::Logs => (limits.log_timeout, Failure::QueryTimeout),
            DeadlineKind::Call => (limits.call_timeout, Failure::CallTimeout(limits.call_timeout)),
            DeadlineKind::Fees | DeadlineKind::Block => (limits.call_timeout, Failure::QueryTimeout),
        }
    }

    async fn pooled(
        &self,
        account: AccountId,
        source: &Arc<dyn Source>,
        call: PinnedCall,
        deadline: DeadlineKind,
        key: Option<CacheKey>,
    ) -> Result<Answer, Failure> {
        let (time, failure) = self.time(deadline);
        let flight = (account, lookup(source, &call.query).key());
        let work = |abandoned| {
            let (query, source, timings) = (call.query, Arc::clone(source), Arc::clone(&self.timings));
            let body = call.body;
            let (cache, reply) = (Arc::clone(&self.cache), ReplyCharge::new(self.memory.clone(), account));
            let queued = Instant::now();
            let budget = AnswerBudget {
                deadline: Some(queued + time),
                abandoned: Some(abandoned),
                brief: false,
                reply: Some(reply),
            };
            move || {
                let _body = body;
                let begun = Instant::now();
                timings.waits.record(begun - queued);
                if budget.stopped() {
                    return Err(failure);
                }
                let mut out = Vec::new();
                let answered = answer_catching_panic(&*source, &query, &budget, &mut out);
                timings.of(deadline).record(begun.elapsed());
                let provenance = answered?;
                let result = without_slack(out);
                if let Some(key) = key {
                    cache.insert(key, cached_answer(result.clone(), provenance));
                }
                Ok(SharedAnswer::new(provenance, result))
            }
        };
        let answer = self.flights.join(flight, account, &self.threads, work).await?;
        answer.lend(self.memory.of(account))
    }
}

/// The key of an answer. The embedded chain grows seldom, so every answer is cached under the hash of the head.
fn lookup<'q>(source: &Arc<dyn Source>, query: &'q Query<BlockRef>) -> CacheLookup<'q> {
    CacheLookup { query, head: Some(source.head().hash) }
}

/// A reply whose buffer is not much larger than what is charged for it.
fn without_slack(mut reply: Vec<u8>) -> Bytes {
    if reply.capacity() - reply.len() > reply.len() / 4 {
        reply.shrink_to_fit();
    }
    reply.into()
}

fn cached_answer(result: Bytes, provenance: Provenance) -> CachedAnswer {
    let Provenance { block, verified, .. } = provenance;
    CachedAnswer { result, block, verified, trust: None, deep_in: None, readers: ChargedReaders::default() }
}

/// A panic in a source costs one call its answer, and nothing else.
fn answer_catching_panic(
    source: &dyn Source,
    query: &Query<BlockRef>,
    budget: &AnswerBudget,
    out: &mut Vec<u8>,
) -> Result<Provenance, Failure> {
    let answer = catch_unwind(AssertUnwindSafe(|| source.answer(query, budget, out)));
    answer.unwrap_or_else(|_| Err(Failure::Broken("a source panicked".to_owned())))
}
