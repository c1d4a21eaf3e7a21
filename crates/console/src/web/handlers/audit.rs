//! Who changed what.

use std::sync::Arc;

use axum::response::Response;
use callers::administration::AuditEntry;
use serde_json::Value;

use crate::pages::NavigationItem;
use crate::pages::audit_log::{AuditLogPage, AuditRow};
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
    let before = match request.query.filled("before") {
        None => None,
        Some(id) => Some(id.parse::<i64>().map_err(|_| PageError::Status(400))?),
    };
    let entries = site.administration.audit_entries(before, ENTRIES_SHOWN).await?;
    let is_full = entries.len() == ENTRIES_SHOWN as usize;
    let oldest = entries.last().filter(|entry| is_full && entry.id > 1).map(|entry| entry.id);
    let session = operator.session();
    reply::page(&AuditLogPage {
        frame: site.frame(&request, Some(session), NavigationItem::AuditLog, "Audit log").await?,
        entries: entries.into_iter().map(row).collect(),
        is_older_page: before.is_some(),
        older_href: oldest.map(|id| format!("/audit?before={id}")),
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
