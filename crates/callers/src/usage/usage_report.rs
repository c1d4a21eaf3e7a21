//! Sums of usage for people and programs.

use std::collections::{BTreeMap, BTreeSet};

use store::{
    Store, StoreFailure, UsageCounts, UsageDimension, UsageGroup, UsageQuery, UsageRow, UsageStep, UsedKey,
};

use super::usage_settings::UsageSettings;
use super::utc_time::{format_time, parse_time};

use crate::policy::{ACCOUNTS_WITH_KEY_MAX, LOOKUPS_MAX, LOOKUPS_OF_PAGE_MAX};

/// Rows of one page at most: what a program reads in one go.
pub const REPORT_ROWS_MAX: usize = 100_000;

/// Which usage is reported.
#[derive(Clone, Debug, Default)]
pub struct UsageReportRequest {
    pub account: Option<String>,
    pub key: Option<String>,
    pub network: Option<String>,
    /// Only calls with this tag.
    pub tag: Option<String>,
    /// When the report begins: a time, or how long ago, such as `7d`. Today if there is none.
    pub since: Option<String>,
    /// When the report ends, in the same forms. Now if there is none.
    pub until: Option<String>,
    /// The dimensions by which the usage is summed up.
    pub by: BTreeSet<UsageDimension>,
    /// The step of the time, if usage is summed up by time.
    pub step: Option<UsageStep>,
    /// The page begins after this account, and this key of it.
    pub after: UsedKey,
    /// About how many rows a page has; [`REPORT_ROWS_MAX`] by default and at most.
    pub rows_max: Option<usize>,
}

impl UsageReportRequest {
    /// The dimensions of a report that names none, of all calls or of those with a tag.
    pub fn usual_dimensions(tag: Option<&str>) -> BTreeSet<UsageDimension> {
        match tag {
            None => BTreeSet::from([UsageDimension::Key, UsageDimension::Method, UsageDimension::Outcome]),
            Some(_) => BTreeSet::from([UsageDimension::Key]),
        }
    }
}

#[derive(Debug, thiserror::Error)]
pub enum UsageReportFailure {
    /// One of the arguments is wrong.
    #[error("{field}: {message}")]
    Invalid { field: &'static str, message: String },
    #[error("{0}")]
    Store(#[from] StoreFailure),
}

/// The usage of a span of time.
#[derive(Clone, Debug)]
pub struct UsageReport {
    pub since: u64,
    pub until: u64,
    pub step: UsageStep,
    pub by: BTreeSet<UsageDimension>,
    pub rows: Vec<UsageRow>,
    /// After what the next page begins; `None` if this is the last one.
    pub next: Option<UsedKey>,
    /// The sum of the usage on all pages.
    pub total: UsageCounts,
}

impl UsageReport {
    pub async fn read(
        store: &Store,
        settings: &UsageSettings,
        request: &UsageReportRequest,
        unix_seconds: u64,
    ) -> Result<Self, UsageReportFailure> {
        let (step, since, until) = span(settings, request, unix_seconds)?;
        check_tag_dimensions(request)?;
        let query = UsageQuery {
            step,
            since,
            until,
            account: request.account.clone(),
            key: request.key.clone(),
            network: request.network.clone(),
            tag: request.tag.clone(),
            by: request.by.clone(),
            accounts: None,
            keys: None,
        };
        let mut page = ReportPage::new(store, query, request);
        let next = page.read().await?;
        let is_all = next.is_none() && request.after == UsedKey::default();
        let ReportPage { rows, query, .. } = page;
        let rows: Vec<_> = rows.into_iter().map(|(group, counts)| UsageRow { group, counts }).collect();
        let mut total = UsageCounts::default();
        match is_all {
            true => rows.iter().for_each(|row| total.add(&row.counts)),
            false => {
                let query = UsageQuery { by: BTreeSet::new(), ..query.clone() };
                store.usage(&query, 1).await?.iter().for_each(|row| total.add(&row.counts));
            }
        }
        Ok(Self { since, until, step, by: query.by, rows, next, total })
    }
}

/// Reads one page, in statements that read few rows each.
struct ReportPage<'a> {
    store: &'a Store,
    query: UsageQuery,
    after: UsedKey,
    rows_max: usize,
    rows: BTreeMap<UsageGroup, UsageCounts>,
}

impl<'a> ReportPage<'a> {
    fn new(store: &'a Store, mut query: UsageQuery, request: &UsageReportRequest) -> Self {
        // Keys of two accounts can have the same id.
        if query.by.contains(&UsageDimension::Key) && query.account.is_none() {
            query.by.insert(UsageDimension::Account);
        }
        let rows_max = request.rows_max.unwrap_or(REPORT_ROWS_MAX).clamp(1, REPORT_ROWS_MAX);
        Self { store, query, after: request.after.clone(), rows_max, rows: BTreeMap::new() }
    }

