//! The usage of an account: charts over time, sums by method, key and outcome, and failures with advice.

use askama::Template;

use super::Frame;
use super::outcomes::OutcomeCounts;
use super::overview::CreditsToday;

/// `GET /usage?range=&key=`.
#[derive(Template)]
#[template(path = "usage.html")]
pub(crate) struct UsagePage {
    pub(crate) frame: Frame,
    pub(crate) range: UsageRange,
    /// The handle of the only key whose usage is shown; `None` is all keys.
    pub(crate) key: Option<String>,
    /// The keys that can be chosen.
    pub(crate) keys: Vec<KeyChoice>,
    pub(crate) credits: CreditsToday,
    /// The sum of the range.
    pub(crate) total: UsageSum,
    pub(crate) series: UsageSeries,
    /// The most used first; at most [`ROWS_SHOWN_MAX`] are shown.
    pub(crate) by_method: Vec<UsageRowByName>,
    /// `name` is the name of the key, `href` its page.
    pub(crate) by_key: Vec<UsageRowByName>,
    /// For the empty state; such as `http://127.0.0.1:8545/v3/`.
    pub(crate) base_url: String,
}

/// Rows of one table at most, so that a page stays below 100 KB.
pub(crate) const ROWS_SHOWN_MAX: usize = 40;

/// The spans of time that can be chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum UsageRange {
    Minutes15,
    Hour,
    Day,
    Week,
    Month,
}

impl UsageRange {
    pub(crate) const ALL: [Self; 5] = [Self::Minutes15, Self::Hour, Self::Day, Self::Week, Self::Month];

    /// The range with this name in the address.
    pub(crate) fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|range| range.name() == name)
    }

    /// The value of `range` in the address.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Minutes15 => "15m",
            Self::Hour => "1h",
            Self::Day => "24h",
            Self::Week => "7d",
            Self::Month => "30d",
        }
    }

    pub(crate) fn label(self) -> &'static str {
        match self {
            Self::Minutes15 => "15 min",
            Self::Hour => "1 h",
            Self::Day => "24 h",
            Self::Week => "7 d",
            Self::Month => "30 d",
        }
    }
}

/// A key that can be chosen.
#[derive(Clone, Debug)]
pub(crate) struct KeyChoice {
    pub(crate) id: String,
    pub(crate) name: String,
}

/// Usage summed up.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct UsageSum {
    pub(crate) outcomes: OutcomeCounts,
    pub(crate) credits: u64,
    /// The time that half of the calls took at most, in milliseconds; `None` without calls.
    pub(crate) p50_ms: Option<f64>,
    /// The time that 99 % of the calls took at most, in milliseconds; `None` without calls.
    pub(crate) p99_ms: Option<f64>,
}

/// Usage over time: one point per step, oldest first, without gaps.
#[derive(Clone, Debug, Default)]
pub(crate) struct UsageSeries {
    /// When the first step begins.
    pub(crate) since: i64,
    /// Seconds of a step.
    pub(crate) step: i64,
    /// The usage of each step; steps without calls have a default value.
    pub(crate) points: Vec<UsageSum>,
}

/// The usage of one method or one key.
#[derive(Clone, Debug)]
pub(crate) struct UsageRowByName {
    pub(crate) name: String,
    /// The page about it, if there is one.
    pub(crate) href: Option<String>,
    pub(crate) sum: UsageSum,
}
