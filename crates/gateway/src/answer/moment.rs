//! A moment's patience: heavy work is tried on the thread of its connection first, because most of it is light.
//!
//! To hand a call to the pool and to be woken by its answer takes longer than most calls themselves. Work that does not
//! end within a moment is given up and starts over in the pool with its true budget, so the answer is the same.
//!
//! A try that fails is time lost for the other connections of the thread. After one, tries rest for several times as
//! long, and a flood of expensive calls goes to the pool at once.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

use super::Budget;

/// How long a try may take. Reading a balance takes 5 µs, a swap 100; nobody else notices to wait as long.
const MOMENT: Duration = Duration::from_micros(200);

/// For how many times the time that was lost tries rest: they waste a tenth of one thread at most.
const REST: u32 = 9;

/// A thread that was put aside in the middle of a try looks as if it had lost much more.
const LOST_MAX: Duration = MOMENT.saturating_mul(3);

/// Whether it is time for a try.
#[derive(Debug)]
pub(super) struct Moments {
    origin: Instant,
    /// Tries rest until then, in nanoseconds since the origin.
    rest_until: AtomicU64,
}

impl Default for Moments {
    fn default() -> Self {
        Self { origin: Instant::now(), rest_until: AtomicU64::new(0) }
    }
}

/// One try.
#[derive(Debug)]
pub(super) struct Try {
    began: Instant,
    pub(super) budget: Budget,
}

impl Moments {
    /// Begins a try, unless they rest, or the work has less than a moment in all.
    pub(super) fn begin(&self, time: Duration) -> Option<Try> {
        if time < MOMENT {
            return None;
        }
        let began = Instant::now();
        if self.since_origin(began) < self.rest_until.load(Relaxed) {
            return None;
        }
        let budget = Budget { deadline: Some(began + MOMENT), abandoned: None, brief: true };
        Some(Try { began, budget })
    }

    /// The try was in vain.
    pub(super) fn failed(&self, attempt: &Try) {
        let lost = attempt.took();
        let until = attempt.began + lost + lost.min(LOST_MAX) * REST;
        self.rest_until.fetch_max(self.since_origin(until), Relaxed);
    }

    fn since_origin(&self, instant: Instant) -> u64 {
        u64::try_from(instant.duration_since(self.origin).as_nanos()).unwrap_or(u64::MAX)
    }
}

impl Try {
    pub(super) fn took(&self) -> Duration {
        self.began.elapsed()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TIME: Duration = Duration::from_secs(1);

    #[test]
    fn tries_rest_after_one_that_failed_in_proportion_to_what_it_took() {
        let moments = Moments::default();
        let attempt = moments.begin(TIME).unwrap();
        std::thread::sleep(MOMENT);
        moments.failed(&attempt);
        let ended = moments.since_origin(Instant::now());
        let (began, until) = (moments.since_origin(attempt.began), moments.rest_until.load(Relaxed));
        let ns = |time: Duration| time.as_nanos() as u64;
        assert!(until >= began + ns(MOMENT) * u64::from(REST + 1));
        assert!(until <= ended + ns(LOST_MAX) * u64::from(REST));
    }

    #[test]
    fn there_is_no_try_while_they_rest_or_for_work_that_has_no_time() {
        let moments = Moments::default();
        assert!(moments.begin(TIME).is_some_and(|attempt| attempt.budget.is_brief()));
        assert!(moments.begin(Duration::ZERO).is_none());
        moments.rest_until.store(u64::MAX, Relaxed);
        assert!(moments.begin(TIME).is_none());
    }
}
