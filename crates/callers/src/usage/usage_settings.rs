//! `[usage]`: how much usage waits for the store, and how long it is kept there.

use settings::Section;
use store::UsageStep;

/// How many bytes of usage wait on disk for a store that is down: days of usage of thousands of keys.
const SPOOL_BYTES_MAX: u64 = 1 << 30;

/// How long usage by minute is kept, in days.
const MINUTES_KEPT_DAYS: u64 = 2;

/// How long usage by hour is kept, in days.
const HOURS_KEPT_DAYS: u64 = 60;

/// The longest time that can be set: a hundred years.
const KEPT_DAYS_MAX: u64 = 36_525;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UsageSettings {
    pub spool_bytes_max: u64,
    pub minutes_kept_days: u64,
    pub hours_kept_days: u64,
    /// `None` keeps them for ever.
    pub days_kept_days: Option<u64>,
}

impl Default for UsageSettings {
    fn default() -> Self {
        Self {
            spool_bytes_max: SPOOL_BYTES_MAX,
            minutes_kept_days: MINUTES_KEPT_DAYS,
            hours_kept_days: HOURS_KEPT_DAYS,
            days_kept_days: None,
        }
    }
}

impl UsageSettings {
    pub fn read(section: &mut Section<'_>) -> Self {
        let usual = Self::default();
        let mut days = |key, days| section.number_up_to(key, days, KEPT_DAYS_MAX);
        let minutes_kept_days = days("minutes_kept_days", usual.minutes_kept_days);
        let hours_kept_days = days("hours_kept_days", usual.hours_kept_days);
        Self {
            spool_bytes_max: section.number("spool_bytes_max", usual.spool_bytes_max),
            minutes_kept_days,
            hours_kept_days,
            days_kept_days: section.limit("days_kept_days", usual.days_kept_days),
        }
    }

    /// The first second of which the store has usage in these steps at `unix_seconds`.
    pub(super) fn kept_since(&self, step: UsageStep, unix_seconds: u64) -> u64 {
        let days = match step {
            UsageStep::Minute => Some(self.minutes_kept_days),
            UsageStep::Hour => Some(self.hours_kept_days),
            UsageStep::Day => self.days_kept_days,
        };
        let seconds = days.map(|days| days.saturating_mul(UsageStep::Day.seconds()));
        seconds.map_or(0, |seconds| step.start(unix_seconds.saturating_sub(seconds)))
    }
}
