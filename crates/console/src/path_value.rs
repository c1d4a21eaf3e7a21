//! Reads the variable part of a path.

use axum::extract::{FromRequestParts, Path};
use http::StatusCode;
use http::request::Parts;

use crate::api_error::ApiError;

/// The variable part of a path: the name of an account, or the id of a key.
#[derive(Debug)]
pub(crate) struct PathValue(pub(crate) String);

impl<S: Send + Sync> FromRequestParts<S> for PathValue {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, ApiError> {
        match Path::from_request_parts(parts, state).await {
            Ok(Path(value)) => Ok(Self(value)),
            // Nothing has a name that is not UTF-8.
            Err(rejected) => Err(ApiError::new(StatusCode::NOT_FOUND, "not_found", rejected.body_text())),
        }
    }
}

/// Whether a path or a query contains a NUL byte, which no text of the store can: PostgreSQL refuses the statement.
pub(crate) fn contains_nul(encoded: &str) -> bool {
    encoded.contains("%00")
}
