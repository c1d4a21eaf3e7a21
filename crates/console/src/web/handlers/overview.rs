//! The first page of a developer.

use callers::people::ActiveSession;
use callers::usage::UsageDimension;

use crate::pages::NavigationItem;
use crate::pages::overview::OverviewPage;
use crate::pages::usage::UsageRange;
use crate::web::page_error::PageResult;
use crate::web::web_request::WebRequest;
use crate::web::{reply, usage_sums};

/// The newest keys, of which the page shows the most used.
const KEYS_READ: u32 = 50;

pub(in crate::web) async fn page(request: WebRequest<ActiveSession>) -> PageResult {
    let request = request.scoped().await?;
    let (site, account) = (&request.site, &request.session.account);
    let today = usage_sums::total(&site.usage_today(&account.name, &[]).await?);
    let report = site.usage_of(account, UsageRange::Day, None, &[UsageDimension::Time]).await?;
    let mut keys = site.key_rows(account, site.first_keys(account, KEYS_READ).await?).await?;
    keys.retain(|key| key.state.works());
    keys.sort_by_key(|key| std::cmp::Reverse(key.today.outcomes.calls()));
    let counts = site.administration.account_counts(account).await?;
    reply::page(&OverviewPage {
        frame: request.frame(NavigationItem::Overview, "Overview").await?,
        credits: site.credits_today(account, today.credits),
        outcomes: today.outcomes,
        keys,
        valid_keys: counts.valid_keys,
        series: usage_sums::series(&report),
        base_url: site.facts.base_url.clone(),
        example_key: site.facts.example_key.clone(),
    })
}
