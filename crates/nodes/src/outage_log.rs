//! When to log that a node cannot be used: at once, then at growing intervals, and when it is back.

use std::time::Duration;

use tokio::time::Instant;

use crate::call::{Fault, TlsFailure};

/// The time after which an outage that lasts is logged again. It doubles with each line.
const LOG_INTERVAL_MIN: Duration = Duration::from_secs(60);
/// The longest time between two lines about an outage that lasts.
const LOG_INTERVAL_MAX: Duration = Duration::from_secs(3_600);
/// A node that has been well for this long starts with the shortest interval again.
const WELL_AGAIN_AFTER: Duration = Duration::from_secs(600);

/// What was logged about one node.
#[derive(Debug, Default)]
pub(crate) struct OutageLog {
    /// When an outage was logged last, and the interval until it is logged again.
    logged: Option<(Instant, Duration)>,
    /// Failures since then.
    failures: u64,
    /// Whether the present outage was logged.
    is_logged: bool,
    well_since: Option<Instant>,
}

impl OutageLog {
    /// Counts a failure. Returns the number of failures since the last line if the outage must be logged now.
    pub(crate) fn record_failure(&mut self, now: Instant) -> Option<u64> {
        if self.well_since.take().is_some_and(|since| now.duration_since(since) >= WELL_AGAIN_AFTER) {
            self.logged = None;
        }
        self.failures += 1;
        let pause = match self.logged {
            Some((at, pause)) if now.duration_since(at) < pause => return None,
            Some((_, pause)) => (pause * 2).min(LOG_INTERVAL_MAX),
            None => LOG_INTERVAL_MIN,
        };
        self.logged = Some((now, pause));
        self.is_logged = true;
        Some(std::mem::take(&mut self.failures))
    }

    /// Records that the node is well. Returns whether the outage was logged, so that its end must be logged too.
    pub(crate) fn record_recovery(&mut self, now: Instant) -> bool {
        self.well_since.get_or_insert(now);
        std::mem::take(&mut self.is_logged)
    }
}

/// What an operator can do about a fault.
pub(crate) fn advice(fault: Fault) -> &'static str {
    match fault {
        Fault::Connect => "check that it runs, and the host and port of its url",
        Fault::Dns => "check the host name in its url, and the DNS of this machine",
        Fault::Tls(TlsFailure::NoTls) => {
            "its url says https, and it answers without TLS: check scheme and port of its url"
        }
        Fault::Tls(TlsFailure::OtherName) => {
            "check the host name in its url: its certificate is for another one"
        }
        Fault::Tls(TlsFailure::Expired | TlsFailure::NotYetValid) => {
            "renew its certificate, or set the clock of this machine"
        }
        Fault::Tls(TlsFailure::UnknownIssuer | TlsFailure::BadCertificate) => {
            "give it a certificate of an authority that this machine trusts, or install its authority here"
        }
        Fault::Tls(TlsFailure::Handshake) => "check that its port speaks TLS 1.2 or 1.3",
        Fault::Status(401 | 403) => {
            "it refuses our credentials: check user, password, key and headers of its entry"
        }
        Fault::Status(404 | 405) => "check the path of its url",
        Fault::Status(_) => "look into its own log",
        Fault::Refused => "it answers a plain question with an error: check its key and its plan",
        Fault::RateLimited => "raise its limit, or poll_interval_ms in [pool]",
        Fault::Garbled | Fault::WrongId => "check that its url is that of a JSON-RPC endpoint",
        Fault::Timeout | Fault::Closed => "check whether it is overloaded, or a firewall blocks it",
        Fault::TooLarge | Fault::Wrong => {
            "it sends replies that no honest node sends: check what answers at its url"
        }
        Fault::QueueFull => "it answers more slowly than it is asked: add nodes",
        Fault::NoMemory | Fault::LargerThanMemory => "raise reply_memory_bytes in [pool]",
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
            .filter_map(|second| Some((second, log.record_failure(start + SECOND * second)?)))
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
            told += usize::from(log.record_failure(start + SECOND * second).is_some());
            told += usize::from(log.record_recovery(start + SECOND * (second + 1)));
        }
        assert_eq!(told, 2, "that it was lost, and that it was back, once");
        assert!(log.record_failure(start + SECOND * 700).is_some(), "after it was well for long");
    }
}
