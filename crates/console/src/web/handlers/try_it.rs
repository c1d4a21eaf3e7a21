//! A form for each method. The browser sends the call itself; the key never comes here.

use std::sync::Arc;

use axum::response::Response;
use callers::people::ActiveSession;

use crate::pages::NavigationItem;
use crate::pages::try_it::TryPage;
use crate::web::page_error::PageError;
use crate::web::reply;
use crate::web::site::ConsoleSite;
use crate::web::web_request::WebRequest;

pub(in crate::web) async fn page(
    site: Arc<ConsoleSite>,
    request: WebRequest,
    session: ActiveSession,
) -> Result<Response, PageError> {
    let frame = site.frame(&request, Some(&session), NavigationItem::TryIt, "Try it").await?;
    let facts = &site.facts;
    let (base_url, example_key) = (facts.base_url.clone(), facts.example_key.clone());
    let page = TryPage::new(frame, &facts.methods, request.query.all(), base_url, example_key);
    reply::page(&page.ok_or(PageError::Status(404))?)
}
