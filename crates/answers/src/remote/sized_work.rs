//! Chooses the thread for work on answers by their size: small ones are worked on at once, large ones in the pool of threads,
//! because work on megabytes would keep all other connections of a thread waiting.

use resources::AccountId;
use tokio::time::timeout;

use super::pool_source::PoolSource;
use crate::failure::Failure;

/// Answers up to this size are read at once, which takes less than 200 µs.
pub(super) const PARSED_AT_ONCE_BYTES_MAX: usize = 64 << 10;

/// Answers up to this size are cut, joined and copied at once, which takes less than 100 µs: nothing in them is hashed.
pub(super) const COPIED_AT_ONCE_BYTES_MAX: usize = 512 << 10;

impl PoolSource {
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
        // As long as the longest of all calls may take.
        let done = timeout(self.limits.log_timeout, self.threads.run(account, work)).await;
        Ok(done.map_err(|_| Failure::OverCapacity)??)
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