    /// Returns after what the next page begins.
    async fn read(&mut self) -> Result<Option<UsedKey>, UsageReportFailure> {
        let (by, store) = (self.query.by.clone(), self.store);
        match (&self.query.account, &self.query.key) {
            (None, Some(key)) => {
                for account in store.accounts_with_key(key, ACCOUNTS_WITH_KEY_MAX).await? {
                    self.add(UsageQuery { account: Some(account), ..self.query.clone() }).await?;
                }
                Ok(None)
            }
            (_, None) if by.contains(&UsageDimension::Key) => self.read_by_key().await,
            (None, None) if by.contains(&UsageDimension::Account) => self.read_by_account().await,
            _ => self.add(self.query.clone()).await.map(|()| None),
        }
    }

    async fn read_by_account(&mut self) -> Result<Option<UsedKey>, UsageReportFailure> {
        let (time, count) = ((self.query.since, self.query.until), self.lookup_size());
        for _ in 0..LOOKUPS_OF_PAGE_MAX {
            let accounts = self.store.used_accounts(time, &self.after.account, count).await?;
            let Some(last) = accounts.last() else { return Ok(None) };
            let range = (self.after.account.clone(), last.clone());
            self.add(UsageQuery { accounts: Some(range), ..self.query.clone() }).await?;
            self.after.account.clone_from(last);
            if accounts.len() < count {
                return Ok(None);
            }
            if self.rows.len() >= self.rows_max {
                break;
            }
        }
        Ok(Some(self.after.clone()))
    }

    async fn read_by_key(&mut self) -> Result<Option<UsedKey>, UsageReportFailure> {
        let (time, count) = ((self.query.since, self.query.until), self.lookup_size());
        for _ in 0..LOOKUPS_OF_PAGE_MAX {
            let used = self.store.used_keys(time, self.query.account.as_deref(), &self.after, count).await?;
            for keys in used.chunk_by(|one, other| one.account == other.account) {
                let (Some(first), Some(last)) = (keys.first(), keys.last()) else { continue };
                let is_same_account = self.query.account.is_some() || first.account == self.after.account;
                let after = if is_same_account { self.after.key.clone() } else { String::new() };
                let account = Some(first.account.clone());
                let range = Some((after, last.key.clone()));
                self.add(UsageQuery { account, keys: range, ..self.query.clone() }).await?;
                self.after.clone_from(last);
            }
            if used.len() < count {
                return Ok(None);
            }
            if self.rows.len() >= self.rows_max {
                break;
            }
        }
        Ok(Some(self.after.clone()))
    }

    /// How many accounts or keys are looked up together.
    fn lookup_size(&self) -> usize {
        let seconds = self.query.until.saturating_sub(self.query.since);
        let steps = seconds.div_ceil(self.query.step.seconds()).max(1);
        usize::try_from((LOOKUPS_MAX / steps).max(1)).unwrap_or(1).min(self.rows_max)
    }

