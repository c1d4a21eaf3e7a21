//! Turns on the thread of a connection, fair between accounts.
//!
//! A runtime polls its tasks in the order in which they are woken, so whoever has most connections gets most of the thread. Work
//! that takes longer than a short call is therefore polled in a turn: a thread gives one turn at a time, and accounts get theirs
//! by the time that they have used ([`FairQueue`]). A turn lasts for one poll, so work that waits for something else never
//! keeps others waiting.

use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use tokio::sync::oneshot::{self, Receiver, Sender};

use crate::account_id::AccountId;
use crate::fair_queue::{FairQueue, QueueFull};

/// The turns on one thread.
#[derive(Debug)]
pub struct FairTurns {
    queue: Mutex<FairQueue<Sender<Turn>>>,
}

/// Work that may wait for its first turn, over all accounts; one of them gets half. Each has a request in memory.
const WAITING_MAX: usize = 16_384;

impl FairTurns {
    #[allow(clippy::new_without_default, reason = "each thread has one, and nobody wants another")]
    pub fn new() -> Arc<Self> {
        Arc::new(Self { queue: Mutex::new(FairQueue::new(1, 1, WAITING_MAX)) })
    }

    /// Does the account's work in turns, or refuses it at once.
    pub async fn run<T>(
        self: &Arc<Self>,
        account: AccountId,
        mut work: Pin<&mut (impl Future<Output = T> + Send)>,
    ) -> Result<T, QueueFull> {
        let wakes = Arc::new(WorkWaker::default());
        let waker = Waker::from(Arc::clone(&wakes));
        let mut coming = self.first_turn(account)?;
        loop {
            let mut turn = coming.await.map_err(|_| QueueFull)?;
            let began = Instant::now();
            if let Poll::Ready(done) = work.as_mut().poll(&mut Context::from_waker(&waker)) {
                turn.took = began.elapsed();
                return Ok(done);
            }
            turn.took = began.elapsed();
            // The runtime looks for new input first. It does so only now and then while tasks are ready, and short calls that
            // have arrived would wait for a turn of every connection.
            tokio::task::yield_now().await;
            drop(turn);
            wakes.woken().await;
            coming = self.next_turn(account);
        }
    }

    fn first_turn(self: &Arc<Self>, account: AccountId) -> Result<Receiver<Turn>, QueueFull> {
        let (sender, coming) = oneshot::channel();
        self.queue.lock().push(account, sender)?;
        self.give_next();
        Ok(coming)
    }

    /// Work that has begun goes on before other work of its account, so that it ends and frees its memory.
    fn next_turn(self: &Arc<Self>, account: AccountId) -> Receiver<Turn> {
        let (sender, coming) = oneshot::channel();
        self.queue.lock().put_back(account, sender);
        self.give_next();
        coming
    }

    /// Gives the turns that are free.
    fn give_next(self: &Arc<Self>) {
        while let Some((account, sender)) = self.next_waiting() {
            let turn = Turn { turns: Arc::clone(self), account, took: Duration::ZERO };
            // A turn that nobody takes ends when it is dropped.
            drop(sender.send(turn));
        }
    }

    /// The next work that is still wanted, which has the turn from now on.
    fn next_waiting(&self) -> Option<(AccountId, Sender<Turn>)> {
        let mut queue = self.queue.lock();
        loop {
            let (account, sender) = queue.start_next()?;
            if !sender.is_closed() {
                return Some((account, sender));
            }
            queue.finish(account, Duration::ZERO);
        }
    }
}

/// The right to use the thread, which the next one gets when this is dropped.
#[derive(Debug)]
struct Turn {
    turns: Arc<FairTurns>,
    account: AccountId,
    took: Duration,
}

impl Drop for Turn {
    fn drop(&mut self) {
        self.turns.queue.lock().finish(self.account, self.took);
        self.turns.give_next();
    }
}

/// Wakes the task of some work, and tells whether the work itself was woken: the task is also woken for other reasons.
#[derive(Debug, Default)]
struct WorkWaker {
    state: Mutex<WakeState>,
}

#[derive(Debug, Default)]
struct WakeState {
    is_woken: bool,
    /// The task, while it waits.
    task: Option<Waker>,
}

