//! Reading the configuration file of the gateway again.

use std::sync::Arc;

use axum::{Extension, Json};
use futures_util::future::BoxFuture;
use http::StatusCode;

use crate::api_error::{ApiError, ErrorDocument};
use crate::documents::ReloadReport;

/// Lets the running gateway read its configuration file again. An error has every mistake of the file with its line.
pub type ReloadConfiguration =
    Arc<dyn Fn() -> BoxFuture<'static, Result<ReloadReport, String>> + Send + Sync>;

/// Read the configuration file again
///
/// What can be changed without a restart takes effect. A file with a mistake changes nothing.
#[utoipa::path(
    post, path = "/admin/v1/reload", tag = "configuration",
    responses((status = 200, body = ReloadReport), (status = "default", body = ErrorDocument))
)]
pub(crate) async fn reload_configuration(
    reload: Option<Extension<ReloadConfiguration>>,
) -> Result<Json<ReloadReport>, ApiError> {
    let Some(Extension(reload)) = reload else {
        let message = "no gateway runs with this data directory: it reads the configuration when it starts";
        return Err(ApiError::new(StatusCode::CONFLICT, "not_running", message));
    };
    let mistakes =
        |mistakes| ApiError::new(StatusCode::UNPROCESSABLE_ENTITY, "invalid_configuration", mistakes);
    reload().await.map(Json).map_err(mistakes)
}
