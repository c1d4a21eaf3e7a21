//! Calls to a partner, which cost money. Their number per day holds over restarts and over all gateways, like the credits of an
//! account: the ledger keeps what was used, and Redis divides what is left.

use std::sync::Arc;

use resources::Clock;

use crate::credit_limits::CreditLimits;
use crate::ledger_text::ledger_text;
use crate::shared_limits::SharedLimits;
use crate::usage::{DayCredits, UsageRecorder};

/// Credits that a call counts as in the limit. Gateways may use a thousand credits of a limit before Redis has answered: these are
/// the two calls of a probe.
const CREDITS_PER_CALL: u64 = 500;

/// The calls of a day that may be sent to one partner.
#[derive(Debug)]
pub struct PartnerCalls {
    /// The name in the ledger and in Redis.
    name: Arc<str>,
    limit: CreditLimits,
    recorder: Arc<UsageRecorder>,
    clock: Clock,
}

impl PartnerCalls {
    /// `partner` is its name, the same in the configuration of all gateways.
    pub fn new(partner: &str, calls_per_day: u64, recorder: Arc<UsageRecorder>) -> Self {
        let name = format!("partner:{}", ledger_text(partner)).into();
        let limit = CreditLimits::new(None, Some(calls_per_day.saturating_mul(CREDITS_PER_CALL)));
        Self { name, limit, recorder, clock: Clock::default() }
    }

    /// From now on the limit holds over all gateways with the same Redis.
    pub fn share(&self, shared: &Arc<SharedLimits>) {
        self.limit.share_as(&self.name, shared);
    }

    /// Takes all of these calls, or none.
    pub fn take(&self, calls: u64, unix_seconds: u64) -> bool {
        let credits = calls.saturating_mul(CREDITS_PER_CALL);
        let is_taken = self.limit.take(self.clock.now(), || unix_seconds, credits).is_ok();
        if is_taken {
            self.recorder.record_own(&self.name, calls);
        }
        is_taken
    }

    /// What all gateways have used on the day of this time, as far as this one knows.
    pub fn used_today(&self, unix_seconds: u64) -> u64 {
        self.limit.used_today(unix_seconds) / CREDITS_PER_CALL
    }

    /// Counts what the store knows as used, unless more is known here.
    pub fn raise_used(&self, credits: &DayCredits) {
        let used = credits.used_by_gateways(&self.name).saturating_mul(CREDITS_PER_CALL);
        self.limit.raise_used_today(used, credits.unix_seconds());
    }
}

#[cfg(test)]
mod tests {
    use resources::DAY_S;

    use super::*;

    const NOON: u64 = 20_000 * DAY_S + DAY_S / 2;

    #[test]
    fn calls_are_taken_together_or_not_at_all_and_counted() {
        let recorder = Arc::new(UsageRecorder::new(1));
        recorder.start();
        let partner = PartnerCalls::new("acme", 3, Arc::clone(&recorder));
        let taken = [2, 2, 1, 1].map(|calls| partner.take(calls, NOON));
        assert_eq!((taken, partner.used_today(NOON)), ([true, false, true, false], 3));
        let rows = recorder.take(NOON, &"demo".into());
        assert_eq!((&*rows[0].group.account, &*rows[0].group.key), ("", "partner:acme"));
        assert_eq!((rows.len(), rows[0].counts.calls, rows[0].counts.credits), (1, 3, 3));
        assert!(partner.take(3, NOON + DAY_S), "another day");
    }
}
