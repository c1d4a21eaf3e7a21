//! The keys of an account: that of the session, or for operators the one in the path.

use std::collections::HashSet;
use std::sync::Arc;

use axum::response::Response;
use callers::administration::{
    KeyAgePosition, KeyCreation, KeyListEntry, KeySummary, ListPage, NamePosition, NewKey,
};
use resources::unix_seconds;

use super::key_form;
use crate::pages::keys::{FoundKeyCount, KeyListPage, KeySettingsForm, KeySettingsPage, NewKeyPage};
use crate::pages::list_pages::ListLinks;
use crate::pages::{FieldError, FormErrors, NavigationItem};
use crate::web::account_scope::{AccountScope, ScopedSession};
use crate::web::list_position::{key_age_position, key_age_text, name_position, name_text, page_href};
use crate::web::page_error::{PageError, form_errors};
use crate::web::site::ConsoleSite;
use crate::web::web_request::WebRequest;
use crate::web::{notices, reply, usage_sums};

const HOUR_S: u64 = 60 * 60;

/// Keys of one page of the list.
const KEYS_SHOWN: u32 = 50;

pub(in crate::web) async fn list<S: ScopedSession>(
    site: Arc<ConsoleSite>,
    request: WebRequest,
    session: S,
) -> Result<Response, PageError> {
    let scope = session.scope(&site, &request).await?;
    reply::page(&list_page(&site, &request, &scope, FormErrors::default()).await?)
}

async fn list_page(
    site: &ConsoleSite,
    request: &WebRequest,
    scope: &AccountScope,
    errors: FormErrors,
) -> Result<KeyListPage, PageError> {
    let account = &scope.account;
    let search = request.query.filled("q").unwrap_or_default();
    let ListedKeys { keys, found, next } = match search {
        "" => keys_by_age(site, request, scope).await?,
        search => found_keys(site, request, scope, search).await?,
    };
    let path = scope.path("/keys");
    let counts = site.administration.account_counts(account).await?;
    let title = "Keys";
    Ok(KeyListPage {
        frame: site
            .frame(request, Some(&scope.session), scope.navigation(NavigationItem::Keys), title)
            .await?,
        keys: site.key_rows(account, keys).await?,
        search: search.to_owned(),
        found,
        pages: ListLinks {
            first: request.query.filled("after").map(|_| page_href(&path, search, None)),
            next: next.map(|after| page_href(&path, search, Some(&after))),
        },
        path,
        account: scope.account_path.as_ref().map(|path| (account.name.clone(), path.clone())),
        valid_keys: counts.valid_keys,
        all_keys: counts.keys,
        keys_max: site.administration.plans().named(&account.plan).and_then(|plan| plan.keys_max),
        new_name: request.form.get("name").to_owned(),
        errors,
        base_url: site.facts.base_url.clone(),
    })
}

/// One page of keys.
struct ListedKeys {
    keys: Vec<KeyListEntry>,
    /// How many keys the search has found on all pages.
    found: Option<FoundKeyCount>,
    /// Where the next page begins.
    next: Option<String>,
}

async fn keys_by_age(
    site: &ConsoleSite,
    request: &WebRequest,
    scope: &AccountScope,
) -> Result<ListedKeys, PageError> {
    let after = request.position(key_age_position)?;
    let page = site.administration.keys_by_age(&scope.account, after.as_ref(), KEYS_SHOWN).await?;
    let next = page.next(|key| {
        let is_active = key.status != "revoked";
        key_age_text(&KeyAgePosition { is_active, created_at: key.created_at, id: key.id.clone() })
    });
    Ok(ListedKeys { keys: page.rows, found: None, next })
}

