//! The keys of the account of the session.

use std::sync::Arc;

use axum::response::Response;
use callers::administration::{AccountSummary, KeyCreation, KeySummary, NewKey};
use callers::people::ActiveSession;
use callers::usage::UsageDimension;
use resources::unix_seconds;

use super::key_form;
use super::key_rows::{account_of, key_row};
use crate::pages::keys::{KeyListPage, KeySettingsForm, KeySettingsPage, NewKeyPage};
use crate::pages::{FieldError, FormErrors, NavigationItem};
use crate::web::page_error::{PageError, form_errors};
use crate::web::site::ConsoleSite;
use crate::web::web_request::WebRequest;
use crate::web::{notices, reply, usage_sums};

const HOUR_S: u64 = 60 * 60;

pub(in crate::web) async fn list(
    site: Arc<ConsoleSite>,
    request: WebRequest,
    session: ActiveSession,
) -> Result<Response, PageError> {
    reply::page(&list_page(&site, &request, &session, FormErrors::default()).await?)
}

async fn list_page(
    site: &ConsoleSite,
    request: &WebRequest,
    session: &ActiveSession,
    errors: FormErrors,
) -> Result<KeyListPage, PageError> {
    let account = account_of(session)?;
    Ok(KeyListPage {
        frame: site.frame(request, Some(session), NavigationItem::Keys, "Keys").await?,
        keys: site.account_today(account).await?.keys,
        keys_max: site.administration.plans().named(&account.plan).and_then(|plan| plan.keys_max),
        new_name: request.form.get("name").to_owned(),
        errors,
        base_url: site.facts.base_url.clone(),
    })
}

pub(in crate::web) async fn create(
    site: Arc<ConsoleSite>,
    request: WebRequest,
    session: ActiveSession,
) -> Result<Response, PageError> {
    let account = account_of(&session)?;
    let name = request.form.get("name").trim().to_owned();
    let creation = KeyCreation { account: account.name.clone(), name, ..KeyCreation::default() };
    match site.administration.create_key(&session.actor(), &creation).await {
        Ok(new) => new_key_page(&site, &request, &session, new, None).await,
        Err(error) => reply::refused_form(&list_page(&site, &request, &session, form_errors(error)?).await?),
    }
}

async fn new_key_page(
    site: &ConsoleSite,
    request: &WebRequest,
    session: &ActiveSession,
    new: NewKey,
    old_key_until: Option<i64>,
) -> Result<Response, PageError> {
    reply::page(&NewKeyPage {
        frame: site.frame(request, Some(session), NavigationItem::Keys, "New key").await?,
        id: new.summary.id,
        name: new.summary.name,
        key: new.key,
        base_url: site.facts.base_url.clone(),
        old_key_until,
        needs_secret: new.summary.has_secret && new.summary.settings.secret_required != Some(false),
    })
}

pub(in crate::web) async fn details(
    site: Arc<ConsoleSite>,
    request: WebRequest,
    session: ActiveSession,
) -> Result<Response, PageError> {
    let (account, key) = key_of(&site, &request, &session).await?;
    let form = key_form::stored(&key);
    reply::page(&settings_page(&site, &request, &session, account, key, form, FormErrors::default()).await?)
}

/// The key that the path names, if it belongs to the account of the session.
async fn key_of<'a>(
    site: &ConsoleSite,
    request: &WebRequest,
    session: &'a ActiveSession,
) -> Result<(&'a AccountSummary, KeySummary), PageError> {
    let account = account_of(session)?;
    let key = site.administration.key_of(&account.name, request.path_value("id")).await?;
    Ok((account, key))
}

async fn settings_page(
    site: &ConsoleSite,
    request: &WebRequest,
    session: &ActiveSession,
    account: &AccountSummary,
    key: KeySummary,
    form: KeySettingsForm,
    errors: FormErrors,
) -> Result<KeySettingsPage, PageError> {
    let report = site.usage_today(&account.name, &[UsageDimension::Key]).await?;
    let mut by_key = usage_sums::by_name(&report, UsageDimension::Key).into_iter();
    let today = by_key.find(|(id, _)| *id == key.id).map(|(_, sum)| sum).unwrap_or_default();
    Ok(KeySettingsPage {
        frame: site.frame(request, Some(session), NavigationItem::Keys, &key.name).await?,
        credits: site.credits_today(account, usage_sums::total(&report).credits),
        key: key_row(key.into(), account, &today),
        form,
        errors,
        method_names: site.facts.methods.iter().map(|method| method.name.clone()).collect(),
        base_url: site.facts.base_url.clone(),
    })
}

