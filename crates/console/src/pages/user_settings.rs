//! The settings of the user: password and sessions.

use askama::Template;

use super::{FormErrors, PageFrame, format};

/// `GET /settings`.
///
/// Its forms post to `/settings/password` (`current_password`, `new_password`) and `/sessions/{id}/end`.
#[derive(Template)]
#[template(path = "user_settings.html")]
pub(crate) struct UserSettingsPage {
    pub(crate) frame: PageFrame,
    /// The session of this page first, then the last used.
    pub(crate) sessions: Vec<SessionRow>,
    pub(crate) password_characters_min: usize,
    pub(crate) errors: FormErrors,
}

/// A session of the user.
#[derive(Clone, Debug)]
pub(crate) struct SessionRow {
    /// The id of the session, which is not its token.
    pub(crate) id: String,
    /// What the browser calls itself, shortened, such as `Firefox on Linux`.
    pub(crate) browser: String,
    /// The IP address of its last request.
    pub(crate) address: String,
    pub(crate) signed_in_at: i64,
    pub(crate) last_used_at: i64,
    /// Whether it is the session of this page.
    pub(crate) is_current: bool,
}
