//! The audit log, for operators.

use askama::Template;

use super::{PageFrame, format};

/// `GET /audit?before=`.
#[derive(Template)]
#[template(path = "audit.html")]
pub(crate) struct AuditLogPage {
    pub(crate) frame: PageFrame,
    /// Newest first; at most 100.
    pub(crate) entries: Vec<AuditRow>,
    /// Whether these are not the newest entries.
    pub(crate) is_older_page: bool,
    /// The address of the page with older entries.
    pub(crate) older_href: Option<String>,
}

/// A change.
#[derive(Clone, Debug)]
pub(crate) struct AuditRow {
    pub(crate) at: i64,
    /// Who made it, such as `user:ada@example.com`.
    pub(crate) actor: String,
    /// Such as `key.revoke`.
    pub(crate) action: String,
    /// The name of an account or the handle of a key.
    pub(crate) subject: String,
    /// Names and values.
    pub(crate) details: Vec<(String, String)>,
}
