//! The accounts, for operators.

use askama::Template;
use callers::administration::{AccountCounts, AccountRecord, AccountStatus, FoundKey, ListPage};
use callers::people::UserSummary;

use super::credits_today::CreditsToday;
use super::keys::{KeyRow, KeyRowState};
use super::list_pages::ListLinks;
use super::usage::{UsageSum, percent_encoded};
use super::{FormErrors, PageFrame, format};

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
    /// The search text; empty if all accounts are listed.
    pub(crate) search: String,
    /// How many accounts there are on all pages.
    pub(crate) count: u64,
    pub(crate) pages: ListLinks,
    /// Keys of all accounts that begin with what was searched for.
    pub(crate) keys: ListPage<FoundKey>,
    /// People of all accounts whose email addresses begin with it, with the names of their accounts.
    pub(crate) users: ListPage<(UserSummary, Option<String>)>,
    pub(crate) plans: Vec<String>,
    pub(crate) form: NewAccountForm,
    pub(crate) errors: FormErrors,
}

impl AccountListPage {
    fn path_of(&self, account: &str) -> String {
        account_path(account)
    }
}

/// The texts that were typed into the form of a new account.
#[derive(Clone, Debug, Default)]
pub(crate) struct NewAccountForm {
    pub(crate) name: String,
    pub(crate) plan: String,
    pub(crate) invite_email: String,
}

#[derive(Clone, Debug)]
pub(crate) struct AccountListRow {
    pub(crate) account: AccountRecord,
    pub(crate) counts: AccountCounts,
    pub(crate) today: UsageSum,
}

/// `GET /accounts/{name}`.
///
/// Its forms post to `/accounts/{name}/plan` (`plan`), `/suspend` (`confirm` = `suspend`), `/resume`, `/block` and `/unblock`
/// (`email`), `/invite` (`email`, may be empty) and `/reset` (`email`). The answer to the last two is this page with `link`.
#[derive(Template)]
#[template(path = "account.html")]
pub(crate) struct AccountDetailsPage {
    pub(crate) frame: PageFrame,
    pub(crate) account: AccountRecord,
    pub(crate) counts: AccountCounts,
    pub(crate) credits: CreditsToday,
    pub(crate) plans: Vec<String>,
    /// The first keys of the account.
    pub(crate) keys: Vec<KeyRow>,
    /// The first users of the account.
    pub(crate) users: Vec<UserSummary>,
    /// A link that was just made.
    pub(crate) link: Option<ShownLink>,
    /// The texts that were typed into the form of an invitation.
    pub(crate) invite_email: String,
    pub(crate) errors: FormErrors,
}

impl AccountDetailsPage {
    /// The path of the account, to which the forms add their action.
    fn path(&self) -> String {
        account_path(&self.account.name)
    }

    /// The path of the list of its keys.
    fn keys_path(&self) -> String {
        format!("{}/keys", self.path())
    }

    /// The path of the changes of the account.
    fn audit_path(&self) -> String {
        format!("/audit?q={}", percent_encoded(&self.account.name))
    }
}

/// `GET /accounts/{name}/users?q=&after=`.
#[derive(Template)]
#[template(path = "account_users.html")]
pub(crate) struct AccountUsersPage {
    pub(crate) frame: PageFrame,
    pub(crate) name: String,
    /// One page of users.
    pub(crate) users: Vec<UserSummary>,
    /// The search text; empty if all users are listed.
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
