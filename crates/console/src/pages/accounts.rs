//! The accounts, for operators.

use askama::Template;

use super::credits_today::CreditsToday;
use super::keys::{KeyRow, KeyRowState};
use super::list_pages::ListLinks;
use super::usage::percent_encoded;
use super::{FormErrors, PageFrame, format};

/// The path of an account.
pub(crate) fn account_path(name: &str) -> String {
    format!("/accounts/{}", percent_encoded(name))
}

/// `GET /accounts?q=&after=`.
///
/// The form posts `name`, `plan` and `invite_email` to `/accounts`. With an email, the answer is the page of the new account
/// with its invitation.
#[derive(Template)]
#[template(path = "accounts.html")]
pub(crate) struct AccountListPage {
    pub(crate) frame: PageFrame,
    pub(crate) accounts: Vec<AccountListRow>,
    /// What was searched for; empty if all accounts are listed.
    pub(crate) search: String,
    /// How many accounts there are on all pages.
    pub(crate) count: u64,
    pub(crate) pages: ListLinks,
    /// Keys of all accounts that begin with what was searched for.
    pub(crate) keys: FoundRows<FoundKeyRow>,
    /// People of all accounts whose email addresses begin with it.
    pub(crate) users: FoundRows<FoundUserRow>,
    /// The names of all plans.
    pub(crate) plans: Vec<String>,
    pub(crate) form: NewAccountForm,
    pub(crate) errors: FormErrors,
}

/// The first rows that a search has found.
#[derive(Clone, Debug)]
pub(crate) struct FoundRows<T> {
    pub(crate) rows: Vec<T>,
    /// Whether there are more, which a longer search would show.
    pub(crate) has_more: bool,
}

impl<T> Default for FoundRows<T> {
    fn default() -> Self {
        Self { rows: Vec::new(), has_more: false }
    }
}

/// A key that a search among all accounts has found.
#[derive(Clone, Debug)]
pub(crate) struct FoundKeyRow {
    pub(crate) account: String,
    pub(crate) id: String,
    pub(crate) name: String,
    pub(crate) prefix: String,
    pub(crate) state: KeyRowState,
}

/// A user that a search among all accounts has found.
#[derive(Clone, Debug)]
pub(crate) struct FoundUserRow {
    pub(crate) email: String,
    /// `None` for an operator without an account.
    pub(crate) account: Option<String>,
}

impl AccountListPage {
    fn path_of(&self, account: &str) -> String {
        account_path(account)
    }
}

/// What was typed into the form of a new account.
#[derive(Clone, Debug, Default)]
pub(crate) struct NewAccountForm {
    pub(crate) name: String,
    pub(crate) plan: String,
    pub(crate) invite_email: String,
}

/// An account in the list.
#[derive(Clone, Debug)]
pub(crate) struct AccountListRow {
    pub(crate) name: String,
    pub(crate) plan: String,
    pub(crate) is_suspended: bool,
    pub(crate) created_at: i64,
    /// Active keys.
    pub(crate) keys: u64,
    pub(crate) users: u64,
    pub(crate) calls_today: u64,
    pub(crate) credits_today: u64,
}

/// `GET /accounts/{name}`.
///
/// Its forms post to `/accounts/{name}/plan` (`plan`), `/suspend` (`confirm` = `suspend`), `/resume`, `/block` and `/unblock`
/// (`email`), `/invite` (`email`, may be empty) and `/reset` (`email`). The answer to the last two is this page with `link`.
#[derive(Template)]
#[template(path = "account.html")]
pub(crate) struct AccountDetailsPage {
    pub(crate) frame: PageFrame,
    pub(crate) name: String,
    pub(crate) is_suspended: bool,
    pub(crate) created_at: i64,
    /// Contains the plan of the account.
    pub(crate) credits: CreditsToday,
    /// The names of all plans.
    pub(crate) plans: Vec<String>,
    /// The first keys of the account.
    pub(crate) keys: Vec<KeyRow>,
    /// Keys that are neither revoked nor expired.
    pub(crate) valid_keys: u64,
    pub(crate) all_keys: u64,
    /// The first users of the account.
    pub(crate) users: Vec<UserRow>,
    pub(crate) all_users: u64,
    /// A link that was just made.
    pub(crate) link: Option<ShownLink>,
    /// What was typed into the form of an invitation.
    pub(crate) invite_email: String,
    pub(crate) errors: FormErrors,
}

impl AccountDetailsPage {
    /// The path of the account, to which the forms add their action.
    fn path(&self) -> String {
        account_path(&self.name)
    }

    /// The path of the list of its keys.
    fn keys_path(&self) -> String {
        format!("{}/keys", self.path())
    }

    /// The path of the changes of the account.
    fn audit_path(&self) -> String {
        format!("/audit?q={}", percent_encoded(&self.name))
    }
}

/// `GET /accounts/{name}/users?q=&after=`.
#[derive(Template)]
#[template(path = "account_users.html")]
pub(crate) struct AccountUsersPage {
    pub(crate) frame: PageFrame,
    /// The name of the account.
    pub(crate) name: String,
    /// One page of users.
    pub(crate) users: Vec<UserRow>,
    /// What was searched for; empty if all users are listed.
    pub(crate) search: String,
    /// How many users there are on all pages.
    pub(crate) count: u64,
    pub(crate) pages: ListLinks,
}

impl AccountUsersPage {
    /// The path of the account, to which the forms add their action.
    fn path(&self) -> String {
        account_path(&self.name)
    }

    /// The path of this list.
    fn users_path(&self) -> String {
        format!("{}/users", self.path())
    }
}

impl AccountListRow {
    fn path(&self) -> String {
        account_path(&self.name)
    }
}

/// A user of an account.
#[derive(Clone, Debug)]
pub(crate) struct UserRow {
    pub(crate) email: String,
    pub(crate) is_operator: bool,
    pub(crate) is_blocked: bool,
    /// Whether it is the operator who sees the page.
    pub(crate) is_self: bool,
    pub(crate) created_at: i64,
    pub(crate) last_seen_at: Option<i64>,
}

/// A one-time link, which is shown once.
///
/// It has no `Debug`, because the link is a credential.
pub(crate) struct ShownLink {
    pub(crate) is_reset: bool,
    pub(crate) url: String,
    /// The email that it is for, if it is for one.
    pub(crate) email: Option<String>,
    pub(crate) expires_at: i64,
}
