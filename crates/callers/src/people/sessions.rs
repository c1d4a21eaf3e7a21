//! Signed-in browsers.

use std::fmt;
use std::time::Instant;

use resources::unix_seconds;
use store::{SessionRecord, StoreTransaction, UserRecord, UserRole, UserStatus};

use super::{People, PeopleError, Visitor, actor, token};
use crate::administration::{AccountRecord, AdministrationError, audit};
use crate::policy::{
    BROWSER_CHARACTERS_MAX, SESSION_AGE_S, SESSION_IDLE_S, SESSION_USE_RECORDED_S, SESSIONS_MAX,
};

/// A new session, with the token for the cookie.
pub struct NewSession {
    pub token: String,
    pub email: String,
}

impl fmt::Debug for NewSession {
    // The token is omitted, because it is a credential.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NewSession").field("email", &self.email).finish_non_exhaustive()
    }
}

/// A browser in which a user is signed in: proof that a request is theirs.
#[derive(Clone, Debug)]
pub struct ActiveSession {
    pub(super) session_id: String,
    pub(super) user_id: i64,
    email: String,
    is_operator: bool,
    account: Option<AccountRecord>,
}

impl ActiveSession {
    pub fn email(&self) -> &str {
        &self.email
    }

    pub fn is_operator(&self) -> bool {
        self.is_operator
    }

    /// The account of the user. Developers always have one.
    pub fn account(&self) -> Option<&AccountRecord> {
        self.account.as_ref()
    }

    /// How the audit log names the user.
    pub fn actor(&self) -> String {
        actor(&self.email)
    }
}

/// A session as its user sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionSummary {
    pub id: String,
    pub browser: String,
    pub address: String,
    pub created_at: i64,
    pub last_used_at: i64,
    /// Whether it is the session that asks.
    pub is_current: bool,
}

impl People {
    /// The session with a token, if it is valid. Records that it was used, if the store can be written.
    pub async fn session(
        &self,
        token: &str,
        visitor: &Visitor,
    ) -> Result<Option<ActiveSession>, PeopleError> {
        let Some((session, user)) = self.valid_session(token).await? else { return Ok(None) };
        let (now, store) = (unix_seconds(), self.administration.store());
        let account = match user.account_id {
            Some(id) => store.account(id).await?,
            None => None,
        };
        if now - session.last_used_at >= SESSION_USE_RECORDED_S {
            let recorded = store.record_session_use(&session.id, &visitor.address.to_string(), now).await;
            // The pages of a store that is read-only can still be shown.
            if let Err(error) = recorded
                && let Some(uses) = self.unrecorded_uses.count(Instant::now())
            {
                tracing::warn!(%error, uses, "cannot record the use of a session of the console");
            }
        }
        Ok(Some(ActiveSession {
            session_id: session.id,
            user_id: user.id,
            is_operator: user.role == UserRole::Operator,
            email: user.email,
            account,
        }))
    }

    /// Whether a token is that of an operator's valid session. No use is recorded, so an open live view does not keep the
    /// session from expiring.
    pub async fn is_operator_session(&self, token: &str) -> Result<bool, PeopleError> {
        let session = self.valid_session(token).await?;
        Ok(session.is_some_and(|(_, user)| user.role == UserRole::Operator))
    }

    /// The session with a token and its user, if both are valid.
    async fn valid_session(&self, token: &str) -> Result<Option<(SessionRecord, UserRecord)>, PeopleError> {
        if !token::is_token(token) {
            return Ok(None);
        }
        let (now, store) = (unix_seconds(), self.administration.store());
        let hash = self.administration.hash_key().await?.hash_token("session", token.as_bytes());
        let Some(session) = store.session_with_hash(&hash).await? else { return Ok(None) };
        if !is_alive(&session, now) {
            return Ok(None);
        }
        let user = store.user(session.user_id).await?.filter(|user| user.status == UserStatus::Active);
        Ok(user.map(|user| (session, user)))
    }

    /// The valid sessions of a user, the one that was used last first.
    pub async fn sessions(&self, current: &ActiveSession) -> Result<Vec<SessionSummary>, PeopleError> {
        let now = unix_seconds();
        let sessions = self.administration.store().sessions_of(current.user_id).await?;
        let alive = sessions.into_iter().filter(|session| is_alive(session, now));
        let summary = |session: SessionRecord| SessionSummary {
            is_current: session.id == current.session_id,
            id: session.id,
            browser: session.browser,
            address: session.address,
            created_at: session.created_at,
            last_used_at: session.last_used_at,
        };
        Ok(alive.map(summary).collect())
    }

    pub async fn end_session(&self, current: &ActiveSession, id: &str) -> Result<(), PeopleError> {
        let mut change = self.administration.store().begin_change().await?;
        if !change.delete_session(current.user_id, id).await? {
            let not_found = AdministrationError::NotFound { what: "session", name: id.to_owned() };
            return Err(not_found.into());
        }
        audit::add(&mut change, &current.actor(), "session.end", &current.email, &[("session", id)]).await?;
        change.commit().await?;
        Ok(())
    }

    /// Ends the session that asks, if it has not ended since: a new password ends it, too.
    pub async fn sign_out(&self, current: &ActiveSession) -> Result<(), PeopleError> {
        match self.end_session(current, &current.session_id).await {
            Err(PeopleError::Change(AdministrationError::NotFound { .. })) => Ok(()),
            ended => ended,
        }
    }

    /// Adds a session to a change, and deletes those that have ended.
    pub(super) async fn add_session(
        &self,
        change: &mut StoreTransaction,
        user: &UserRecord,
        visitor: &Visitor,
    ) -> Result<NewSession, PeopleError> {
        let (token, now) = (token::new()?, unix_seconds());
        let hash = change.hash_key().await?.hash_token("session", token.as_bytes());
        let is_visible = |letter: &char| !letter.is_control();
        let session = SessionRecord {
            id: token::new_session_id()?,
            user_id: user.id,
            hash,
            browser: visitor.browser.chars().filter(is_visible).take(BROWSER_CHARACTERS_MAX).collect(),
            address: visitor.address.to_string(),
            created_at: now,
            last_used_at: now,
        };
        change.delete_old_sessions(now - SESSION_IDLE_S, now - SESSION_AGE_S).await?;
        change.insert_session(&session).await?;
        change.delete_surplus_sessions(user.id, SESSIONS_MAX).await?;
        let details = [("address", &*session.address)];
        audit::add(change, &actor(&user.email), "user.sign_in", &user.email, &details).await?;
        Ok(NewSession { token, email: user.email.clone() })
    }
}

fn is_alive(session: &SessionRecord, now: i64) -> bool {
    now - session.last_used_at < SESSION_IDLE_S && now - session.created_at < SESSION_AGE_S
}
