//! Whose keys and usage a page is about: those of the own account, or for operators those of the account in the path.

use callers::administration::AccountSummary;
use callers::people::ActiveSession;

use super::operator_session::OperatorSession;
use super::page_error::PageError;
use super::site::ConsoleSite;
use super::web_request::WebRequest;
use crate::pages::NavigationItem;
use crate::pages::accounts::account_path;

/// An account, and who may see and change its keys here.
#[derive(Debug)]
pub(super) struct AccountScope {
    pub(super) account: AccountSummary,
    pub(super) session: ActiveSession,
    /// The path of the account, below which its pages are; `None` on the pages of the own account.
    pub(super) account_path: Option<String>,
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
}

/// A session that says which account a request is about.
pub(super) trait ScopedSession {
    async fn scope(self, site: &ConsoleSite, request: &WebRequest) -> Result<AccountScope, PageError>;
}

impl ScopedSession for ActiveSession {
    /// The own account. Operators may have none, and get to their own pages instead.
    async fn scope(self, _: &ConsoleSite, _: &WebRequest) -> Result<AccountScope, PageError> {
        let account = self.account().cloned().ok_or_else(|| match self.is_operator() {
            true => PageError::Redirect("/live".to_owned()),
            false => PageError::Status(403),
        })?;
        Ok(AccountScope { account, session: self, account_path: None })
    }
}

impl ScopedSession for OperatorSession {
    /// The account that the path names.
    async fn scope(self, site: &ConsoleSite, request: &WebRequest) -> Result<AccountScope, PageError> {
        let account = site.administration.account(request.path_value("name")).await?;
        let account_path = Some(account_path(&account.name));
        Ok(AccountScope { account, session: self.session().clone(), account_path })
    }
}
