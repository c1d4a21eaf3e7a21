//! All accounts, for operators.

use std::sync::Arc;

use axum::response::Response;
use callers::administration::{AccountSummary, FoundKey, NamePosition};
use callers::people::{Invitation, InvitationTarget, NewLink, UserSummary, check_email};

use super::key_rows::key_state;
use crate::pages::accounts::{
    AccountDetailsPage, AccountListPage, AccountListRow, AccountUsersPage, FoundKeyRow, FoundRows,
    FoundUserRow, NewAccountForm, ShownLink, UserRow, account_path,
};
use crate::pages::list_pages::ListLinks;
use crate::pages::{FieldError, FormErrors, NavigationItem};
use crate::web::list_position::{name_position, name_text, page_href};
use crate::web::operator_session::OperatorSession;
use crate::web::page_error::{PageError, form_errors, people_form_errors};
use crate::web::site::ConsoleSite;
use crate::web::web_request::WebRequest;
use crate::web::{notices, reply, usage_sums};

/// Accounts on one page. Each takes three database queries of its own.
const ACCOUNTS_SHOWN: u32 = 50;

/// Users on one page of the list.
const USERS_SHOWN: u32 = 50;

/// Keys and users on the page of an account, which has links to the lists.
const ROWS_SHOWN: u32 = 10;

pub(in crate::web) async fn list(
    site: Arc<ConsoleSite>,
    request: WebRequest,
    operator: OperatorSession,
) -> Result<Response, PageError> {
    reply::page(&list_page(&site, &request, &operator, FormErrors::default()).await?)
}

async fn list_page(
    site: &ConsoleSite,
    request: &WebRequest,
    operator: &OperatorSession,
    errors: FormErrors,
) -> Result<AccountListPage, PageError> {
    let search = request.query.filled("q").unwrap_or_default();
    let after = request.position(name_position)?;
    let accounts = site.administration.accounts_by_name(search, after.as_ref(), ACCOUNTS_SHOWN).await?;
    let next = accounts.next(|account| name_text(&NamePosition::new(&account.name, account.id)));
    let is_search = !search.is_empty() && after.is_none();
    let mut rows = Vec::new();
    for account in accounts.rows {
        let counts = site.administration.account_counts(&account).await?;
        let today = usage_sums::total(&site.usage_today(&account.name, &[]).await?);
        rows.push(AccountListRow {
            keys: counts.valid_keys,
            users: counts.users,
            is_suspended: account.status == "suspended",
            name: account.name,
            plan: account.plan,
            created_at: account.created_at,
            calls_today: today.outcomes.calls(),
            credits_today: today.credits,
        });
    }
    let typed = |name: &str| request.form.get(name).to_owned();
    let session = operator.session();
    Ok(AccountListPage {
        frame: site.frame(request, Some(session), NavigationItem::Accounts, "Accounts").await?,
        accounts: rows,
        search: search.to_owned(),
        count: site.administration.count_accounts(search).await?,
        pages: ListLinks {
            first: after.map(|_| page_href("/accounts", search, None)),
            next: next.map(|after| page_href("/accounts", search, Some(&after))),
        },
        keys: if is_search { found_keys(site, search).await? } else { FoundRows::default() },
        users: if is_search { found_users(site, search).await? } else { FoundRows::default() },
        plans: plan_names(site),
        form: NewAccountForm {
            name: typed("name"),
            plan: typed("plan"),
            invite_email: typed("invite_email"),
        },
        errors,
    })
}

async fn found_keys(site: &ConsoleSite, search: &str) -> Result<FoundRows<FoundKeyRow>, PageError> {
    let found = site.administration.keys_by_prefix(search).await?;
    let row = |FoundKey { account, key }: FoundKey| FoundKeyRow {
        state: key_state(&key, &account),
        account: account.name,
        id: key.id,
        name: key.name,
        prefix: key.prefix,
    };
    Ok(FoundRows { rows: found.rows.into_iter().map(row).collect(), has_more: found.has_more })
}

async fn found_users(site: &ConsoleSite, search: &str) -> Result<FoundRows<FoundUserRow>, PageError> {
    let found = site.people.users_by_email(search).await?;
    let row = |(user, account): (UserSummary, _)| FoundUserRow { email: user.email, account };
    Ok(FoundRows { rows: found.rows.into_iter().map(row).collect(), has_more: found.has_more })
}

fn plan_names(site: &ConsoleSite) -> Vec<String> {
    site.administration.plans().names().map(str::to_owned).collect()
}