    async fn add(&mut self, query: UsageQuery) -> Result<(), UsageReportFailure> {
        let rows = self.rows_of(&query).await?;
        if query.by.contains(&UsageDimension::Tag) && query.tag.is_none() {
            self.add_untagged(query, &rows).await?;
        }
        for UsageRow { group, counts } in rows {
            self.rows.entry(group).or_default().add(&counts);
        }
        Ok(())
    }

    /// Adds what has no tag: the usage of all calls without that of the tags.
    async fn add_untagged(
        &mut self,
        mut query: UsageQuery,
        tagged: &[UsageRow],
    ) -> Result<(), UsageReportFailure> {
        query.by.remove(&UsageDimension::Tag);
        let all = self.rows_of(&query).await?;
        let mut untagged: BTreeMap<_, _> = all.into_iter().map(|row| (row.group, row.counts)).collect();
        for UsageRow { group, counts } in tagged {
            let group = UsageGroup { tag: "".into(), ..group.clone() };
            if let Some(all) = untagged.get_mut(&group) {
                all.subtract(counts);
            }
        }
        for (group, counts) in untagged {
            if counts != UsageCounts::default() {
                self.rows.entry(group).or_default().add(&counts);
            }
        }
        Ok(())
    }

    async fn rows_of(&self, query: &UsageQuery) -> Result<Vec<UsageRow>, UsageReportFailure> {
        let rows = self.store.usage(query, REPORT_ROWS_MAX + 1).await?;
        if rows.len() > REPORT_ROWS_MAX {
            let message = format!("more than {REPORT_ROWS_MAX} rows; choose a shorter time or a larger step");
            return Err(UsageReportFailure::Invalid { field: "since", message });
        }
        Ok(rows)
    }
}

/// Refuses what the tables of tags do not have.
fn check_tag_dimensions(request: &UsageReportRequest) -> Result<(), UsageReportFailure> {
    let by = &request.by;
    let is_of_tags = request.tag.is_some() || by.contains(&UsageDimension::Tag);
    if is_of_tags && (by.contains(&UsageDimension::Method) || by.contains(&UsageDimension::Outcome)) {
        let message = "a report of tags has no methods and outcomes".to_owned();
        return Err(UsageReportFailure::Invalid { field: "by", message });
    }
    Ok(())
}

/// The table that is read, and the first second and the second after the last.
fn span(
    settings: &UsageSettings,
    request: &UsageReportRequest,
    now: u64,
) -> Result<(UsageStep, u64, u64), UsageReportFailure> {
    let since = match &request.since {
        None => UsageStep::Day.start(now),
        Some(text) => time("since", text, now)?,
    };
    let until = request.until.as_ref().map(|text| time("until", text, now)).transpose()?;
    let invalid = |field, message: String| Err(UsageReportFailure::Invalid { field, message });
    if until.unwrap_or(now.max(since + 1)) <= since {
        return invalid("until", "must be after since".to_owned());
    }
    let step = match (request.by.contains(&UsageDimension::Time), request.step) {
        (true, Some(step)) => step,
        (true, None) => usual_step(until.unwrap_or(now).saturating_sub(since)),
        (false, None) => coarsest_step(since, until),
        (false, Some(_)) => return invalid("step", "needs a report by time".to_owned()),
    };
    let since = step.start(since);
    let kept_since = settings.kept_since(step, now);
    if since < kept_since {
        let (name, kept) = (step.name(), format_time(kept_since));
        let message = match step {
            UsageStep::Day => format!("usage is kept since {kept}"),
            _ => format!(
                "usage by {name} is kept since {kept}; earlier times must begin with an hour or a day"
            ),
        };
        return invalid("since", message);
    }
    // The last step is whole, too.
    let until = step.start(until.unwrap_or(now + 1) - 1) + step.seconds();
    Ok((step, since, until))
}

/// The step with which a report by time has tens of rows, and not thousands.
fn usual_step(seconds: u64) -> UsageStep {
    match seconds {
        0..=10_800 => UsageStep::Minute,
        10_801..=259_200 => UsageStep::Hour,
        _ => UsageStep::Day,
    }
}

/// The coarsest table that can tell these times exactly, or by the minute.
fn coarsest_step(since: u64, until: Option<u64>) -> UsageStep {
    let is_exact =
        |step: &UsageStep| [Some(since), until].into_iter().flatten().all(|time| step.start(time) == time);
    UsageStep::ALL.into_iter().rev().find(is_exact).unwrap_or(UsageStep::Minute)
}

/// Reads a time, or how long ago it was: `30m`, `24h`, `7d`. Those begin with the minute, hour or day.
fn time(field: &'static str, text: &str, now: u64) -> Result<u64, UsageReportFailure> {
    let ago = |unit: char, step: UsageStep| {
        let count: u64 = text.strip_suffix(unit)?.parse().ok()?;
        Some(step.start(now.saturating_sub(count.saturating_mul(step.seconds()))))
    };
    let read = ago('m', UsageStep::Minute)
        .or_else(|| ago('h', UsageStep::Hour))
        .or_else(|| ago('d', UsageStep::Day))
        .or_else(|| parse_time(text));
    // Times beyond the year 9999 are mistakes.
    read.filter(|time| *time < 253_402_300_800).ok_or_else(|| UsageReportFailure::Invalid {
        field,
        message: "must be a time of UTC such as 2026-11-17 or 2026-11-17T13:00Z, or how long ago, such as 30m, 24h or 7d"
            .to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 2026-11-17T13:45:30Z
    const NOW: u64 = 1_794_923_130;
    const DAY: u64 = 86_400;
    const TODAY: u64 = NOW / DAY * DAY;

    fn spanned(since: Option<&str>, until: Option<&str>) -> Result<(UsageStep, u64, u64), String> {
        let (since, until) = (since.map(str::to_owned), until.map(str::to_owned));
        let request = UsageReportRequest { since, until, ..UsageReportRequest::default() };
        span(&UsageSettings::default(), &request, NOW).map_err(|error| error.to_string())
    }

    #[test]
    fn a_report_is_read_from_the_coarsest_table_that_is_exact() {
        for (since, until, expected) in [
            (None, None, (UsageStep::Day, TODAY, TODAY + DAY)),
            (Some("7d"), None, (UsageStep::Day, TODAY - 7 * DAY, TODAY + DAY)),
            (Some("2026-11-01"), Some("2026-11-02"), (UsageStep::Day, TODAY - 16 * DAY, TODAY - 15 * DAY)),
            (Some("2h"), None, (UsageStep::Hour, TODAY + 11 * 3_600, TODAY + 14 * 3_600)),
            (Some("2026-11-17"), Some("2026-11-17T05:00Z"), (UsageStep::Hour, TODAY, TODAY + 5 * 3_600)),
            (Some("10m"), None, (UsageStep::Minute, NOW - 630, NOW + 30)),
        ] {
            assert_eq!(spanned(since, until), Ok(expected), "{since:?} {until:?}");
        }
    }

    #[test]
    fn usage_that_is_no_longer_kept_is_not_reported_as_zero() {
        let error = spanned(Some("2026-11-01T10:17Z"), None).unwrap_err();
        assert!(error.starts_with("since: usage by minute is kept since 2026-11-15T13:45:00Z"), "{error}");
        assert!(spanned(Some("2026-08-01T10:00Z"), None).is_err());
        assert!(spanned(Some("1999-01-01"), None).is_ok(), "days are kept for ever");
    }

    #[test]
    fn wrong_times_are_refused() {
        for (since, until) in
            [("yesterday", None), ("2026-11-17", Some("2026-11-16")), ("2030-01-01", Some("1d"))]
        {
            assert!(spanned(Some(since), until).is_err(), "{since} {until:?}");
        }
    }
}
