//! One request after its origin was checked.

use std::sync::Arc;

use callers::people::{ActiveSession, Visitor};
use resources::unix_seconds;

use super::assets;
use super::form_fields::FormFields;
use super::notices;
use super::page_error::PageError;
use super::site::ConsoleSite;
use crate::pages::{Flash, NavigationItem, PageFrame, SignedInUser};

/// A request for a page. The values of its path, query and form are decoded. `S` is whose session it is, or what follows from it.
#[derive(Debug)]
pub(super) struct WebRequest<S> {
    pub(super) site: Arc<ConsoleSite>,
    pub(super) session: S,
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

/// Whose pages are shown.
pub(super) trait PageSession {
    /// The session of a page with a navigation; `None` on the pages for anyone.
    fn signed_in(&self) -> Option<&ActiveSession>;
}

impl PageSession for ActiveSession {
    fn signed_in(&self) -> Option<&ActiveSession> {
        Some(self)
    }
}

impl PageSession for Option<ActiveSession> {
    fn signed_in(&self) -> Option<&ActiveSession> {
        None
    }
}

impl<S> WebRequest<S> {
    pub(super) fn with_session<T>(self, session: T) -> WebRequest<T> {
        let Self { site, target, path, path_values, query, form, visitor, browser_token, .. } = self;
        WebRequest { site, session, target, path, path_values, query, form, visitor, browser_token }
    }

    /// The part of the path with this name.
    pub(super) fn path_value(&self, name: &str) -> &str {
        self.path_values.iter().find(|(found, _)| found == name).map_or("", |(_, value)| value)
    }

    /// The field `after` of the query: where a page of a list begins.
    pub(super) fn position<P>(&self, read: impl FnOnce(&str) -> Option<P>) -> Result<Option<P>, PageError> {
        let after = self.query.filled("after");
        after.map(|text| read(text).ok_or(PageError::Status(400))).transpose()
    }
}

impl<S: PageSession> WebRequest<S> {
    /// The data that every page needs besides its own.
    pub(super) async fn frame(&self, active: NavigationItem, title: &str) -> Result<PageFrame, PageError> {
        let csrf = self.site.people.form_token(&self.browser_token.0).await?;
        let flash = notices::flash(self.query.get(notices::FIELD));
        Ok(self.site.frame_with(csrf, self.session.signed_in(), active, title, flash))
    }
}

impl ConsoleSite {
    /// The data of a page with this token. Pages with an empty one have no forms.
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
