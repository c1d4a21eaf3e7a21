//! Usage as the pages show it: sums by outcome, with times that half and 99 % of the calls take.

use std::collections::{BTreeMap, BTreeSet};

use callers::administration::AccountRecord;
use callers::usage::{UsageDimension, UsageReport, UsageReportRequest};
use resources::{unix_seconds, unix_time};

use super::page_error::PageError;
use super::site::ConsoleSite;
use crate::pages::credits_today::CreditsToday;
use crate::pages::usage::{UsageRange, UsageSeries, UsageSum};

const DAY_S: i64 = 24 * 60 * 60;

/// The dimensions of a report, with the outcome, which every sum needs.
pub(super) fn by(dimensions: &[UsageDimension]) -> BTreeSet<UsageDimension> {
    dimensions.iter().copied().chain([UsageDimension::Outcome]).collect()
}

/// The sum of all rows.
pub(super) fn total(report: &UsageReport) -> UsageSum {
    let mut total = UsageSum::default();
    report.rows.iter().for_each(|row| total.add(row));
    total
}

/// The sums of a report by key or by method, the most used first.
pub(super) fn by_name(report: &UsageReport, dimension: UsageDimension) -> Vec<(String, UsageSum)> {
    let mut sums: BTreeMap<&str, UsageSum> = BTreeMap::new();
    for row in &report.rows {
        let name = match dimension {
            UsageDimension::Key => &row.group.key,
            UsageDimension::Method => &row.group.method,
            UsageDimension::Account => &row.group.account,
            UsageDimension::Network => &row.group.network,
            UsageDimension::Tag => &row.group.tag,
            UsageDimension::Outcome | UsageDimension::Time => &row.group.outcome,
        };
        sums.entry(name).or_default().add(row);
    }
    let mut sums: Vec<_> = sums.into_iter().map(|(name, sum)| (name.to_owned(), sum)).collect();
    sums.sort_by_key(|(_, sum)| std::cmp::Reverse(sum.outcomes.calls()));
    sums
}

/// One point for each step of a report by time.
pub(super) fn series(report: &UsageReport) -> UsageSeries {
    let step = report.step.seconds().max(1);
    let steps = usize::try_from(report.until.saturating_sub(report.since) / step).unwrap_or(0);
    let mut points = vec![UsageSum::default(); steps];
    for row in &report.rows {
        let index =
            usize::try_from(row.group.starts_at.saturating_sub(report.since) / step).unwrap_or(usize::MAX);
        if let Some(point) = points.get_mut(index) {
            point.add(row);
        }
    }
    UsageSeries {
        since: i64::try_from(report.since).unwrap_or(i64::MAX),
        step: i64::try_from(step).unwrap_or(i64::MAX),
        points,
    }
}

impl ConsoleSite {
    pub(super) async fn usage_of(
        &self,
        account: &AccountRecord,
        range: UsageRange,
        key: Option<&str>,
        dimensions: &[UsageDimension],
    ) -> Result<UsageReport, PageError> {
        self.usage_by(account, range, key, by(dimensions)).await
    }

    /// The usage by tag and by `dimensions`. It is not distinguished by outcome.
    pub(super) async fn usage_by_tag(
        &self,
        account: &AccountRecord,
        range: UsageRange,
        key: Option<&str>,
        dimensions: &[UsageDimension],
    ) -> Result<UsageReport, PageError> {
        let by = dimensions.iter().copied().chain([UsageDimension::Tag]).collect();
        self.usage_by(account, range, key, by).await
    }

    async fn usage_by(
        &self,
        account: &AccountRecord,
        range: UsageRange,
        key: Option<&str>,
        by: BTreeSet<UsageDimension>,
    ) -> Result<UsageReport, PageError> {
        let has_time = by.contains(&UsageDimension::Time);
        let (since, until) = range.span(unix_time().as_secs());
        let request = UsageReportRequest {
            account: Some(account.name.clone()),
            key: key.map(str::to_owned),
            network: Some(self.facts.network.clone()),
            since: Some(since.to_string()),
            until: Some(until.to_string()),
            by,
            step: has_time.then(|| range.step()),
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
    pub(super) fn credits_today(&self, account: &AccountRecord, used: u64) -> CreditsToday {
        let plans = self.administration.plans();
        let plan = plans.named(&account.plan);
        CreditsToday {
            used,
            per_day: plan.and_then(|plan| plan.credits_per_day),
            per_second: plan.and_then(|plan| plan.credits_per_second),
            plan: account.plan.clone(),
            resets_at: (unix_seconds() / DAY_S + 1) * DAY_S,
        }
    }
}
