//! The audit log, for operators.

use askama::Template;
use callers::administration::AUDIT_COUNT_MAX;

use super::list_pages::ListLinks;
use super::{PageFrame, format};

/// `GET /audit?q=&after=`.
#[derive(Template)]
#[template(path = "audit.html")]
pub(crate) struct AuditLogPage {
    pub(crate) frame: PageFrame,
    /// Newest first; at most 100.
    pub(crate) entries: Vec<AuditRow>,
    /// What was searched for; empty if all entries are listed.
    pub(crate) search: String,
    /// How many entries there are on all pages, but at most one more than [`AUDIT_COUNT_MAX`].
    pub(crate) count: u64,
    /// The first page has the newest entries.
    pub(crate) pages: ListLinks,
}

impl AuditLogPage {
    /// `3 entries`, or `more than 1,000,000 entries`.
    fn count_text(&self) -> String {
        let max = u64::try_from(AUDIT_COUNT_MAX).unwrap_or(u64::MAX);
        match self.count.min(max) {
            count if count < self.count => format!("more than {} entries", format::count(&count)),
            count => format::counted(&count, "entry", "entries"),
        }
    }
}

/// Characters of a detail that are shown: the settings of a key can have 64 KB, and a page has 100 entries.
const DETAIL_CHARACTERS_MAX: usize = 200;

/// A change.
#[derive(Clone, Debug)]
pub(crate) struct AuditRow {
    pub(crate) at: i64,
    /// Who made it, such as `user:ada@example.com`.
    pub(crate) actor: String,
    /// Such as `key.revoke`.
    pub(crate) action: String,
    /// The name of an account, the id of a key, or the email address of a user.
    pub(crate) subject: String,
    /// Names and values.
    pub(crate) details: Vec<(String, String)>,
}

impl AuditRow {
    /// The details, shortened.
    fn shown_details(&self) -> impl Iterator<Item = (&str, String)> {
        self.details.iter().map(|(name, value)| (name.as_str(), shortened(value)))
    }
}

fn shortened(text: &str) -> String {
    match text.char_indices().nth(DETAIL_CHARACTERS_MAX) {
        None => text.to_owned(),
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or_default()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_long_details_are_shortened() {
        let longest = "é".repeat(DETAIL_CHARACTERS_MAX);
        assert_eq!(shortened(&longest), longest);
        assert_eq!(shortened(&format!("{longest}x")), format!("{longest}…"));
    }
}
