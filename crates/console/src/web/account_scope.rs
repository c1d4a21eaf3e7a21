//! The account that a page is about: the own one, or for operators the one in the path.

use callers::administration::AccountRecord;
use callers::people::ActiveSession;

use super::operator_session::OperatorSession;
use super::page_error::PageError;
use super::web_request::{PageSession, WebRequest};
use crate::pages::NavigationItem;
use crate::pages::accounts::account_path;

/// An account, and who may see and change its keys here.
#[derive(Debug)]
pub(super) struct AccountScope {
    pub(super) account: AccountRecord,
    session: ActiveSession,
    /// The path of the account, below which its pages are; `None` on the pages of the own account.
    account_path: Option<String>,
}

impl AccountScope {
    /// The path of a page of this account, such as `/keys` or `/accounts/acme/keys`.
    pub(super) fn path(&self, page: &str) -> String {
        format!("{}{page}", self.account_path.as_deref().unwrap_or_default())
    }

    /// The item of the navigation that leads to a page: `own`, or the accounts.
    pub(super) fn navigation(&self, own: NavigationItem) -> NavigationItem {
        if self.account_path.is_some() { NavigationItem::Accounts } else { own }
    }

    /// The name and the path of the account, if it is not the own one.
    pub(super) fn other_account(&self) -> Option<(String, String)> {
        self.account_path.clone().map(|path| (self.account.name.clone(), path))
    }

    pub(super) fn actor(&self) -> String {
        self.session.actor()
    }

    pub(super) fn email(&self) -> &str {
        self.session.email()
    }
}

impl PageSession for AccountScope {
    fn signed_in(&self) -> Option<&ActiveSession> {
        Some(&self.session)
    }
}

/// A session that says which account a request is about.
pub(super) trait ScopedSession: Sized {
    async fn scope(request: &WebRequest<Self>) -> Result<AccountScope, PageError>;
}

impl<S: ScopedSession> WebRequest<S> {
    /// The same request about an account.
    pub(super) async fn scoped(self) -> Result<WebRequest<AccountScope>, PageError> {
        let scope = S::scope(&self).await?;
        Ok(self.with_session(scope))
    }
}

impl ScopedSession for ActiveSession {
    /// The own account. Operators may have none, and get to their own pages instead.
    async fn scope(request: &WebRequest<Self>) -> Result<AccountScope, PageError> {
        let session = request.session.clone();
        let account = session.account().cloned().ok_or_else(|| match session.is_operator() {
            true => PageError::Redirect("/live".to_owned()),
            false => PageError::Status(403),
        })?;
        Ok(AccountScope { account, session, account_path: None })
    }
}

impl ScopedSession for OperatorSession {
    /// The account that the path names.
    async fn scope(request: &WebRequest<Self>) -> Result<AccountScope, PageError> {
        let account = request.site.administration.account(request.path_value("name")).await?;
        let account_path = Some(account_path(&account.name));
        Ok(AccountScope { account, session: ActiveSession::clone(&request.session), account_path })
    }
}
