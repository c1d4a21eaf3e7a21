//! The audit log, for operators.

use askama::Template;
use callers::administration::{AUDIT_COUNT_MAX, AuditEntry};
use serde_json::Value;

use super::list_pages::ListLinks;
use super::{PageFrame, format};

/// `GET /audit?q=&after=`.
#[derive(Template)]
#[template(path = "audit.html")]
pub(crate) struct AuditLogPage {
    pub(crate) frame: PageFrame,
    /// Newest first; at most 100.
    pub(crate) entries: Vec<AuditEntry>,
    /// The search text; empty if all entries are listed.
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

/// The names and values of the details of a change, shortened.
fn shown_details(entry: &AuditEntry) -> Vec<(String, String)> {
    let text = |value: &Value| match value {
        Value::String(text) => shortened(text),
        other => shortened(&other.to_string()),
    };
    match &entry.details {
        Value::Object(members) => members.iter().map(|(name, value)| (name.clone(), text(value))).collect(),
        Value::Null => Vec::new(),
        other => vec![("details".to_owned(), text(other))],
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
