//! Names as the ledger of usage has them: PostgreSQL has no texts with the character NUL.

use std::borrow::Cow;
use std::sync::Arc;

/// A name without NUL.
pub(crate) fn ledger_text(name: &str) -> Cow<'_, str> {
    if name.contains('\0') { Cow::Owned(name.replace('\0', "")) } else { Cow::Borrowed(name) }
}

/// A name without NUL, which is not copied if it has none.
pub(crate) fn shared_ledger_text(name: &Arc<str>) -> Arc<str> {
    match ledger_text(name) {
        Cow::Borrowed(_) => Arc::clone(name),
        Cow::Owned(name) => name.into(),
    }
}
