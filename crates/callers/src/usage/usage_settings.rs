//! `[usage]`: how much usage waits for the store, and how long it is kept there.

use settings::Section;
use store::UsageStep;

use crate::policy::{HOURS_KEPT_DAYS, KEPT_DAYS_MAX, MINUTES_KEPT_DAYS, SPOOL_BYTES_MAX};

/// Usage by day is kept for ever: a row for each key, method and outcome of a day.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UsageSettings {
    pub spool_bytes_max: u64,
    pub minutes_kept_days: u64,
    pub hours_kept_days: u64,
}

impl Default for UsageSettings {
    fn default() -> Self {
        Self {
            spool_bytes_max: SPOOL_BYTES_MAX,
            minutes_kept_days: MINUTES_KEPT_DAYS,
            hours_kept_days: HOURS_KEPT_DAYS,
        }
    }
}

impl UsageSettings {
    pub fn read(section: &mut Section<'_>) -> Self {
        let usual = Self::default();
        section.removed("days_kept_days", "usage by day is kept for ever");
        let mut days = |key, days| section.number_up_to(key, days, KEPT_DAYS_MAX);
        let minutes_kept_days = days("minutes_kept_days", usual.minutes_kept_days);
        let hours_kept_days = days("hours_kept_days", usual.hours_kept_days);
        Self {
            spool_bytes_max: section.number("spool_bytes_max", usual.spool_bytes_max),
            minutes_kept_days,
            hours_kept_days,
        }
    }

    /// The first second of which the store has usage in these steps at `unix_seconds`.
    pub(super) fn kept_since(&self, step: UsageStep, unix_seconds: u64) -> u64 {
        let days = match step {
            UsageStep::Minute => Some(self.minutes_kept_days),
            UsageStep::Hour => Some(self.hours_kept_days),
            UsageStep::Day => None,
        };
        let seconds = days.map(|days| days.saturating_mul(UsageStep::Day.seconds()));
        seconds.map_or(0, |seconds| step.start(unix_seconds.saturating_sub(seconds)))
    }
}
