//! Usage as the pages show it: sums by outcome, with times that half and 99 % of the calls take.

use std::collections::{BTreeMap, BTreeSet};

use callers::administration::AccountSummary;
use callers::usage::{Outcome, UsageDimension, UsageReport, UsageReportRequest, UsageStep};
use resources::{BUCKETS, HistogramSum, unix_seconds, unix_time};

use super::page_error::PageError;
use super::site::ConsoleSite;
use crate::pages::credits_today::CreditsToday;
use crate::pages::outcomes::OutcomeCounts;
use crate::pages::usage::{UsageRange, UsageSeries, UsageSum};

const DAY_S: i64 = 24 * 60 * 60;

/// Adds up rows of a report.
#[derive(Clone, Debug, Default)]
pub(super) struct SumBuilder {
    outcomes: OutcomeCounts,
    credits: u64,
    latency: [u64; BUCKETS],
}

impl SumBuilder {
    fn add(&mut self, outcome: &str, calls: u64, credits: u64, latency: &[u64; BUCKETS]) {
        // The store may have outcomes that a later version has written.
        if let Some(outcome) = Outcome::from_label(outcome) {
            self.outcomes.add(outcome, calls);
        }
        self.credits = self.credits.saturating_add(credits);
        for (sum, more) in self.latency.iter_mut().zip(latency) {
            *sum = sum.saturating_add(*more);
        }
    }

    pub(super) fn sum(&self) -> UsageSum {
        let latency = HistogramSum { buckets: self.latency, sum_ns: 0 };
        UsageSum {
            outcomes: self.outcomes,
            credits: self.credits,
            p50_ms: latency.quantile_ms(0.5),
            p99_ms: latency.quantile_ms(0.99),
        }
    }
}

/// The dimensions of a report, with the outcome, which every sum needs.
pub(super) fn by(dimensions: &[UsageDimension]) -> BTreeSet<UsageDimension> {
    dimensions.iter().copied().chain([UsageDimension::Outcome]).collect()
}

/// The sum of all rows.
pub(super) fn total(report: &UsageReport) -> UsageSum {
    let mut total = SumBuilder::default();
    for row in &report.rows {
        let counts = &row.counts;
        total.add(&row.group.outcome, counts.calls, counts.credits, &counts.latency_buckets);
    }
    total.sum()
}

/// The sums of a report by key or by method, the most used first.
pub(super) fn by_name(report: &UsageReport, dimension: UsageDimension) -> Vec<(String, UsageSum)> {
    let mut sums: BTreeMap<&str, SumBuilder> = BTreeMap::new();
    for row in &report.rows {
        let name = match dimension {
            UsageDimension::Key => &row.group.key,
            UsageDimension::Method => &row.group.method,
            UsageDimension::Account => &row.group.account,
            UsageDimension::Network => &row.group.network,
            UsageDimension::Outcome | UsageDimension::Time => &row.group.outcome,
        };
        let counts = &row.counts;
        let sum = sums.entry(name).or_default();
        sum.add(&row.group.outcome, counts.calls, counts.credits, &counts.latency_buckets);
    }
    let mut sums: Vec<_> = sums.into_iter().map(|(name, sum)| (name.to_owned(), sum.sum())).collect();
    sums.sort_by_key(|(_, sum)| std::cmp::Reverse(sum.outcomes.calls()));
    sums
}

/// One point for each step of a report by time.
pub(super) fn series(report: &UsageReport) -> UsageSeries {
    let step = report.step.seconds().max(1);
    let steps = usize::try_from(report.until.saturating_sub(report.since) / step).unwrap_or(0);
    let mut points = vec![SumBuilder::default(); steps];
    for row in &report.rows {
        let index =
            usize::try_from(row.group.starts_at.saturating_sub(report.since) / step).unwrap_or(usize::MAX);
        if let Some(point) = points.get_mut(index) {
            let counts = &row.counts;
            point.add(&row.group.outcome, counts.calls, counts.credits, &counts.latency_buckets);
        }
    }
    UsageSeries {
        since: i64::try_from(report.since).unwrap_or(i64::MAX),
        step: i64::try_from(step).unwrap_or(i64::MAX),
        points: points.iter().map(SumBuilder::sum).collect(),
    }
}

/// The step of the charts of a range, and how many of them it has. The last step is the running one.
fn steps_of(range: UsageRange) -> (UsageStep, u64) {
    match range {
        UsageRange::Minutes15 => (UsageStep::Minute, 15),
        UsageRange::Hour => (UsageStep::Minute, 60),
        UsageRange::Day => (UsageStep::Hour, 24),
        UsageRange::Week => (UsageStep::Hour, 7 * 24),
        UsageRange::Month => (UsageStep::Day, 30),
    }
}

/// The first second of a range, and the second after its last.
fn span_of(range: UsageRange, now: u64) -> (u64, u64) {
    let (step, count) = steps_of(range);
    let until = step.start(now) + step.seconds();
    (until.saturating_sub(count * step.seconds()), until)
}

impl ConsoleSite {
    /// The usage of one account.
    pub(super) async fn usage_of(
        &self,
        account: &AccountSummary,
        range: UsageRange,
        key: Option<&str>,
        dimensions: &[UsageDimension],
    ) -> Result<UsageReport, PageError> {
        let has_time = dimensions.contains(&UsageDimension::Time);
        let (since, until) = span_of(range, unix_time().as_secs());
        let request = UsageReportRequest {
            account: Some(account.name.clone()),
            key: key.map(str::to_owned),
            network: Some(self.facts.network.clone()),
            since: Some(since.to_string()),
            until: Some(until.to_string()),
            by: by(dimensions),
            step: has_time.then(|| steps_of(range).0),
            ..UsageReportRequest::default()
        };
        Ok(self.administration.usage_report(&request).await?)
    }

    /// The usage of today (UTC) of one account.
    pub(super) async fn usage_today(
        &self,
        account: &str,
        dimensions: &[UsageDimension],
    ) -> Result<UsageReport, PageError> {
        let account = Some(account.to_owned());
        let request = UsageReportRequest { account, by: by(dimensions), ..UsageReportRequest::default() };
        Ok(self.administration.usage_report(&request).await?)
    }

    /// The credits that an account has used today, and those of its plan.
    pub(super) fn credits_today(&self, account: &AccountSummary, used: u64) -> CreditsToday {
        let plan = self.administration.plans().named(&account.plan);
        CreditsToday {
            used,
            per_day: plan.and_then(|plan| plan.credits_per_day),
            per_second: plan.and_then(|plan| plan.credits_per_second),
            plan: account.plan.clone(),
            resets_at: (unix_seconds() / DAY_S + 1) * DAY_S,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
            assert_eq!(span_of(range, NOW), (NOW - since_s, NOW + until_s), "{range:?}");
        }
    }
}