impl WorkWaker {
    /// Waits until the work is woken, if it was not since the last time.
    async fn woken(&self) {
        poll_fn(|cx| {
            let mut state = self.state.lock();
            if std::mem::take(&mut state.is_woken) {
                return Poll::Ready(());
            }
            state.task = Some(cx.waker().clone());
            Poll::Pending
        })
        .await;
    }
}

impl Wake for WorkWaker {
    fn wake(self: Arc<Self>) {
        let task = {
            let mut state = self.state.lock();
            state.is_woken = true;
            state.task.take()
        };
        task.into_iter().for_each(Waker::wake);
    }
}

#[cfg(test)]
mod tests {
    use std::pin::pin;
    use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

    use tokio::task::yield_now;

    use super::*;

    /// Work of ten polls of about a fifth of a millisecond.
    async fn long_work() {
        for _ in 0..10 {
            let began = Instant::now();
            while began.elapsed() < Duration::from_micros(200) {
                std::hint::spin_loop();
            }
            yield_now().await;
        }
    }

    /// All work that was ready had its first turn before anything else: the turn was free while the work before it yielded.
    #[tokio::test]
    async fn input_is_looked_for_between_two_turns() {
        let turns = FairTurns::new();
        let polls = Arc::new(AtomicUsize::new(0));
        for _ in 0..100 {
            let (turns, polls) = (Arc::clone(&turns), Arc::clone(&polls));
            tokio::spawn(async move {
                let work = async {
                    polls.fetch_add(1, Relaxed);
                    yield_now().await;
                };
                turns.run(AccountId::unique(), pin!(work)).await.unwrap();
            });
        }
        // A task that yields is polled again after the runtime has looked for input.
        for _ in 0..10 {
            let before = polls.load(Relaxed);
            yield_now().await;
            assert!(polls.load(Relaxed) <= before + 2, "{} turns", polls.load(Relaxed) - before);
        }
    }

    /// One account with 900 connections had 900 of the polls between two polls of everybody else.
    #[tokio::test]
    async fn accounts_get_turns_and_not_connections() {
        let (turns, greedy, other) = (FairTurns::new(), AccountId::unique(), AccountId::unique());
        let crowd: Vec<_> = (0..200)
            .map(|_| {
                let turns = Arc::clone(&turns);
                tokio::spawn(async move { turns.run(greedy, pin!(long_work())).await.unwrap() })
            })
            .collect();
        yield_now().await;
        turns.run(other, pin!(long_work())).await.unwrap();
        assert!(!crowd.iter().all(|work| work.is_finished()), "the crowd was not waited for");
        for work in crowd {
            work.await.unwrap();
        }
    }

    #[tokio::test]
    async fn work_that_waits_has_no_turn() {
        let (turns, account) = (FairTurns::new(), AccountId::unique());
        let (sender, receiver) = oneshot::channel();
        let waiting = Arc::clone(&turns);
        let waiting = tokio::spawn(async move { waiting.run(account, pin!(receiver)).await.unwrap() });
        yield_now().await;
        assert_eq!(turns.run(account, pin!(async { 7 })).await.unwrap(), 7);
        sender.send(8).unwrap();
        assert_eq!(waiting.await.unwrap(), Ok(8));
    }

    #[tokio::test]
    async fn work_that_is_given_up_gives_its_turn_to_the_next() {
        let (turns, account) = (FairTurns::new(), AccountId::unique());
        let held = turns.first_turn(account).unwrap();
        let given_up = turns.first_turn(account).unwrap();
        let next = turns.first_turn(account).unwrap();
        drop(given_up);
        drop(held);
        assert!(next.await.is_ok());
        turns.run(account, pin!(async { 7 })).await.unwrap();
    }

    #[tokio::test]
    async fn one_account_does_not_fill_the_queue() {
        let (turns, greedy) = (FairTurns::new(), AccountId::unique());
        let waiting: Vec<_> = std::iter::from_fn(|| turns.first_turn(greedy).ok()).collect();
        assert_eq!(waiting.len(), 1 + WAITING_MAX / 2, "one has the turn");
        assert!(turns.first_turn(AccountId::unique()).is_ok());
    }
}
