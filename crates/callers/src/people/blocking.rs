//! Users who may not sign in any more, until an operator lets them in again.

use store::UserStatus;

use super::{People, PeopleError, email, no_user};
use crate::administration::audit;

impl People {
    /// Keeps a user out of the console: all sessions and links for a new password end, and no password is accepted. The keys
    /// of the account go on working.
    pub async fn block_user(&self, actor: &str, email: &str) -> Result<(), PeopleError> {
        self.set_user_status(actor, email, UserStatus::Blocked, "user.block").await
    }

    /// Lets a blocked user sign in again, with the password that they had.
    pub async fn unblock_user(&self, actor: &str, email: &str) -> Result<(), PeopleError> {
        self.set_user_status(actor, email, UserStatus::Active, "user.unblock").await
    }

    async fn set_user_status(
        &self,
        actor: &str,
        email: &str,
        status: UserStatus,
        action: &str,
    ) -> Result<(), PeopleError> {
        let email = email::normalised(email)?;
        let mut change = self.administration.store().begin_change().await?;
        let mut user = change.user_with_email(&email).await?.ok_or_else(|| no_user(&email))?;
        user.status = status;
        change.update_user(&user).await?;
        if status == UserStatus::Blocked {
            change.delete_other_sessions(user.id, "").await?;
            change.delete_reset_links(user.id).await?;
        }
        audit::add(&mut change, actor, action, &email, &[]).await?;
        change.commit().await?;
        Ok(())
    }
}
