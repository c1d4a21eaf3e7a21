//! All accounts, for operators.

use callers::administration::{AccountRecord, ListPage, NamePosition};
use callers::people::{Invitation, InvitationTarget, NewLink, check_email};

use crate::pages::accounts::{
    AccountDetailsPage, AccountListPage, AccountListRow, AccountUsersPage, NewAccountForm, ShownLink,
    account_path,
};
use crate::pages::{FormErrors, NavigationItem};
use crate::web::list_position::{list_links, name_position, name_text};
use crate::web::operator_session::OperatorSession;
use crate::web::page_error::{PageError, PageResult, form_errors, people_form_errors};
use crate::web::site::ConsoleSite;
use crate::web::web_request::WebRequest;
use crate::web::{reply, usage_sums};

/// Accounts on one page. Each takes three database queries of its own.
const ACCOUNTS_SHOWN: u32 = 50;

/// Users on one page of the list.
const USERS_SHOWN: u32 = 50;

/// Keys and users on the page of an account, which has links to the lists.
const ROWS_SHOWN: u32 = 10;

type OperatorRequest = WebRequest<OperatorSession>;

pub(in crate::web) async fn list(request: OperatorRequest) -> PageResult {
    reply::page(&list_page(&request, FormErrors::default()).await?)
}

async fn list_page(request: &OperatorRequest, errors: FormErrors) -> Result<AccountListPage, PageError> {
    let site = &request.site;
    let search = request.query.filled("q").unwrap_or_default();
    let after = request.position(name_position)?;
    let accounts = site.administration.accounts_by_name(search, after.as_ref(), ACCOUNTS_SHOWN).await?;
    let next = accounts.next(|account| name_text(&NamePosition::new(&account.name, account.id)));
    let is_search = !search.is_empty() && after.is_none();
    let mut rows = Vec::new();
    for account in accounts.rows {
        let counts = site.administration.account_counts(&account).await?;
        let today = usage_sums::total(&site.usage_today(&account.name, &[]).await?);
        rows.push(AccountListRow { account, counts, today });
    }
    let typed = |name: &str| request.form.get(name).to_owned();
    Ok(AccountListPage {
        frame: request.frame(NavigationItem::Accounts, "Accounts").await?,
        accounts: rows,
        search: search.to_owned(),
        count: site.administration.count_accounts(search).await?,
        pages: list_links("/accounts", search, after.is_some(), next),
        keys: match is_search {
            true => site.administration.keys_by_prefix(search).await?,
            false => ListPage::default(),
        },
        users: match is_search {
            true => site.people.users_by_email(search).await?,
            false => ListPage::default(),
        },
        plans: plan_names(site),
        form: NewAccountForm {
            name: typed("name"),
            plan: typed("plan"),
            invite_email: typed("invite_email"),
        },
        errors,
    })
}

fn plan_names(site: &ConsoleSite) -> Vec<String> {
    site.administration.plans().names().map(str::to_owned).collect()
}

pub(in crate::web) async fn create(request: OperatorRequest) -> PageResult {
    let (name, plan) = (request.form.get("name").trim(), request.form.get("plan"));
    let email = request.form.filled("invite_email");
    // An account without its invitation would be half of what was asked for.
    if let Some(Err(error)) = email.map(check_email) {
        let errors = people_form_errors(error)?.renamed("email", "invite_email");
        return reply::refused_form(&list_page(&request, errors).await?);
    }
    let created = request.site.administration.create_account(&request.session.actor(), name, plan).await;
    match (created, email) {
        (Ok(created), None) => reply::done(&account_path(&created.name), "account-created"),
        (Ok(created), Some(email)) => invite_to(&request, created.made, Some(email)).await,
        (Err(error), _) => reply::refused_form(&list_page(&request, form_errors(error)?).await?),
    }
}

pub(in crate::web) async fn details(request: OperatorRequest) -> PageResult {
    let account = account_in_path(&request).await?;
    reply::page(&details_page(&request, account, None, FormErrors::default()).await?)
}

async fn account_in_path(request: &OperatorRequest) -> Result<AccountRecord, PageError> {
    Ok(request.site.administration.account(request.path_value("name")).await?)
}

async fn details_page(
    request: &OperatorRequest,
    account: AccountRecord,
    link: Option<ShownLink>,
    errors: FormErrors,
) -> Result<AccountDetailsPage, PageError> {
    let site = &request.site;
    let today = site.usage_today(&account.name, &[]).await?;
    let keys = site.first_keys(&account, ROWS_SHOWN).await?;
    Ok(AccountDetailsPage {
        frame: request.frame(NavigationItem::Accounts, &account.name).await?,
        credits: site.credits_today(&account, usage_sums::total(&today).credits),
        plans: plan_names(site),
        keys: site.key_rows(&account, keys).await?,
        counts: site.administration.account_counts(&account).await?,
        users: site.people.users_of(account.id, "", None, ROWS_SHOWN).await?.rows,
        account,
        invite_email: if link.is_some() { String::new() } else { request.form.get("email").to_owned() },
        link,
        errors,
    })
}

