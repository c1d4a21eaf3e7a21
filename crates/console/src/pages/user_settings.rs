//! The settings of the user: password and sessions.

use askama::Template;
use callers::people::SessionSummary;

use super::{FormErrors, PageFrame, format};

/// `GET /settings`.
///
/// Its forms post to `/settings/password` (`current_password`, `new_password`) and `/sessions/{id}/end`.
#[derive(Template)]
#[template(path = "user_settings.html")]
pub(crate) struct UserSettingsPage {
    pub(crate) frame: PageFrame,
    /// The session of this page first, then the last used.
    pub(crate) sessions: Vec<SessionSummary>,
    pub(crate) errors: FormErrors,
}
