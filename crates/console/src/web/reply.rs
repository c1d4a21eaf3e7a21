//! Replies, and the headers that all of them have.

use std::convert::Infallible;

use askama::Template;
use axum::body::Body;
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use callers::ChangeEffect;
use futures_util::stream;
use http::header::{self, HeaderName, HeaderValue};
use http::{HeaderMap, StatusCode};

use super::notices;
use super::page_error::{PageError, PageResult, Refusal};
use super::site::ConsoleSite;
use super::user_limits::Download;

pub(super) fn page(page: &impl Template) -> PageResult {
    page_with_status(StatusCode::OK, page)
}

/// A page whose form has to be corrected.
pub(super) fn refused_form(page: &impl Template) -> PageResult {
    refused_with(Refusal::INVALID, page)
}

/// A page about a request that was refused.
pub(super) fn refused_with(refusal: Refusal, page: &impl Template) -> PageResult {
    let mut response = page_with_status(refusal.status, page)?;
    if let Some(seconds) = refusal.retry_after_s {
        response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from(seconds));
    }
    Ok(response)
}

pub(super) fn page_with_status(status: StatusCode, page: &impl Template) -> PageResult {
    let html = HeaderValue::from_static("text/html; charset=utf-8");
    Ok((status, [(header::CONTENT_TYPE, html)], page.render()?).into_response())
}

/// Sends the browser to a path of this site with a GET.
pub(super) fn redirect(path: &str) -> PageResult {
    let location = HeaderValue::from_str(path).map_err(PageError::broken)?;
    Ok((StatusCode::SEE_OTHER, [(header::LOCATION, location)]).into_response())
}

/// Sends the browser to a path, which shows a message.
pub(super) fn done(path: &str, word: &'static str) -> PageResult {
    redirect(&notices::path_with(path, word))
}

/// Sends the browser to a path, which shows that a change was made, and whether it is in effect.
pub(super) fn changed(path: &str, word: &'static str, effect: &ChangeEffect) -> PageResult {
    match effect {
        ChangeEffect::Now => done(path, word),
        ChangeEffect::Later(_) => done(path, notices::NOT_IN_EFFECT),
    }
}

/// A file that the browser saves under `name`, which has no special characters. The download ends when it is sent.
pub(super) fn csv_file(name: &str, text: String, download: Download) -> PageResult {
    let disposition = HeaderValue::from_str(&format!("attachment; filename=\"{name}\""));
    let disposition = disposition.map_err(PageError::broken)?;
    let csv = HeaderValue::from_static("text/csv; charset=utf-8");
    let length = HeaderValue::from(text.len());
    // The stream owns the download, and is dropped with the last byte or with the connection.
    let parts = stream::unfold((Some(text), download), |(text, download)| async move {
        Some((Ok::<_, Infallible>(Bytes::from(text?)), (None, download)))
    });
    let headers = [
        (header::CONTENT_TYPE, csv),
        (header::CONTENT_DISPOSITION, disposition),
        (header::CONTENT_LENGTH, length),
    ];
    Ok((headers, Body::from_stream(parts)).into_response())
}

/// A page of plain text, for when no page can be made.
pub(super) fn plain(status: StatusCode, text: &'static str) -> Response {
    (status, text).into_response()
}

const FIXED_HEADERS: [(HeaderName, &str); 6] = [
    (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    // For browsers that do not know `frame-ancestors`.
    (header::X_FRAME_OPTIONS, "DENY"),
    // Not `no-referrer`, which makes browsers send `Origin: null` with our own forms.
    (header::REFERRER_POLICY, "same-origin"),
    (HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
    (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
    (
        HeaderName::from_static("permissions-policy"),
        "camera=(), geolocation=(), microphone=(), payment=(), usb=()",
    ),
];

impl ConsoleSite {
    /// Adds the headers that every reply has.
    pub(super) fn secured(&self, mut response: Response<Body>) -> Response<Body> {
        let headers: &mut HeaderMap = response.headers_mut();
        for (name, value) in FIXED_HEADERS {
            headers.insert(name, HeaderValue::from_static(value));
        }
        headers.insert(header::CONTENT_SECURITY_POLICY, self.policy.clone());
        if self.is_https {
            let a_year = HeaderValue::from_static("max-age=31536000");
            headers.insert(header::STRICT_TRANSPORT_SECURITY, a_year);
        }
        // Pages can contain a new key; only the files of the pages say otherwise.
        headers.entry(header::CACHE_CONTROL).or_insert(HeaderValue::from_static("no-store"));
        response
    }
}
