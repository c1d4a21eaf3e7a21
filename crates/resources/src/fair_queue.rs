//! Selects the next job by fair queueing over accounts, with measured time as the cost.
//!
//! The jobs of an account wait behind its own. The account that has used least time is next, and those that have used the same
//! take turns. A new account begins where all accounts would be if each had used the same time ([`FairQueue::fair_ns`]). That
//! advances with every job, so an account with waiting jobs gets its turn although new accounts keep coming.
//!
//! An account waits and runs within its share of the places (`fair_share`), so that a new account finds some. The queue only
//! decides: threads run the jobs of the pool, and connections those of a node.

use std::collections::{HashMap, VecDeque};
use std::time::Duration;

use crate::account_id::AccountId;
use crate::fair_share::is_within_share;

/// How far the used time of an account may be from the fair time. It bounds how long others go first after one long job, and
/// how long an account goes first that could not use its time.
const DISTANCE_MAX: Duration = Duration::from_millis(32);

/// Lists of accounts without jobs that are kept for the next accounts, so that a job usually needs no new memory.
const SPARE_LISTS_MAX: usize = 16;

/// The most jobs for which a spare list may have room.
const SPARE_LIST_JOBS_MAX: usize = 64;

/// The waiting jobs by account, and the number of running ones.
#[derive(Debug)]
pub struct FairQueue<J> {
    accounts: HashMap<AccountId, AccountJobs<J>>,
    /// The accounts with waiting jobs. Among those that have used the same time, the first is next.
    turns: VecDeque<AccountId>,
    /// The time that each account with jobs would have used if all had used the same.
    fair_ns: u64,
    running: usize,
    waiting: usize,
    running_per_account_max: usize,
    running_max: usize,
    waiting_max: usize,
    spare: Vec<VecDeque<J>>,
}

#[derive(Debug)]
struct AccountJobs<J> {
    waiting: VecDeque<J>,
    running: usize,
    /// Time that its jobs have used, counted from the fair time at which the account came.
    used_ns: u64,
}

/// An account has used up its share of the queue.
#[derive(Debug)]
pub struct QueueFull;

impl<J> FairQueue<J> {
    pub fn new(running_per_account_max: usize, running_max: usize, waiting_max: usize) -> Self {
        Self {
            accounts: HashMap::new(),
            turns: VecDeque::new(),
            fair_ns: 0,
            running: 0,
            waiting: 0,
            running_per_account_max,
            running_max,
            waiting_max,
            spare: Vec::new(),
        }
    }

    pub fn waiting(&self) -> usize {
        self.waiting
    }

    pub fn running(&self) -> usize {
        self.running
    }

    /// The number of accounts with waiting jobs.
    pub fn waiting_accounts(&self) -> usize {
        self.turns.len()
    }

    pub(crate) fn running_max(&self) -> usize {
        self.running_max
    }

    /// Adds a job behind the others of its account.
    pub fn push(&mut self, id: AccountId, job: J) -> Result<(), QueueFull> {
        if !self.has_room(id) {
            return Err(QueueFull);
        }
        self.waiting_jobs(id).push_back(job);
        self.waiting += 1;
        Ok(())
    }

    /// Whether another job of this account may wait.
    pub fn has_room(&self, id: AccountId) -> bool {
        let own = self.accounts.get(&id).map_or(0, |account| account.waiting.len());
        is_within_share(own, 1, self.waiting, self.waiting_max)
    }

    /// Puts a job that was taken before the others of its account, however many jobs wait.
    pub fn put_back(&mut self, id: AccountId, job: J) {
        self.waiting_jobs(id).push_front(job);
        self.waiting += 1;
    }

    /// The waiting jobs of an account that gets another one, and so has a turn.
    fn waiting_jobs(&mut self, id: AccountId) -> &mut VecDeque<J> {
        let (spare, fair_ns) = (&mut self.spare, self.fair_ns);
        let new_account =
            || AccountJobs { waiting: spare.pop().unwrap_or_default(), running: 0, used_ns: fair_ns };
        let account = self.accounts.entry(id).or_insert_with(new_account);
        if account.waiting.is_empty() {
            self.turns.push_back(id);
        }
        &mut account.waiting
    }

    /// Whether any waiting job may run now.
    pub fn can_start(&self) -> bool {
        self.turns.iter().any(|&id| self.may_run(id))
    }

    /// The next job, which counts as running from now on.
    pub fn start_next(&mut self) -> Option<(AccountId, J)> {
        let runnable = self.turns.iter().enumerate().filter(|&(_, &id)| self.may_run(id));
        let (position, _) = runnable.min_by_key(|&(_, &id)| self.used_ns(id))?;
        let id = self.turns.remove(position)?;
        self.running += 1;
        if let Some(account) = self.accounts.get_mut(&id) {
            account.running += 1;
        }
        self.pop(id).map(|job| (id, job))
    }

