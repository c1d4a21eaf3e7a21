//! Selects the next job by deficit round robin over accounts, with measured time as the cost.

use std::collections::{HashMap, VecDeque};
use std::time::Duration;

use crate::account_id::AccountId;
use crate::fair_share::is_within_share;

pub(super) type PoolJob = Box<dyn FnOnce() + Send>;

/// Time that an account earns per round. A typical pooled call takes about as long, so that it does not skip a round.
const QUANTUM: Duration = Duration::from_millis(2);

/// Maximum debt of an account. One long job makes it skip at most 16 rounds.
const DEBT_MAX: Duration = QUANTUM.saturating_mul(16);

/// The waiting jobs by account, and the number of running ones.
pub(super) struct FairQueue {
    accounts: HashMap<AccountId, AccountJobs>,
    /// The accounts with waiting jobs, the next one first.
    turns: VecDeque<AccountId>,
    running: usize,
    waiting: usize,
    running_per_account_max: usize,
    running_max: usize,
    waiting_max: usize,
}

/// The jobs of one account.
struct AccountJobs {
    waiting: VecDeque<PoolJob>,
    running: usize,
    /// Time that the account may use in this round; with a negative credit it skips rounds.
    credit_ns: i64,
}

/// An account has used up its share of the queue.
#[derive(Debug)]
pub struct QueueFull;

impl FairQueue {
    pub(super) fn new(running_per_account_max: usize, running_max: usize, waiting_max: usize) -> Self {
        Self {
            accounts: HashMap::new(),
            turns: VecDeque::new(),
            running: 0,
            waiting: 0,
            running_per_account_max,
            running_max,
            waiting_max,
        }
    }

    pub(super) fn waiting(&self) -> usize {
        self.waiting
    }

    pub(super) fn running_max(&self) -> usize {
        self.running_max
    }

    /// Adds a job behind the others of its account.
    pub(super) fn push(&mut self, id: AccountId, job: PoolJob) -> Result<(), QueueFull> {
        let own = self.accounts.get(&id).map_or(0, |account| account.waiting.len());
        if !is_within_share(own, 1, self.waiting, self.waiting_max) {
            return Err(QueueFull);
        }
        let account = self.accounts.entry(id).or_insert_with(AccountJobs::new);
        if account.waiting.is_empty() {
            self.turns.push_back(id);
        }
        account.waiting.push_back(job);
        self.waiting += 1;
        Ok(())
    }

    /// Whether any waiting job may run now.
    pub(super) fn can_start(&self) -> bool {
        self.turns.iter().any(|&id| self.may_run(id))
    }

    /// The next job, which counts as running from now on.
    pub(super) fn start_next(&mut self) -> Option<(AccountId, PoolJob)> {
        self.begin_round();
        let position = self.turns.iter().position(|&id| self.may_run(id) && self.credit_ns(id) > 0)?;
        let id = self.turns.remove(position)?;
        let account = self.accounts.get_mut(&id)?;
        let job = account.waiting.pop_front()?;
        account.running += 1;
        if !account.waiting.is_empty() {
            self.turns.push_back(id);
        }
        self.running += 1;
        self.waiting -= 1;
        Some((id, job))
    }

    /// Gives every account that may run a job the same credit, once none of them has credit left.
    fn begin_round(&mut self) {
        let may_run: Vec<_> = self.turns.iter().copied().filter(|&id| self.may_run(id)).collect();
        let Some(most_ns) = may_run.iter().map(|&id| self.credit_ns(id)).max().filter(|&most| most <= 0)
        else {
            return;
        };
        // Adds as many rounds as it takes until one account may run; debts are bounded, so these are few.
        let rounds = -most_ns / nanoseconds(QUANTUM) + 1;
        for id in may_run {
            if let Some(account) = self.accounts.get_mut(&id) {
                account.credit_ns += rounds * nanoseconds(QUANTUM);
            }
        }
    }

