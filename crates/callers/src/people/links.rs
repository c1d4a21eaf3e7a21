//! Links that are valid once: invitations, new passwords, and the sign-in of an operator.

use std::fmt;

use resources::unix_seconds;
use store::{LinkKind, LinkRecord, StoreTransaction, UserRecord, UserRole, UserStatus};

use super::sign_in::{add_user, new_user};
use super::{NewSession, People, PeopleError, Visitor, actor, email, invalid, no_user, password, token};
use crate::administration::{AdministrationError, audit};
use crate::policy::{ACCOUNT_NAMES_TRIED, INVITATION_S, PASSWORD_LINK_S};

/// Whom an invitation is for, and what it leads to.
#[derive(Clone, Debug)]
pub struct Invitation {
    /// The only address that may be used; anybody's if there is none.
    pub email: Option<String>,
    pub target: InvitationTarget,
}

/// The result of an invitation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum InvitationTarget {
    /// The account with this name, which exists.
    Account(String),
    /// A new account with this plan; the person chooses its name.
    NewAccount { plan: String },
}

/// The form with which a person uses a link.
#[derive(Clone, Default)]
pub struct LinkForm {
    /// Ignored if the link has an address.
    pub email: String,
    /// The name of the new account, if the link creates one.
    pub account: String,
    pub password: String,
}

