//! Requests under `/admin`, which a service of the layer above answers.
//!
//! This module bounds their bodies and refuses pages of other origins. Who may change what is decided by the service.

use std::fmt;
use std::net::SocketAddr;

use ::http::header::{self, HeaderValue};
use ::http::{HeaderMap, Request, Response, StatusCode};
use bytes::Bytes;
use futures_util::future::BoxFuture;
use http_body_util::{BodyExt, Full, LengthLimitError, Limited};
use http_server::IncomingBody;
use serde_json::json;

use crate::allowed_hosts::AllowedHosts;
use crate::policy::ADMIN_BODY_BYTES_MAX;

/// Answers the requests under `/admin`.
pub trait AdminService: fmt::Debug + Send + Sync {
    /// Answers one request, which has an [`OperatorPeer`] among its extensions.
    fn answer(&self, request: Request<Bytes>) -> BoxFuture<'_, Response<Bytes>>;
}

/// The address that a request came from.
#[derive(Clone, Copy, Debug)]
pub struct OperatorPeer(pub SocketAddr);

pub(super) fn is_admin_path(path: &str) -> bool {
    path.strip_prefix("/admin").is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// Reads the request and hands it to the service.
pub(super) async fn reply(
    service: &dyn AdminService,
    hosts: &AllowedHosts,
    request: Request<IncomingBody>,
    peer: SocketAddr,
) -> Response<Full<Bytes>> {
    let response = if allows_origin_of(request.headers(), hosts) {
        match read(request).await {
            Ok(mut request) => {
                request.extensions_mut().insert(OperatorPeer(peer));
                service.answer(request).await
            }
            Err(refused) => refused,
        }
    } else {
        let message =
            "pages of this origin may not use the admin API; see operator_hosts in the section [listen]";
        refusal(StatusCode::FORBIDDEN, "origin_not_allowed", message)
    };
    with_safe_headers(response.map(Full::new))
}

/// Programs send no `Origin`; browsers send it with everything that can change something.
fn allows_origin_of(headers: &HeaderMap, hosts: &AllowedHosts) -> bool {
    let host = headers.get(header::HOST).and_then(|host| host.to_str().ok()).unwrap_or_default();
    let is_allowed =
        |origin: &HeaderValue| origin.to_str().is_ok_and(|origin| hosts.allow_origin(origin, host));
    headers.get_all(header::ORIGIN).iter().all(is_allowed)
}

async fn read(request: Request<IncomingBody>) -> Result<Request<Bytes>, Response<Bytes>> {
    let (head, body) = request.into_parts();
    match Limited::new(body, ADMIN_BODY_BYTES_MAX).collect().await {
        Ok(collected) => Ok(Request::from_parts(head, collected.to_bytes())),
        Err(error) if error.is::<LengthLimitError>() => {
            let message = format!("the body must have at most {ADMIN_BODY_BYTES_MAX} bytes");
            Err(refusal(StatusCode::PAYLOAD_TOO_LARGE, "body_too_large", &message))
        }
        Err(_) => Err(refusal(StatusCode::BAD_REQUEST, "body_incomplete", "the body could not be read")),
    }
}

fn refusal(status: StatusCode, code: &str, message: &str) -> Response<Bytes> {
    let body = json!({ "error": { "code": code, "message": message } }).to_string();
    let mut response = Response::new(Bytes::from(body));
    *response.status_mut() = status;
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}

/// Replies can contain a new key, so they are never stored, and no browser guesses their type.
fn with_safe_headers(mut response: Response<Full<Bytes>>) -> Response<Full<Bytes>> {
    let headers = response.headers_mut();
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_paths_below_admin_are_handed_over() {
        for inside in ["/admin", "/admin/", "/admin/v1/accounts"] {
            assert!(is_admin_path(inside), "{inside}");
        }
        for outside in ["/", "/administrator", "/metrics", "/v3/admin", "admin"] {
            assert!(!is_admin_path(outside), "{outside}");
        }
    }
}