    /// Counts a job as done and subtracts its time from the credit of its account.
    pub(super) fn finish(&mut self, id: AccountId, took: Duration) {
        self.running -= 1;
        let Some(account) = self.accounts.get_mut(&id) else { return };
        account.running -= 1;
        account.credit_ns = account.credit_ns.saturating_sub(nanoseconds(took)).max(-nanoseconds(DEBT_MAX));
        // The debt of an account without further jobs is dropped, so its next job waits for one round at most.
        if account.running == 0 && account.waiting.is_empty() {
            self.accounts.remove(&id);
        }
    }

    fn credit_ns(&self, id: AccountId) -> i64 {
        self.accounts.get(&id).map_or(0, |account| account.credit_ns)
    }

    fn may_run(&self, id: AccountId) -> bool {
        let own = self.accounts.get(&id).map_or(0, |account| account.running);
        own < self.running_per_account_max && is_within_share(own, 1, self.running, self.running_max)
    }
}

impl AccountJobs {
    fn new() -> Self {
        Self { waiting: VecDeque::new(), running: 0, credit_ns: nanoseconds(QUANTUM) }
    }
}

fn nanoseconds(time: Duration) -> i64 {
    i64::try_from(time.as_nanos()).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    fn push(queue: &mut FairQueue, id: AccountId, jobs: usize) -> usize {
        (0..jobs).filter(|_| queue.push(id, Box::new(|| ())).is_ok()).count()
    }

    fn started(queue: &mut FairQueue) -> Option<AccountId> {
        queue.start_next().map(|(id, _)| id)
    }

    #[test]
    fn an_account_waits_behind_its_own_jobs_and_not_behind_those_of_others() {
        let (greedy, other) = (AccountId::unique(), AccountId::unique());
        let mut queue = FairQueue::new(2, 16, 4_096);
        assert_eq!(push(&mut queue, greedy, 64), 64);
        assert_eq!([started(&mut queue), started(&mut queue)], [Some(greedy), Some(greedy)]);
        assert_eq!(started(&mut queue), None, "an account has as many threads as there are cores");
        push(&mut queue, other, 1);
        assert_eq!(started(&mut queue), Some(other));
        queue.finish(greedy, MS);
        assert_eq!(started(&mut queue), Some(greedy));
    }

    #[test]
    fn a_full_queue_refuses_only_the_account_that_filled_it() {
        let (greedy, other) = (AccountId::unique(), AccountId::unique());
        let mut queue = FairQueue::new(1, 8, 100);
        assert_eq!(push(&mut queue, greedy, 1_000), 50);
        assert_eq!(push(&mut queue, other, 20), 20);
    }

    /// When every thread is in use, an account whose jobs take ten times as long starts a tenth as many.
    #[test]
    fn waiting_accounts_get_the_same_time_and_not_the_same_number_of_jobs() {
        let (long, short) = (AccountId::unique(), AccountId::unique());
        let mut queue = FairQueue::new(1, 1, 4_096);
        push(&mut queue, long, 1_000);
        push(&mut queue, short, 1_000);
        let mut times = [Duration::ZERO; 2];
        for _ in 0..550 {
            let id = started(&mut queue).unwrap();
            let took = if id == long { MS * 10 } else { MS };
            times[usize::from(id == short)] += took;
            queue.finish(id, took);
        }
        let [long_time, short_time] = times.map(|time| time.as_millis() as f64);
        assert!((0.8..1.25).contains(&(long_time / short_time)), "{times:?}");
    }

    #[test]
    fn accounts_without_jobs_have_no_entry() {
        let mut queue = FairQueue::new(1, 8, 100);
        for _ in 0..100 {
            push(&mut queue, AccountId::unique(), 1);
            let (id, _) = queue.start_next().unwrap();
            queue.finish(id, MS);
        }
        assert!(queue.accounts.is_empty() && queue.turns.is_empty());
    }

    #[test]
    fn a_new_account_starts_at_once_beside_several_greedy_accounts() {
        let mut queue = FairQueue::new(2, 16, 4_096);
        for _ in 0..7 {
            push(&mut queue, AccountId::unique(), 64);
            while queue.start_next().is_some() {}
        }
        let new_account = AccountId::unique();
        push(&mut queue, new_account, 1);
        assert_eq!(started(&mut queue), Some(new_account));
    }
}