impl fmt::Debug for LinkForm {
    // The password is omitted.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LinkForm").field("email", &self.email).finish_non_exhaustive()
    }
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
    /// Joins or creates an account; the address is fixed if the invitation names it.
    Invitation { email: Option<String>, target: InvitationTarget },
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
        let email = invitation.email.as_deref().map(email::normalised).transpose()?;
        let mut link = new_link(LinkKind::Invitation, INVITATION_S);
        let mut change = self.administration.store().begin_change().await?;
        let target = match &invitation.target {
            InvitationTarget::Account(name) => {
                let found = change.account_named(name).await?;
                link.account = Some(found.ok_or_else(|| no_account(name))?.name);
                ("account", name)
            }
            InvitationTarget::NewAccount { plan } => {
                link.plan = Some(self.administration.plan(plan)?.name);
                ("plan", plan)
            }
        };
        link.email.clone_from(&email);
        let created = self.add_link(&mut change, link).await?;
        let subject = email.as_deref().unwrap_or("anybody");
        audit::add(&mut change, actor, "user.invite", subject, &[(target.0, target.1)]).await?;
        change.commit().await?;
        Ok(created)
    }

    /// A link with which a user chooses a new password. Earlier ones become invalid.
    pub async fn create_reset_link(&self, actor: &str, email: &str) -> Result<NewLink, PeopleError> {
        let email = email::normalised(email)?;
        let mut change = self.administration.store().begin_change().await?;
        let user = change.user_with_email(&email).await?.ok_or_else(|| no_user(&email))?;
        if user.status == UserStatus::Blocked {
            return Err(invalid("email", "is that of a blocked user; unblock the user first"));
        }
        change.delete_reset_links(user.id).await?;
        let link = LinkRecord { user_id: Some(user.id), ..new_link(LinkKind::Reset, PASSWORD_LINK_S) };
        let created = self.add_link(&mut change, link).await?;
        audit::add(&mut change, actor, "user.reset_link", &email, &[]).await?;
        change.commit().await?;
        Ok(created)
    }

    /// A link that makes an operator of whoever opens it first.
    pub async fn create_operator_link(&self, actor: &str) -> Result<NewLink, PeopleError> {
        let mut change = self.administration.store().begin_change().await?;
        let created = self.add_link(&mut change, new_link(LinkKind::Operator, PASSWORD_LINK_S)).await?;
        audit::add(&mut change, actor, "user.operator_link", "operator", &[]).await?;
        change.commit().await?;
        Ok(created)
    }

    async fn add_link(
        &self,
        change: &mut StoreTransaction,
        mut link: LinkRecord,
    ) -> Result<NewLink, PeopleError> {
        let token = token::new()?;
        link.hash = change.hash_key().await?.hash_token("link", token.as_bytes());
        change.delete_expired_links(unix_seconds()).await?;
        change.insert_link(&link).await?;
        Ok(NewLink { token, expires_at: link.expires_at })
    }

    /// The purpose of a link, which stays valid.
    pub async fn link(&self, token: &str) -> Result<LinkSummary, PeopleError> {
        if !token::is_token(token) {
            return Err(PeopleError::InvalidLink);
        }
        let store = self.administration.store();
        let hash = self.administration.hash_key().await?.hash_token("link", token.as_bytes());
        let link = valid(store.link_with_hash(&hash).await?)?;
        Ok(match link.kind {
            LinkKind::Invitation => {
                let target = match (link.account, link.plan) {
                    (Some(account), _) => InvitationTarget::Account(account),
                    (None, Some(plan)) => InvitationTarget::NewAccount { plan },
                    (None, None) => return Err(PeopleError::InvalidLink),
                };
                LinkSummary::Invitation { email: link.email, target }
            }
            LinkKind::Reset => {
                let user = store.user(link.user_id.unwrap_or_default()).await?;
                LinkSummary::Reset { email: user.ok_or(PeopleError::InvalidLink)?.email }
            }
            LinkKind::Operator => LinkSummary::Operator,
        })
    }

    /// Uses a link: the person gets the password, and is signed in.
    pub async fn use_link(
        &self,
        token: &str,
        form: &LinkForm,
        visitor: &Visitor,
    ) -> Result<NewSession, PeopleError> {
        let email = match self.link(token).await? {
            LinkSummary::Reset { email } | LinkSummary::Invitation { email: Some(email), .. } => email,
            LinkSummary::Invitation { email: None, .. } | LinkSummary::Operator => {
                email::normalised(&form.email)?
            }
        };
        password::check(&form.password, &email)?;
        self.count_attempt_from(visitor)?;
        let password_hash = self.hash(&form.password).await?;
        let token_hash = self.administration.hash_key().await?.hash_token("link", token.as_bytes());
        let mut change = self.administration.store().begin_change().await?;
        let link = valid(change.take_link(&token_hash).await?)?;
        let user = match link.kind {
            LinkKind::Invitation => {
                self.join(&mut change, &link, &email, &form.account, password_hash).await?
            }
            LinkKind::Reset => reset(&mut change, &link, password_hash).await?,
            LinkKind::Operator => self.make_operator(&mut change, &email, password_hash).await?,
        };
        let session = self.add_session(&mut change, &user, visitor).await?;
        change.commit().await?;
        self.attempt_succeeded(&email, visitor);
        Ok(session)
    }

    async fn join(
        &self,
        change: &mut StoreTransaction,
        link: &LinkRecord,
        email: &str,
        new_account: &str,
        password_hash: String,
    ) -> Result<UserRecord, PeopleError> {
        let actor = actor(email);
        let account = match (&link.account, &link.plan) {
            (Some(name), _) => change.account_named(name).await?.ok_or_else(|| no_account(name))?,
            (None, Some(plan)) => self.administration.add_account(change, &actor, new_account, plan).await?,
            (None, None) => return Err(PeopleError::InvalidLink),
        };
        let user = new_user(email, UserRole::Developer, Some(account.id), password_hash);
        add_user(change, &actor, user).await
    }

    /// A new operator gets an account with their address as its name, so that they can make calls, too. So does a developer
    /// who becomes one: a stranger may have signed up with the operator's address, and holds keys of the earlier account.
    async fn make_operator(
        &self,
        change: &mut StoreTransaction,
        email: &str,
        password_hash: String,
    ) -> Result<UserRecord, PeopleError> {
        let actor = actor(email);
        let Some(mut user) = change.user_with_email(email).await? else {
            let account_id = self.add_operator_account(change, &actor, email).await?;
            let user = new_user(email, UserRole::Operator, Some(account_id), password_hash);
            return add_user(change, &actor, user).await;
        };
        if user.role == UserRole::Developer {
            user.account_id = Some(self.add_operator_account(change, &actor, email).await?);
        }
        (user.role, user.password_hash) = (UserRole::Operator, Some(password_hash));
        user.status = UserStatus::Active;
        change.update_user(&user).await?;
        change.delete_other_sessions(user.id, "").await?;
        change.delete_reset_links(user.id).await?;
        audit::add(change, &actor, "user.operator", email, &[("password", "replaced")]).await?;
        Ok(user)
    }

    /// Adds the account of an operator to a change; returns its id.
    async fn add_operator_account(
        &self,
        change: &mut StoreTransaction,
        actor: &str,
        email: &str,
    ) -> Result<i64, PeopleError> {
        let plans = self.administration.plans();
        let plan = plans.least_limited().ok_or_else(|| invalid("plan", "there is no plan"))?.name.clone();
        let name = self.free_account_name(change, email).await?;
        Ok(self.administration.add_account(change, actor, &name, &plan).await?.id)
    }

    /// The address, or the address with a number if somebody else has such an account: its people must not share the operator's.
    async fn free_account_name(
        &self,
        change: &mut StoreTransaction,
        email: &str,
    ) -> Result<String, PeopleError> {
        let numbered = (2..=ACCOUNT_NAMES_TRIED).map(|number| format!("{email} {number}"));
        for name in std::iter::once(email.to_owned()).chain(numbered) {
            if !self.administration.is_configured_account(&name)
                && change.account_named(&name).await?.is_none()
            {
                return Ok(name);
            }
        }
        Err(AdministrationError::AlreadyExists { what: "account", name: email.to_owned() }.into())
    }
}

/// Sets a new password and ends all sessions of the user.
async fn reset(
    change: &mut StoreTransaction,
    link: &LinkRecord,
    password_hash: String,
) -> Result<UserRecord, PeopleError> {
    let user = change.user(link.user_id.unwrap_or_default()).await?;
    let is_active = |user: &UserRecord| user.status == UserStatus::Active;
    let mut user = user.filter(is_active).ok_or(PeopleError::InvalidLink)?;
    user.password_hash = Some(password_hash);
    change.update_user(&user).await?;
    change.delete_other_sessions(user.id, "").await?;
    change.delete_reset_links(user.id).await?;
    audit::add(change, &actor(&user.email), "user.password", &user.email, &[("by", "link")]).await?;
    Ok(user)
}

fn new_link(kind: LinkKind, valid_for: i64) -> LinkRecord {
    let now = unix_seconds();
    LinkRecord {
        hash: [0; store::HASH_BYTES],
        kind,
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

fn no_account(name: &str) -> PeopleError {
    AdministrationError::NotFound { what: "account", name: name.to_owned() }.into()
}