pub(in crate::web) async fn create(
    site: Arc<ConsoleSite>,
    request: WebRequest,
    operator: OperatorSession,
) -> Result<Response, PageError> {
    let actor = operator.session().actor();
    let (name, plan) = (request.form.get("name").trim(), request.form.get("plan"));
    // An account without its invitation would be half of what was asked for.
    if let Some(email) = request.form.filled("invite_email")
        && let Err(error) = check_email(email)
    {
        let mut errors = people_form_errors(error)?;
        errors.fields.iter_mut().for_each(|error| error.field = "invite_email".to_owned());
        return reply::refused_form(&list_page(&site, &request, &operator, errors).await?);
    }
    let account = match site.administration.create_account(&actor, name, plan).await {
        Ok(created) => created.made,
        Err(error) => {
            let page = list_page(&site, &request, &operator, form_errors(error)?).await?;
            return reply::refused_form(&page);
        }
    };
    match request.form.filled("invite_email") {
        None => reply::redirect(&notices::path_with(&account_path(&account.name), "account-created")),
        Some(email) => invite_to(&site, &request, &operator, account, Some(email)).await,
    }
}

pub(in crate::web) async fn details(
    site: Arc<ConsoleSite>,
    request: WebRequest,
    operator: OperatorSession,
) -> Result<Response, PageError> {
    let account = account_in_path(&site, &request).await?;
    reply::page(&details_page(&site, &request, &operator, account, None, FormErrors::default()).await?)
}

async fn account_in_path(site: &ConsoleSite, request: &WebRequest) -> Result<AccountSummary, PageError> {
    Ok(site.administration.account(request.path_value("name")).await?)
}

async fn details_page(
    site: &ConsoleSite,
    request: &WebRequest,
    operator: &OperatorSession,
    account: AccountSummary,
    link: Option<ShownLink>,
    errors: FormErrors,
) -> Result<AccountDetailsPage, PageError> {
    let today = site.usage_today(&account.name, &[]).await?;
    let counts = site.administration.account_counts(&account).await?;
    let keys = site.first_keys(&account, ROWS_SHOWN).await?;
    let users = site.people.users_of(account.id, "", None, ROWS_SHOWN).await?.rows;
    let session = operator.session();
    Ok(AccountDetailsPage {
        frame: site.frame(request, Some(session), NavigationItem::Accounts, &account.name).await?,
        is_suspended: account.status == "suspended",
        created_at: account.created_at,
        credits: site.credits_today(&account, usage_sums::total(&today).credits),
        plans: plan_names(site),
        keys: site.key_rows(&account, keys).await?,
        valid_keys: counts.valid_keys,
        all_keys: counts.keys,
        users: users.into_iter().map(|user| user_row(user, session.email())).collect(),
        all_users: counts.users,
        name: account.name,
        invite_email: if link.is_some() { String::new() } else { request.form.get("email").to_owned() },
        link,
        errors,
    })
}

/// The people of an account, page by page.
pub(in crate::web) async fn users(
    site: Arc<ConsoleSite>,
    request: WebRequest,
    operator: OperatorSession,
) -> Result<Response, PageError> {
    let account = account_in_path(&site, &request).await?;
    let search = request.query.filled("q").unwrap_or_default();
    let after = request.position(name_position)?;
    let users = site.people.users_of(account.id, search, after.as_ref(), USERS_SHOWN).await?;
    let next = users.next(|user| name_text(&NamePosition::new(&user.email, user.id)));
    let (path, session) = (format!("{}/users", account_path(&account.name)), operator.session());
    reply::page(&AccountUsersPage {
        frame: site.frame(&request, Some(session), NavigationItem::Accounts, "Users").await?,
        name: account.name,
        users: users.rows.into_iter().map(|user| user_row(user, session.email())).collect(),
        search: search.to_owned(),
        count: site.people.count_users(account.id, search).await?,
        pages: ListLinks {
            first: after.map(|_| page_href(&path, search, None)),
            next: next.map(|after| page_href(&path, search, Some(&after))),
        },
    })
}

fn user_row(user: UserSummary, own_email: &str) -> UserRow {
    let UserSummary { id: _, email, is_operator, is_blocked, created_at, last_seen_at } = user;
    let is_self = email == own_email;
    UserRow { email, is_operator, is_blocked, is_self, created_at, last_seen_at }
}

pub(in crate::web) async fn change_plan(
    site: Arc<ConsoleSite>,
    request: WebRequest,
    operator: OperatorSession,
) -> Result<Response, PageError> {
    let account = account_in_path(&site, &request).await?;
    let (actor, plan) = (operator.session().actor(), request.form.get("plan"));
    match site.administration.set_plan(&actor, &account.name, plan).await {
        Ok(changed) => {
            let path = account_path(&account.name);
            reply::redirect(&notices::path_after(&path, "plan-changed", &changed.effect))
        }
        Err(error) => {
            let errors = form_errors(error)?;
            reply::refused_form(&details_page(&site, &request, &operator, account, None, errors).await?)
        }
    }
}

