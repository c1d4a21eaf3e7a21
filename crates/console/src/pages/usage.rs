//! The usage of an account: charts over time, sums by method, key and outcome, and failures with advice.

use askama::Template;
use callers::usage::{Outcome, UsageRow, UsageStep};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use resources::{BUCKETS, HistogramSum};

use super::chart::{Chart, ChartSeries, ChartShape, ChartTitle, ChartUnit};
use super::credits_today::CreditsToday;
use super::outcomes::OutcomeCounts;
use super::{PageFrame, format, snippets};

/// `GET /usage?range=&key=`, or the same below `/accounts/{name}` for operators.
#[derive(Template)]
#[template(path = "usage.html")]
pub(crate) struct UsagePage {
    pub(crate) frame: PageFrame,
    /// The path of this page.
    pub(crate) path: String,
    /// The name and the path of the account, if it is not the own one.
    pub(crate) account: Option<(String, String)>,
    pub(crate) range: UsageRange,
    /// The id of the only key whose usage is shown; `None` is all keys.
    pub(crate) key: Option<String>,
    /// The keys that can be chosen, the one that is chosen first.
    pub(crate) keys: Vec<KeyChoice>,
    pub(crate) credits: CreditsToday,
    /// The sum of the range.
    pub(crate) total: UsageSum,
    pub(crate) series: UsageSeries,
    /// The most used first; at most [`ROWS_SHOWN_MAX`] are shown.
    pub(crate) by_method: Vec<UsageRowByName>,
    /// `name` is the name of the key, `href` its page.
    pub(crate) by_key: Vec<UsageRowByName>,
    /// The most used first, with what has no tag; empty if nothing has one.
    pub(crate) by_tag: Vec<UsageOfTag>,
    /// For the empty state; such as `http://127.0.0.1:8545/v3/`.
    pub(crate) base_url: String,
}

/// Rows of one table at most, so that a page stays below 100 KB.
pub(crate) const ROWS_SHOWN_MAX: usize = 30;

/// Rows of the table of tags at most. The CSV file has all of them.
pub(crate) const TAGS_SHOWN_MAX: usize = 10;

/// The chart whose table has the failures, too.
const REQUESTS_CHART: ChartTitle = ChartTitle { id: "requests", title: "Calls by outcome" };

impl UsagePage {
    /// The address of this page with another range.
    fn range_href(&self, range: &UsageRange) -> String {
        format!("{}?{}", self.path, self.query(*range))
    }

    fn csv_href(&self) -> String {
        format!("{}.csv?{}", self.path, self.query(self.range))
    }

    fn tags_csv_href(&self) -> String {
        format!("{}&by=tag", self.csv_href())
    }

    fn query(&self, range: UsageRange) -> String {
        match &self.key {
            None => format!("range={}", range.name()),
            Some(key) => format!("range={}&key={}", range.name(), percent_encoded(key)),
        }
    }

    fn is_range(&self, range: &UsageRange) -> bool {
        self.range == *range
    }

    fn shown_methods(&self) -> (&[UsageRowByName], u64) {
        shown_rows(&self.by_method)
    }

    fn shown_keys(&self) -> (&[UsageRowByName], u64) {
        shown_rows(&self.by_key)
    }

    fn is_key(&self, id: &str) -> bool {
        self.key.as_deref() == Some(id)
    }

    fn charts(&self) -> [Chart; 4] {
        let series = &self.series;
        [series.requests_chart(), series.credits_chart(), series.errors_chart(), series.latency_chart()]
    }

    fn curl_line(&self) -> String {
        snippets::curl(&self.base_url, snippets::KEY_PLACEHOLDER, "eth_blockNumber", "[]")
    }
}

/// All characters but the unreserved ones of RFC 3986.
const ENCODED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// Everything but unreserved characters as `%XX`, for values in an address.
pub(crate) fn percent_encoded(text: &str) -> String {
    utf8_percent_encode(text, ENCODED).to_string()
}

