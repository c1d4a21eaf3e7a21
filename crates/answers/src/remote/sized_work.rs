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
        done.ok().flatten().ok_or(Failure::OverCapacity)
    }
}
