//! Calls to a partner, which cost money. Their number per day holds over restarts and over all gateways with the same store, like
//! the credits of an account.

use std::sync::Arc;

use resources::Clock;

use crate::credit_limits::CreditLimits;
use crate::usage::{DayCredits, UsageRecorder};

/// The calls of a day that may be sent to one partner.
#[derive(Debug)]
pub struct PartnerCalls {
    /// The name in the ledger.
    name: Arc<str>,
    limit: CreditLimits,
    recorder: Arc<UsageRecorder>,
    clock: Clock,
}

impl PartnerCalls {
    /// `partner` is its name, the same in the configuration of all gateways.
    pub fn new(partner: &str, calls_per_day: u64, recorder: Arc<UsageRecorder>) -> Self {
        let name = format!("partner:{partner}").into();
        let limit = CreditLimits::new(None, Some(calls_per_day));
        Self { name, limit, recorder, clock: Clock::default() }
    }

    /// Takes all of these calls, or none.
    pub fn take(&self, calls: u64, unix_seconds: u64) -> bool {
        let is_taken = self.limit.take(self.clock.now(), || unix_seconds, calls).is_ok();
        if is_taken {
            self.recorder.record_own(&self.name, calls);
        }
        is_taken
    }

    /// The calls of all gateways on the day of this time, as far as this one knows.
    pub fn used_today(&self, unix_seconds: u64) -> u64 {
        self.limit.used_today(unix_seconds)
    }

    /// Counts what the store knows as used, unless more is known here.
    pub fn raise_used(&self, credits: &DayCredits) {
        self.limit.raise_used_today(credits.used_by_gateways(&self.name), credits.unix_seconds());
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