/// The rows that a table shows, and how many more there are.
fn shown_rows(rows: &[UsageRowByName]) -> (&[UsageRowByName], u64) {
    let shown = rows.get(..ROWS_SHOWN_MAX).unwrap_or(rows);
    (shown, (rows.len() - shown.len()) as u64)
}

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

    /// The value of `range` in the address, the label, and the step of its charts with the number of steps. The last step is the
    /// running one.
    fn row(self) -> (&'static str, &'static str, UsageStep, u64) {
        match self {
            Self::Minutes15 => ("15m", "15 min", UsageStep::Minute, 15),
            Self::Hour => ("1h", "1 h", UsageStep::Minute, 60),
            Self::Day => ("24h", "24 h", UsageStep::Hour, 24),
            Self::Week => ("7d", "7 d", UsageStep::Hour, 7 * 24),
            Self::Month => ("30d", "30 d", UsageStep::Day, 30),
        }
    }

    pub(crate) fn name(self) -> &'static str {
        self.row().0
    }

    pub(crate) fn label(self) -> &'static str {
        self.row().1
    }

    pub(crate) fn step(self) -> UsageStep {
        self.row().2
    }

    /// The first second, and the second after the last.
    pub(crate) fn span(self, now: u64) -> (u64, u64) {
        let (.., step, count) = self.row();
        let until = step.start(now) + step.seconds();
        (until.saturating_sub(count * step.seconds()), until)
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
    /// Calls by how long they took.
    pub(crate) latency: [u64; BUCKETS],
}

impl UsageSum {
    /// Adds calls that ended in one way.
    pub(crate) fn add_calls(&mut self, outcome: &str, calls: u64, credits: u64) {
        // The store may have outcomes that a later version has written.
        if let Some(outcome) = Outcome::from_label(outcome) {
            self.outcomes.add(outcome, calls);
        }
        self.credits = self.credits.saturating_add(credits);
    }

    /// Adds a row of a report by outcome.
    pub(crate) fn add(&mut self, UsageRow { group, counts }: &UsageRow) {
        self.add_calls(&group.outcome, counts.calls, counts.credits);
        for (sum, more) in self.latency.iter_mut().zip(&counts.latency_buckets) {
            *sum = sum.saturating_add(*more);
        }
    }

    /// The time that half of the calls took at most, in milliseconds; `None` without calls.
    pub(crate) fn p50_ms(&self) -> Option<f64> {
        self.quantile_ms(0.5)
    }

    /// The time that 99 % of the calls took at most, in milliseconds; `None` without calls.
    pub(crate) fn p99_ms(&self) -> Option<f64> {
        self.quantile_ms(0.99)
    }

    fn quantile_ms(&self, share: f64) -> Option<f64> {
        HistogramSum { buckets: self.latency, sum_ns: 0 }.quantile_ms(share)
    }
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

impl UsageSeries {
    pub(crate) fn requests_chart(&self) -> Chart {
        let mut series = vec![self.outcome("Answered", "s-ok", OutcomeCounts::answered)];
        series.extend(self.failures());
        let ChartTitle { id, title } = REQUESTS_CHART;
        self.chart(id, title, ChartUnit::Number, ChartShape::Bars, series)
            .with_empty("No calls in this period")
    }

    pub(crate) fn credits_chart(&self) -> Chart {
        let credits = self.series("Credits", "s-ok", |point| Some(point.credits as f64));
        self.chart("credits", "Credits", ChartUnit::Number, ChartShape::Bars, vec![credits])
            .with_empty("No credits used in this period")
    }

    pub(crate) fn errors_chart(&self) -> Chart {
        self.chart("errors", "Errors", ChartUnit::Number, ChartShape::Bars, self.failures().into())
            .with_empty("No errors in this period")
            .with_table_of(REQUESTS_CHART)
    }

    pub(crate) fn latency_chart(&self) -> Chart {
        let series = vec![
            self.series("p50", "s-ok", |point| point.p50_ms()),
            self.series("p99", "s-limit", |point| point.p99_ms()),
        ];
        self.chart("latency", "Latency", ChartUnit::Milliseconds, ChartShape::Lines, series)
            .with_empty("No calls in this period")
    }

