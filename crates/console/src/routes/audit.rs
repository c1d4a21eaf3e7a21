//! The audit log: who changed what.

use std::sync::Arc;

use axum::Json;
use axum::extract::rejection::QueryRejection;
use axum::extract::{Query, State};
use callers::administration::Administration;
use serde::Deserialize;
use utoipa::IntoParams;

use super::parameters;
use crate::api_error::{ApiError, ErrorDocument};
use crate::documents::AuditListDocument;

/// Entries of one page, unless the request says otherwise.
const ENTRIES_DEFAULT: u32 = 100;

/// Entries of one page at most. That is usually some hundred kilobytes, and a few megabytes if every detail has its 2 KiB.
const ENTRIES_MAX: u32 = 1_000;

/// Which entries are shown.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct AuditPage {
    /// `next` of the page before.
    before: Option<i64>,
    /// Number of entries, at most 1,000; 100 by default.
    limit: Option<u32>,
}

/// Show who changed what, newest first
#[utoipa::path(
    get, path = "/admin/v1/audit", tag = "audit", params(AuditPage),
    responses((status = 200, body = AuditListDocument), (status = "default", body = ErrorDocument))
)]
pub(crate) async fn list_audit_entries(
    State(administration): State<Arc<Administration>>,
    page: Result<Query<AuditPage>, QueryRejection>,
) -> Result<Json<AuditListDocument>, ApiError> {
    let AuditPage { before, limit } = parameters(page)?;
    let count = limit.unwrap_or(ENTRIES_DEFAULT).min(ENTRIES_MAX);
    let found = administration.audit_entries(None, before, count).await?;
    let next = found.next(|entry| entry.id);
    Ok(Json(AuditListDocument { entries: found.rows.into_iter().map(Into::into).collect(), next }))
}
