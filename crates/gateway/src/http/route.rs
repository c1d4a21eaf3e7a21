//! The head of a request: where it goes, and whether its body is worth reading.

use http::header::{self, HeaderMap, HeaderName};
use http::request::Parts;
use http::{Method, Version};

use super::{Limits, Refused};
use crate::listen::Connection;

/// What a request wants.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Route<'a> {
    Preflight,
    /// A call under this key, which may be empty.
    Call {
        key: &'a str,
    },
}

/// Decides from the head alone.
pub(crate) fn route<'a>(
    connection: &Connection,
    head: &'a Parts,
    limits: &Limits,
) -> Result<Route<'a>, Refused> {
    if connection.is_ambiguous() {
        connection.close_after_reply();
        return Err(Refused::Ambiguous);
    }
    let routed = check(head, limits);
    // What follows on this connection is the rest of a body that nobody reads.
    let unread = routed.is_err() && has_body(&head.headers);
    // A chunked request is framed by one reader only, the one behind us; nothing may follow it.
    let chunked = head.version < Version::HTTP_2 && head.headers.contains_key(header::TRANSFER_ENCODING);
    if unread || chunked {
        connection.close_after_reply();
    }
    routed
}

fn check<'a>(head: &'a Parts, limits: &Limits) -> Result<Route<'a>, Refused> {
    let key = key(head).ok_or(Refused::OtherPath)?;
    match head.method {
        Method::OPTIONS => return Ok(Route::Preflight),
        Method::POST => {}
        _ => return Err(Refused::OtherMethod),
    }
    check_content_type(&head.headers)?;
    let declared = number(&head.headers, header::CONTENT_LENGTH);
    if declared.is_some_and(|length| length > limits.body_bytes_max as u64) {
        return Err(Refused::TooLarge);
    }
    Ok(Route::Call { key })
}

/// The key in the path, byte for byte: nothing is decoded or normalised, so no two paths mean one key.
fn key(head: &Parts) -> Option<&str> {
    if head.uri.query().is_some() {
        return None;
    }
    match head.uri.path().strip_prefix("/v3") {
        Some("") => Some(""),
        Some(rest) => rest.strip_prefix('/').filter(|key| !key.contains('/')),
        None => None,
    }
}

fn check_content_type(headers: &HeaderMap) -> Result<(), Refused> {
    const ACCEPTED: [&str; 4] = [
        "application/json",
        "application/json-rpc",
        "application/jsonrequest",
        // What curl says when it is told nothing.
        "application/x-www-form-urlencoded",
    ];
    let Some(value) = headers.get(header::CONTENT_TYPE) else { return Ok(()) };
    let essence =
        value.to_str().map_err(|_| Refused::ContentType)?.split(';').next().unwrap_or_default().trim();
    let known = ACCEPTED.iter().any(|accepted| essence.eq_ignore_ascii_case(accepted));
    if known { Ok(()) } else { Err(Refused::ContentType) }
}

fn has_body(headers: &HeaderMap) -> bool {
    headers.contains_key(header::TRANSFER_ENCODING)
        || number(headers, header::CONTENT_LENGTH).is_some_and(|length| length > 0)
}

pub(super) fn number(headers: &HeaderMap, name: HeaderName) -> Option<u64> {
    headers.get(name)?.to_str().ok()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use http::Request;

    use super::*;

    fn routed(method: &str, uri: &str, content_type: Option<&str>) -> Result<String, Refused> {
        let mut request = Request::builder().method(method).uri(uri);
        if let Some(content_type) = content_type {
            request = request.header(header::CONTENT_TYPE, content_type);
        }
        let (head, ()) = request.body(()).unwrap().into_parts();
        check(&head, &Limits::default()).map(|route| format!("{route:?}"))
    }

    #[test]
    fn only_the_exact_path_leads_to_a_key() {
        assert_eq!(routed("POST", "/v3/abc", None).unwrap(), r#"Call { key: "abc" }"#);
        assert_eq!(routed("POST", "/v3", None).unwrap(), r#"Call { key: "" }"#);
        assert_eq!(routed("POST", "/v3/", None).unwrap(), r#"Call { key: "" }"#);
        assert_eq!(routed("POST", "/v3/a%62c", None).unwrap(), r#"Call { key: "a%62c" }"#);
        for path in [
            "/",
            "/v2/abc",
            "/v4/abc",
            "/V3/abc",
            "/v33/abc",
            "/v3/abc/",
            "/v3/abc/x",
            "//v3/abc",
            "/v3//abc",
            "/v3/abc?x=1",
            "/v3/../v3/abc",
        ] {
            assert_eq!(routed("POST", path, None), Err(Refused::OtherPath), "{path}");
        }
    }

    #[test]
    fn content_types_of_real_clients_are_accepted() {
        for good in [
            "application/json",
            "Application/JSON; charset=utf-8",
            "application/json-rpc",
            "application/jsonrequest",
            "application/x-www-form-urlencoded",
        ] {
            assert!(routed("POST", "/v3/abc", Some(good)).is_ok(), "{good}");
        }
        for bad in ["text/plain", "application/jsonx", "multipart/form-data", ""] {
            assert_eq!(routed("POST", "/v3/abc", Some(bad)), Err(Refused::ContentType), "{bad}");
        }
    }

    #[test]
    fn other_methods_are_told_what_is_allowed() {
        for method in ["GET", "PUT", "HEAD", "TRACE", "DELETE"] {
            assert_eq!(routed(method, "/v3/abc", None), Err(Refused::OtherMethod), "{method}");
        }
        assert_eq!(routed("OPTIONS", "/v3/abc", None).unwrap(), "Preflight");
    }
}
