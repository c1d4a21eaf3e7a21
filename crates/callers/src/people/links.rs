//! Links that are valid once: invitations, new passwords, and the sign-in of an operator.

use std::fmt;

use store::{LinkPurpose, LinkRecord, StoreTransaction, UserRecord, UserRole};

use super::sign_in::{add_user, new_user};
use super::{NewSession, People, PeopleError, Visitor, actor, email, invalid, password, token};
use crate::administration::{AdministrationError, audit, check_name};
use crate::api_key::unix_seconds;

/// How long an invitation is valid.
const INVITATION_S: i64 = 7 * 24 * 60 * 60;

/// How long the links are valid with which a password is set: whoever has one is signed in by it.
const PASSWORD_LINK_S: i64 = 24 * 60 * 60;

/// Whom an invitation is for, and what it leads to.
#[derive(Clone, Debug, Default)]
pub struct Invitation {
    /// The only address that may be used; anybody's if there is none.
    pub email: Option<String>,
    /// The name of the account.
    pub account: String,
    /// The plan of an account that does not exist yet; without a plan the account must exist.
    pub plan: Option<String>,
}

/// A link that was just created.
pub struct NewLink {
    /// The last part of the path of the link, which is a credential.
    pub token: String,
    pub expires_at: i64,
}

impl fmt::Debug for NewLink {
    // The token is omitted, because it is a credential.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NewLink").field("expires_at", &self.expires_at).finish_non_exhaustive()
    }
}

impl NewLink {
    /// The path of the link below the address of the console.
    pub fn path(&self) -> String {
        format!("/link/{}", self.token)
    }
}

/// A valid link as the person who opens it sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LinkSummary {
    /// Joins an account; the address is fixed if the invitation names it.
    Invitation { email: Option<String>, account: String },
    /// Sets a new password of this user.
    Reset { email: String },
    /// Makes an operator.
    Operator,
}

impl People {
    pub async fn create_invitation(
        &self,
        actor: &str,
        invitation: &Invitation,
    ) -> Result<NewLink, PeopleError> {
        check_name("account", &invitation.account)?;
        let email = invitation.email.as_deref().map(email::normalised).transpose()?;
        let plan = match &invitation.plan {
            Some(plan) => Some(self.administration.plan(plan)?.name.clone()),
            None => None,
        };
        let mut change = self.administration.store().begin_change().await?;
        let exists = change.account_named(&invitation.account).await?.is_some();
        if !exists && plan.is_none() {
            let name = invitation.account.clone();
            return Err(AdministrationError::NotFound { what: "account", name }.into());
        }
        let mut link = new_link(LinkPurpose::Invitation, INVITATION_S);
        (link.email, link.account, link.plan) = (email, Some(invitation.account.clone()), plan);
        let created = self.add_link(&mut change, link).await?;
        let email = invitation.email.as_deref().unwrap_or("anybody");
        let details = [("account", invitation.account.as_str())];
        audit::add(&mut change, actor, "user.invite", email, &details).await?;
        self.administration.commit(change).await?;
        Ok(created)
    }

    /// A link with which a user chooses a new password. Earlier ones become invalid.
    pub async fn create_reset_link(&self, actor: &str, email: &str) -> Result<NewLink, PeopleError> {
        let email = email::normalised(email)?;
        let mut change = self.administration.store().begin_change().await?;
        let user = change.user_with_email(&email).await?.ok_or_else(|| no_user(&email))?;
        change.delete_reset_links(user.id).await?;
        let link = LinkRecord { user_id: Some(user.id), ..new_link(LinkPurpose::Reset, PASSWORD_LINK_S) };
        let created = self.add_link(&mut change, link).await?;
        audit::add(&mut change, actor, "user.reset_link", &email, &[]).await?;
        self.administration.commit(change).await?;
        Ok(created)
    }

    /// A link that makes an operator of whoever opens it first.
    pub async fn create_operator_link(&self, actor: &str) -> Result<NewLink, PeopleError> {
        let mut change = self.administration.store().begin_change().await?;
        let created = self.add_link(&mut change, new_link(LinkPurpose::Operator, PASSWORD_LINK_S)).await?;
        audit::add(&mut change, actor, "user.operator_link", "operator", &[]).await?;
        self.administration.commit(change).await?;
        Ok(created)
    }

    async fn add_link(
        &self,
        change: &mut StoreTransaction,
        mut link: LinkRecord,
    ) -> Result<NewLink, PeopleError> {
        let token = token::new()?;
        link.hash = self.administration.hash_key().await?.hash_token("link", token.as_bytes());
        change.delete_expired_links(unix_seconds()).await?;
        change.insert_link(&link).await?;
        Ok(NewLink { token, expires_at: link.expires_at })
    }