pub(in crate::web) async fn suspend(
    site: Arc<ConsoleSite>,
    request: WebRequest,
    operator: OperatorSession,
) -> Result<Response, PageError> {
    let account = account_in_path(&site, &request).await?;
    if request.form.get("confirm").trim() != "suspend" {
        let message = "tick the box to confirm".to_owned();
        let error = FieldError { field: "confirm".to_owned(), message };
        let errors = FormErrors { general: None, fields: vec![error] };
        return reply::refused_form(&details_page(&site, &request, &operator, account, None, errors).await?);
    }
    let suspended = site.administration.suspend_account(&operator.session().actor(), &account.name).await?;
    reply::redirect(&notices::path_after(
        &account_path(&account.name),
        "account-suspended",
        &suspended.effect,
    ))
}

pub(in crate::web) async fn resume(
    site: Arc<ConsoleSite>,
    request: WebRequest,
    operator: OperatorSession,
) -> Result<Response, PageError> {
    let account = account_in_path(&site, &request).await?;
    let resumed = site.administration.resume_account(&operator.session().actor(), &account.name).await?;
    reply::redirect(&notices::path_after(&account_path(&account.name), "account-resumed", &resumed.effect))
}

pub(in crate::web) async fn invite(
    site: Arc<ConsoleSite>,
    request: WebRequest,
    operator: OperatorSession,
) -> Result<Response, PageError> {
    let account = account_in_path(&site, &request).await?;
    invite_to(&site, &request, &operator, account, request.form.filled("email")).await
}

async fn invite_to(
    site: &ConsoleSite,
    request: &WebRequest,
    operator: &OperatorSession,
    account: AccountSummary,
    email: Option<&str>,
) -> Result<Response, PageError> {
    let target = InvitationTarget::Account(account.name.clone());
    let invitation = Invitation { email: email.map(str::to_owned), target };
    match site.people.create_invitation(&operator.session().actor(), &invitation).await {
        Ok(link) => {
            let link = shown_link(site, link, false, email);
            reply::page(
                &details_page(site, request, operator, account, Some(link), FormErrors::default()).await?,
            )
        }
        Err(error) => {
            let errors = people_form_errors(error)?;
            reply::refused_form(&details_page(site, request, operator, account, None, errors).await?)
        }
    }
}

pub(in crate::web) async fn reset_password(
    site: Arc<ConsoleSite>,
    request: WebRequest,
    operator: OperatorSession,
) -> Result<Response, PageError> {
    let (account, email) = user_in_form(&site, &request).await?;
    let link = site.people.create_reset_link(&operator.session().actor(), email).await?;
    let link = shown_link(&site, link, true, Some(email));
    reply::page(&details_page(&site, &request, &operator, account, Some(link), FormErrors::default()).await?)
}

/// The account that the path names, and the email address of the form, if it is that of a user of the account.
async fn user_in_form<'a>(
    site: &ConsoleSite,
    request: &'a WebRequest,
) -> Result<(AccountSummary, &'a str), PageError> {
    let account = account_in_path(site, request).await?;
    let email = request.form.get("email");
    match site.people.is_user_of(account.id, email).await? {
        true => Ok((account, email)),
        false => Err(PageError::Status(404)),
    }
}

pub(in crate::web) async fn block_user(
    site: Arc<ConsoleSite>,
    request: WebRequest,
    operator: OperatorSession,
) -> Result<Response, PageError> {
    let (account, email) = user_in_form(&site, &request).await?;
    if email == operator.session().email() {
        return Err(PageError::InvalidValue("You cannot block yourself. Ask another operator.".to_owned()));
    }
    site.people.block_user(&operator.session().actor(), email).await?;
    reply::redirect(&notices::path_with(&account_path(&account.name), "user-blocked"))
}

pub(in crate::web) async fn unblock_user(
    site: Arc<ConsoleSite>,
    request: WebRequest,
    operator: OperatorSession,
) -> Result<Response, PageError> {
    let (account, email) = user_in_form(&site, &request).await?;
    site.people.unblock_user(&operator.session().actor(), email).await?;
    reply::redirect(&notices::path_with(&account_path(&account.name), "user-unblocked"))
}

fn shown_link(site: &ConsoleSite, link: NewLink, is_reset: bool, email: Option<&str>) -> ShownLink {
    ShownLink {
        is_reset,
        url: format!("{}{}", site.url, link.path()),
        email: email.map(str::to_owned),
        expires_at: link.expires_at,
    }
}
