//! Pooled work is first tried inline, on the thread of its connection, because most of it takes less time than a hand-off to
//! the pool and back.
//!
//! Work that does not finish within [`TRY_TIME`] is abandoned and starts over in the pool with its full budget, so the
//! answer is the same. A failed try delays the other connections of the thread. So after one, the tries of its account
//! rest for several times as long; those of other accounts do not.

use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

use crate::budget::AnswerBudget;
use crate::call_account::CallAccount;

/// How long a try may take. Reading a balance takes 5 µs and a swap 100 µs; other connections do not notice 200 µs.
const TRY_TIME: Duration = Duration::from_micros(200);

/// Tries rest for this multiple of the lost time, so that one account wastes at most a tenth of one thread.
const REST_MULTIPLE: u32 = 9;

/// Upper bound of the time that counts as lost: a thread that the kernel preempted seems to have lost much more.
const LOST_MAX: Duration = TRY_TIME.saturating_mul(3);

/// Decides when pooled work is tried inline.
#[derive(Debug)]
pub(super) struct InlineTries {
    origin: Instant,
}

impl Default for InlineTries {
    fn default() -> Self {
        Self { origin: Instant::now() }
    }
}

/// One try.
#[derive(Debug)]
pub(super) struct InlineTry {
    began: Instant,
    pub(super) budget: AnswerBudget,
}

impl InlineTries {
    /// Begins a try, unless those of the account rest, or the work may take less than [`TRY_TIME`] in all.
    pub(super) fn begin(&self, account: CallAccount<'_>, time: Duration) -> Option<InlineTry> {
        if time < TRY_TIME {
            return None;
        }
        let began = Instant::now();
        if self.since_origin(began) < account.no_inline_tries_until.load(Relaxed) {
            return None;
        }
        let budget =
            AnswerBudget { deadline: Some(began + TRY_TIME), abandoned: None, brief: true, reply: None };
        Some(InlineTry { began, budget })
    }

    /// Makes the tries of the account rest after one that did not finish.
    pub(super) fn failed(&self, account: CallAccount<'_>, attempt: &InlineTry) {
        let lost = attempt.took();
        let until = attempt.began + lost + lost.min(LOST_MAX) * REST_MULTIPLE;
        account.no_inline_tries_until.fetch_max(self.since_origin(until), Relaxed);
    }

    fn since_origin(&self, instant: Instant) -> u64 {
        u64::try_from(instant.duration_since(self.origin).as_nanos()).unwrap_or(u64::MAX)
    }
}

impl InlineTry {
    pub(super) fn took(&self) -> Duration {
        self.began.elapsed()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicU64;

    use resources::AccountId;

    use super::*;

    const TIME: Duration = Duration::from_secs(1);

    fn account(rest_until: &AtomicU64) -> CallAccount<'_> {
        CallAccount { id: AccountId::unique(), no_inline_tries_until: rest_until }
    }

    #[test]
    fn a_failed_try_makes_the_next_ones_rest_in_proportion_to_the_lost_time() {
        let (tries, rest_until) = (InlineTries::default(), AtomicU64::new(0));
        let account = account(&rest_until);
        let attempt = tries.begin(account, TIME).unwrap();
        std::thread::sleep(TRY_TIME);
        tries.failed(account, &attempt);
        let ended = tries.since_origin(Instant::now());
        let until = rest_until.load(Relaxed);
        let ns = |time: Duration| time.as_nanos() as u64;
        assert!(until >= tries.since_origin(attempt.began) + ns(TRY_TIME) * u64::from(REST_MULTIPLE + 1));
        assert!(until <= ended + ns(LOST_MAX) * u64::from(REST_MULTIPLE));
    }

    /// One account's endless simulations used to send everybody's cheap calls to the pool.
    #[test]
    fn the_tries_of_one_account_rest_and_those_of_another_go_on() {
        let (tries, resting, awake) = (InlineTries::default(), AtomicU64::new(u64::MAX), AtomicU64::new(0));
        let (greedy, other) = (account(&resting), account(&awake));
        assert!(tries.begin(greedy, TIME).is_none());
        assert!(tries.begin(other, TIME).is_some_and(|attempt| attempt.budget.is_brief()));
        assert!(tries.begin(other, Duration::ZERO).is_none(), "work without time is not tried");
    }
}
