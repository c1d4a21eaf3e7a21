//! When to log that a node cannot be used: each cause at once, then at growing intervals, and when it is back.

use std::collections::HashMap;
use std::time::Duration;

use tokio::time::Instant;

use crate::node_fault::NodeFault;

/// The time after which an outage that lasts is logged again. It doubles with each line.
const LOG_INTERVAL_MIN: Duration = Duration::from_secs(60);
/// The longest time between two lines about an outage that lasts.
const LOG_INTERVAL_MAX: Duration = Duration::from_secs(3_600);
/// A node that has been well for this long starts with the shortest interval again.
const WELL_AGAIN_AFTER: Duration = Duration::from_secs(600);

/// The lines that were logged about one node.
#[derive(Debug, Default)]
pub(crate) struct OutageLog {
    /// The last line of each cause. There are as many as there are texts for them.
    causes: HashMap<&'static str, LoggedCause>,
    /// Whether the present outage was logged.
    is_logged: bool,
    well_since: Option<Instant>,
}

/// When a cause was logged last.
#[derive(Debug)]
struct LoggedCause {
    at: Instant,
    /// The interval until it is logged again.
    pause: Duration,
    /// Failures since then.
    failures: u64,
}

impl OutageLog {
    /// Logs the fault of a node that cannot be used, if that is due.
    pub(crate) fn log_fault(&mut self, node: &str, fault: &NodeFault) {
        let advice = fault.advice();
        if let Some(failures) = self.record_failure(advice, Instant::now()) {
            tracing::warn!(node, %fault, advice, failures, "node cannot be used");
        }
    }

    /// Logs that a node is well again, if its outage was logged.
    pub(crate) fn log_recovery(&mut self, node: &str) {
        if self.record_recovery(Instant::now()) {
            tracing::info!(node, "node is back");
        }
    }

    /// Counts a failure. Returns the number of failures with this cause since its last line if it must be logged now. A node that has
    /// another fault than before is logged at once: the first one may have been repaired.
    pub(crate) fn record_failure(&mut self, cause: &'static str, now: Instant) -> Option<u64> {
        if self.well_since.take().is_some_and(|since| now.duration_since(since) >= WELL_AGAIN_AFTER) {
            self.causes.clear();
        }
        let failures = match self.causes.get_mut(cause) {
            None => {
                let logged = LoggedCause { at: now, pause: LOG_INTERVAL_MIN, failures: 0 };
                self.causes.insert(cause, logged);
                1
            }
            Some(logged) => {
                logged.failures += 1;
                if now.duration_since(logged.at) < logged.pause {
                    return None;
                }
                logged.at = now;
                logged.pause = (logged.pause * 2).min(LOG_INTERVAL_MAX);
                std::mem::take(&mut logged.failures)
            }
        };
        self.is_logged = true;
        Some(failures)
    }

    /// Records that the node is well. Returns whether the outage was logged, so that its end must be logged too.
    pub(crate) fn record_recovery(&mut self, now: Instant) -> bool {
        self.well_since.get_or_insert(now);
        std::mem::take(&mut self.is_logged)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    /// "TLS failed" was logged twice a second, forever.
    #[test]
    fn an_outage_is_logged_once_and_then_less_and_less_often() {
        let (start, mut log) = (Instant::now(), OutageLog::default());
        let told: Vec<_> = (0..3_600)
            .filter_map(|second| Some((second, log.record_failure("refused", start + SECOND * second)?)))
            .collect();
        assert_eq!(told, [(0, 1), (60, 60), (180, 120), (420, 240), (900, 480), (1_860, 960)]);
        assert!(log.record_recovery(start + SECOND * 3_600));
        assert!(!log.record_recovery(start + SECOND * 3_601), "that it is back is told once");
    }

    #[test]
    fn a_node_that_comes_and_goes_is_not_logged_each_time() {
        let (start, mut log) = (Instant::now(), OutageLog::default());
        let mut told = 0;
        for second in (0..50).step_by(2) {
            told += usize::from(log.record_failure("refused", start + SECOND * second).is_some());
            told += usize::from(log.record_recovery(start + SECOND * (second + 1)));
        }
        assert_eq!(told, 2, "that it was lost, and that it was back, once");
        assert!(log.record_failure("refused", start + SECOND * 700).is_some(), "after it was well for long");
    }

    /// A node whose host name was repaired, and that then refused the credentials, was told as one without a host name for an hour.
    #[test]
    fn another_cause_is_logged_at_once_and_equal_ones_are_held_back() {
        let (start, mut log) = (Instant::now(), OutageLog::default());
        let causes = ["dns", "dns", "credentials", "dns", "credentials", "credentials"];
        let told = causes.into_iter().map(|cause| log.record_failure(cause, start + SECOND).is_some());
        assert_eq!(told.collect::<Vec<_>>(), [true, false, true, false, false, false]);
    }
}
