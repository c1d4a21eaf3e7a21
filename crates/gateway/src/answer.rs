//! Step 7: `&Permit` and a pinned query → `Answer`.
//!
//! This file is the seam to whoever holds the chain. A [`Source`] is synchronous: it writes the result as JSON text into a
//! buffer that it is given, and says at which block it is true. Where it runs is not its business. Rows of the method
//! table marked `Inline` are answered on the thread of their connection, straight into the reply. Rows marked `Pooled` are
//! given a moment there too; what takes longer starts over in threads of its own, behind a bounded queue, under a
//! deadline, and equal ones in flight share one answer.

pub mod archive; // the embedded chain as a source
mod echoes; // large answers that are still being read
mod flights; // equal calls share one answer
mod held; // answers that wait to be read
mod moment; // patience with heavy work that is light
mod pool; // threads for heavy work

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};

use alloy_primitives::{B256, Bytes as Data};
use bytes::Bytes;

use crate::admit::Permit;
use crate::config::Section;
use crate::meter::Histogram;
use crate::methods::{Deadline, Method, Work};
use crate::params::Query;
use crate::resolve::BlockRef;

use echoes::Echoes;
use flights::Flights;
pub(crate) use held::{COUNTED_BYTES_MIN, Held};
use moment::Moments;
pub use pool::{Pool, PoolFull};

/// Who answers calls from its own data.
///
/// The first five functions are the view: they are asked for almost every call and should be a look-up in memory.
/// `answer` must only be asked about blocks that the view has named; one that has gone since is `Failure::Unavailable`.
pub trait Source: Send + Sync + 'static {
    /// The newest canonical block.
    fn head(&self) -> BlockRef;

    fn finalized(&self) -> Option<BlockRef>;

    fn safe(&self) -> Option<BlockRef>;

    fn block_by_number(&self, number: u64) -> Option<BlockRef>;

    /// `None` also for a block that is known but not canonical.
    fn block_by_hash(&self, hash: B256) -> Option<BlockRef>;

    /// Appends the result to `out` as JSON text (`"0x1"`, `{…}`, `null`) and says where it came from.
    ///
    /// On failure, what was appended is thrown away. Pooled work asks `budget.stopped()` now and then and ends with a
    /// timeout when it says so. Where `budget.is_brief()`, it ends so at once when it can tell that it will take longer
    /// than a moment, and begins nothing that cannot be stopped.
    fn answer(
        &self,
        query: &Query<BlockRef>,
        budget: &Budget,
        out: &mut Vec<u8>,
    ) -> Result<Provenance, Failure>;
}

/// Where an answer came from and at which block it was computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Provenance {
    pub origin: Origin,
    pub block: Option<BlockRef>,
}

impl Provenance {
    pub fn archive(block: Option<BlockRef>) -> Self {
        Self { origin: Origin::Archive, block }
    }
}

/// The kinds of sources, as `Chaingate-Source` names them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    Cache,
    Archive,
    Node,
    Partner,
}

/// Why there is no answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Failure {
    /// The EVM met REVERT; the reason is in the data.
    Reverted { data: Data },
    /// The EVM stopped for another reason, in the words that clients know.
    Execution(String),
    /// The call contradicts the chain (another chain id, a fee below the base fee …).
    Refused(String),
    /// More logs than one query may return; `from` to `to` is the widest range from the same start that fits.
    TooManyResults { from: u64, to: u64, most: u64 },
    /// The deadline of a search passed.
    QueryTimeout,
    /// The deadline of a simulation passed.
    CallTimeout(Duration),
    /// Nobody can answer now; the same call may succeed later.
    Unavailable,
    /// The pool has no place for more work.
    OverCapacity,
    /// Our own fault. The text is for the log only.
    Broken(String),
}

/// How long work may take. Asking costs a clock reading, so ask once in a thousand steps rather than in each.
#[derive(Clone, Debug, Default)]
pub struct Budget {
    deadline: Option<Instant>,
    abandoned: Option<Arc<AtomicBool>>,
    brief: bool,
}

impl Budget {
    /// Whether the deadline has passed, or nobody waits for the answer any more.
    pub fn stopped(&self) -> bool {
        let abandoned = self.abandoned.as_ref().is_some_and(|flag| flag.load(Relaxed));
        abandoned || self.deadline.is_some_and(|deadline| Instant::now() >= deadline)
    }

    pub fn deadline(&self) -> Option<Instant> {
        self.deadline
    }

    /// Whether this is only a try: a timeout is no answer, and the work will start over with another budget.
    pub fn is_brief(&self) -> bool {
        self.brief
    }

    /// Becomes true when nobody waits for the answer any more.
    pub fn abandoned(&self) -> Option<&Arc<AtomicBool>> {
        self.abandoned.as_ref()
    }
}

