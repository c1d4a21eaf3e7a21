//! Usage of callers.

use std::collections::BTreeSet;
use std::sync::Arc;

use axum::Json;
use axum::extract::rejection::QueryRejection;
use axum::extract::{Query, State};
use callers::administration::{Administration, AdministrationError};
use callers::usage::{UsageDimension, UsageReportRequest, UsageStep, UsedKey};
use serde::Deserialize;
use serde_json::Value;
use utoipa::IntoParams;

use super::parameters;
use crate::api_error::{ApiError, ErrorDocument};
use crate::documents::UsageDocument;

/// Which usage is reported.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct UsageParameters {
    /// Name of an account; all accounts by default.
    account: Option<String>,
    /// Id of a key.
    key: Option<String>,
    /// Name of a network.
    network: Option<String>,
    /// Tag of the calls.
    tag: Option<String>,
    /// Start, such as `2026-11-17`, `2026-11-17T13:00Z` or `7d`; today by default.
    since: Option<String>,
    /// End, in the same forms; now by default.
    until: Option<String>,
    /// The dimensions to sum up by, separated by commas: `time`, `network`, `account`, `key`, `method`, `outcome`, `tag`.
    /// By default `key,method,outcome`, and `key` of a tag. A report of tags has no methods and outcomes.
    by: Option<String>,
    /// Step of the time: `minute`, `hour` or `day`.
    step: Option<String>,
    /// About how many rows; 100,000 by default and at most.
    rows: Option<usize>,
    /// `after_account` of `next` of the page before.
    after_account: Option<String>,
    /// `after_key` of `next` of the page before.
    after_key: Option<String>,
}

/// Show what callers have used
#[utoipa::path(
    get, path = "/admin/v1/usage", tag = "usage", params(UsageParameters),
    responses((status = 200, body = UsageDocument), (status = "default", body = ErrorDocument))
)]
pub(crate) async fn report_usage(
    State(administration): State<Arc<Administration>>,
    query: Result<Query<UsageParameters>, QueryRejection>,
) -> Result<Json<Value>, ApiError> {
    let UsageParameters {
        account,
        key,
        network,
        tag,
        since,
        until,
        by,
        step,
        rows,
        after_account,
        after_key,
    } = parameters(query)?;
    let by = match by {
        Some(names) => dimensions(&names)?,
        None => UsageReportRequest::usual_dimensions(tag.as_deref()),
    };
    let step = step.as_deref().map(named_step).transpose()?;
    let after = UsedKey { account: after_account.unwrap_or_default(), key: after_key.unwrap_or_default() };
    let request =
        UsageReportRequest { account, key, network, tag, since, until, by, step, after, rows_max: rows };
    Ok(Json(administration.usage_report(&request).await?.json()))
}

fn dimensions(names: &str) -> Result<BTreeSet<UsageDimension>, AdministrationError> {
    let names = names.split(',').filter(|name| !name.is_empty());
    names.map(UsageDimension::named).collect::<Option<_>>().ok_or_else(|| {
        invalid(
            "by",
            "must be a list of time, network, account, key, method, outcome and tag, separated by commas",
        )
    })
}

fn named_step(name: &str) -> Result<UsageStep, AdministrationError> {
    UsageStep::named(name).ok_or_else(|| invalid("step", "must be minute, hour or day"))
}

fn invalid(field: &'static str, message: &str) -> AdministrationError {
    AdministrationError::Invalid { field, message: message.to_owned() }
}
