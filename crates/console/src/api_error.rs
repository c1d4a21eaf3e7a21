//! Why a request to the admin API failed, as callers see it: `{"error": {"code", "message", "field"?}}`.

use axum::Json;
use axum::response::{IntoResponse, Response};
use http::StatusCode;
use http::header::{self, HeaderValue};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// The body of every failed request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ErrorDocument {
    pub error: ErrorDetails,
}

/// The error.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ErrorDetails {
    /// A fixed word for programs, such as `not_found`.
    pub code: String,
    /// A sentence for people.
    pub message: String,
    /// The field of the request that is invalid.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub field: Option<String>,
}

/// A failed request before it is written.
#[derive(Debug)]
pub(crate) struct ApiError {
    status: StatusCode,
    details: ErrorDetails,
    retry_after_s: Option<u64>,
}

impl ApiError {
    pub(crate) fn new(status: StatusCode, code: &str, message: impl Into<String>) -> Self {
        let details = ErrorDetails { code: code.to_owned(), message: message.into(), field: None };
        Self { status, details, retry_after_s: None }
    }

    /// The same error about one field of the request.
    pub(crate) fn about(mut self, field: impl Into<String>) -> Self {
        self.details.field = Some(field.into());
        self
    }

    /// The same error for a client that should try again.
    pub(crate) fn retry_after(mut self, wait_ms: u64) -> Self {
        self.retry_after_s = Some(wait_ms.div_ceil(1_000).max(1));
        self
    }

    #[cfg(test)]
    pub(crate) fn status(&self) -> StatusCode {
        self.status
    }
}

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        let mut response = (self.status, Json(ErrorDocument { error: self.details })).into_response();
        let headers = response.headers_mut();
        if let Some(seconds) = self.retry_after_s {
            headers.insert(header::RETRY_AFTER, HeaderValue::from(seconds));
        }
        if self.status == StatusCode::UNAUTHORIZED {
            headers.insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        response
    }
}
