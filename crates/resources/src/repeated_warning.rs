//! One log line for many equal events.

use std::time::{Duration, Instant};

use parking_lot::Mutex;

/// Minimum time between two log lines of one warning.
const INTERVAL: Duration = Duration::from_secs(10);

/// Rate-limits a warning that could be logged thousands of times a second. The first event is logged at once, later ones at
/// most every ten seconds, with the number of events since the last line.
#[derive(Debug, Default)]
pub struct RepeatedWarning {
    state: Mutex<WarningCount>,
}

#[derive(Debug, Default)]
struct WarningCount {
    logged_at: Option<Instant>,
    unlogged: u64,
}

impl RepeatedWarning {
    /// Counts one event. `Some(n)`: the caller logs a line about `n` events now.
    pub fn count(&self, now: Instant) -> Option<u64> {
        let mut state = self.state.lock();
        state.unlogged += 1;
        let is_due = state.logged_at.is_none_or(|at| now.saturating_duration_since(at) >= INTERVAL);
        if !is_due {
            return None;
        }
        state.logged_at = Some(now);
        Some(std::mem::take(&mut state.unlogged))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_event_is_logged_at_once_and_later_ones_together() {
        let (warning, start) = (RepeatedWarning::default(), Instant::now());
        assert_eq!(warning.count(start), Some(1));
        for ms in 1..=99 {
            assert_eq!(warning.count(start + Duration::from_millis(ms * 100)), None);
        }
        assert_eq!(warning.count(start + INTERVAL), Some(100));
        assert_eq!(warning.count(start + INTERVAL * 3), Some(1));
    }
}
