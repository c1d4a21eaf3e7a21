//! The accounts, for operators.

use askama::Template;

use super::credits_today::CreditsToday;
use super::keys::{KeyRow, KeyRowState, split_keys};
use super::usage::percent_encoded;
use super::{FormErrors, PageFrame, format};

/// `GET /accounts`.
///
/// The form posts `name`, `plan` and `invite_email` to `/accounts`. With an email, the answer is the page of the new account
/// with its invitation.
#[derive(Template)]
#[template(path = "accounts.html")]
pub(crate) struct AccountListPage {
    pub(crate) frame: PageFrame,
    pub(crate) accounts: Vec<AccountListRow>,
    /// The address of the next page of accounts.
    pub(crate) next_href: Option<String>,
    /// The names of all plans.
    pub(crate) plans: Vec<String>,
    pub(crate) form: NewAccountForm,
    pub(crate) errors: FormErrors,
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
    pub(crate) keys: Vec<KeyRow>,
    pub(crate) users: Vec<UserRow>,
    /// A link that was just made.
    pub(crate) link: Option<ShownLink>,
    /// What was typed into the form of an invitation.
    pub(crate) invite_email: String,
    pub(crate) errors: FormErrors,
}

impl AccountDetailsPage {
    /// How many keys are neither revoked nor expired.
    fn valid_keys(&self) -> usize {
        let is_valid = |key: &&KeyRow| !matches!(key.state, KeyRowState::Expired | KeyRowState::Revoked);
        self.keys.iter().filter(is_valid).count()
    }

    fn keys_in_table(&self) -> &[KeyRow] {
        split_keys(&self.keys).0
    }

    fn further_keys(&self) -> &[KeyRow] {
        split_keys(&self.keys).1
    }

    /// The path of the account, to which the forms add their action.
    fn path(&self) -> String {
        format!("/accounts/{}", percent_encoded(&self.name))
    }
}

impl AccountListRow {
    fn path(&self) -> String {
        format!("/accounts/{}", percent_encoded(&self.name))
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
