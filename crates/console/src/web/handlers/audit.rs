//! Who changed what.

use std::sync::Arc;

use axum::response::Response;
use callers::administration::AuditEntry;
use serde_json::Value;

use crate::pages::NavigationItem;
use crate::pages::audit_log::{AuditLogPage, AuditRow};
use crate::pages::list_pages::ListLinks;
use crate::web::list_position::page_href;
use crate::web::operator_session::OperatorSession;
use crate::web::page_error::PageError;
use crate::web::reply;
use crate::web::site::ConsoleSite;
use crate::web::web_request::WebRequest;

/// Entries of one page.
const ENTRIES_SHOWN: u32 = 100;

pub(in crate::web) async fn page(
    site: Arc<ConsoleSite>,
    request: WebRequest,
    operator: OperatorSession,
) -> Result<Response, PageError> {
    let before = request.position(|text| text.parse::<i64>().ok())?;
    let search = request.query.filled("q");
    let entries = site.administration.audit_entries(search, before, ENTRIES_SHOWN).await?;
    let older = entries.next(|entry| entry.id.to_string());
    let shown_search = search.unwrap_or_default();
    let session = operator.session();
    reply::page(&AuditLogPage {
        frame: site.frame(&request, Some(session), NavigationItem::AuditLog, "Audit log").await?,
        entries: entries.rows.into_iter().map(row).collect(),
        search: shown_search.to_owned(),
        count: site.administration.count_audit_entries(search).await?,
        pages: ListLinks {
            first: before.map(|_| page_href("/audit", shown_search, None)),
            next: older.map(|id| page_href("/audit", shown_search, Some(&id))),
        },
    })
}

fn row(entry: AuditEntry) -> AuditRow {
    let text = |value: Value| match value {
        Value::String(text) => text,
        other => other.to_string(),
    };
    let details = match entry.details {
        Value::Object(members) => members.into_iter().map(|(name, value)| (name, text(value))).collect(),
        Value::Null => Vec::new(),
        other => vec![("details".to_owned(), text(other))],
    };
    AuditRow { at: entry.at, actor: entry.actor, action: entry.action, subject: entry.subject, details }
}
