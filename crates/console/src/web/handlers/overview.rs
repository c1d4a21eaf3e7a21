//! The first page of a developer.

use std::sync::Arc;

use axum::response::Response;
use callers::people::ActiveSession;
use callers::usage::UsageDimension;

use super::key_rows::account_of;
use crate::pages::NavigationItem;
use crate::pages::overview::OverviewPage;
use crate::pages::usage::UsageRange;
use crate::web::page_error::PageError;
use crate::web::site::ConsoleSite;
use crate::web::web_request::WebRequest;
use crate::web::{reply, usage_sums};

pub(in crate::web) async fn page(
    site: Arc<ConsoleSite>,
    request: WebRequest,
    session: ActiveSession,
) -> Result<Response, PageError> {
    let account = account_of(&session)?;
    let today = site.account_today(account).await?;
    let report = site.usage_of(account, UsageRange::Day, None, &[UsageDimension::Time]).await?;
    let mut keys = today.keys;
    keys.retain(|key| key.state.works());
    reply::page(&OverviewPage {
        frame: site.frame(&request, Some(&session), NavigationItem::Overview, "Overview").await?,
        credits: today.credits,
        outcomes: today.outcomes,
        keys,
        series: usage_sums::series(&report),
        base_url: site.facts.base_url.clone(),
        example_key: site.facts.example_key.clone(),
    })
}