    /// The next job that may run as a part of one that `first` has started: of `first`, or (if they may mix) of another
    /// account that is within its share. It does not count as running.
    pub fn take_along(&mut self, first: AccountId, may_mix: bool) -> Option<(AccountId, J)> {
        let may_join = |&id: &AccountId| id == first || may_mix && self.may_run(id);
        let position = self.turns.iter().position(may_join)?;
        let id = self.turns.remove(position)?;
        let job = self.pop(id)?;
        self.forget_unused(id);
        Some((id, job))
    }

    /// Takes the oldest job of an account that has no turn, and gives it one if it has more.
    fn pop(&mut self, id: AccountId) -> Option<J> {
        let account = self.accounts.get_mut(&id)?;
        let job = account.waiting.pop_front()?;
        self.waiting -= 1;
        if !account.waiting.is_empty() {
            self.turns.push_back(id);
        }
        Some(job)
    }

    /// Counts a job as done, and its time as used by its account.
    pub fn finish(&mut self, id: AccountId, took: Duration) {
        self.running -= 1;
        let (took_ns, accounts) = (nanoseconds(took), self.accounts.len().max(1) as u64);
        self.fair_ns = self.fair_ns.saturating_add(took_ns / accounts);
        let Some(account) = self.accounts.get_mut(&id) else { return };
        account.running -= 1;
        account.used_ns = within_distance(account.used_ns.saturating_add(took_ns), self.fair_ns);
        self.forget_unused(id);
    }

    /// Drops the waiting jobs that are not wanted any more.
    pub fn retain(&mut self, is_wanted: impl Fn(&J) -> bool) {
        for account in self.accounts.values_mut() {
            account.waiting.retain(&is_wanted);
        }
        self.settle();
    }

    /// Takes all waiting jobs.
    pub fn take_all(&mut self) -> Vec<J> {
        let jobs = self.accounts.values_mut().flat_map(|account| account.waiting.drain(..)).collect();
        self.settle();
        jobs
    }

    /// Counts the waiting jobs anew, after some were taken out of the middle.
    fn settle(&mut self) {
        self.waiting = self.accounts.values().map(|account| account.waiting.len()).sum();
        let accounts = &self.accounts;
        self.turns.retain(|id| accounts.get(id).is_some_and(|account| !account.waiting.is_empty()));
        self.accounts.retain(|_, account| account.running > 0 || !account.waiting.is_empty());
    }

    /// Forgets an account without jobs. If it has used much time, that is forgotten, too.
    fn forget_unused(&mut self, id: AccountId) {
        let is_unused = |account: &AccountJobs<J>| account.running == 0 && account.waiting.is_empty();
        if !self.accounts.get(&id).is_some_and(is_unused) {
            return;
        }
        let unused = self.accounts.remove(&id).map(|account| account.waiting);
        let may_keep = |list: &VecDeque<J>| list.capacity() <= SPARE_LIST_JOBS_MAX;
        if let Some(list) = unused.filter(may_keep)
            && self.spare.len() < SPARE_LISTS_MAX
        {
            self.spare.push(list);
        }
    }

    fn used_ns(&self, id: AccountId) -> u64 {
        within_distance(self.accounts.get(&id).map_or(0, |account| account.used_ns), self.fair_ns)
    }

    /// Whether a job of this account may run now.
    pub fn may_run(&self, id: AccountId) -> bool {
        let own = self.accounts.get(&id).map_or(0, |account| account.running);
        own < self.running_per_account_max && is_within_share(own, 1, self.running, self.running_max)
    }
}

/// The used time of an account, as far as it counts.
fn within_distance(used_ns: u64, fair_ns: u64) -> u64 {
    let distance = nanoseconds(DISTANCE_MAX);
    used_ns.clamp(fair_ns.saturating_sub(distance), fair_ns.saturating_add(distance))
}

