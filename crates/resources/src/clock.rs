//! Time as the request path uses it: read once when a request arrives and once when it is done, and handed on.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// Nanoseconds since the process began to serve. Small enough for an atomic, and never goes backwards.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Moment(pub u64);

impl Moment {
    pub fn since(self, earlier: Self) -> Duration {
        Duration::from_nanos(self.0.saturating_sub(earlier.0))
    }

    /// The moment `time` later. A time that is too long to be counted in nanoseconds never passes.
    pub fn after(self, time: Duration) -> Self {
        Self(self.0.saturating_add(u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)))
    }
}

/// Reads the two clocks of the system: one that only moves forwards, for durations, and one that is corrected, for dates.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    origin: Instant,
}

impl Default for Clock {
    fn default() -> Self {
        Self { origin: Instant::now() }
    }
}

impl Clock {
    #[inline]
    pub fn now(&self) -> Moment {
        Moment(u64::try_from(self.origin.elapsed().as_nanos()).unwrap_or(u64::MAX))
    }

    pub fn instant(&self, moment: Moment) -> Instant {
        self.origin + Duration::from_nanos(moment.0)
    }

    /// Seconds since 1970, UTC, read now.
    ///
    /// It cannot be computed from a [`Moment`]: the date is corrected while the process runs, and goes on while the machine
    /// is suspended.
    pub fn unix_seconds(&self) -> u64 {
        SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs()
    }
}
