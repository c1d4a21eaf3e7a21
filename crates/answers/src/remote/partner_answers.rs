//! How often partners have answered.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

use methods::Method;
use parking_lot::Mutex;

/// Answers of partners, which are asked when no node of the operator answers.
#[derive(Debug, Default)]
pub struct PartnerAnswers {
    count: AtomicU64,
    last_at: Mutex<Option<Instant>>,
}

impl PartnerAnswers {
    pub(super) fn record(&self, method: &Method) {
        self.count.fetch_add(1, Relaxed);
        *self.last_at.lock() = Some(Instant::now());
        tracing::info!(method = method.name, "a partner answered, because no node of our own could");
    }

    pub fn count(&self) -> u64 {
        self.count.load(Relaxed)
    }

    /// Time since the last one.
    pub fn last_age(&self) -> Option<Duration> {
        self.last_at.lock().map(|at| at.elapsed())
    }
}
