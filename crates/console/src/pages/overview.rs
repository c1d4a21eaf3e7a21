//! The first page of a developer: what is left today, what was called, and which keys there are.

use askama::Template;

use super::credits_today::CreditsToday;
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
    /// The newest keys that work, the most used first; the page shows the first five.
    pub(crate) keys: Vec<KeyRow>,
    pub(crate) valid_keys: u64,
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

    fn has_calls(&self) -> bool {
        self.outcomes.calls() > 0 || self.series.points.iter().any(|point| point.outcomes.calls() > 0)
    }

    fn curl_line(&self) -> String {
        let key = self.example_key.as_deref().unwrap_or(snippets::KEY_PLACEHOLDER);
        snippets::curl(&self.base_url, key, "eth_blockNumber", "[]")
    }
}
