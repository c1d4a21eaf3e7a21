//! A form for each method. The browser sends the call itself; the key never comes here.

use callers::people::ActiveSession;

use crate::pages::NavigationItem;
use crate::pages::try_it::TryPage;
use crate::web::page_error::{PageError, PageResult};
use crate::web::reply;
use crate::web::web_request::WebRequest;

pub(in crate::web) async fn page(request: WebRequest<ActiveSession>) -> PageResult {
    let frame = request.frame(NavigationItem::TryIt, "Try it").await?;
    let facts = &request.site.facts;
    let (base_url, example_key) = (facts.base_url.clone(), facts.example_key.clone());
    let page = TryPage::new(frame, &facts.methods, request.query.all(), base_url, example_key);
    reply::page(&page.ok_or(PageError::Status(404))?)
}
