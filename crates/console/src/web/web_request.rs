//! One request after its origin was checked.

use callers::people::{ActiveSession, Visitor};
use resources::unix_seconds;

use super::assets;
use super::form_fields::FormFields;
use super::notices;
use super::page_error::PageError;
use super::site::ConsoleSite;
use crate::pages::{Flash, NavigationItem, PageFrame, SignedInUser};

/// A request for a page. The values of its path, query and form are decoded.
#[derive(Debug)]
pub(super) struct WebRequest {
    /// The path with the query, as a browser repeats it.
    pub(super) target: String,
    pub(super) path: String,
    /// The parts of the path that the route names.
    pub(super) path_values: Vec<(String, String)>,
    pub(super) query: FormFields,
    pub(super) form: FormFields,
    pub(super) visitor: Visitor,
    /// The random text that the forms of this browser are bound to.
    pub(super) browser_token: BrowserToken,
}

/// The token of the session, or before the sign-in that of the other cookie.
pub(super) struct BrowserToken(pub(super) String);

impl std::fmt::Debug for BrowserToken {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("BrowserToken")
    }
}

impl WebRequest {
    /// The part of the path with this name.
    pub(super) fn path_value(&self, name: &str) -> &str {
        self.path_values.iter().find(|(found, _)| found == name).map_or("", |(_, value)| value)
    }
}

impl WebRequest {
    /// The field `after` of the query: where a page of a list begins.
    pub(super) fn position<P>(&self, read: impl FnOnce(&str) -> Option<P>) -> Result<Option<P>, PageError> {
        let after = self.query.filled("after");
        after.map(|text| read(text).ok_or(PageError::Status(400))).transpose()
    }
}

impl ConsoleSite {
    /// What every page needs besides its own data.
    pub(super) async fn frame(
        &self,
        request: &WebRequest,
        session: Option<&ActiveSession>,
        active: NavigationItem,
        title: &str,
    ) -> Result<PageFrame, PageError> {
        let csrf = self.people.form_token(&request.browser_token.0).await?;
        Ok(self.frame_with(csrf, session, active, title, notices::flash(request.query.get(notices::FIELD))))
    }

    /// The same with this token. Pages with an empty one have no forms.
    pub(super) fn frame_with(
        &self,
        csrf: String,
        session: Option<&ActiveSession>,
        active: NavigationItem,
        title: &str,
        flash: Option<Flash>,
    ) -> PageFrame {
        let user = session.map(|session| SignedInUser {
            email: session.email().to_owned(),
            is_operator: session.is_operator(),
            account: session.account().map(|account| account.name.clone()),
        });
        PageFrame {
            title: title.to_owned(),
            network: self.facts.network.clone(),
            now: unix_seconds(),
            csrf,
            user,
            active,
            flash,
            assets: assets::paths(),
        }
    }
}