/// The page of a key with what is wrong about one of its forms.
async fn refused(
    site: &ConsoleSite,
    request: &WebRequest,
    session: &ActiveSession,
    errors: FormErrors,
) -> Result<Response, PageError> {
    let (account, key) = key_of(site, request, session).await?;
    let form = key_form::stored(&key);
    reply::refused_form(&settings_page(site, request, session, account, key, form, errors).await?)
}

pub(in crate::web) async fn rename(
    site: Arc<ConsoleSite>,
    request: WebRequest,
    session: ActiveSession,
) -> Result<Response, PageError> {
    let (_, key) = key_of(&site, &request, &session).await?;
    let name = request.form.get("name").trim();
    match site.administration.rename_key(&session.actor(), &key.id, name).await {
        Ok(_) => reply::redirect(&notices::path_with(&format!("/keys/{}", key.id), "key-renamed")),
        Err(error) => refused(&site, &request, &session, form_errors(error)?).await,
    }
}

pub(in crate::web) async fn rotate(
    site: Arc<ConsoleSite>,
    request: WebRequest,
    session: ActiveSession,
) -> Result<Response, PageError> {
    let (_, key) = key_of(&site, &request, &session).await?;
    let hours = request.form.filled("overlap_hours").unwrap_or("0").parse::<u64>();
    let Ok(hours) = hours else {
        return refused(&site, &request, &session, field_error("overlap_hours", "must be a whole number"))
            .await;
    };
    let (overlap, secret) = (hours.saturating_mul(HOUR_S), request.form.filled("secret"));
    match site.administration.rotate_key(&session.actor(), &key.id, overlap, secret).await {
        Ok(new) => {
            let until = unix_seconds().saturating_add(i64::try_from(overlap).unwrap_or(i64::MAX));
            let until = key.expires_at.map_or(until, |at| at.min(until));
            new_key_page(&site, &request, &session, new, Some(until)).await
        }
        Err(error) => {
            let mut errors = form_errors(error)?;
            for error in &mut errors.fields {
                match &*error.field {
                    "overlap_seconds" => error.field = "overlap_hours".to_owned(),
                    // The settings have a field of that name, too.
                    "secret" => error.field = "rotate_secret".to_owned(),
                    _ => {}
                }
            }
            refused(&site, &request, &session, errors).await
        }
    }
}

pub(in crate::web) async fn revoke(
    site: Arc<ConsoleSite>,
    request: WebRequest,
    session: ActiveSession,
) -> Result<Response, PageError> {
    let (_, key) = key_of(&site, &request, &session).await?;
    if request.form.get("confirm").trim() != "revoke" {
        return refused(&site, &request, &session, field_error("confirm", "tick the box to confirm")).await;
    }
    site.administration.revoke_key(&session.actor(), &key.id).await?;
    reply::redirect(&notices::path_with("/keys", "key-revoked"))
}

pub(in crate::web) async fn change_settings(
    site: Arc<ConsoleSite>,
    request: WebRequest,
    session: ActiveSession,
) -> Result<Response, PageError> {
    let (account, key) = key_of(&site, &request, &session).await?;
    let changed = match key_form::change(&request.form, key.has_secret) {
        Ok(change) => site.administration.set_key_settings(&session.actor(), &key.id, &change).await,
        Err(error) => Err(error),
    };
    match changed {
        Ok(_) => reply::redirect(&notices::path_with(&format!("/keys/{}", key.id), "settings-saved")),
        Err(error) => {
            let (errors, form) = (form_errors(error)?, key_form::typed(&request.form, key.has_secret));
            let page = settings_page(&site, &request, &session, account, key, form, errors).await?;
            reply::refused_form(&page)
        }
    }
}

fn field_error(field: &str, message: &str) -> FormErrors {
    let error = FieldError { field: field.to_owned(), message: message.to_owned() };
    FormErrors { general: None, fields: vec![error] }
}
