//! The operations of the admin API, one function each.

#![allow(unused_qualifications, reason = "utoipa generates code with whole paths")]

pub(crate) mod accounts;
pub(crate) mod audit;
pub(crate) mod keys;
pub(crate) mod usage;

use axum::extract::Query;
use axum::extract::rejection::QueryRejection;
use callers::administration::AdministrationError;
use http::StatusCode;

use crate::api_error::ApiError;

impl From<AdministrationError> for ApiError {
    fn from(error: AdministrationError) -> Self {
        let message = error.to_string();
        match error {
            AdministrationError::NotFound { .. } => Self::new(StatusCode::NOT_FOUND, "not_found", message),
            AdministrationError::AlreadyExists { .. } => {
                Self::new(StatusCode::CONFLICT, "already_exists", message)
            }
            AdministrationError::Invalid { field, message } => {
                Self::new(StatusCode::UNPROCESSABLE_ENTITY, "invalid", message).about(field)
            }
            AdministrationError::TooManyKeys { .. } => {
                Self::new(StatusCode::CONFLICT, "too_many_keys", message)
            }
            AdministrationError::StoreUnavailable(_) => {
                Self::new(StatusCode::SERVICE_UNAVAILABLE, "store_unavailable", message)
            }
        }
    }
}

/// The parameters of the query, or what is wrong with them.
fn parameters<T>(query: Result<Query<T>, QueryRejection>) -> Result<T, ApiError> {
    match query {
        Ok(Query(parameters)) => Ok(parameters),
        Err(rejected) => Err(ApiError::new(StatusCode::BAD_REQUEST, "invalid_query", rejected.body_text())),
    }
}