/// An answer. Small ones stand in the reply already, the others are shared bytes.
#[derive(Clone, Debug)]
pub struct Answer {
    pub provenance: Provenance,
    pub shared: Option<Bytes>,
}

/// The limits of this step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Values in one log filter. The specification's figure.
    pub log_params_max: usize,
    /// Logs in one answer. The specification's figure, and clients compare the text of its error.
    pub log_results_max: u64,
    /// The specification's figure.
    pub log_timeout: Duration,
    /// Blocks in one log query; none by default, because the index makes the range irrelevant.
    pub log_blocks_max: Option<u64>,
    /// What common nodes grant a simulation.
    pub call_timeout: Duration,
    /// Gas of a call, in block gas limits. The specification's figure.
    pub call_gas_multiple: u64,
    /// Memory of a call over all its frames. Deep calls could take twice as much at the gas cap of mainnet.
    pub call_memory_bytes_max: u64,
    /// Threads for heavy work: one per core keeps the connections' threads alive between them.
    pub pool_threads: usize,
    /// Calls that may wait for such a thread. A few times what a second of simulations needs.
    pub pool_queue_max: usize,
    /// Bytes of answers that wait to be read, over all callers: some eighty of the largest log answers. Callers that
    /// ask and do not read would else fill any memory.
    pub held_bytes_max: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            log_params_max: 5_000,
            log_results_max: 10_000,
            log_timeout: Duration::from_secs(10),
            log_blocks_max: None,
            call_timeout: Duration::from_secs(5),
            call_gas_multiple: 10,
            call_memory_bytes_max: 64 << 20,
            pool_threads: std::thread::available_parallelism().map_or(2, usize::from),
            pool_queue_max: 4_096,
            held_bytes_max: 512 << 20,
        }
    }
}

impl Limits {
    pub(crate) fn read(section: &mut Section<'_>) -> Self {
        let usual = Self::default();
        Self {
            log_params_max: section.size("log_params_max", usual.log_params_max),
            log_results_max: section.number("log_results_max", usual.log_results_max),
            log_timeout: section.milliseconds("log_timeout_ms", usual.log_timeout),
            log_blocks_max: section.limit("log_blocks_max", usual.log_blocks_max),
            call_timeout: section.milliseconds("call_timeout_ms", usual.call_timeout),
            call_gas_multiple: section.number("call_gas_multiple", usual.call_gas_multiple),
            call_memory_bytes_max: section.number("call_memory_bytes_max", usual.call_memory_bytes_max),
            pool_threads: section.size("pool_threads", usual.pool_threads),
            pool_queue_max: section.size("pool_queue_max", usual.pool_queue_max),
            held_bytes_max: section.size("held_bytes_max", usual.held_bytes_max),
        }
    }
}

/// The sources in their order, and the machinery that guards them.
pub struct Answers {
    source: Arc<dyn Source>,
    pool: Arc<Pool>,
    flights: Arc<Flights>,
    echoes: Arc<Echoes>,
    moments: Moments,
    held: Held,
    timings: Arc<Timings>,
    limits: Limits,
}

/// How long heavy work took.
#[derive(Debug, Default)]
pub(crate) struct Timings {
    /// Waiting for a thread of the pool.
    pub(crate) waits: Histogram,
    pub(crate) logs: Histogram,
    pub(crate) calls: Histogram,
    pub(crate) fees: Histogram,
}

impl std::fmt::Debug for Answers {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Answers").field("limits", &self.limits).finish_non_exhaustive()
    }
}

impl Answers {
    pub fn new(source: Arc<dyn Source>, limits: Limits) -> std::io::Result<Self> {
        let pool = Arc::new(Pool::start(limits.pool_threads, limits.pool_queue_max)?);
        let held = Held::new(limits.held_bytes_max);
        let (flights, echoes, timings) = (Arc::default(), Arc::default(), Arc::default());
        Ok(Self { source, pool, flights, echoes, moments: Moments::default(), held, timings, limits })
    }

    pub fn source(&self) -> &dyn Source {
        &*self.source
    }

    pub fn pool(&self) -> &Arc<Pool> {
        &self.pool
    }

    pub(crate) fn held(&self) -> &Held {
        &self.held
    }

    pub(crate) fn timings(&self) -> &Timings {
        &self.timings
    }

    /// Answers an admitted call. The permit is asked for only as proof.
    pub async fn answer(
        &self,
        _permit: &Permit<'_>,
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
        self.flights.join(query, &self.pool, work).await
    }
}

impl Timings {
    fn of(&self, deadline: Deadline) -> &Histogram {
        match deadline {
            Deadline::Logs => &self.logs,
            Deadline::Call => &self.calls,
            Deadline::Fees => &self.fees,
        }
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
