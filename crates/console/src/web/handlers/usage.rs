//! The usage of an account: that of the session, or for operators the one in the path.

use callers::usage::{UsageDimension, UsageFormat, UsageReport, UsageRow};

use crate::pages::NavigationItem;
use crate::pages::usage::{
    KeyChoice, ROWS_SHOWN_MAX, TAGS_SHOWN_MAX, UsageOfTag, UsagePage, UsageRange, UsageRowByName, UsageSum,
};
use crate::web::account_scope::{AccountScope, ScopedSession};
use crate::web::page_error::{PageError, PageResult};
use crate::web::site::ConsoleSite;
use crate::web::web_request::WebRequest;
use crate::web::{reply, usage_sums};

/// The range that is shown by default.
const RANGE_DEFAULT: UsageRange = UsageRange::Day;

/// The newest keys, which can be chosen; the page of another key has a link to its usage.
const KEY_CHOICES: u32 = 100;

/// The report that an address asks for.
struct UsageChoice {
    range: UsageRange,
    /// The only key whose usage is shown.
    key: Option<KeyChoice>,
}

/// The range and the key that an address names. A key of another account is not found.
async fn choice(request: &WebRequest<AccountScope>) -> Result<UsageChoice, PageError> {
    let range = match request.query.filled("range") {
        None => RANGE_DEFAULT,
        Some(name) => UsageRange::named(name).ok_or(PageError::Status(400))?,
    };
    let key = match request.query.filled("key") {
        None => None,
        Some(id) => {
            let account = &request.session.account.name;
            let key = request.site.administration.key_of(account, id).await?;
            Some(KeyChoice { id: key.id, name: key.name })
        }
    };
    Ok(UsageChoice { range, key })
}

pub(in crate::web) async fn page<S: ScopedSession>(request: WebRequest<S>) -> PageResult {
    let request = request.scoped().await?;
    let (site, scope) = (&request.site, &request.session);
    let account = &scope.account;
    let UsageChoice { range, key } = choice(&request).await?;
    let id = key.as_ref().map(|key| key.id.as_str());
    let over_time = site.usage_of(account, range, id, &[UsageDimension::Time]).await?;
    let by_method = site.usage_of(account, range, id, &[UsageDimension::Method]).await?;
    let by_key = site.usage_of(account, range, id, &[UsageDimension::Key]).await?;
    let by_tag = site.usage_by_tag(account, range, id, &[]).await?;
    let today = site.usage_today(&account.name, &[]).await?;
    let method_rows = usage_sums::by_name(&by_method, UsageDimension::Method).into_iter();
    let by_key = key_rows(site, scope, usage_sums::by_name(&by_key, UsageDimension::Key)).await?;
    // The chosen key is in the list, however many newer ones there are.
    let newest = site.first_keys(account, KEY_CHOICES).await?.into_iter();
    let newest = newest.filter(|key| Some(key.id.as_str()) != id);
    let others = newest.map(|key| KeyChoice { id: key.id, name: key.name });
    let keys = key.iter().cloned().chain(others).collect();
    reply::page(&UsagePage {
        frame: request.frame(scope.navigation(NavigationItem::Usage), "Usage").await?,
        path: scope.path("/usage"),
        account: scope.other_account(),
        range,
        key: key.map(|key| key.id),
        credits: site.credits_today(account, usage_sums::total(&today).credits),
        total: usage_sums::total(&over_time),
        series: usage_sums::series(&over_time),
        by_method: method_rows
            .map(|(name, sum)| UsageRowByName { name: shown_method(name), href: None, sum })
            .collect(),
        by_key,
        by_tag: tag_rows(&by_tag),
        base_url: site.facts.base_url.clone(),
        keys,
    })
}

/// The rows of the table by key, with the names of those that the page shows.
async fn key_rows(
    site: &ConsoleSite,
    scope: &AccountScope,
    sums: Vec<(String, UsageSum)>,
) -> Result<Vec<UsageRowByName>, PageError> {
    let ids: Vec<_> = sums.iter().take(ROWS_SHOWN_MAX).map(|(id, _)| id.as_str()).collect();
    let names = site.administration.key_names(&scope.account, &ids).await?;
    let list_path = scope.path("/keys");
    let row = |(id, sum): (String, UsageSum)| {
        let name = names.get(&id);
        let href = name.map(|_| format!("{list_path}/{id}"));
        UsageRowByName { name: name.cloned().unwrap_or(id), href, sum }
    };
    Ok(sums.into_iter().map(row).collect())
}

/// The tags that were used most, or nothing if none was.
fn tag_rows(report: &UsageReport) -> Vec<UsageOfTag> {
    let row = |row: &UsageRow| UsageOfTag {
        tag: row.group.tag.to_string(),
        calls: row.counts.calls,
        credits: row.counts.credits,
    };
    let mut rows: Vec<_> = report.rows.iter().map(row).collect();
    if rows.iter().all(|row| row.tag.is_empty()) {
        return Vec::new();
    }
    rows.sort_by_key(|row| std::cmp::Reverse((row.credits, row.calls)));
    rows.truncate(TAGS_SHOWN_MAX);
    rows
}

/// The two names of the ledger that are no methods, in words.
fn shown_method(name: String) -> String {
    match name.as_str() {
        "request" => "requests refused before their calls were read, and surcharges of batches".to_owned(),
        "other" => "unknown methods".to_owned(),
        _ => name,
    }
}

pub(in crate::web) async fn csv<S: ScopedSession>(request: WebRequest<S>) -> PageResult {
    let request = request.scoped().await?;
    let (site, scope) = (&request.site, &request.session);
    let UsageChoice { range, key } = choice(&request).await?;
    let key = key.as_ref().map(|key| key.id.as_str());
    let download = site.user_limits.begin_download(scope.email())?;
    let (report, file) = match request.query.filled("by") {
        None => {
            let dimensions = [UsageDimension::Time, UsageDimension::Key, UsageDimension::Method];
            (site.usage_of(&scope.account, range, key, &dimensions).await?, "usage")
        }
        Some("tag") => {
            let dimensions = [UsageDimension::Time, UsageDimension::Key];
            (site.usage_by_tag(&scope.account, range, key, &dimensions).await?, "usage-by-tag")
        }
        Some(_) => return Err(PageError::Status(400)),
    };
    reply::csv_file(&format!("{file}-{}.csv", range.name()), report.text(UsageFormat::Csv), download)
}
