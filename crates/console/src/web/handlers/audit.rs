//! The audit log.

use crate::pages::NavigationItem;
use crate::pages::audit_log::AuditLogPage;
use crate::web::list_position::list_links;
use crate::web::operator_session::OperatorSession;
use crate::web::page_error::PageResult;
use crate::web::reply;
use crate::web::web_request::WebRequest;

/// Entries of one page.
const ENTRIES_SHOWN: u32 = 100;

pub(in crate::web) async fn page(request: WebRequest<OperatorSession>) -> PageResult {
    let before = request.position(|text| text.parse::<i64>().ok())?;
    let (search, administration) = (request.query.filled("q"), &request.site.administration);
    let entries = administration.audit_entries(search, before, ENTRIES_SHOWN).await?;
    let older = entries.next(|entry| entry.id.to_string());
    let shown_search = search.unwrap_or_default();
    reply::page(&AuditLogPage {
        frame: request.frame(NavigationItem::AuditLog, "Audit log").await?,
        entries: entries.rows,
        search: shown_search.to_owned(),
        count: administration.count_audit_entries(search).await?,
        pages: list_links("/audit", shown_search, before.is_some(), older),
    })
}
