//! Sign-in, sign-up and the change of a password.

use store::{StoreFailure, StoreTransaction, UserRecord, UserRole, UserStatus};

use super::{ActiveSession, NewSession, People, PeopleError, SignUp, Visitor, actor, email, password};
use crate::administration::{AdministrationError, audit};
use crate::api_key::unix_seconds;

impl People {
    /// Checks a password and begins a session.
    pub async fn sign_in(
        &self,
        email: &str,
        password: &str,
        visitor: &Visitor,
    ) -> Result<NewSession, PeopleError> {
        let email = email::normalised(email).map_err(|_| PeopleError::WrongCredentials)?;
        self.count_attempt(&email, visitor)?;
        let user = self.administration.store().user_with_email(&email).await?;
        let stored = user.as_ref().and_then(|user| user.password_hash.clone());
        let is_right = self.verify(password, stored).await?;
        let Some(user) = user.filter(|user| is_right && user.status == UserStatus::Active) else {
            return Err(PeopleError::WrongCredentials);
        };
        self.attempt_succeeded(&email, visitor);
        let mut change = self.administration.store().begin_change().await?;
        let session = self.add_session(&mut change, &user, visitor).await?;
        self.administration.commit(change).await?;
        Ok(session)
    }

    /// Creates an account and its first user, if everybody may do so.
    pub async fn sign_up(
        &self,
        email: &str,
        password: &str,
        account: &str,
        visitor: &Visitor,
    ) -> Result<NewSession, PeopleError> {
        let SignUp::Open { plan } = &self.sign_up else { return Err(PeopleError::InvitationNeeded) };
        let email = email::normalised(email)?;
        password::check(password, &email)?;
        self.count_attempt(&email, visitor)?;
        let hash = self.hash(password).await?;
        let actor = actor(&email);
        let mut change = self.administration.store().begin_change().await?;
        let account = self.administration.add_account(&mut change, &actor, account, plan).await?;
        let user = new_user(&email, UserRole::Developer, Some(account.id), hash);
        let user = add_user(&mut change, &actor, user).await?;
        let session = self.add_session(&mut change, &user, visitor).await?;
        self.administration.commit(change).await?;
        Ok(session)
    }

    /// Changes the password of a user who repeats the current one, and ends the other sessions.
    pub async fn change_password(
        &self,
        current: &ActiveSession,
        current_password: &str,
        new_password: &str,
        visitor: &Visitor,
    ) -> Result<(), PeopleError> {
        password::check(new_password, current.email())?;
        self.count_attempt(current.email(), visitor)?;
        let user = self.administration.store().user(current.user_id).await?;
        let stored = user.and_then(|user| user.password_hash);
        if !self.verify(current_password, stored).await? {
            return Err(super::invalid("current_password", "is wrong"));
        }
        self.attempt_succeeded(current.email(), visitor);
        let hash = self.hash(new_password).await?;
        let mut change = self.administration.store().begin_change().await?;
        let Some(mut user) = change.user(current.user_id).await? else {
            return Err(PeopleError::WrongCredentials);
        };
        user.password_hash = Some(hash);
        change.update_user(&user).await?;
        change.delete_other_sessions(user.id, &current.session_id).await?;
        change.delete_reset_links(user.id).await?;
        audit::add(&mut change, &current.actor(), "user.password", &user.email, &[]).await?;
        Ok(self.administration.commit(change).await?)
    }

    fn count_attempt(&self, email: &str, visitor: &Visitor) -> Result<(), PeopleError> {
        let now = u64::try_from(unix_seconds()).unwrap_or_default();
        let counted = self.throttle.begin(email, visitor.address, now);
        counted.map_err(|wait_s| PeopleError::TooManyAttempts { wait_s })
    }

    pub(super) fn attempt_succeeded(&self, email: &str, visitor: &Visitor) {
        let now = u64::try_from(unix_seconds()).unwrap_or_default();
        self.throttle.succeeded(email, visitor.address, now);
    }

    pub(super) fn count_attempt_from(&self, visitor: &Visitor) -> Result<(), PeopleError> {
        let now = u64::try_from(unix_seconds()).unwrap_or_default();
        let counted = self.throttle.begin_from(visitor.address, now);
        counted.map_err(|wait_s| PeopleError::TooManyAttempts { wait_s })
    }

    async fn verify(&self, password: &str, stored: Option<String>) -> Result<bool, PeopleError> {
        let password = password.to_owned();
        self.hasher.run(move || password::verify(&password, stored.as_deref())).await
    }

    pub(super) async fn hash(&self, password: &str) -> Result<String, PeopleError> {
        let password = password.to_owned();
        self.hasher.run(move || password::hash(&password)).await?
    }
}

pub(super) fn new_user(
    email: &str,
    role: UserRole,
    account_id: Option<i64>,
    password_hash: String,
) -> UserRecord {
    UserRecord {
        id: 0,
        email: email.to_owned(),
        role,
        account_id,
        password_hash: Some(password_hash),
        status: UserStatus::Active,
        created_at: unix_seconds(),
    }
}

/// Adds a user to a change; returns the row with its id.
pub(super) async fn add_user(
    change: &mut StoreTransaction,
    actor: &str,
    mut user: UserRecord,
) -> Result<UserRecord, PeopleError> {
    user.id = match change.insert_user(&user).await {
        Err(StoreFailure::AlreadyExists) => {
            return Err(AdministrationError::AlreadyExists { what: "user", name: user.email }.into());
        }
        inserted => inserted?,
    };
    audit::add(change, actor, "user.create", &user.email, &[("role", user.role.name())]).await?;
    Ok(user)
}
