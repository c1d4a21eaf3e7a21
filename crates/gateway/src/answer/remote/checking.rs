//! Where answers are checked, cut, joined and copied: small ones at once, large ones in the pool of threads, because work on
//! megabytes or on many signatures would keep all other connections of a thread waiting.

use bytes::Bytes;
use nodes::check::{self, Expect, Family, Verdict};
use nodes::{Judgement, Judging};
use tokio::time::timeout;

use super::Remote;
use crate::answer::Failure;
use crate::callers::AccountId;

/// Answers up to this size are checked at once: reading and hashing them takes less than 200 µs.
pub(super) const CHECKED_AT_ONCE_BYTES_MAX: usize = 64 << 10;

/// Answers up to this size are cut, joined and copied at once, which takes less than 100 µs: nothing in them is hashed.
pub(super) const COPIED_AT_ONCE_BYTES_MAX: usize = 512 << 10;

/// Whole blocks up to this size are checked at once: two or three transactions, each with a signature to recover.
const SIGNED_AT_ONCE_BYTES_MAX: usize = 4 << 10;

/// What a check has found out.
pub(super) struct CheckedResult {
    pub(super) verdict: Verdict,
    /// Whether a result that is not what was asked for is JSON at all. Where failed checks are only counted, such a result is
    /// delivered.
    pub(super) is_json: bool,
    /// How many logs such a result has.
    pub(super) logs: u64,
}

impl CheckedResult {
    fn of(expect: &Expect, result: &[u8], family: Family) -> Self {
        let verdict = check::check(expect, result, family);
        let has_failed = matches!(verdict, Verdict::Wrong(_) | Verdict::Contradicted);
        let is_json = !has_failed || check::is_json(result);
        let has_logs = has_failed && is_json && matches!(expect, Expect::Logs(_));
        let logs = if has_logs { check::log_blocks(result).count() as u64 } else { 0 };
        Self { verdict, is_json, logs }
    }
}

impl Remote {
    /// Does work on this many bytes: up to `at_once_bytes_max` at once, otherwise in the account's share of the pool.
    pub(super) async fn run_sized<T: Send + 'static>(
        &self,
        account: AccountId,
        bytes: usize,
        at_once_bytes_max: usize,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, Failure> {
        match self.threads.as_ref().filter(|_| bytes > at_once_bytes_max) {
            Some(threads) => {
                // As long as the longest of all calls may take.
                let done = timeout(self.limits.log_timeout, threads.run(account, work)).await;
                done.ok().flatten().ok_or(Failure::OverCapacity)
            }
            None => Ok(work()),
        }
    }

    /// Believes a result that is not to be checked if it is JSON: otherwise the reply around it would not be.
    pub(super) fn unchecked(&self, account: AccountId, result: &Bytes) -> Judging<'_> {
        let (bytes, result) = (result.len(), result.clone());
        let is_json = move || check::is_json(&result);
        if bytes <= CHECKED_AT_ONCE_BYTES_MAX {
            return believed_if(is_json()).into();
        }
        Judging::Elsewhere(Box::pin(async move {
            self.run_sized(account, bytes, CHECKED_AT_ONCE_BYTES_MAX, is_json)
                .await
                .map_or(Judgement::Unchecked, believed_if)
        }))
    }

    /// Checks a result and hands what was found to `conclude`.
    pub(super) fn checking<'a>(
        &'a self,
        account: AccountId,
        expect: &Expect,
        result: &Bytes,
        conclude: impl FnOnce(CheckedResult) -> Judgement + Send + 'a,
    ) -> Judging<'a> {
        let family = self.family;
        let most = match expect {
            Expect::Block { full: true, .. } => SIGNED_AT_ONCE_BYTES_MAX,
            _ => CHECKED_AT_ONCE_BYTES_MAX,
        };
        let Some(threads) = self.threads.as_ref().filter(|_| result.len() > most) else {
            return conclude(CheckedResult::of(expect, result, family)).into();
        };
        let (expect, result) = (expect.clone(), result.clone());
        Judging::Elsewhere(Box::pin(async move {
            let checked = threads.run(account, move || CheckedResult::of(&expect, &result, family)).await;
            checked.map_or(Judgement::Unchecked, conclude)
        }))
    }
}

/// The judgement on a result that was not checked for more than being JSON.
pub(super) fn believed_if(is_json: bool) -> Judgement {
    if is_json { Judgement::Believed } else { Judgement::Wrong("no JSON") }
}
