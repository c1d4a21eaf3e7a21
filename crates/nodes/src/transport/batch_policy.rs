//! How many calls may be sent in one batch, by how calls of their kind were answered lately.
//!
//! The replies of a batch arrive when all its calls are done. Look-ups take about the same time, so they are always batched.
//! Other calls may take a microsecond or ten seconds: they are batched only while the node answers all of them at once, and one
//! slow exchange ends that for the next dozen.

use std::time::Duration;

use tokio::time::Instant;

use crate::call::Class;

use super::limits::EndpointLimits;

/// Which calls a queue holds. Calls of one kind never wait for those of another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum QueueKind {
    Quick,
    Evm,
    /// Logs, and whole blocks.
    Heavy,
}

impl QueueKind {
    pub(super) fn of(class: Class) -> Self {
        match class {
            Class::Quick => Self::Quick,
            Class::Evm => Self::Evm,
            Class::Logs | Class::Bulk => Self::Heavy,
        }
    }
}

/// Initial average time of calls other than look-ups, as a multiple of [`EndpointLimits::near`].
const INITIAL_TIME_FACTOR: u32 = 4;

/// Averages over the last exchanges, of which the newest counts for an eighth.
#[derive(Debug)]
pub(super) struct BatchPolicy {
    kind: QueueKind,
    exchange_time: Duration,
    /// Size of one reply.
    reply_bytes: usize,
    last_send: Instant,
}

impl BatchPolicy {
    pub(super) fn new(kind: QueueKind, limits: &EndpointLimits) -> Self {
        let exchange_time =
            if kind == QueueKind::Quick { Duration::ZERO } else { limits.near * INITIAL_TIME_FACTOR };
        Self { kind, exchange_time, reply_bytes: 0, last_send: Instant::now() }
    }

    pub(super) fn record_exchange(&mut self, time: Duration, reply_bytes: usize) {
        self.exchange_time = (self.exchange_time * 7 + time) / 8;
        self.reply_bytes = (self.reply_bytes * 7 + reply_bytes) / 8;
    }

    pub(super) fn record_send(&mut self, now: Instant) {
        self.last_send = now;
    }

    /// How many calls may be sent in one batch.
    pub(super) fn batch_max(&self, limits: &EndpointLimits) -> usize {
        let calls = match self.kind {
            QueueKind::Quick => limits.batch_calls_max,
            _ if self.exchange_time < limits.near => limits.slow_batch_calls_max.min(limits.batch_calls_max),
            _ => 1,
        };
        calls.min(limits.batch_reply_bytes / self.reply_bytes.max(1)).max(1)
    }

    /// A near node needs few connections. One that is far away, or does not answer, gets more.
    pub(super) fn connections_max(&self, limits: &EndpointLimits, now: Instant) -> usize {
        let is_answering = now.saturating_duration_since(self.last_send) < limits.near;
        if self.exchange_time >= limits.near || !is_answering {
            return limits.connections_max;
        }
        limits.near_connections_max.min(limits.connections_max)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn batch_max(kind: QueueKind, times_ms: &[u64], reply_bytes: usize) -> usize {
        let limits = EndpointLimits::default();
        let mut policy = BatchPolicy::new(kind, &limits);
        times_ms.iter().for_each(|time| policy.record_exchange(Duration::from_millis(*time), reply_bytes));
        policy.batch_max(&limits)
    }

    #[tokio::test]
    async fn look_ups_always_share_and_others_while_they_are_answered_at_once() {
        let (limits, quick) = (EndpointLimits::default(), [0; 20]);
        assert_eq!(batch_max(QueueKind::Quick, &[], 0), limits.batch_calls_max);
        assert_eq!(batch_max(QueueKind::Quick, &[100; 20], 100), limits.batch_calls_max);
        assert_eq!(batch_max(QueueKind::Evm, &[], 0), 1, "nothing is known yet");
        assert_eq!(batch_max(QueueKind::Evm, &quick, 100), limits.slow_batch_calls_max);
        assert_eq!(
            batch_max(QueueKind::Evm, &[&quick[..], &[100]].concat(), 100),
            1,
            "one slow call is enough"
        );
    }

    #[tokio::test]
    async fn large_replies_come_in_small_batches() {
        assert_eq!(batch_max(QueueKind::Heavy, &[0; 40], 60 << 10), 4);
        assert_eq!(batch_max(QueueKind::Heavy, &[0; 40], 6 << 20), 1);
    }
}
