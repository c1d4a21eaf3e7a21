//! The keys of an account: that of the session, or for operators the one in the path.

use std::collections::HashSet;

use callers::administration::{
    AdministrationError, Changed, KeyAgePosition, KeyCreation, KeySummary, ListPage, NamePosition, NewKey,
};
use resources::unix_seconds;

use super::key_form;
use crate::pages::keys::{FoundKeyCount, KeyListPage, KeySettingsForm, KeySettingsPage, NewKeyPage};
use crate::pages::{FormErrors, NavigationItem};
use crate::web::account_scope::{AccountScope, ScopedSession};
use crate::web::list_position::{key_age_position, key_age_text, list_links, name_position, name_text};
use crate::web::page_error::{PageError, PageResult, form_errors};
use crate::web::web_request::WebRequest;
use crate::web::{reply, usage_sums};

const HOUR_S: u64 = 60 * 60;

/// Keys of one page of the list.
const KEYS_SHOWN: u32 = 50;

type AccountRequest = WebRequest<AccountScope>;

pub(in crate::web) async fn list<S: ScopedSession>(request: WebRequest<S>) -> PageResult {
    reply::page(&list_page(&request.scoped().await?, FormErrors::default()).await?)
}

async fn list_page(request: &AccountRequest, errors: FormErrors) -> Result<KeyListPage, PageError> {
    let (site, scope) = (&request.site, &request.session);
    let account = &scope.account;
    let search = request.query.filled("q").unwrap_or_default();
    let ListedKeys { keys, found, next } = match search {
        "" => keys_by_age(request).await?,
        search => found_keys(request, search).await?,
    };
    let path = scope.path("/keys");
    Ok(KeyListPage {
        frame: request.frame(scope.navigation(NavigationItem::Keys), "Keys").await?,
        keys: site.key_rows(account, keys).await?,
        search: search.to_owned(),
        found,
        pages: list_links(&path, search, request.query.filled("after").is_some(), next),
        path,
        account: scope.other_account(),
        counts: site.administration.account_counts(account).await?,
        keys_max: site.administration.plans().named(&account.plan).and_then(|plan| plan.keys_max),
        new_name: request.form.get("name").to_owned(),
        errors,
        base_url: site.facts.base_url.clone(),
    })
}

struct ListedKeys {
    keys: Vec<KeySummary>,
    /// How many keys the search has found on all pages.
    found: Option<FoundKeyCount>,
    /// Where the next page begins.
    next: Option<String>,
}

async fn keys_by_age(request: &AccountRequest) -> Result<ListedKeys, PageError> {
    let (after, account) = (request.position(key_age_position)?, &request.session.account);
    let page = request.site.administration.keys_by_age(account, after.as_ref(), KEYS_SHOWN).await?;
    let next = page.next(|key| {
        let is_active = key.status != "revoked";
        key_age_text(&KeyAgePosition { is_active, created_at: key.created_at, id: key.id.clone() })
    });
    Ok(ListedKeys { keys: page.rows, found: None, next })
}

/// The keys that begin with what is searched for are on the first page, before those whose names do.
async fn found_keys(request: &AccountRequest, search: &str) -> Result<ListedKeys, PageError> {
    let (administration, account) = (&request.site.administration, &request.session.account);
    let after = request.position(name_position)?;
    let ListPage { rows: by_prefix, has_more } =
        administration.keys_of_account_by_prefix(account, search).await?;
    let by_name = administration.keys_by_name(account, search, after.as_ref(), KEYS_SHOWN).await?;
    let next = by_name.next(|key| name_text(&NamePosition::new(&key.name, key.id.clone())));
    let has_name = |key: &&KeySummary| {
        key.name.get(..search.len()).is_some_and(|start| start.eq_ignore_ascii_case(search))
    };
    let only_by_prefix = by_prefix.iter().filter(|key| !has_name(key)).count() as u64;
    let count = only_by_prefix.saturating_add(administration.count_keys_by_name(account, search).await?);
    let ids: HashSet<String> = by_prefix.iter().map(|key| key.id.clone()).collect();
    let mut keys = if after.is_some() { Vec::new() } else { by_prefix };
    keys.extend(by_name.rows.into_iter().filter(|key| !ids.contains(&key.id)));
    Ok(ListedKeys { keys, found: Some(FoundKeyCount { count, is_all: !has_more }), next })
}

pub(in crate::web) async fn create<S: ScopedSession>(request: WebRequest<S>) -> PageResult {
    let request = request.scoped().await?;
    let (account, name) = (request.session.account.name.clone(), request.form.get("name").trim().to_owned());
    let creation = KeyCreation { account, name, ..KeyCreation::default() };
    match request.site.administration.create_key(&request.session.actor(), &creation).await {
        Ok(new) => new_key_page(&request, new.made, None).await,
        Err(error) => reply::refused_form(&list_page(&request, form_errors(error)?).await?),
    }
}

async fn new_key_page(request: &AccountRequest, new: NewKey, old_key_until: Option<i64>) -> PageResult {
    let scope = &request.session;
    reply::page(&NewKeyPage {
        frame: request.frame(scope.navigation(NavigationItem::Keys), "New key").await?,
        list_path: scope.path("/keys"),
        id: new.summary.id,
        name: new.summary.name,
        key: new.key,
        base_url: request.site.facts.base_url.clone(),
        old_key_until,
        needs_secret: new.summary.has_secret && new.summary.settings.secret_required != Some(false),
    })
}

