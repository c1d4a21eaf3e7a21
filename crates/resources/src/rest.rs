//! A time for which something rests.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use crate::clock::MonoTime;

/// The end of a rest, which any thread can move to a later time and none to an earlier one.
#[derive(Debug, Default)]
pub struct Rest(AtomicU64);

impl Rest {
    pub fn is_over(&self, now: MonoTime) -> bool {
        now.0 >= self.0.load(Relaxed)
    }

    pub fn extend_to(&self, end: MonoTime) {
        self.0.fetch_max(end.0, Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rest_ends_at_the_latest_time_that_was_named() {
        let rest = Rest::default();
        assert!(rest.is_over(MonoTime(0)));
        rest.extend_to(MonoTime(7));
        rest.extend_to(MonoTime(5));
        assert!(!rest.is_over(MonoTime(6)) && rest.is_over(MonoTime(7)));
    }
}
