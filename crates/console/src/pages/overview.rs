//! The first page of a developer: what is left today, what was called, and which keys there are.

use askama::Template;

use super::Frame;
use super::keys::KeyRow;
use super::outcomes::OutcomeCounts;
use super::usage::UsageSeries;

/// `GET /`.
#[derive(Template)]
#[template(path = "overview.html")]
pub(crate) struct OverviewPage {
    pub(crate) frame: Frame,
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
