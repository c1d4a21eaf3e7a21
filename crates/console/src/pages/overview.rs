//! The first page of a developer: what is left today, what was called, and which keys there are.

use askama::Template;

use super::keys::KeyRow;
use super::outcomes::OutcomeCounts;
use super::usage::UsageSeries;
use super::{PageFrame, format, snippets};

/// `GET /`.
#[derive(Template)]
#[template(path = "overview.html")]
pub(crate) struct OverviewPage {
    pub(crate) frame: PageFrame,
    pub(crate) credits: CreditsToday,
    /// The calls of today (UTC), by how they ended.
    pub(crate) outcomes: OutcomeCounts,
    /// The active keys, the most used first; the page shows the first five.
    pub(crate) keys: Vec<KeyRow>,
    /// The last 24 hours.
    pub(crate) series: UsageSeries,
    /// The address of the public listener with the path before the key, such as `http://127.0.0.1:8545/v3/`.
    pub(crate) base_url: String,
    /// A key that may be shown, such as `demo` on the demo network; otherwise the curl line has a placeholder.
    pub(crate) example_key: Option<String>,
}

/// Keys that the overview shows; the list of keys has all.
const KEYS_SHOWN_MAX: usize = 5;

impl OverviewPage {
    fn shown_keys(&self) -> &[KeyRow] {
        self.keys.get(..KEYS_SHOWN_MAX).unwrap_or(&self.keys)
    }

    fn active_keys(&self) -> u64 {
        self.keys.len() as u64
    }

    fn has_calls(&self) -> bool {
        self.outcomes.calls() > 0 || self.series.points.iter().any(|point| point.outcomes.calls() > 0)
    }

    fn curl_line(&self) -> String {
        let key = self.example_key.as_deref().unwrap_or(snippets::KEY_PLACEHOLDER);
        snippets::curl(&self.base_url, key, "eth_blockNumber", "[]")
    }
}

/// The credits of an account today (UTC), and its plan.
#[derive(Clone, Debug)]
pub(crate) struct CreditsToday {
    pub(crate) used: u64,
    /// `None` is no limit.
    pub(crate) per_day: Option<u64>,
    /// `None` is no limit.
    pub(crate) per_second: Option<u64>,
    /// The name of the plan.
    pub(crate) plan: String,
    /// When the credits of the day are new: the next midnight, UTC.
    pub(crate) resets_at: i64,
}

impl CreditsToday {
    /// What is left today; `None` without a limit.
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
