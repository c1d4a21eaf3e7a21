//! The account of a call, as far as it matters for answering it.

use std::sync::atomic::AtomicU64;

use resources::AccountId;

/// The account in whose share of threads and memory a call is answered.
#[derive(Clone, Copy, Debug)]
pub struct CallAccount<'a> {
    pub id: AccountId,
    /// Until when pooled calls of the account skip their inline try, in nanoseconds of `InlineTries`.
    pub no_inline_tries_until: &'a AtomicU64,
}
