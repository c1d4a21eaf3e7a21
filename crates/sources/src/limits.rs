//! Limits of an answer: time, memory, results.

use std::sync::Arc;
use std::time::Duration;

use arc_swap::{ArcSwap, Guard};
use resources::THREADS_MAX;
use settings::Section;

/// Bound of the limit on queued calls, which are held in memory.
const QUEUE_BOUND: usize = 1 << 20;

/// EVM memory of a call over all its frames, and separately of the accounts, code, journal and logs that it holds. Deep calls
/// could take twice as much at the gas cap of mainnet.
pub const CALL_MEMORY_BYTES_MAX: u64 = 64 << 20;

/// The limits of this step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AnswerLimits {
    /// Values in one log filter.
    pub log_params_max: usize,
    /// Logs in one answer. Clients compare the text of its error.
    pub log_results_max: u64,
    /// How long a log query may take.
    pub log_timeout: Duration,
    /// Blocks in one log query; none by default, because the index makes the range irrelevant.
    pub log_blocks_max: Option<u64>,
    /// The time of a simulation, as common nodes grant it.
    pub call_timeout: Duration,
    /// Gas of a call, in block gas limits.
    pub call_gas_multiple: u64,
    /// Pooled calls of one account that run at once. With one per core, an account alone uses the whole machine.
    pub pool_threads: usize,
    /// Pooled calls that may wait for a thread, over all accounts: a few times what a second of simulations needs.
    pub pool_queue_max: usize,
    /// Bytes of cached answers; 0 if the cache is off. The default is enough for a day of receipts and logs of a
    /// busy application, and little beside what a node takes.
    pub cache_bytes_max: u64,
    /// Bytes of proven blocks in the cache; 0 if the cache is off. The default holds some 500 blocks of mainnet with their
    /// receipts: more than are near the head, where most questions are.
    pub proven_bytes_max: u64,
    /// Bytes of proven accounts, storage slots and code in the cache; 0 if the cache is off. The default holds some 500,000
    /// slots, or the code of 2,000 large contracts.
    pub state_bytes_max: u64,
}

/// The limits as they are now: a reload replaces them for everybody who has a clone of this. What is made from them once, such as threads
/// and caches, stays as it was.
#[derive(Clone, Debug)]
pub struct CurrentLimits(Arc<ArcSwap<AnswerLimits>>);

impl CurrentLimits {
    pub fn now(&self) -> Guard<Arc<AnswerLimits>> {
        self.0.load()
    }

    /// Replaces all limits but those that threads and caches were made from.
    pub fn replace(&self, limits: &AnswerLimits) {
        let before = self.now();
        let AnswerLimits {
            pool_threads,
            pool_queue_max,
            cache_bytes_max,
            proven_bytes_max,
            state_bytes_max,
            ..
        } = **before;
        let limits = limits.clone();
        self.0.store(Arc::new(AnswerLimits {
            pool_threads,
            pool_queue_max,
            cache_bytes_max,
            proven_bytes_max,
            state_bytes_max,
            ..limits
        }));
    }
}

impl From<AnswerLimits> for CurrentLimits {
    fn from(limits: AnswerLimits) -> Self {
        Self(Arc::new(ArcSwap::from_pointee(limits)))
    }
}

impl Default for AnswerLimits {
    fn default() -> Self {
        Self {
            log_params_max: 5_000,
            log_results_max: 10_000,
            log_timeout: Duration::from_secs(10),
            log_blocks_max: None,
            call_timeout: Duration::from_secs(5),
            call_gas_multiple: 10,
            pool_threads: std::thread::available_parallelism().map_or(2, usize::from),
            pool_queue_max: 4_096,
            cache_bytes_max: 512 << 20,
            proven_bytes_max: 256 << 20,
            state_bytes_max: 128 << 20,
        }
    }
}

impl AnswerLimits {
    pub fn read(section: &mut Section<'_>, cache: &mut Section<'_>) -> Self {
        let usual = Self::default();
        let [cache_bytes_max, proven_bytes_max, state_bytes_max] = cache_bytes(cache, &usual);
        section.removed("call_memory_bytes_max", "a call may have 64 MiB of EVM memory");
        Self {
            cache_bytes_max,
            proven_bytes_max,
            state_bytes_max,
            log_params_max: section.size("log_params_max", usual.log_params_max),
            log_results_max: section.number("log_results_max", usual.log_results_max),
            log_timeout: section.milliseconds("log_timeout_ms", usual.log_timeout),
            log_blocks_max: section.limit("log_blocks_max", usual.log_blocks_max),
            call_timeout: section.milliseconds("call_timeout_ms", usual.call_timeout),
            call_gas_multiple: section.number("call_gas_multiple", usual.call_gas_multiple),
            pool_threads: section.size_up_to("pool_threads", usual.pool_threads, THREADS_MAX),
            pool_queue_max: section.size_up_to("pool_queue_max", usual.pool_queue_max, QUEUE_BOUND),
        }
    }
}

fn cache_bytes(cache: &mut Section<'_>, usual: &AnswerLimits) -> [u64; 3] {
    let answers = cache.number("bytes_max", usual.cache_bytes_max);
    let blocks = cache.number("proven_bytes_max", usual.proven_bytes_max);
    let state = cache.number("state_bytes_max", usual.state_bytes_max);
    if cache.flag("enabled", true) { [answers, blocks, state] } else { [0; 3] }
}
