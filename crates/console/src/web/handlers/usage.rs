//! The usage of the account of the session.

use std::sync::Arc;

use axum::response::Response;
use callers::administration::AccountSummary;
use callers::people::ActiveSession;
use callers::usage::{UsageDimension, UsageFormat};

use super::key_rows::{KEYS_MAX, account_of};
use crate::pages::NavigationItem;
use crate::pages::usage::{KeyChoice, UsagePage, UsageRange, UsageRowByName};
use crate::web::page_error::PageError;
use crate::web::site::ConsoleSite;
use crate::web::web_request::WebRequest;
use crate::web::{reply, usage_sums};

/// What is shown if the address does not say otherwise.
const RANGE_DEFAULT: UsageRange = UsageRange::Day;

/// The range and the key that an address names, and the keys that can be chosen instead. A key of another account is not found.
async fn choice<'a>(
    site: &ConsoleSite,
    account: &AccountSummary,
    request: &'a WebRequest,
) -> Result<(UsageRange, Option<&'a str>, Vec<KeyChoice>), PageError> {
    let range = match request.query.filled("range") {
        None => RANGE_DEFAULT,
        Some(name) => UsageRange::named(name).ok_or(PageError::Status(400))?,
    };
    let listed = site.administration.key_list(account, KEYS_MAX).await?;
    let mut keys: Vec<_> = listed.into_iter().map(|key| KeyChoice { id: key.id, name: key.name }).collect();
    let chosen = request.query.filled("key");
    // An account can have more keys than the list.
    if let Some(id) = chosen
        && !keys.iter().any(|key| key.id == id)
    {
        let key = site.administration.key_of(&account.name, id).await?;
        keys.push(KeyChoice { id: key.id, name: key.name });
    }
    // The page shows only the first ones, of which the chosen one must be.
    keys.sort_by_key(|key| Some(key.id.as_str()) != chosen);
    Ok((range, chosen, keys))
}

pub(in crate::web) async fn page(
    site: Arc<ConsoleSite>,
    request: WebRequest,
    session: ActiveSession,
) -> Result<Response, PageError> {
    let account = account_of(&session)?;
    let (range, key, keys) = choice(&site, account, &request).await?;
    let over_time = site.usage_of(account, range, key, &[UsageDimension::Time]).await?;
    let by_method = site.usage_of(account, range, key, &[UsageDimension::Method]).await?;
    let by_key = site.usage_of(account, range, key, &[UsageDimension::Key]).await?;
    let today = site.usage_today(&account.name, &[]).await?;
    let name_of = |id: &str| keys.iter().find(|key| key.id == id).map(|key| key.name.clone());
    let method_rows = usage_sums::by_name(&by_method, UsageDimension::Method).into_iter();
    let key_rows = usage_sums::by_name(&by_key, UsageDimension::Key).into_iter();
    reply::page(&UsagePage {
        frame: site.frame(&request, Some(&session), NavigationItem::Usage, "Usage").await?,
        range,
        key: key.map(str::to_owned),
        credits: site.credits_today(account, usage_sums::total(&today).credits),
        total: usage_sums::total(&over_time),
        series: usage_sums::series(&over_time),
        by_method: method_rows
            .map(|(name, sum)| UsageRowByName { name: shown_method(name), href: None, sum })
            .collect(),
        by_key: key_rows
            .map(|(id, sum)| UsageRowByName {
                href: name_of(&id).map(|_| format!("/keys/{id}")),
                name: name_of(&id).unwrap_or(id),
                sum,
            })
            .collect(),
        base_url: site.facts.base_url.clone(),
        keys,
    })
}

/// The two names of the ledger that are no methods, in words.
fn shown_method(name: String) -> String {
    match name.as_str() {
        "request" => "requests refused before their calls were read, and surcharges of batches".to_owned(),
        "other" => "unknown methods".to_owned(),
        _ => name,
    }
}

pub(in crate::web) async fn csv(
    site: Arc<ConsoleSite>,
    request: WebRequest,
    session: ActiveSession,
) -> Result<Response, PageError> {
    let account = account_of(&session)?;
    let (range, key, _) = choice(&site, account, &request).await?;
    let download = site.downloads.begin(session.email())?;
    let dimensions = [UsageDimension::Time, UsageDimension::Key, UsageDimension::Method];
    let report = site.usage_of(account, range, key, &dimensions).await?;
    reply::csv_file(&format!("usage-{}.csv", range.name()), report.text(UsageFormat::Csv), download)
}
