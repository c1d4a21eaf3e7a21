//! The account of a call, as far as it matters for answering it.

use resources::{AccountId, Rest};

/// The account in whose share of threads and memory a call is answered.
#[derive(Clone, Copy, Debug)]
pub struct CallAccount<'a> {
    pub id: AccountId,
    /// While it lasts, pooled calls of the account skip their inline try.
    pub inline_tries_rest: &'a Rest,
}
