//! The paths of the admin API, and the OpenAPI document that describes them.

use std::convert::Infallible;
use std::fmt;
use std::sync::Arc;

use axum::body::Body;
use axum::response::{IntoResponse, Response as AxumResponse};
use axum::routing::get;
use axum::{Extension, Router};
use bytes::Bytes;
use callers::administration::Administration;
use http::header::{self, HeaderValue};
use http::{Request, Response, StatusCode, Uri};
use http_body_util::BodyExt as _;
use tower_service::Service as _;
use utoipa::OpenApi;
use utoipa::openapi::security::{HttpAuthScheme, HttpBuilder, SecurityScheme};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::api_error::ApiError;
use crate::guard::AdminActor;
use crate::path_value::contains_nul;
use crate::routes::reload::ReloadConfiguration;
use crate::routes::{accounts, audit, keys, reload, usage};

/// Where the document is; it needs no token.
pub(crate) const OPENAPI_PATH: &str = "/admin/v1/openapi.json";

/// Answers requests of the admin API that have been authenticated, or that this process makes itself.
#[derive(Clone)]
pub struct AdminRouter {
    router: Router,
}

impl fmt::Debug for AdminRouter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AdminRouter").finish_non_exhaustive()
    }
}

impl AdminRouter {
    pub fn new(administration: Administration) -> Self {
        let (router, document) = documented_routes().split_for_parts();
        let document = Bytes::from(document.to_json().unwrap_or_default());
        let router = router
            .route(OPENAPI_PATH, get(move || async move { json_response(document) }))
            .fallback(no_such_path)
            .method_not_allowed_fallback(no_such_method)
            .with_state(Arc::new(administration));
        Self { router }
    }

    /// Adds the route that lets the gateway read its configuration again.
    pub fn with_reload(self, reload: ReloadConfiguration) -> Self {
        Self { router: self.router.layer(Extension(reload)) }
    }

    /// Answers one request; `actor` is who makes it, for the audit log.
    pub async fn answer(&self, request: Request<Bytes>, actor: &str) -> Response<Bytes> {
        if let Some(refused) = nul_error(request.uri()) {
            return response_of(refused).await;
        }
        let mut request = request.map(Body::from);
        request.extensions_mut().insert(AdminActor(actor.to_owned()));
        // A router is always ready, so nothing has to be polled before the call.
        let answered: Result<AxumResponse, Infallible> = self.router.clone().call(request).await;
        match answered {
            Ok(response) => response_of(response).await,
        }
    }
}

/// Every route with its entry in the document.
fn documented_routes() -> OpenApiRouter<Arc<Administration>> {
    OpenApiRouter::with_openapi(document())
        .routes(routes!(accounts::list_accounts, accounts::create_account))
        .routes(routes!(accounts::suspend_account))
        .routes(routes!(accounts::resume_account))
        .routes(routes!(accounts::set_plan))
        .routes(routes!(keys::list_keys, keys::create_key))
        .routes(routes!(keys::rotate_key))
        .routes(routes!(keys::revoke_key))
        .routes(routes!(keys::rename_key))
        .routes(routes!(keys::set_key_settings))
        .routes(routes!(keys::revoke_key_here))
        .routes(routes!(audit::list_audit_entries))
        .routes(routes!(usage::report_usage))
        .routes(routes!(reload::reload_configuration))
}

/// The parts of the document that do not belong to one route.
fn document() -> utoipa::openapi::OpenApi {
    #[derive(OpenApi)]
    #[openapi(
        info(
            title = "Chaingate admin API",
            description = "Accounts, keys, usage and the audit log. Send the token from the file `admin-token` in the data \
                           directory as `Authorization: Bearer TOKEN`.",
            license(name = "MIT OR Apache-2.0")
        ),
        security(("token" = []))
    )]
    struct DocumentFrame;

    let mut document = DocumentFrame::openapi();
    let scheme = SecurityScheme::Http(HttpBuilder::new().scheme(HttpAuthScheme::Bearer).build());
    document.components.get_or_insert_default().add_security_scheme("token", scheme);
    document
}

fn json_response(json: Bytes) -> AxumResponse {
    ([(header::CONTENT_TYPE, HeaderValue::from_static("application/json"))], json).into_response()
}

async fn no_such_path() -> ApiError {
    let message = format!("no such path; {OPENAPI_PATH} describes all of them");
    ApiError::new(StatusCode::NOT_FOUND, "no_such_path", message)
}

async fn no_such_method() -> ApiError {
    let message = format!("this path does not have this method; see {OPENAPI_PATH}");
    ApiError::new(StatusCode::METHOD_NOT_ALLOWED, "no_such_method", message)
}

/// The error for an address that contains a NUL byte.
fn nul_error(address: &Uri) -> Option<ApiError> {
    if contains_nul(address.path()) {
        let message = "no name and no id contains a NUL byte";
        return Some(ApiError::new(StatusCode::NOT_FOUND, "not_found", message));
    }
    address.query().filter(|query| contains_nul(query)).map(|_| {
        let message = "no parameter may contain a NUL byte";
        ApiError::new(StatusCode::BAD_REQUEST, "invalid_query", message)
    })
}

/// The response with its whole body, which is in memory already.
pub(crate) async fn response_of(response: impl IntoResponse) -> Response<Bytes> {
    let (head, body) = response.into_response().into_parts();
    let body = body.collect().await.map(|body| body.to_bytes()).unwrap_or_default();
    Response::from_parts(head, body)
}