pub(in crate::web) async fn details<S: ScopedSession>(request: WebRequest<S>) -> PageResult {
    let (request, key) = key_of(request).await?;
    let form = key_form::stored(&key);
    reply::page(&settings_page(&request, key, form, FormErrors::default()).await?)
}

/// The key that the path names, if it belongs to the account.
async fn key_of<S: ScopedSession>(request: WebRequest<S>) -> Result<(AccountRequest, KeySummary), PageError> {
    let request = request.scoped().await?;
    let (account, id) = (&request.session.account.name, request.path_value("id"));
    let key = request.site.administration.key_of(account, id).await?;
    Ok((request, key))
}

async fn settings_page(
    request: &AccountRequest,
    key: KeySummary,
    form: KeySettingsForm,
    errors: FormErrors,
) -> Result<KeySettingsPage, PageError> {
    let (site, scope) = (&request.site, &request.session);
    let account = &scope.account;
    let today = site.usage_today(&account.name, &[]).await?;
    Ok(KeySettingsPage {
        frame: request.frame(scope.navigation(NavigationItem::Keys), &key.name).await?,
        path: key_path(scope, &key),
        list_path: scope.path("/keys"),
        usage_path: scope.path("/usage"),
        account: scope.other_account(),
        credits: site.credits_today(account, usage_sums::total(&today).credits),
        row: site.key_rows(account, vec![key]).await?.pop().ok_or(PageError::Status(404))?,
        form,
        errors,
        method_names: site.facts.methods.iter().map(|method| method.name.clone()).collect(),
        base_url: site.facts.base_url.clone(),
    })
}

/// The path of the page of a key.
fn key_path(scope: &AccountScope, key: &KeySummary) -> String {
    format!("{}/{}", scope.path("/keys"), key.id)
}

/// The page of a key with what is wrong about one of its forms.
async fn refused(request: &AccountRequest, key: KeySummary, errors: FormErrors) -> PageResult {
    let form = key_form::stored(&key);
    reply::refused_form(&settings_page(request, key, form, errors).await?)
}

/// The answer to a change of a key, which was made.
fn changed(request: &AccountRequest, word: &'static str, changed: &Changed<KeySummary>) -> PageResult {
    reply::changed(&key_path(&request.session, changed), word, &changed.effect)
}

pub(in crate::web) async fn rename<S: ScopedSession>(request: WebRequest<S>) -> PageResult {
    let (request, key) = key_of(request).await?;
    let (actor, name) = (request.session.actor(), request.form.get("name").trim());
    match request.site.administration.rename_key(&actor, &key.id, name).await {
        Ok(renamed) => changed(&request, "key-renamed", &renamed),
        Err(error) => refused(&request, key, form_errors(error)?).await,
    }
}

pub(in crate::web) async fn rotate<S: ScopedSession>(request: WebRequest<S>) -> PageResult {
    let (request, key) = key_of(request).await?;
    let Ok(hours) = request.form.filled("overlap_hours").unwrap_or("0").parse::<u64>() else {
        let errors = FormErrors::field("overlap_hours", "must be a whole number");
        return refused(&request, key, errors).await;
    };
    let (overlap, secret) = (hours.saturating_mul(HOUR_S), request.form.filled("secret"));
    match request.site.administration.rotate_key(&request.session.actor(), &key.id, overlap, secret).await {
        Ok(new) => {
            let until = unix_seconds().saturating_add(i64::try_from(overlap).unwrap_or(i64::MAX));
            let until = key.expires_at.map_or(until, |at| at.min(until));
            new_key_page(&request, new.made, Some(until)).await
        }
        Err(error) => {
            let errors = form_errors(error)?.renamed("overlap_seconds", "overlap_hours");
            // The settings have a field `secret`, too.
            refused(&request, key, errors.renamed("secret", "rotate_secret")).await
        }
    }
}

pub(in crate::web) async fn revoke<S: ScopedSession>(request: WebRequest<S>) -> PageResult {
    let (request, key) = key_of(request).await?;
    if request.form.get("confirm").trim() != "revoke" {
        return refused(&request, key, FormErrors::field("confirm", "tick the box to confirm")).await;
    }
    let revoked = request.site.administration.revoke_key(&request.session.actor(), &key.id).await?;
    reply::changed(&request.session.path("/keys"), "key-revoked", &revoked.effect)
}

pub(in crate::web) async fn change_settings<S: ScopedSession>(request: WebRequest<S>) -> PageResult {
    let (request, key) = key_of(request).await?;
    match settings_changed(&request, &key).await {
        Ok(saved) => changed(&request, "settings-saved", &saved),
        Err(error) => {
            let (errors, form) = (form_errors(error)?, key_form::typed(&request.form, key.has_secret));
            reply::refused_form(&settings_page(&request, key, form, errors).await?)
        }
    }
}

async fn settings_changed(
    request: &AccountRequest,
    key: &KeySummary,
) -> Result<Changed<KeySummary>, AdministrationError> {
    let patch = key_form::change(&request.form, key.has_secret)?;
    request.site.administration.set_key_settings(&request.session.actor(), &key.id, &patch).await
}