/// The keys that begin with what is searched for are on the first page, before those whose names do.
async fn found_keys(
    site: &ConsoleSite,
    request: &WebRequest,
    scope: &AccountScope,
    search: &str,
) -> Result<ListedKeys, PageError> {
    let (administration, account) = (&site.administration, &scope.account);
    let after = request.position(name_position)?;
    let ListPage { rows: by_prefix, has_more } =
        administration.keys_of_account_by_prefix(account, search).await?;
    let by_name = administration.keys_by_name(account, search, after.as_ref(), KEYS_SHOWN).await?;
    let next = by_name.next(|key| name_text(&NamePosition::new(&key.name, key.id.clone())));
    let has_name = |key: &&KeyListEntry| {
        key.name.get(..search.len()).is_some_and(|start| start.eq_ignore_ascii_case(search))
    };
    let only_by_prefix = by_prefix.iter().filter(|key| !has_name(key)).count() as u64;
    let count = only_by_prefix.saturating_add(administration.count_keys_by_name(account, search).await?);
    let ids: HashSet<String> = by_prefix.iter().map(|key| key.id.clone()).collect();
    let mut keys = if after.is_some() { Vec::new() } else { by_prefix };
    keys.extend(by_name.rows.into_iter().filter(|key| !ids.contains(&key.id)));
    Ok(ListedKeys { keys, found: Some(FoundKeyCount { count, is_all: !has_more }), next })
}

pub(in crate::web) async fn create<S: ScopedSession>(
    site: Arc<ConsoleSite>,
    request: WebRequest,
    session: S,
) -> Result<Response, PageError> {
    let scope = session.scope(&site, &request).await?;
    let name = request.form.get("name").trim().to_owned();
    let creation = KeyCreation { account: scope.account.name.clone(), name, ..KeyCreation::default() };
    match site.administration.create_key(&scope.session.actor(), &creation).await {
        Ok(new) => new_key_page(&site, &request, &scope, new.made, None).await,
        Err(error) => reply::refused_form(&list_page(&site, &request, &scope, form_errors(error)?).await?),
    }
}

async fn new_key_page(
    site: &ConsoleSite,
    request: &WebRequest,
    scope: &AccountScope,
    new: NewKey,
    old_key_until: Option<i64>,
) -> Result<Response, PageError> {
    let navigation = scope.navigation(NavigationItem::Keys);
    reply::page(&NewKeyPage {
        frame: site.frame(request, Some(&scope.session), navigation, "New key").await?,
        list_path: scope.path("/keys"),
        id: new.summary.id,
        name: new.summary.name,
        key: new.key,
        base_url: site.facts.base_url.clone(),
        old_key_until,
        needs_secret: new.summary.has_secret && new.summary.settings.secret_required != Some(false),
    })
}

pub(in crate::web) async fn details<S: ScopedSession>(
    site: Arc<ConsoleSite>,
    request: WebRequest,
    session: S,
) -> Result<Response, PageError> {
    let (scope, key) = key_of(&site, &request, session).await?;
    let form = key_form::stored(&key);
    reply::page(&settings_page(&site, &request, &scope, key, form, FormErrors::default()).await?)
}

/// The key that the path names, if it belongs to the account.
async fn key_of(
    site: &ConsoleSite,
    request: &WebRequest,
    session: impl ScopedSession,
) -> Result<(AccountScope, KeySummary), PageError> {
    let scope = session.scope(site, request).await?;
    let key = site.administration.key_of(&scope.account.name, request.path_value("id")).await?;
    Ok((scope, key))
}

/// The path of the page of a key.
fn key_path(scope: &AccountScope, key: &KeySummary) -> String {
    format!("{}/{}", scope.path("/keys"), key.id)
}

