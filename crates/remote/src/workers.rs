//! Chooses the thread for work on what nodes deliver by its size: small deliveries are worked on at once, large ones in the pool
//! of threads, because work on megabytes would keep all other connections of a thread waiting.

use std::sync::Arc;

use nodes::Proving;
use nodes::proven::Unproven;
use resources::{AccountId, MemoryBudget, ThreadPool};
use sources::{CurrentLimits, Failure};
use tokio::time::timeout;

use super::integrity::IntegrityPolicy;

/// Deliveries up to this size are proven at once: reading and hashing them takes less than 200 µs.
const PROVEN_AT_ONCE_BYTES_MAX: usize = 16 << 10;

/// Answers up to this size are read at once, which takes less than 200 µs.
pub(super) const PARSED_AT_ONCE_BYTES_MAX: usize = 64 << 10;

/// Answers up to this size are cut, joined and copied at once, which takes less than 100 µs: nothing in them is hashed.
pub(super) const COPIED_AT_ONCE_BYTES_MAX: usize = 512 << 10;

/// Reads and proves what nodes deliver, and counts the proofs that fail.
pub(super) struct Workers {
    pub(super) threads: Arc<ThreadPool>,
    pub(super) memory: MemoryBudget,
    pub(super) integrity: IntegrityPolicy,
    limits: CurrentLimits,
}

impl Workers {
    pub(super) fn new(
        threads: Arc<ThreadPool>,
        memory: MemoryBudget,
        integrity: IntegrityPolicy,
        limits: impl Into<CurrentLimits>,
    ) -> Self {
        Self { threads, memory, integrity, limits: limits.into() }
    }

    /// Does work on this many bytes: up to `at_once_bytes_max` at once, otherwise in the account's share of the pool.
    pub(super) async fn run_sized<T: Send + 'static>(
        &self,
        account: AccountId,
        bytes: usize,
        at_once_bytes_max: usize,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, Failure> {
        if bytes <= at_once_bytes_max {
            return Ok(work());
        }
        // The longest of all calls may take this long.
        let time_max = self.limits.now().log_timeout;
        let done = timeout(time_max, self.threads.run(account, work)).await;
        Ok(done.map_err(|_| Failure::OverCapacity)??)
    }

    /// Runs a proof: at once if it is short, else in the pool of threads.
    pub(super) fn proving<T: Send + 'static>(
        &self,
        account: AccountId,
        bytes: usize,
        prove: impl FnOnce() -> Result<T, Unproven> + Send + 'static,
    ) -> Proving<'_, T> {
        let count = |proof: &Result<T, Unproven>| {
            if let Err(Unproven::Wrong(failure)) = proof {
                self.integrity.count(*failure);
            }
        };
        if bytes <= PROVEN_AT_ONCE_BYTES_MAX {
            let proof = prove();
            count(&proof);
            return Proving::Done(proof);
        }
        Proving::Elsewhere(Box::pin(async move {
            let proof = unless_refused(self.threads.run(account, prove).await)?;
            count(&proof);
            Some(proof)
        }))
    }
}

/// The result of pooled work for a judgement, which only knows that there is none. A panic goes on in the call that waits for
/// the judgement, and ends it with an internal error.
pub(super) fn unless_refused<T>(worked: Result<T, impl Into<Failure>>) -> Option<T> {
    match worked.map_err(Into::into) {
        Ok(result) => Some(result),
        Err(Failure::Broken(what)) => panic!("{what}"),
        Err(_) => None,
    }
}
