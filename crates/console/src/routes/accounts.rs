//! Accounts.

use std::sync::Arc;

use axum::extract::rejection::QueryRejection;
use axum::extract::{Query, State};
use axum::{Extension, Json};
use callers::administration::Administration;
use http::StatusCode;
use serde::Deserialize;
use utoipa::IntoParams;

use super::{LATE, changed, parameters};
use crate::api_error::{ApiError, ErrorDocument};
use crate::documents::{AccountDocument, AccountListDocument, EmptyBody, NewAccountBody, PlanBody};
use crate::guard::AdminActor;
use crate::json_body::JsonBody;
use crate::path_value::PathValue;

type AccountReply = Result<(StatusCode, Json<AccountDocument>), ApiError>;

/// Where a page of accounts begins.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct AccountPage {
    /// `next` of the page before.
    #[serde(default)]
    after: i64,
}

/// List the accounts
#[utoipa::path(
    get, path = "/admin/v1/accounts", tag = "accounts", params(AccountPage),
    responses((status = 200, body = AccountListDocument), (status = "default", body = ErrorDocument))
)]
pub(crate) async fn list_accounts(
    State(administration): State<Arc<Administration>>,
    page: Result<Query<AccountPage>, QueryRejection>,
) -> Result<Json<AccountListDocument>, ApiError> {
    let found = administration.list_accounts(parameters(page)?.after).await?;
    let next = found.next(|account| account.id);
    Ok(Json(AccountListDocument { accounts: found.rows.into_iter().map(Into::into).collect(), next }))
}

/// Create an account
#[utoipa::path(
    post, path = "/admin/v1/accounts", tag = "accounts", request_body = NewAccountBody,
    responses((status = 201, body = AccountDocument), (status = 202, description = LATE, body = AccountDocument), (status = "default", body = ErrorDocument))
)]
pub(crate) async fn create_account(
    State(administration): State<Arc<Administration>>,
    Extension(AdminActor(actor)): Extension<AdminActor>,
    JsonBody(body): JsonBody<NewAccountBody>,
) -> AccountReply {
    let account = administration.create_account(&actor, &body.name, &body.plan).await?;
    Ok(changed(StatusCode::CREATED, account))
}

/// Refuse all calls of an account, until it is resumed
#[utoipa::path(
    post, path = "/admin/v1/accounts/{account}/suspend", tag = "accounts",
    params(("account" = String, Path, description = "Name of the account")),
    responses((status = 200, body = AccountDocument), (status = 202, description = LATE, body = AccountDocument), (status = "default", body = ErrorDocument))
)]
pub(crate) async fn suspend_account(
    State(administration): State<Arc<Administration>>,
    Extension(AdminActor(actor)): Extension<AdminActor>,
    PathValue(account): PathValue,
    JsonBody(EmptyBody {}): JsonBody<EmptyBody>,
) -> AccountReply {
    Ok(changed(StatusCode::OK, administration.suspend_account(&actor, &account).await?))
}

/// Accept the calls of a suspended account again
#[utoipa::path(
    post, path = "/admin/v1/accounts/{account}/resume", tag = "accounts",
    params(("account" = String, Path, description = "Name of the account")),
    responses((status = 200, body = AccountDocument), (status = 202, description = LATE, body = AccountDocument), (status = "default", body = ErrorDocument))
)]
pub(crate) async fn resume_account(
    State(administration): State<Arc<Administration>>,
    Extension(AdminActor(actor)): Extension<AdminActor>,
    PathValue(account): PathValue,
    JsonBody(EmptyBody {}): JsonBody<EmptyBody>,
) -> AccountReply {
    Ok(changed(StatusCode::OK, administration.resume_account(&actor, &account).await?))
}

/// Change the plan of an account
#[utoipa::path(
    put, path = "/admin/v1/accounts/{account}/plan", tag = "accounts", request_body = PlanBody,
    params(("account" = String, Path, description = "Name of the account")),
    responses((status = 200, body = AccountDocument), (status = 202, description = LATE, body = AccountDocument), (status = "default", body = ErrorDocument))
)]
pub(crate) async fn set_plan(
    State(administration): State<Arc<Administration>>,
    Extension(AdminActor(actor)): Extension<AdminActor>,
    PathValue(account): PathValue,
    JsonBody(body): JsonBody<PlanBody>,
) -> AccountReply {
    Ok(changed(StatusCode::OK, administration.set_plan(&actor, &account, &body.plan).await?))
}
