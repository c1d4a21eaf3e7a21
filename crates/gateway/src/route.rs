//! Step 1: routes a request by its head, and refuses it if its body need not be read.

use http::header;
use http_server::{Headers, Refused, RequestCoding, RequestHead, RequestMethod};

use crate::request_limits::RequestLimits;

/// Where a request goes.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Route<'a> {
    Preflight,
    /// A call under this key, which may be empty, with a body of this coding.
    Call {
        key: &'a str,
        coding: Option<RequestCoding>,
    },
}

/// Decides from the head alone.
pub(crate) fn route<'a>(head: &RequestHead<'a>, limits: &RequestLimits) -> Result<Route<'a>, Refused> {
    let key = key(head.target).ok_or(Refused::OtherPath)?;
    match head.method {
        RequestMethod::Options => return Ok(Route::Preflight),
        RequestMethod::Post => {}
        RequestMethod::Head | RequestMethod::Other => return Err(Refused::OtherMethod),
    }
    check_content_type(head.headers)?;
    let coding = RequestCoding::of_request(head.headers)?;
    let declared = number(head.headers.get(&header::CONTENT_LENGTH));
    if declared.is_some_and(|length| length > limits.body_bytes_max as u64) {
        return Err(Refused::TooLarge);
    }
    Ok(Route::Call { key, coding })
}

/// The key in the path, byte for byte. A slash or a query string after it, which some clients append, is ignored. Nothing is
/// decoded or normalised, so the bytes of one key are never read as another key.
fn key(target: &str) -> Option<&str> {
    let path = target.split('?').next().unwrap_or_default();
    match path.strip_prefix("/v3")? {
        "" => Some(""),
        rest => {
            let key = rest.strip_prefix('/')?;
            let key = key.strip_suffix('/').unwrap_or(key);
            (!key.contains('/')).then_some(key)
        }
    }
}

fn check_content_type(headers: Headers<'_>) -> Result<(), Refused> {
    const ACCEPTED: [&str; 4] = [
        "application/json",
        "application/json-rpc",
        "application/jsonrequest",
        // The default of curl.
        "application/x-www-form-urlencoded",
    ];
    let Some(value) = headers.get(&header::CONTENT_TYPE) else { return Ok(()) };
    let essence = value.split(|&byte| byte == b';').next().unwrap_or_default().trim_ascii();
    let known = ACCEPTED.iter().any(|accepted| essence.eq_ignore_ascii_case(accepted.as_bytes()));
    if known { Ok(()) } else { Err(Refused::ContentType) }
}

fn number(value: Option<&[u8]>) -> Option<u64> {
    std::str::from_utf8(value?).ok()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn routed(method: &str, target: &str, content_type: Option<&str>) -> Result<String, Refused> {
        let lines =
            content_type.map(|value| httparse::Header { name: "Content-Type", value: value.as_bytes() });
        let headers = Headers::Lines(lines.as_slice());
        let head = RequestHead { method: method.into(), target, headers };
        route(&head, &RequestLimits::default()).map(|route| format!("{route:?}"))
    }

    #[test]
    fn only_the_exact_path_leads_to_a_key() {
        assert_eq!(routed("POST", "/v3/abc", None).unwrap(), r#"Call { key: "abc", coding: None }"#);
        assert_eq!(routed("POST", "/v3", None).unwrap(), r#"Call { key: "", coding: None }"#);
        assert_eq!(routed("POST", "/v3/", None).unwrap(), r#"Call { key: "", coding: None }"#);
        assert_eq!(routed("POST", "/v3/a%62c", None).unwrap(), r#"Call { key: "a%62c", coding: None }"#);
        for path in ["/v3/abc/", "/v3/abc?x=1", "/v3/abc/?x=1", "/v3/abc?", "/v3/abc?/x", "/v3/abc?x=1?y"] {
            assert_eq!(routed("POST", path, None).unwrap(), r#"Call { key: "abc", coding: None }"#, "{path}");
        }
        for path in ["/v3?x=1", "/v3/?x=1", "/v3?/abc"] {
            assert_eq!(routed("POST", path, None).unwrap(), r#"Call { key: "", coding: None }"#, "{path}");
        }
        for path in [
            "/",
            "/v2/abc",
            "/v4/abc",
            "/V3/abc",
            "/v33/abc",
            "/v3/abc/x",
            "/v3/abc//",
            "/v3/abc/x?y",
            "//v3/abc",
            "/v3//abc",
            "/?/v3/abc",
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

    /// The coding was read when the whole body had arrived.
    #[test]
    fn a_coding_that_is_not_read_is_refused_by_the_head() {
        let routed = |codings: &[&'static str]| {
            let line =
                |value: &&'static str| httparse::Header { name: "Content-Encoding", value: value.as_bytes() };
            let lines: Vec<_> = codings.iter().map(line).collect();
            let head = RequestHead {
                method: RequestMethod::Post,
                target: "/v3/abc",
                headers: Headers::Lines(&lines),
            };
            route(&head, &RequestLimits::default()).map(|route| format!("{route:?}"))
        };
        for (codings, coding) in [
            (&["GZIP"][..], "Some(Gzip)"),
            (&["x-gzip"], "Some(Gzip)"),
            (&["zstd"], "Some(Zstd)"),
            (&["identity"], "None"),
            (&[], "None"),
        ] {
            assert_eq!(routed(codings).unwrap(), format!(r#"Call {{ key: "abc", coding: {coding} }}"#));
        }
        for codings in [&["br"][..], &["deflate"], &["gzip, gzip"], &["gzip", "identity"], &["nonsense"]] {
            assert_eq!(routed(codings), Err(Refused::Encoding), "{codings:?}");
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
