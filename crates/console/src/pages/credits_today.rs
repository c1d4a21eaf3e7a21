//! The credits of an account today.

/// The credits of an account today (UTC), and its plan.
#[derive(Clone, Debug)]
pub(crate) struct CreditsToday {
    pub(crate) used: u64,
    /// `None` is no limit.
    pub(crate) per_day: Option<u64>,
    /// `None` is no limit.
    pub(crate) per_second: Option<u64>,
    pub(crate) plan: String,
    /// When the credits of the day are new: the next midnight, UTC.
    pub(crate) resets_at: i64,
}

impl CreditsToday {
    /// Credits that are left today; `None` without a limit.
    pub(crate) fn left(&self) -> Option<u64> {
        self.per_day.map(|per_day| per_day.saturating_sub(self.used))
    }

    /// The share of the day's credits that is used, from 0 to 1; `None` without a limit.
    pub(crate) fn used_share(&self) -> Option<f64> {
        let per_day = self.per_day.filter(|per_day| *per_day > 0)?;
        Some((self.used as f64 / per_day as f64).min(1.0))
    }

    /// The class of the bar: calm, a warning above 80 %, or used up.
    pub(crate) fn level(&self) -> &'static str {
        match self.used_share() {
            Some(share) if share >= 1.0 => "bad",
            Some(share) if share >= 0.8 => "warn",
            _ => "good",
        }
    }
}
