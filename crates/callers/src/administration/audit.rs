//! Entries of the audit log: who changed what, and when. They contain no keys and no secrets.

use resources::{counted, unix_seconds};
use serde::Serialize;
use serde_json::{Map, Value};
use store::{AuditRecord, StoreFailure, StoreTransaction};

use crate::policy::AUDIT_DETAIL_BYTES_MAX;
use crate::stored_settings::{KeyPatch, StoredSettings};

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct AuditEntry {
    /// Increases with each entry.
    pub id: i64,
    /// Seconds since 1970.
    pub at: i64,
    pub actor: String,
    /// Such as `key.revoke`.
    pub action: String,
    /// The name of an account, the id of a key, or the email address of a user.
    pub subject: String,
    pub details: Value,
}

impl From<AuditRecord> for AuditEntry {
    fn from(AuditRecord { id, at, actor, action, subject, details }: AuditRecord) -> Self {
        let details = serde_json::from_str(&details).unwrap_or(Value::String(details));
        Self { id, at, actor, action, subject, details }
    }
}

pub(crate) async fn add(
    change: &mut StoreTransaction,
    actor: &str,
    action: &str,
    subject: &str,
    details: &[(&str, &str)],
) -> Result<(), StoreFailure> {
    let member = |&(name, value): &(&str, &str)| (name.to_owned(), Value::String(shortened(value)));
    let details: Map<String, Value> = details.iter().map(member).collect();
    let entry = AuditRecord {
        id: 0,
        at: unix_seconds(),
        actor: actor.to_owned(),
        action: action.to_owned(),
        subject: subject.to_owned(),
        details: Value::Object(details).to_string(),
    };
    change.add_audit_entry(&entry).await
}

/// A detail with its end cut off if it is too long.
fn shortened(detail: &str) -> String {
    let kept = &detail[..detail.floor_char_boundary(AUDIT_DETAIL_BYTES_MAX)];
    match detail.len() - kept.len() {
        0 => detail.to_owned(),
        bytes => format!("{kept}… ({} more)", counted(bytes as u64, "byte")),
    }
}

/// The settings of a key after a change. Of a secret, only the kind of its change is stated.
pub(super) fn settings_details(settings: &StoredSettings, patch: &KeyPatch) -> Vec<(&'static str, String)> {
    let rules = serde_json::to_string(&settings.rules).unwrap_or_default();
    let secret = match patch.secret() {
        None => "unchanged",
        Some(None) => "removed",
        Some(Some(_)) => "replaced",
    };
    vec![("settings", rules), ("secret", secret.to_owned())]
}