    /// What a link is for. It stays valid.
    pub async fn link(&self, token: &str) -> Result<LinkSummary, PeopleError> {
        if !token::is_token(token) {
            return Err(PeopleError::InvalidLink);
        }
        let store = self.administration.store();
        let hash = self.administration.hash_key().await?.hash_token("link", token.as_bytes());
        let link = valid(store.link_with_hash(&hash).await?)?;
        Ok(match link.purpose {
            LinkPurpose::Invitation => {
                LinkSummary::Invitation { email: link.email, account: link.account.unwrap_or_default() }
            }
            LinkPurpose::Reset => {
                let user = store.user(link.user_id.unwrap_or_default()).await?;
                LinkSummary::Reset { email: user.ok_or(PeopleError::InvalidLink)?.email }
            }
            LinkPurpose::Operator => LinkSummary::Operator,
        })
    }

    /// Uses a link: the person gets the password, and is signed in. `email` is ignored if the link has one.
    pub async fn use_link(
        &self,
        token: &str,
        email: &str,
        password: &str,
        visitor: &Visitor,
    ) -> Result<NewSession, PeopleError> {
        let email = match self.link(token).await? {
            LinkSummary::Reset { email } | LinkSummary::Invitation { email: Some(email), .. } => email,
            LinkSummary::Invitation { email: None, .. } | LinkSummary::Operator => email::normalised(email)?,
        };
        password::check(password, &email)?;
        let password_hash = self.hash(password).await?;
        let token_hash = self.administration.hash_key().await?.hash_token("link", token.as_bytes());
        let mut change = self.administration.store().begin_change().await?;
        let link = valid(change.take_link(&token_hash).await?)?;
        let user = match link.purpose {
            LinkPurpose::Invitation => self.join(&mut change, &link, &email, password_hash).await?,
            LinkPurpose::Reset => reset(&mut change, &link, password_hash).await?,
            LinkPurpose::Operator => self.make_operator(&mut change, &email, password_hash).await?,
        };
        let session = self.add_session(&mut change, &user, visitor).await?;
        self.administration.commit(change).await?;
        Ok(session)
    }

    async fn join(
        &self,
        change: &mut StoreTransaction,
        link: &LinkRecord,
        email: &str,
        password_hash: String,
    ) -> Result<UserRecord, PeopleError> {
        let (actor, name) = (actor(email), link.account.as_deref().unwrap_or_default());
        let account = match (change.account_named(name).await?, &link.plan) {
            (Some(account), _) => account,
            (None, Some(plan)) => self.administration.add_account(change, &actor, name, plan).await?,
            (None, None) => return Err(PeopleError::InvalidLink),
        };
        let user = new_user(email, UserRole::Developer, Some(account.id), password_hash);
        add_user(change, &actor, user).await
    }

    /// A new operator gets an account with their address as its name, so that they can make calls, too.
    async fn make_operator(
        &self,
        change: &mut StoreTransaction,
        email: &str,
        password_hash: String,
    ) -> Result<UserRecord, PeopleError> {
        let actor = actor(email);
        if let Some(mut user) = change.user_with_email(email).await? {
            (user.role, user.password_hash) = (UserRole::Operator, Some(password_hash));
            user.status = store::UserStatus::Active;
            change.update_user(&user).await?;
            change.delete_other_sessions(user.id, "").await?;
            audit::add(change, &actor, "user.operator", email, &[]).await?;
            return Ok(user);
        }
        let account = match change.account_named(email).await? {
            Some(account) => account,
            None => {
                let plan = self.administration.plans().least_limited();
                let plan = plan.ok_or_else(|| invalid("plan", "there is no plan"))?.name.clone();
                self.administration.add_account(change, &actor, email, &plan).await?
            }
        };
        let user = new_user(email, UserRole::Operator, Some(account.id), password_hash);
        add_user(change, &actor, user).await
    }
}

/// Sets a new password and ends all sessions of the user.
async fn reset(
    change: &mut StoreTransaction,
    link: &LinkRecord,
    password_hash: String,
) -> Result<UserRecord, PeopleError> {
    let user = change.user(link.user_id.unwrap_or_default()).await?;
    let mut user = user.ok_or(PeopleError::InvalidLink)?;
    user.password_hash = Some(password_hash);
    change.update_user(&user).await?;
    change.delete_other_sessions(user.id, "").await?;
    audit::add(change, &actor(&user.email), "user.password", &user.email, &[("by", "link")]).await?;
    Ok(user)
}

fn new_link(purpose: LinkPurpose, valid_for: i64) -> LinkRecord {
    let now = unix_seconds();
    LinkRecord {
        hash: [0; store::HASH_BYTES],
        purpose,
        email: None,
        user_id: None,
        account: None,
        plan: None,
        created_at: now,
        expires_at: now + valid_for,
    }
}

fn valid(link: Option<LinkRecord>) -> Result<LinkRecord, PeopleError> {
    link.filter(|link| link.expires_at > unix_seconds()).ok_or(PeopleError::InvalidLink)
}

fn no_user(email: &str) -> PeopleError {
    AdministrationError::NotFound { what: "user", name: email.to_owned() }.into()
}
