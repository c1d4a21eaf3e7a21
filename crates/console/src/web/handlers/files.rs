//! Embedded files.

use std::sync::Arc;

use axum::response::Response;
use callers::people::ActiveSession;

use crate::web::assets;
use crate::web::page_error::PageError;
use crate::web::site::ConsoleSite;
use crate::web::web_request::WebRequest;

pub(in crate::web) async fn asset(
    _: Arc<ConsoleSite>,
    request: WebRequest,
    _: Option<ActiveSession>,
) -> Result<Response, PageError> {
    assets::find(&request.path).ok_or(PageError::Status(404))
}