async fn settings_page(
    site: &ConsoleSite,
    request: &WebRequest,
    scope: &AccountScope,
    key: KeySummary,
    form: KeySettingsForm,
    errors: FormErrors,
) -> Result<KeySettingsPage, PageError> {
    let account = &scope.account;
    let path = key_path(scope, &key);
    let today = site.usage_today(&account.name, &[]).await?;
    let mut rows = site.key_rows(account, vec![key.into()]).await?;
    let key = rows.pop().ok_or(PageError::Status(404))?;
    let navigation = scope.navigation(NavigationItem::Keys);
    Ok(KeySettingsPage {
        frame: site.frame(request, Some(&scope.session), navigation, &key.name).await?,
        path,
        list_path: scope.path("/keys"),
        usage_path: scope.path("/usage"),
        account: scope.account_path.as_ref().map(|path| (account.name.clone(), path.clone())),
        credits: site.credits_today(account, usage_sums::total(&today).credits),
        key,
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
    scope: &AccountScope,
    key: KeySummary,
    errors: FormErrors,
) -> Result<Response, PageError> {
    let form = key_form::stored(&key);
    reply::refused_form(&settings_page(site, request, scope, key, form, errors).await?)
}

pub(in crate::web) async fn rename<S: ScopedSession>(
    site: Arc<ConsoleSite>,
    request: WebRequest,
    session: S,
) -> Result<Response, PageError> {
    let (scope, key) = key_of(&site, &request, session).await?;
    let name = request.form.get("name").trim();
    match site.administration.rename_key(&scope.session.actor(), &key.id, name).await {
        Ok(renamed) => {
            reply::redirect(&notices::path_after(&key_path(&scope, &key), "key-renamed", &renamed.effect))
        }
        Err(error) => refused(&site, &request, &scope, key, form_errors(error)?).await,
    }
}

pub(in crate::web) async fn rotate<S: ScopedSession>(
    site: Arc<ConsoleSite>,
    request: WebRequest,
    session: S,
) -> Result<Response, PageError> {
    let (scope, key) = key_of(&site, &request, session).await?;
    let hours = request.form.filled("overlap_hours").unwrap_or("0").parse::<u64>();
    let Ok(hours) = hours else {
        let errors = field_error("overlap_hours", "must be a whole number");
        return refused(&site, &request, &scope, key, errors).await;
    };
    let (overlap, secret) = (hours.saturating_mul(HOUR_S), request.form.filled("secret"));
    match site.administration.rotate_key(&scope.session.actor(), &key.id, overlap, secret).await {
        Ok(new) => {
            let until = unix_seconds().saturating_add(i64::try_from(overlap).unwrap_or(i64::MAX));
            let until = key.expires_at.map_or(until, |at| at.min(until));
            new_key_page(&site, &request, &scope, new.made, Some(until)).await
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
            refused(&site, &request, &scope, key, errors).await
        }
    }
}

pub(in crate::web) async fn revoke<S: ScopedSession>(
    site: Arc<ConsoleSite>,
    request: WebRequest,
    session: S,
) -> Result<Response, PageError> {
    let (scope, key) = key_of(&site, &request, session).await?;
    if request.form.get("confirm").trim() != "revoke" {
        let errors = field_error("confirm", "tick the box to confirm");
        return refused(&site, &request, &scope, key, errors).await;
    }
    let revoked = site.administration.revoke_key(&scope.session.actor(), &key.id).await?;
    reply::redirect(&notices::path_after(&scope.path("/keys"), "key-revoked", &revoked.effect))
}

pub(in crate::web) async fn change_settings<S: ScopedSession>(
    site: Arc<ConsoleSite>,
    request: WebRequest,
    session: S,
) -> Result<Response, PageError> {
    let (scope, key) = key_of(&site, &request, session).await?;
    let changed = match key_form::change(&request.form, key.has_secret) {
        Ok(change) => site.administration.set_key_settings(&scope.session.actor(), &key.id, &change).await,
        Err(error) => Err(error),
    };
    match changed {
        Ok(changed) => {
            reply::redirect(&notices::path_after(&key_path(&scope, &key), "settings-saved", &changed.effect))
        }
        Err(error) => {
            let (errors, form) = (form_errors(error)?, key_form::typed(&request.form, key.has_secret));
            reply::refused_form(&settings_page(&site, &request, &scope, key, form, errors).await?)
        }
    }
}

fn field_error(field: &str, message: &str) -> FormErrors {
    let error = FieldError { field: field.to_owned(), message: message.to_owned() };
    FormErrors { general: None, fields: vec![error] }
}
