//! Embedded files.

use callers::people::ActiveSession;

use crate::web::assets;
use crate::web::page_error::{PageError, PageResult};
use crate::web::web_request::WebRequest;

pub(in crate::web) async fn asset(request: WebRequest<Option<ActiveSession>>) -> PageResult {
    assets::find(&request.path).ok_or(PageError::Status(404))
}