fn nanoseconds(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const MS: Duration = Duration::from_millis(1);

    fn push(queue: &mut FairQueue<usize>, id: AccountId, jobs: usize) -> usize {
        (0..jobs).filter(|&job| queue.push(id, job).is_ok()).count()
    }

    fn started(queue: &mut FairQueue<usize>) -> Option<AccountId> {
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

    /// Each new account had credit, and as long as any account had some, no account with a debt got more.
    #[test]
    fn an_account_with_waiting_jobs_gets_its_turn_while_new_accounts_keep_coming() {
        let waiting = AccountId::unique();
        let mut queue = FairQueue::new(1, 1, 100);
        push(&mut queue, waiting, 2);
        let mut running = started(&mut queue).unwrap();
        let others = (0..100).take_while(|_| {
            push(&mut queue, AccountId::unique(), 1);
            queue.finish(running, MS * 10);
            running = started(&mut queue).unwrap();
            running != waiting
        });
        assert!((1..5).contains(&others.count()));
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

    /// One step of a queue.
    #[derive(Clone, Copy, Debug)]
    enum QueueAction {
        Push(usize),
        Start,
        TakeAlong {
            first: usize,
            may_mix: bool,
        },
        /// Ends the running job at this place, counted around.
        Finish(usize),
        /// Drops the jobs whose numbers this divides.
        Drop(usize),
        /// Puts the job that was taken last back.
        PutBack,
    }

    fn step() -> impl Strategy<Value = QueueAction> {
        prop_oneof![
            4 => (0..4_usize).prop_map(QueueAction::Push),
            3 => Just(QueueAction::Start),
            1 => (0..4_usize, any::<bool>()).prop_map(|(first, may_mix)| QueueAction::TakeAlong { first, may_mix }),
            2 => (0..8_usize).prop_map(QueueAction::Finish),
            1 => (2..5_usize).prop_map(QueueAction::Drop),
            1 => Just(QueueAction::PutBack),
        ]
    }

    const RUNNING_MAX: usize = 6;
    const WAITING_MAX: usize = 12;

    /// A reference for the queue, made of plain lists, for jobs that take no time.
    #[derive(Default)]
    struct NaiveQueue {
        /// Account and job, the oldest first.
        waiting: Vec<(usize, usize)>,
        running: Vec<usize>,
        /// Since when each account waits for its turn.
        since: [usize; 4],
        now: usize,
    }

    impl NaiveQueue {
        fn own(&self, account: usize) -> usize {
            self.waiting.iter().filter(|(owner, _)| *owner == account).count()
        }

        /// Notes that an account begins to wait for a turn.
        fn begins_to_wait(&mut self, account: usize) {
            self.now += 1;
            self.since[account] = self.now;
        }

        fn push(&mut self, account: usize, job: usize) -> bool {
            if !is_within_share(self.own(account), 1, self.waiting.len(), WAITING_MAX) {
                return false;
            }
            if self.own(account) == 0 {
                self.begins_to_wait(account);
            }
            self.waiting.push((account, job));
            true
        }

        fn put_back(&mut self, account: usize, job: usize) {
            if self.own(account) == 0 {
                self.begins_to_wait(account);
            }
            self.waiting.insert(0, (account, job));
        }

        /// Takes the oldest job of the account that waits longest for a turn, of those that may be chosen.
        fn take(&mut self, may_be_chosen: impl Fn(usize, bool) -> bool) -> Option<(usize, usize)> {
            let own_running = |account| self.running.iter().filter(|owner| **owner == account).count();
            let may_run = |account| is_within_share(own_running(account), 1, self.running.len(), RUNNING_MAX);
            let accounts = (0..4).filter(|account| self.own(*account) > 0);
            let accounts = accounts.filter(|account| may_be_chosen(*account, may_run(*account)));
            let account = accounts.min_by_key(|account| self.since[*account])?;
            let position = self.waiting.iter().position(|(owner, _)| *owner == account)?;
            let taken = self.waiting.remove(position);
            self.begins_to_wait(account);
            Some(taken)
        }
    }

    proptest! {
        #[test]
        fn a_queue_does_what_its_naive_model_does(steps in proptest::collection::vec(step(), 0..200)) {
            let ids: [AccountId; 4] = std::array::from_fn(|_| AccountId::unique());
            let number = |id| ids.iter().position(|other| *other == id).unwrap();
            let mut queue = FairQueue::new(usize::MAX, RUNNING_MAX, WAITING_MAX);
            let mut model = NaiveQueue::default();
            let mut last = None;
            for (job, step) in steps.into_iter().enumerate() {
                match step {
                    QueueAction::Push(account) => {
                        prop_assert_eq!(queue.push(ids[account], job).is_ok(), model.push(account, job));
                    }
                    QueueAction::Start => {
                        let taken = queue.start_next().map(|(id, job)| (number(id), job));
                        prop_assert_eq!(taken, model.take(|_, may_run| may_run));
                        model.running.extend(taken.map(|(account, _)| account));
                        last = taken.or(last);
                    }
                    QueueAction::TakeAlong { first, may_mix } => {
                        let taken = queue.take_along(ids[first], may_mix);
                        let taken = taken.map(|(id, job)| (number(id), job));
                        let expected = model.take(|account, may_run| account == first || may_mix && may_run);
                        prop_assert_eq!(taken, expected);
                        last = taken.or(last);
                    }
                    QueueAction::Finish(place) => if !model.running.is_empty() {
                        let account = model.running.remove(place % model.running.len());
                        queue.finish(ids[account], Duration::ZERO);
                    }
                    QueueAction::Drop(divisor) => {
                        queue.retain(|job| !job.is_multiple_of(divisor));
                        model.waiting.retain(|(_, job)| !job.is_multiple_of(divisor));
                    }
                    QueueAction::PutBack => if let Some((account, job)) = last.take() {
                        queue.put_back(ids[account], job);
                        model.put_back(account, job);
                    }
                }
                prop_assert_eq!(queue.waiting(), model.waiting.len());
            }
            let mut left: Vec<_> = model.waiting.into_iter().map(|(_, job)| job).collect();
            let mut all = queue.take_all();
            left.sort_unstable();
            all.sort_unstable();
            prop_assert_eq!(all, left);
        }
    }
}