/// The page of an account with what is wrong about one of its forms.
async fn refused(request: &OperatorRequest, account: AccountRecord, errors: FormErrors) -> PageResult {
    reply::refused_form(&details_page(request, account, None, errors).await?)
}

/// The people of an account, page by page.
pub(in crate::web) async fn users(request: OperatorRequest) -> PageResult {
    let (account, people) = (account_in_path(&request).await?, &request.site.people);
    let search = request.query.filled("q").unwrap_or_default();
    let after = request.position(name_position)?;
    let users = people.users_of(account.id, search, after.as_ref(), USERS_SHOWN).await?;
    let next = users.next(|user| name_text(&NamePosition::new(&user.email, user.id)));
    let path = format!("{}/users", account_path(&account.name));
    reply::page(&AccountUsersPage {
        frame: request.frame(NavigationItem::Accounts, "Users").await?,
        name: account.name,
        users: users.rows,
        search: search.to_owned(),
        count: people.count_users(account.id, search).await?,
        pages: list_links(&path, search, after.is_some(), next),
    })
}

pub(in crate::web) async fn change_plan(request: OperatorRequest) -> PageResult {
    let account = account_in_path(&request).await?;
    let (actor, plan) = (request.session.actor(), request.form.get("plan"));
    match request.site.administration.set_plan(&actor, &account.name, plan).await {
        Ok(changed) => reply::changed(&account_path(&account.name), "plan-changed", &changed.effect),
        Err(error) => refused(&request, account, form_errors(error)?).await,
    }
}

pub(in crate::web) async fn suspend(request: OperatorRequest) -> PageResult {
    let account = account_in_path(&request).await?;
    if request.form.get("confirm").trim() != "suspend" {
        return refused(&request, account, FormErrors::field("confirm", "tick the box to confirm")).await;
    }
    let administration = &request.site.administration;
    let suspended = administration.suspend_account(&request.session.actor(), &account.name).await?;
    reply::changed(&account_path(&account.name), "account-suspended", &suspended.effect)
}

pub(in crate::web) async fn resume(request: OperatorRequest) -> PageResult {
    let name = request.path_value("name");
    let resumed = request.site.administration.resume_account(&request.session.actor(), name).await?;
    reply::changed(&account_path(&resumed.name), "account-resumed", &resumed.effect)
}

pub(in crate::web) async fn invite(request: OperatorRequest) -> PageResult {
    let account = account_in_path(&request).await?;
    invite_to(&request, account, request.form.filled("email")).await
}

async fn invite_to(request: &OperatorRequest, account: AccountRecord, email: Option<&str>) -> PageResult {
    let target = InvitationTarget::Account(account.name.clone());
    let invitation = Invitation { email: email.map(str::to_owned), target };
    match request.site.people.create_invitation(&request.session.actor(), &invitation).await {
        Ok(link) => show_link(request, account, link, false, email).await,
        Err(error) => refused(request, account, people_form_errors(error)?).await,
    }
}

pub(in crate::web) async fn reset_password(request: OperatorRequest) -> PageResult {
    let (account, email) = user_in_form(&request).await?;
    let link = request.site.people.create_reset_link(&request.session.actor(), email).await?;
    show_link(&request, account, link, true, Some(email)).await
}

/// The account that the path names, and the email address of the form, if it is that of a user of the account.
async fn user_in_form(request: &OperatorRequest) -> Result<(AccountRecord, &str), PageError> {
    let account = account_in_path(request).await?;
    let email = request.form.get("email");
    match request.site.people.is_user_of(account.id, email).await? {
        true => Ok((account, email)),
        false => Err(PageError::Status(404)),
    }
}

pub(in crate::web) async fn block_user(request: OperatorRequest) -> PageResult {
    let (account, email) = user_in_form(&request).await?;
    if email == request.session.email() {
        return Err(PageError::InvalidValue("You cannot block yourself. Ask another operator.".to_owned()));
    }
    request.site.people.block_user(&request.session.actor(), email).await?;
    reply::done(&account_path(&account.name), "user-blocked")
}

pub(in crate::web) async fn unblock_user(request: OperatorRequest) -> PageResult {
    let (account, email) = user_in_form(&request).await?;
    request.site.people.unblock_user(&request.session.actor(), email).await?;
    reply::done(&account_path(&account.name), "user-unblocked")
}

/// The page of an account with a link that was just made.
async fn show_link(
    request: &OperatorRequest,
    account: AccountRecord,
    link: NewLink,
    is_reset: bool,
    email: Option<&str>,
) -> PageResult {
    let url = format!("{}{}", request.site.url, link.path());
    let link = ShownLink { is_reset, url, email: email.map(str::to_owned), expires_at: link.expires_at };
    reply::page(&details_page(request, account, Some(link), FormErrors::default()).await?)
}
