//! Sign-in, sign-up and the change of a password.

use resources::{unix_seconds, unix_time};
use store::{StoreFailure, StoreTransaction, UserRecord, UserRole, UserStatus};

use super::{ActiveSession, NewSession, People, PeopleError, SignUp, Visitor, actor, email, password};
use crate::administration::{AdministrationError, audit};

impl People {
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
        let Some(user) = user.filter(|_| is_right) else { return Err(PeopleError::WrongCredentials) };
        let session = self.begin_session(&user, visitor).await?;
        self.attempt_succeeded(&email, visitor);
        Ok(session)
    }

    /// Begins a session of a user whose password was verified. The user may have got another password since, or been blocked.
    async fn begin_session(
        &self,
        verified: &UserRecord,
        visitor: &Visitor,
    ) -> Result<NewSession, PeopleError> {
        let mut change = self.administration.store().begin_change().await?;
        let user = change.user(verified.id).await?;
        let Some(user) = user.filter(|user| has_verified_password(user, verified)) else {
            return Err(PeopleError::WrongCredentials);
        };
        let session = self.add_session(&mut change, &user, visitor).await?;
        change.commit().await?;
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
        change.commit().await?;
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
        let verified = user.ok_or(PeopleError::SessionEnded)?;
        if !self.verify(current_password, verified.password_hash.clone()).await? {
            return Err(super::invalid("current_password", "is wrong"));
        }
        let hash = self.hash(new_password).await?;
        self.replace_password(current, &verified, hash).await?;
        self.attempt_succeeded(current.email(), visitor);
        Ok(())
    }

    /// Replaces a password that was verified. The user may have got another one since, or the session may have ended.
    async fn replace_password(
        &self,
        current: &ActiveSession,
        verified: &UserRecord,
        hash: String,
    ) -> Result<(), PeopleError> {
        let mut change = self.administration.store().begin_change().await?;
        if !change.has_session(current.user_id, &current.session_id).await? {
            return Err(PeopleError::SessionEnded);
        }
        let user = change.user(current.user_id).await?;
        let Some(mut user) = user.filter(|user| has_verified_password(user, verified)) else {
            return Err(super::invalid("current_password", "is wrong"));
        };
        user.password_hash = Some(hash);
        change.update_user(&user).await?;
        change.delete_other_sessions(user.id, &current.session_id).await?;
        change.delete_reset_links(user.id).await?;
        audit::add(&mut change, &current.actor(), "user.password", &user.email, &[]).await?;
        change.commit().await?;
        Ok(())
    }

    fn count_attempt(&self, email: &str, visitor: &Visitor) -> Result<(), PeopleError> {
        let now = unix_time().as_secs();
        let counted = self.throttle.begin(email, visitor.address, now);
        counted.map_err(|wait_s| PeopleError::TooManyAttempts { wait_s })
    }

    pub(super) fn attempt_succeeded(&self, email: &str, visitor: &Visitor) {
        let now = unix_time().as_secs();
        self.throttle.succeeded(email, visitor.address, now);
    }

    pub(super) fn count_attempt_from(&self, visitor: &Visitor) -> Result<(), PeopleError> {
        let now = unix_time().as_secs();
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

/// Whether a user may sign in with the password that was verified against an earlier read of the user.
fn has_verified_password(user: &UserRecord, verified: &UserRecord) -> bool {
    user.status == UserStatus::Active && user.password_hash == verified.password_hash
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

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use store::{Store, StoreLocation};
    use tempfile::TempDir;

    use resources::Supervisor;

    use super::*;
    use crate::administration::Administration;
    use crate::people::LinkForm;
    use crate::plans::Plans;

    const EMAIL: &str = "ada@example.com";

    /// Somebody who has signed up, and what was read of them for a password that is being verified.
    struct SignedUp {
        people: People,
        verified: UserRecord,
        session: ActiveSession,
        _folder: TempDir,
    }

    async fn signed_up() -> SignedUp {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::new(StoreLocation::in_data_dir(folder.path()));
        let administration = Arc::new(Administration::new(store, Plans::default()));
        let people =
            People::new(administration, SignUp::Open { plan: "developer".to_owned() }, Supervisor::default());
        let new = people.sign_up(EMAIL, "correct horse", "acme", &visitor()).await.unwrap();
        let session = people.session(&new.token, &visitor()).await.unwrap().unwrap();
        let verified = people.administration.store().user_with_email(EMAIL).await.unwrap().unwrap();
        SignedUp { people, verified, session, _folder: folder }
    }

    fn visitor() -> Visitor {
        Visitor { address: [192, 0, 2, 1].into(), browser: String::new() }
    }

    impl SignedUp {
        /// The user gets a new password by a link.
        async fn reset(&self) {
            let link = self.people.create_reset_link("test", EMAIL).await.unwrap();
            let form = LinkForm { password: "battery staple".to_owned(), ..LinkForm::default() };
            self.people.use_link(&link.token, &form, &visitor()).await.unwrap();
        }

        async fn set_status(&self, status: UserStatus) {
            let mut change = self.people.administration.store().begin_change().await.unwrap();
            let mut user = change.user(self.verified.id).await.unwrap().unwrap();
            user.status = status;
            change.update_user(&user).await.unwrap();
            change.commit().await.unwrap();
        }
    }

    /// Somebody who knew the old password was let in by it if the password was replaced while theirs was being hashed.
    #[tokio::test]
    async fn a_password_that_was_replaced_while_it_was_verified_begins_no_session() {
        let ada = signed_up().await;
        ada.people.begin_session(&ada.verified, &visitor()).await.unwrap();
        ada.reset().await;
        let late = ada.people.begin_session(&ada.verified, &visitor()).await;
        assert_eq!(late.unwrap_err(), PeopleError::WrongCredentials);
        let sessions = ada.people.administration.store().sessions_of(ada.verified.id).await.unwrap();
        assert_eq!(sessions.len(), 1, "only that of the link");
    }

    #[tokio::test]
    async fn a_user_who_was_blocked_while_the_password_was_verified_stays_out() {
        let ada = signed_up().await;
        ada.set_status(UserStatus::Blocked).await;
        let late = ada.people.begin_session(&ada.verified, &visitor()).await;
        assert_eq!(late.unwrap_err(), PeopleError::WrongCredentials);
    }

    /// Whoever knew the old password, and had a session, could undo a new password that was set at the same time.
    #[tokio::test]
    async fn a_password_is_not_replaced_by_a_session_that_has_ended_or_with_an_old_password() {
        let ada = signed_up().await;
        let replace = async || {
            ada.people.replace_password(&ada.session, &ada.verified, "$argon2id$of-eve".to_owned()).await
        };
        let stored = async || {
            let user = ada.people.administration.store().user(ada.verified.id).await.unwrap().unwrap();
            user.password_hash.unwrap()
        };
        let visitor = visitor();
        let change = ada.people.change_password(&ada.session, "correct horse", "battery staple", &visitor);
        change.await.unwrap();
        let chosen = stored().await;
        let old = replace().await.unwrap_err();
        let is_wrong = |error: &PeopleError| {
            matches!(
                error,
                PeopleError::Change(AdministrationError::Invalid { field: "current_password", .. })
            )
        };
        assert!(is_wrong(&old), "{old}");
        assert_eq!(stored().await, chosen);
        ada.reset().await;
        let chosen = stored().await;
        assert_eq!(replace().await.unwrap_err(), PeopleError::SessionEnded);
        assert_eq!(stored().await, chosen);
    }
}