    fn failures(&self) -> [ChartSeries; 4] {
        [
            self.outcome("Invalid or denied", "s-invalid", OutcomeCounts::rejected),
            self.outcome("Over a limit", "s-limit", OutcomeCounts::refused),
            self.outcome("Service failed", "s-fault", OutcomeCounts::service_failures),
            self.outcome("Client hung up", "s-gone", OutcomeCounts::abandoned),
        ]
    }

    fn outcome(
        &self,
        name: &'static str,
        class: &'static str,
        calls: fn(&OutcomeCounts) -> u64,
    ) -> ChartSeries {
        self.series(name, class, |point| Some(calls(&point.outcomes) as f64))
    }

    fn series(
        &self,
        name: &'static str,
        class: &'static str,
        value: impl Fn(&UsageSum) -> Option<f64>,
    ) -> ChartSeries {
        ChartSeries { name, class, values: self.points.iter().map(value).collect() }
    }

    fn chart(
        &self,
        id: &'static str,
        title: &'static str,
        unit: ChartUnit,
        shape: ChartShape,
        series: Vec<ChartSeries>,
    ) -> Chart {
        Chart {
            id,
            title,
            unit,
            shape,
            since: self.since,
            step: self.step,
            series,
            empty: "",
            table_of: None,
        }
    }
}

/// The usage of one method or one key.
#[derive(Clone, Debug)]
pub(crate) struct UsageRowByName {
    pub(crate) name: String,
    /// The page about it, if there is one.
    pub(crate) href: Option<String>,
    pub(crate) sum: UsageSum,
}

/// The usage of calls with one tag. Tags are not distinguished by outcome.
#[derive(Clone, Debug)]
pub(crate) struct UsageOfTag {
    /// Empty for calls without a tag.
    pub(crate) tag: String,
    pub(crate) calls: u64,
    pub(crate) credits: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_in_an_address_are_encoded() {
        assert_eq!(percent_encoded("k_8a41.~-"), "k_8a41.~-");
        assert_eq!(percent_encoded("a&b=c \"é"), "a%26b%3Dc%20%22%C3%A9");
    }

    /// A page of a week had the counts of failures in two tables, and more than 100 KB.
    #[test]
    fn the_table_of_the_calls_has_the_series_of_the_errors() {
        let series = UsageSeries::default();
        let (requests, errors) = (series.requests_chart(), series.errors_chart());
        let named = errors.table_of.map(|other| (other.id, other.title));
        assert_eq!(named, Some((requests.id, requests.title)));
        let is_in_table = |error: &ChartSeries| requests.series.iter().any(|calls| calls.name == error.name);
        assert!(errors.series.iter().all(is_in_table));
    }

    #[test]
    fn ranges_are_found_by_their_names() {
        for range in UsageRange::ALL {
            assert_eq!(UsageRange::named(range.name()), Some(range));
        }
        assert_eq!(UsageRange::named("1y"), None);
    }

    /// "1 h" began with the hour before: it showed 60 to 119 minutes.
    #[test]
    fn a_range_has_as_many_steps_as_its_name_says() {
        // 2026-11-17T13:45:30Z
        const NOW: u64 = 1_794_923_130;
        for (range, since_s, until_s) in [
            (UsageRange::Minutes15, 14 * 60 + 30, 30),
            (UsageRange::Hour, 59 * 60 + 30, 30),
            (UsageRange::Day, 23 * 3_600 + 45 * 60 + 30, 14 * 60 + 30),
            (UsageRange::Week, (7 * 24 - 1) * 3_600 + 45 * 60 + 30, 14 * 60 + 30),
            (UsageRange::Month, 29 * 86_400 + 13 * 3_600 + 45 * 60 + 30, 10 * 3_600 + 14 * 60 + 30),
        ] {
            assert_eq!(range.span(NOW), (NOW - since_s, NOW + until_s), "{range:?}");
        }
    }
}
