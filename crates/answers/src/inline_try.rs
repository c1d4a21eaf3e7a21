//! Pooled work is first tried inline, on the thread of its connection, because most of it takes less time than a hand-off to
//! the pool and back.
//!
//! Work that does not finish within [`TRY_TIME`] is abandoned and starts over in the pool with its full budget, so the
//! answer is the same. A failed try delays the other connections of the thread. So after one, the tries of its account
//! rest for several times as long; those of other accounts do not.

use std::time::{Duration, Instant};

use resources::Clock;
use sources::AnswerBudget;

use crate::call_account::CallAccount;

/// How long a try may take. Reading a balance takes 5 µs and a swap 100 µs; other connections do not notice 200 µs.
const TRY_TIME: Duration = Duration::from_micros(200);

/// Tries rest for this multiple of the lost time, so that one account wastes at most a tenth of one thread.
const REST_MULTIPLE: u32 = 9;

/// Upper bound of the time that counts as lost: a thread that the kernel preempted seems to have lost much more.
const LOST_MAX: Duration = TRY_TIME.saturating_mul(3);

/// Decides when pooled work is tried inline.
#[derive(Debug, Default)]
pub(super) struct InlineTries {
    clock: Clock,
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
        let now = self.clock.now();
        if !account.inline_tries_rest.is_over(now) {
            return None;
        }
        let began = self.clock.instant(now);
        let budget =
            AnswerBudget { deadline: Some(began + TRY_TIME), abandoned: None, brief: true, reply: None };
        Some(InlineTry { began, budget })
    }

    /// Makes the tries of the account rest after one that did not finish.
    pub(super) fn failed(&self, account: CallAccount<'_>, attempt: &InlineTry) {
        let rest = attempt.took().min(LOST_MAX) * REST_MULTIPLE;
        account.inline_tries_rest.extend_to(self.clock.now().after(rest));
    }
}

impl InlineTry {
    pub(super) fn took(&self) -> Duration {
        self.began.elapsed()
    }
}

#[cfg(test)]
mod tests {
    use resources::{AccountId, MonoTime, Rest};

    use super::*;

    const TIME: Duration = Duration::from_secs(1);

    fn account(rest: &Rest) -> CallAccount<'_> {
        CallAccount { id: AccountId::unique(), inline_tries_rest: rest }
    }

    #[test]
    fn a_failed_try_makes_the_next_ones_rest_in_proportion_to_the_lost_time() {
        let (tries, rest) = (InlineTries::default(), Rest::default());
        let account = account(&rest);
        let attempt = tries.begin(account, TIME).unwrap();
        let began = tries.clock.now();
        std::thread::sleep(TRY_TIME);
        tries.failed(account, &attempt);
        let ended = tries.clock.now();
        assert!(!rest.is_over(began.after(TRY_TIME * REST_MULTIPLE)));
        assert!(rest.is_over(ended.after(LOST_MAX * REST_MULTIPLE)));
    }

    /// One account's endless simulations used to send everybody's cheap calls to the pool.
    #[test]
    fn the_tries_of_one_account_rest_and_those_of_another_go_on() {
        let (tries, resting, awake) = (InlineTries::default(), Rest::default(), Rest::default());
        resting.extend_to(MonoTime(u64::MAX));
        let (greedy, other) = (account(&resting), account(&awake));
        assert!(tries.begin(greedy, TIME).is_none());
        assert!(tries.begin(other, TIME).is_some_and(|attempt| attempt.budget.is_brief()));
        assert!(tries.begin(other, Duration::ZERO).is_none(), "work without time is not tried");
    }
}
