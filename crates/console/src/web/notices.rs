//! Messages about the last action. The address has only a word of this table, so nobody can make the console say something
//! else.

use crate::pages::Flash;

/// The word for a change that is stored and not in effect yet.
pub(super) const NOT_IN_EFFECT: &str = "not-in-effect";

/// The word in the address, and the message.
const NOTICES: &[(&str, &str)] = &[
    ("key-renamed", "Key renamed."),
    ("key-revoked", "Key revoked. It is refused from now on."),
    ("settings-saved", "Settings saved. They are in effect."),
    ("password-changed", "Password changed. All other sessions have ended."),
    ("session-ended", "Session ended."),
    ("plan-changed", "Plan changed."),
    ("account-suspended", "Account suspended. All of its keys are refused."),
    ("account-resumed", "Account resumed. Its keys work again."),
    ("account-created", "Account created."),
    ("user-blocked", "User blocked. All of their sessions have ended."),
    ("user-unblocked", "User unblocked. They can sign in again."),
    (
        NOT_IN_EFFECT,
        "Saved, but not in effect on this gateway yet, because it cannot follow the store now. It takes effect as soon as it can.",
    ),
    ("signed-out", "You have signed out."),
];

/// The name of the field in the address.
pub(super) const FIELD: &str = "done";

/// The message that a word stands for.
pub(super) fn flash(word: &str) -> Option<Flash> {
    let (_, text) = NOTICES.iter().find(|(name, _)| *name == word)?;
    Some(Flash { is_error: false, text: (*text).to_owned() })
}

/// A path that shows a message.
pub(super) fn path_with(path: &str, word: &'static str) -> String {
    debug_assert!(NOTICES.iter().any(|(name, _)| *name == word), "{word} has no message");
    format!("{path}?{FIELD}={word}")
}
