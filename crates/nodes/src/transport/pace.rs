//! How calls of one kind have been answered lately, and how many may travel together because of it.
//!
//! The replies of a batch come back when all are done. Look-ups take about the same time, so they may always share one.
//! Other calls may take a microsecond or ten seconds: they share one only while a node answers them all at once, and a
//! single slow exchange ends that for the next dozen.

use std::time::Duration;

use tokio::time::Instant;

use crate::call::Class;

use super::limits::Limits;

/// Which calls a lane carries. Those of one kind never wait for those of another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Quick,
    Evm,
    /// Logs, and whole blocks.
    Heavy,
}

impl Kind {
    pub(super) fn of(class: Class) -> Self {
        match class {
            Class::Quick => Self::Quick,
            Class::Evm => Self::Evm,
            Class::Logs | Class::Bulk => Self::Heavy,
        }
    }
}

/// How many times `near` calls other than look-ups are taken to need until a few of them have been answered.
const UNKNOWN: u32 = 4;

/// Averages over the last exchanges; the newest counts for an eighth.
#[derive(Debug)]
pub(super) struct Pace {
    kind: Kind,
    exchange: Duration,
    /// What one call brings.
    reply_bytes: usize,
    /// When calls were last taken.
    moved: Instant,
}

impl Pace {
    pub(super) fn new(kind: Kind, limits: &Limits) -> Self {
        let exchange = if kind == Kind::Quick { Duration::ZERO } else { limits.near * UNKNOWN };
        Self { kind, exchange, reply_bytes: 0, moved: Instant::now() }
    }

    pub(super) fn note(&mut self, time: Duration, reply_bytes: usize) {
        self.exchange = (self.exchange * 7 + time) / 8;
        self.reply_bytes = (self.reply_bytes * 7 + reply_bytes) / 8;
    }

    pub(super) fn moves(&mut self, now: Instant) {
        self.moved = now;
    }

    /// How many calls may go out together.
    pub(super) fn batch_max(&self, limits: &Limits) -> usize {
        let calls = match self.kind {
            Kind::Quick => limits.batch_calls_max,
            _ if self.exchange < limits.near => limits.slow_batch_calls_max.min(limits.batch_calls_max),
            _ => 1,
        };
        calls.min(limits.batch_reply_bytes / self.reply_bytes.max(1)).max(1)
    }

    /// A near node needs few lines. One that is far, or stands still, gets more.
    pub(super) fn lines_max(&self, limits: &Limits, now: Instant) -> usize {
        let moving = now.saturating_duration_since(self.moved) < limits.near;
        if self.exchange >= limits.near || !moving {
            return limits.connections_max;
        }
        limits.near_connections_max.min(limits.connections_max)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pace(kind: Kind, times_ms: &[u64], reply_bytes: usize) -> usize {
        let limits = Limits::default();
        let mut pace = Pace::new(kind, &limits);
        times_ms.iter().for_each(|time| pace.note(Duration::from_millis(*time), reply_bytes));
        pace.batch_max(&limits)
    }

    #[tokio::test]
    async fn look_ups_always_share_and_others_while_they_are_answered_at_once() {
        let (limits, quick) = (Limits::default(), [0; 20]);
        assert_eq!(pace(Kind::Quick, &[], 0), limits.batch_calls_max);
        assert_eq!(pace(Kind::Quick, &[100; 20], 100), limits.batch_calls_max);
        assert_eq!(pace(Kind::Evm, &[], 0), 1, "nothing is known yet");
        assert_eq!(pace(Kind::Evm, &quick, 100), limits.slow_batch_calls_max);
        assert_eq!(pace(Kind::Evm, &[&quick[..], &[100]].concat(), 100), 1, "one slow call is enough");
    }

    #[tokio::test]
    async fn large_replies_come_in_small_batches() {
        assert_eq!(pace(Kind::Heavy, &[0; 40], 60 << 10), 4);
        assert_eq!(pace(Kind::Heavy, &[0; 40], 6 << 20), 1);
    }
}
