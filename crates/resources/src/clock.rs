//! Time on the request path. The clock is read once when a request arrives and once when it is done.

use std::sync::OnceLock;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// Nanoseconds since the first [`Clock`] of the process was made. Fits into an atomic, and never goes backwards.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct MonoTime(pub u64);

impl MonoTime {
    pub fn since(self, earlier: Self) -> Duration {
        Duration::from_nanos(self.0.saturating_sub(earlier.0))
    }

    /// Adds a duration; the sum saturates.
    pub fn after(self, duration: Duration) -> Self {
        Self(self.0.saturating_add(u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)))
    }
}

/// Reads the system's monotonic clock for durations and its wall clock for dates.
///
/// All clocks of a process have the same origin, so times of the request path and of background threads can be compared.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    origin: Instant,
}

impl Default for Clock {
    fn default() -> Self {
        static ORIGIN: OnceLock<Instant> = OnceLock::new();
        Self { origin: *ORIGIN.get_or_init(Instant::now) }
    }
}

impl Clock {
    #[inline]
    pub fn now(&self) -> MonoTime {
        MonoTime(u64::try_from(self.origin.elapsed().as_nanos()).unwrap_or(u64::MAX))
    }

    pub fn instant(&self, time: MonoTime) -> Instant {
        self.origin + Duration::from_nanos(time.0)
    }

    /// The current time in seconds since 1970, UTC.
    ///
    /// It is not derived from a [`MonoTime`], because the system corrects the wall clock while the process runs, and only the
    /// wall clock advances while the machine is suspended.
    pub fn unix_seconds(&self) -> u64 {
        unix_time().as_secs()
    }
}

/// The time since 1970, UTC. Only this function reads the wall clock.
pub fn unix_time() -> Duration {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()
}

/// Seconds since 1970, UTC, as the store has them.
pub fn unix_seconds() -> i64 {
    i64::try_from(unix_time().as_secs()).unwrap_or(i64::MAX)
}
