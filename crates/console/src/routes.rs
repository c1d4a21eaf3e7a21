//! The operations of the admin API, one function each.

#![allow(unused_qualifications, reason = "utoipa generates code with whole paths")]

pub(crate) mod accounts;
pub(crate) mod audit;
pub(crate) mod keys;
pub(crate) mod reload;
pub(crate) mod usage;

use axum::Json;
use axum::extract::Query;
use axum::extract::rejection::QueryRejection;
use callers::ChangeEffect;
use callers::administration::{AdministrationError, Changed};
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
            AdministrationError::StoreTimedOut(_) => {
                Self::new(StatusCode::GATEWAY_TIMEOUT, "store_timeout", message)
            }
            AdministrationError::NotSaved(_) => {
                Self::new(StatusCode::INTERNAL_SERVER_ERROR, "not_saved", message)
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

/// The meaning of status 202 of a change.
const LATE: &str = "Stored, but not in effect on this gateway yet: `not_in_effect_because` says why. It takes effect as soon as the \
                    gateway follows the store again; on other gateways it can be in effect already.";

/// The reply to a change: `status`, or 202 if the change is not in effect on this gateway yet.
fn changed<T, D: From<Changed<T>>>(status: StatusCode, changed: Changed<T>) -> (StatusCode, Json<D>) {
    let status = match &changed.effect {
        ChangeEffect::Now => status,
        ChangeEffect::Later(_) => StatusCode::ACCEPTED,
    };
    (status, Json(changed.into()))
}
