//! The people who use the console: who may sign in, and with what. It is the one place of these rules.
//!
//! Every change is one transaction with its entry in the audit log. Passwords are stored as argon2id hashes; tokens of
//! sessions and links only as keyed hashes, so a copy of the store signs nobody in.

mod attempt_throttle; // slows guesses down
mod blocking; // users who may not sign in
mod email; // addresses of people
mod links; // invitations, new passwords, new operators
mod password; // the rules and the hashes of passwords
mod password_hasher; // threads that hash passwords
mod sessions; // signed-in browsers
mod sign_in; // sign-in, sign-up and the change of a password
mod token; // random tokens

use std::net::IpAddr;
use std::sync::Arc;

use resources::{RepeatedWarning, Supervisor, counted};
use store::{ListPage, ListedUser, NamePosition, StoreFailure, UserRole, UserStatus};
use subtle::ConstantTimeEq;

use self::attempt_throttle::AttemptThrottle;
pub use self::email::check_email;
pub use self::links::{Invitation, InvitationTarget, LinkForm, LinkSummary, NewLink};
pub use self::password::PASSWORD_CHARACTERS_MIN;
use self::password_hasher::PasswordHasher;
pub use self::sessions::{ActiveSession, NewSession, SessionSummary};
use crate::administration::{Administration, AdministrationError};
use crate::policy::USERS_FOUND_MAX;

/// Why somebody was not let in, or a change was not made.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PeopleError {
    /// It does not say which of the two is wrong, so that nobody learns who has an account here.
    #[error("the email address or the password is wrong")]
    WrongCredentials,
    #[error("too many attempts; try again in {}", counted(*.wait_s, "second"))]
    TooManyAttempts { wait_s: u64 },
    #[error("too many people are signing in; try again in a few seconds")]
    Busy,
    #[error("this link has been used or has expired; ask for a new one")]
    InvalidLink,
    #[error("this session has ended; sign in again")]
    SessionEnded,
    #[error("new people need an invitation")]
    InvitationNeeded,
    #[error(transparent)]
    Change(#[from] AdministrationError),
}

impl From<StoreFailure> for PeopleError {
    fn from(failure: StoreFailure) -> Self {
        Self::Change(failure.into())
    }
}

fn invalid(field: &'static str, message: impl Into<String>) -> PeopleError {
    PeopleError::Change(AdministrationError::Invalid { field, message: message.into() })
}

/// Who may create an account.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SignUp {
    /// People who have an invitation.
    Invitation,
    /// Everybody; the new account gets this plan.
    Open { plan: String },
}

/// Where a request comes from, as the list of sessions shows it.
#[derive(Clone, Debug)]
pub struct Visitor {
    pub address: IpAddr,
    /// The browser as it describes itself.
    pub browser: String,
}

/// A user as operators see them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UserSummary {
    pub id: i64,
    pub email: String,
    pub is_operator: bool,
    pub is_blocked: bool,
    pub created_at: i64,
    /// When one of their sessions was used last.
    pub last_seen_at: Option<i64>,
}

impl From<ListedUser> for UserSummary {
    fn from(ListedUser { user, last_seen_at }: ListedUser) -> Self {
        Self {
            id: user.id,
            is_operator: user.role == UserRole::Operator,
            is_blocked: user.status == UserStatus::Blocked,
            created_at: user.created_at,
            last_seen_at,
            email: user.email,
        }
    }
}

/// Everything about the people who use the console.
#[derive(Debug)]
pub struct People {
    administration: Arc<Administration>,
    sign_up: SignUp,
    hasher: PasswordHasher,
    throttle: AttemptThrottle,
    /// Uses of sessions that could not be recorded.
    unrecorded_uses: RepeatedWarning,
}

impl People {
    pub fn new(administration: Arc<Administration>, sign_up: SignUp, supervisor: Supervisor) -> Self {
        Self {
            administration,
            sign_up,
            hasher: PasswordHasher::new(supervisor),
            throttle: AttemptThrottle::default(),
            unrecorded_uses: RepeatedWarning::default(),
        }
    }

    /// Whether everybody may create an account.
    pub fn is_sign_up_open(&self) -> bool {
        matches!(self.sign_up, SignUp::Open { .. })
    }

    /// Whether any operator can sign in.
    pub async fn has_operator(&self) -> Result<bool, PeopleError> {
        Ok(self.administration.store().has_operator().await?)
    }

    /// The next people of an account whose email addresses begin with `search`, in the order of these addresses.
    pub async fn users_of(
        &self,
        account_id: i64,
        search: &str,
        after: Option<&NamePosition<i64>>,
        count: u32,
    ) -> Result<ListPage<UserSummary>, PeopleError> {
        let store = self.administration.store();
        let page = store.users_by_email(Some(account_id), search, after, i64::from(count)).await?;
        Ok(page.map(UserSummary::from))
    }

    /// How many people of an account have email addresses that begin with `search`.
    pub async fn count_users(&self, account_id: i64, search: &str) -> Result<u64, PeopleError> {
        let count = self.administration.store().count_users(account_id, search).await?;
        Ok(u64::try_from(count).unwrap_or(0))
    }

    /// The first people of all accounts whose email addresses begin with `search`, with the names of their accounts.
    pub async fn users_by_email(
        &self,
        search: &str,
    ) -> Result<ListPage<(UserSummary, Option<String>)>, PeopleError> {
        let store = self.administration.store();
        let page = store.users_by_email(None, search, None, USERS_FOUND_MAX).await?;
        let mut rows = Vec::new();
        for user in page.rows {
            let account = match user.user.account_id {
                Some(id) => store.account(id).await?.map(|account| account.name),
                None => None,
            };
            rows.push((user.into(), account));
        }
        Ok(ListPage { rows, has_more: page.has_more })
    }

    /// Whether somebody with this email address belongs to an account.
    pub async fn is_user_of(&self, account_id: i64, email: &str) -> Result<bool, PeopleError> {
        let user = self.administration.store().user_with_email(email).await?;
        Ok(user.is_some_and(|user| user.account_id == Some(account_id)))
    }

    /// The token that every form of a browser must repeat; `cookie` is a random text that only that browser has.
    pub async fn form_token(&self, cookie: &str) -> Result<String, PeopleError> {
        let hash_key = self.administration.hash_key().await?;
        Ok(const_hex::encode(hash_key.hash_token("form", cookie.as_bytes())))
    }

    /// Whether a form repeats the token of the browser, compared in constant time.
    pub async fn is_form_token(&self, cookie: &str, given: &str) -> Result<bool, PeopleError> {
        let expected = self.form_token(cookie).await?;
        Ok(expected.as_bytes().ct_eq(given.as_bytes()).into())
    }
}

/// A new random text for a cookie or a link.
pub fn random_token() -> Result<String, PeopleError> {
    token::new()
}

fn no_user(email: &str) -> PeopleError {
    AdministrationError::NotFound { what: "user", name: email.to_owned() }.into()
}

/// How the audit log names a user.
fn actor(email: &str) -> String {
    format!("user:{email}")
}
