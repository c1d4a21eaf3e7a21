//! Keys.

use std::sync::Arc;

use axum::extract::rejection::QueryRejection;
use axum::extract::{Query, State};
use axum::{Extension, Json};
use callers::KeyPatch;
use callers::administration::{Administration, KeyCreation, LocalKey};
use http::StatusCode;
use serde::Deserialize;
use utoipa::IntoParams;

use super::{LATE, changed, parameters};
use crate::api_error::{ApiError, ErrorDocument};
use crate::documents::{
    EmptyBody, KeyDocument, KeyListDocument, KeyNameBody, KeySettingsBody, LocalRevocationBody,
    LocalRevocationDocument, NewKeyBody, NewKeyDocument, RotationBody,
};
use crate::guard::AdminActor;
use crate::json_body::JsonBody;
use crate::path_value::PathValue;

type KeyReply = Result<(StatusCode, Json<KeyDocument>), ApiError>;
type NewKeyReply = Result<(StatusCode, Json<NewKeyDocument>), ApiError>;

/// Where a page of keys begins.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct KeyPage {
    /// `next` of the page before.
    #[serde(default)]
    after: String,
}

/// List the keys of an account
#[utoipa::path(
    get, path = "/admin/v1/accounts/{account}/keys", tag = "keys",
    params(("account" = String, Path, description = "Name of the account"), KeyPage),
    responses((status = 200, body = KeyListDocument), (status = "default", body = ErrorDocument))
)]
pub(crate) async fn list_keys(
    State(administration): State<Arc<Administration>>,
    PathValue(account): PathValue,
    page: Result<Query<KeyPage>, QueryRejection>,
) -> Result<Json<KeyListDocument>, ApiError> {
    let found = administration.list_keys(&account, &parameters(page)?.after).await?;
    let next = found.next(|key| key.id.clone());
    Ok(Json(KeyListDocument { keys: found.rows.into_iter().map(Into::into).collect(), next }))
}

/// Create a key; the reply is the only one that contains it
#[utoipa::path(
    post, path = "/admin/v1/accounts/{account}/keys", tag = "keys", request_body = NewKeyBody,
    params(("account" = String, Path, description = "Name of the account")),
    responses((status = 201, body = NewKeyDocument), (status = 202, description = LATE, body = NewKeyDocument), (status = "default", body = ErrorDocument))
)]
pub(crate) async fn create_key(
    State(administration): State<Arc<Administration>>,
    Extension(AdminActor(actor)): Extension<AdminActor>,
    PathValue(account): PathValue,
    JsonBody(NewKeyBody { name, expires_at, settings }): JsonBody<NewKeyBody>,
) -> NewKeyReply {
    let creation = KeyCreation { account, name, expires_at, settings };
    let new = administration.create_key(&actor, &creation).await?;
    Ok(changed(StatusCode::CREATED, new))
}

/// Replace a key by a new one with the same settings; the old one stays valid for a while
#[utoipa::path(
    post, path = "/admin/v1/keys/{id}/rotate", tag = "keys", request_body = RotationBody,
    params(("id" = String, Path, description = "Id of the key")),
    responses((status = 201, body = NewKeyDocument), (status = 202, description = LATE, body = NewKeyDocument), (status = "default", body = ErrorDocument))
)]
pub(crate) async fn rotate_key(
    State(administration): State<Arc<Administration>>,
    Extension(AdminActor(actor)): Extension<AdminActor>,
    PathValue(id): PathValue,
    JsonBody(RotationBody { overlap_seconds, secret }): JsonBody<RotationBody>,
) -> NewKeyReply {
    let new = administration.rotate_key(&actor, &id, overlap_seconds, secret.as_deref()).await?;
    Ok(changed(StatusCode::CREATED, new))
}

/// Refuse a key from now on, for ever
#[utoipa::path(
    post, path = "/admin/v1/keys/{id}/revoke", tag = "keys",
    params(("id" = String, Path, description = "Id of the key")),
    responses((status = 200, body = KeyDocument), (status = 202, description = LATE, body = KeyDocument), (status = "default", body = ErrorDocument))
)]
pub(crate) async fn revoke_key(
    State(administration): State<Arc<Administration>>,
    Extension(AdminActor(actor)): Extension<AdminActor>,
    PathValue(id): PathValue,
    JsonBody(EmptyBody {}): JsonBody<EmptyBody>,
) -> KeyReply {
    Ok(changed(StatusCode::OK, administration.revoke_key(&actor, &id).await?))
}

/// Change the name of a key
#[utoipa::path(
    put, path = "/admin/v1/keys/{id}/name", tag = "keys", request_body = KeyNameBody,
    params(("id" = String, Path, description = "Id of the key")),
    responses((status = 200, body = KeyDocument), (status = 202, description = LATE, body = KeyDocument), (status = "default", body = ErrorDocument))
)]
pub(crate) async fn rename_key(
    State(administration): State<Arc<Administration>>,
    Extension(AdminActor(actor)): Extension<AdminActor>,
    PathValue(id): PathValue,
    JsonBody(body): JsonBody<KeyNameBody>,
) -> KeyReply {
    Ok(changed(StatusCode::OK, administration.rename_key(&actor, &id, &body.name).await?))
}

/// Change allow-lists, the secret, public keys of tokens and limits of a key
#[utoipa::path(
    patch, path = "/admin/v1/keys/{id}/settings", tag = "keys", request_body = KeySettingsBody,
    params(("id" = String, Path, description = "Id of the key")),
    responses((status = 200, body = KeyDocument), (status = 202, description = LATE, body = KeyDocument), (status = "default", body = ErrorDocument))
)]
pub(crate) async fn set_key_settings(
    State(administration): State<Arc<Administration>>,
    Extension(AdminActor(actor)): Extension<AdminActor>,
    PathValue(id): PathValue,
    JsonBody(patch): JsonBody<KeyPatch>,
) -> KeyReply {
    Ok(changed(StatusCode::OK, administration.set_key_settings(&actor, &id, &patch).await?))
}

/// Refuse a key on this gateway at once, also while the store cannot be reached
///
/// The key is named by its id, or by its account and its name. Other gateways accept it until the store has the revocation, which
/// is sent as soon as the store can be reached.
#[utoipa::path(
    post, path = "/admin/v1/local-revocations", tag = "keys", request_body = LocalRevocationBody,
    responses((status = 200, body = LocalRevocationDocument), (status = "default", body = ErrorDocument))
)]
pub(crate) async fn revoke_key_here(
    State(administration): State<Arc<Administration>>,
    Extension(AdminActor(actor)): Extension<AdminActor>,
    JsonBody(body): JsonBody<LocalRevocationBody>,
) -> Result<Json<LocalRevocationDocument>, ApiError> {
    let key = match body {
        LocalRevocationBody { id: Some(id), account: None, name: None } => LocalKey::Id(id),
        LocalRevocationBody { id: None, account: Some(account), name: Some(name) } => {
            LocalKey::Named { account, name }
        }
        _ => {
            let message = "give the id of the key, or its account and its name";
            return Err(ApiError::new(StatusCode::UNPROCESSABLE_ENTITY, "invalid", message).about("id"));
        }
    };
    Ok(Json(LocalRevocationDocument { id: administration.revoke_key_here(&actor, &key)? }))
}
