//! Where answers are checked: small ones at once, large ones in the pool of threads, because a check of megabytes or of many
//! signatures would keep all other connections of a thread waiting.

use bytes::Bytes;
use nodes::check::{self, Expect, Verdict};
use nodes::{Judgement, Judging};

use super::Remote;
use crate::callers::AccountId;

/// Answers up to this size are checked at once: reading and hashing them takes less than 200 µs.
const CHECKED_AT_ONCE_BYTES_MAX: usize = 32 << 10;

/// Whole blocks up to this size are checked at once: two or three transactions, each with a signature to recover.
const SIGNED_AT_ONCE_BYTES_MAX: usize = 4 << 10;

impl Remote {
    /// Checks a result and hands the verdict to `conclude`.
    pub(super) fn checking<'a>(
        &'a self,
        account: AccountId,
        expect: &Expect,
        result: &Bytes,
        conclude: impl FnOnce(Verdict) -> Judgement + Send + 'a,
    ) -> Judging<'a> {
        let family = self.family;
        let most = match expect {
            Expect::Block { full: true, .. } => SIGNED_AT_ONCE_BYTES_MAX,
            _ => CHECKED_AT_ONCE_BYTES_MAX,
        };
        let Some(threads) = self.threads.as_ref().filter(|_| result.len() > most) else {
            return conclude(check::check(expect, result, family)).into();
        };
        let (expect, result) = (expect.clone(), result.clone());
        Judging::Elsewhere(Box::pin(async move {
            let verdict = threads.run(account, move || check::check(&expect, &result, family)).await;
            verdict.map_or(Judgement::Unchecked, conclude)
        }))
    }
}
