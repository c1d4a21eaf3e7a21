//! Identical calls in flight share one answer, and identical fetches for an answer share what was fetched.
//!
//! The first to ask starts the work, the others wait for it too. When the last of them has gone, the work is told to
//! stop, and a newcomer with the same question starts anew rather than wait for something that is being given up.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::hash::Hash;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

use foldhash::quality::RandomState;
use parking_lot::Mutex;
use resources::{AccountId, ThreadPool};
use tokio::sync::oneshot;
use tokio::time::{Instant, timeout_at};

use crate::failure::Failure;
use crate::shared::SharedAnswer;

type FlightResult<T> = Result<T, Failure>;

/// Work in flight, by key. Two keys are equal only if the same answer is right for both.
pub struct Flights<K, T = SharedAnswer> {
    // The hasher is keyed: callers choose what is hashed here.
    under_way: Mutex<HashMap<Arc<K>, Flight<T>, RandomState>>,
    /// How often a call joined a flight that another had started.
    joined: AtomicU64,
}

impl<K, T> Default for Flights<K, T> {
    fn default() -> Self {
        Self { under_way: Mutex::default(), joined: AtomicU64::default() }
    }
}

impl<K, T> std::fmt::Debug for Flights<K, T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Flights").field("joined", &self.joined).finish_non_exhaustive()
    }
}

struct Flight<T> {
    waiters: Vec<oneshot::Sender<FlightResult<T>>>,
    abandoned: Arc<AtomicBool>,
}

impl<K: Eq + Hash, T: Clone> Flights<K, T> {
    /// Waits for the answer for `key`, which is started in `pool` for the account unless it is under way already.
    pub async fn join<W>(
        self: &Arc<Self>,
        key: K,
        account: AccountId,
        pool: &ThreadPool,
        work: impl FnOnce(Arc<AtomicBool>) -> W,
    ) -> FlightResult<T>
    where
        W: FnOnce() -> FlightResult<T> + Send + 'static,
        K: Send + Sync + 'static,
        T: Send + 'static,
    {
        let key = Arc::new(key);
        let (receiver, started) = self.join_or_start(&key);
        let waiting = FlightWaiter { flights: self, key: &key, receiver };
        if let Some(abandoned) = started {
            let lead = FlightLeader::new(self, &key, &abandoned);
            let work = work(Arc::clone(&abandoned));
            let (flights, led_key, led) = (Arc::clone(self), Arc::clone(&key), Arc::clone(&abandoned));
            let job = move || {
                let lead = FlightLeader::new(&flights, &led_key, &led);
                let outcome = work();
                lead.deliver(&outcome);
            };
            if pool.submit(account, job).is_err() {
                lead.deliver(&Err(Failure::OverCapacity));
                return Err(Failure::OverCapacity);
            }
            lead.hand_over();
        }
        waiting.outcome().await
    }

    /// Waits until `deadline` for the answer for `key`, which the first to ask works out for all. If that one goes away, the
    /// next one takes over; and if it runs out of time or of its share, whoever waited for it tries for itself.
    pub async fn share<F>(&self, key: K, deadline: Instant, mut work: impl FnMut() -> F) -> FlightResult<T>
    where
        F: Future<Output = FlightResult<T>> + Send,
    {
        let key = Arc::new(key);
        let mut has_waited = false;
        loop {
            let (receiver, started) = self.join_or_start(&key);
            // The leader waits, too, so that the flight does not end when all others have gone.
            let mut waiting = FlightWaiter { flights: self, key: &key, receiver };
            let Some(mine) = started else {
                // The one who is at it may have more time.
                match timeout_at(deadline, &mut waiting.receiver).await {
                    Err(_) => return Err(Failure::Unavailable),
                    Ok(Ok(Err(failure))) if !has_waited && is_of_the_first(&failure) => has_waited = true,
                    Ok(Ok(outcome)) => return outcome,
                    // The call that led the flight was cancelled.
                    Ok(Err(_)) => {}
                }
                continue;
            };
            let lead = FlightLeader::new(self, &key, &mine);
            let outcome = work().await;
            lead.deliver(&outcome);
            return outcome;
        }
    }

    /// Whether the answer for `key` is under way.
    pub fn has(&self, key: &K) -> bool {
        self.under_way.lock().contains_key(key)
    }

    /// How often a call joined an equal one in flight.
    pub fn joined(&self) -> u64 {
        self.joined.load(Relaxed)
    }

    /// Whether nothing is under way.
    pub fn is_empty(&self) -> bool {
        self.under_way.lock().is_empty()
    }

    /// Waits for the flight under way, or starts a new one. Returns the flag of a new flight too.
    fn join_or_start(&self, key: &Arc<K>) -> (oneshot::Receiver<FlightResult<T>>, Option<Arc<AtomicBool>>) {
        let (waiter, receiver) = oneshot::channel();
        let started = match self.under_way.lock().entry(Arc::clone(key)) {
            Entry::Occupied(mut flight) => {
                flight.get_mut().waiters.push(waiter);
                self.joined.fetch_add(1, Relaxed);
                None
            }
            Entry::Vacant(place) => {
                let abandoned = Arc::new(AtomicBool::new(false));
                place.insert(Flight { waiters: vec![waiter], abandoned: Arc::clone(&abandoned) });
                Some(abandoned)
            }
        };
        (receiver, started)
    }

    /// Gives the outcome to all who wait, unless this flight was given up and another has taken its place.
    fn deliver(&self, key: &Arc<K>, mine: &Arc<AtomicBool>, outcome: &FlightResult<T>) {
        let flight = self.end(key, mine);
        for waiter in flight.into_iter().flat_map(|flight| flight.waiters) {
            // A waiter that was cancelled at this moment needs no answer.
            let _gone = waiter.send(outcome.clone());
        }
    }

    /// Removes this flight, unless another one has taken its place.
    fn end(&self, key: &Arc<K>, mine: &Arc<AtomicBool>) -> Option<Flight<T>> {
        match self.under_way.lock().entry(Arc::clone(key)) {
            Entry::Occupied(flight) if Arc::ptr_eq(&flight.get().abandoned, mine) => Some(flight.remove()),
            _ => None,
        }
    }

    /// Removes waiters that were cancelled. Work for which nobody waits any more is told to stop.
    fn leave(&self, key: &Arc<K>) {
        let mut under_way = self.under_way.lock();
        if let Some(flight) = under_way.get_mut(key) {
            flight.waiters.retain(|waiter| !waiter.is_closed());
            if flight.waiters.is_empty() {
                flight.abandoned.store(true, Relaxed);
                under_way.remove(key);
            }
        }
    }
}

/// Whether the one who worked out an answer failed for want of time or of its share. Others may have more.
fn is_of_the_first(failure: &Failure) -> bool {
    matches!(
        failure,
        Failure::Unavailable
            | Failure::AbsenceUnknown
            | Failure::OverCapacity
            | Failure::QueryTimeout
            | Failure::NotIndexed { .. }
            | Failure::CallTimeout(_)
    )
}

/// Whoever works out a shared answer. If it is dropped before it has one, because the call was cancelled or the work has
/// panicked, the channels of those who wait close.
struct FlightLeader<'a, K: Eq + Hash, T: Clone> {
    flights: &'a Flights<K, T>,
    key: &'a Arc<K>,
    mine: &'a Arc<AtomicBool>,
    /// Whether it has an answer, or somebody else leads.
    is_over: bool,
}

impl<'a, K: Eq + Hash, T: Clone> FlightLeader<'a, K, T> {
    fn new(flights: &'a Flights<K, T>, key: &'a Arc<K>, mine: &'a Arc<AtomicBool>) -> Self {
        Self { flights, key, mine, is_over: false }
    }

    fn deliver(mut self, outcome: &FlightResult<T>) {
        self.is_over = true;
        self.flights.deliver(self.key, self.mine, outcome);
    }

    /// The job in the pool leads from now on.
    fn hand_over(mut self) {
        self.is_over = true;
    }
}

impl<K: Eq + Hash, T: Clone> Drop for FlightLeader<'_, K, T> {
    fn drop(&mut self) {
        if !self.is_over {
            self.flights.end(self.key, self.mine);
        }
    }
}

/// A call that waits for a flight. It leaves the flight when it is dropped.
struct FlightWaiter<'a, K: Eq + Hash, T: Clone> {
    flights: &'a Flights<K, T>,
    key: &'a Arc<K>,
    receiver: oneshot::Receiver<FlightResult<T>>,
}

impl<K: Eq + Hash, T: Clone> FlightWaiter<'_, K, T> {
    async fn outcome(mut self) -> FlightResult<T> {
        let outcome = (&mut self.receiver).await;
        outcome.unwrap_or_else(|_| Err(Failure::Broken("pooled work ended without an answer".to_owned())))
    }
}

impl<K: Eq + Hash, T: Clone> Drop for FlightWaiter<'_, K, T> {
    fn drop(&mut self) {
        // Closed first, so that `leave` sees this waiter as gone.
        self.receiver.close();
        self.flights.leave(self.key);
    }
}

#[cfg(test)]
mod tests {
    use std::future::pending;
    use std::pin::pin;
    use std::time::Duration;

    use futures_util::FutureExt;

    use super::*;

    fn far() -> Instant {
        Instant::now() + Duration::from_secs(3_600)
    }

    /// Whoever joined a flight waited as long as the first caller had time: up to 30 seconds, whatever its own limit was.
    #[tokio::test]
    async fn a_follower_waits_until_its_own_deadline() {
        let flights: Flights<u8, u8> = Flights::default();
        let mut leader = pin!(flights.share(7, far(), pending));
        assert!((&mut leader).now_or_never().is_none());
        let follower = flights.share(7, Instant::now(), || async { Ok(1) });
        assert_eq!(follower.await, Err(Failure::Unavailable));
        assert_eq!(flights.joined(), 1);
    }

    /// The answer for a follower that could answer by itself, after the first caller has failed.
    async fn followed(failure: Failure) -> FlightResult<u8> {
        let flights: Flights<u8, u8> = Flights::default();
        let (send, receive) = oneshot::channel();
        let mut receive = Some(receive);
        let mut leader = pin!(flights.share(7, far(), || {
            let receive = receive.take();
            async move { receive.unwrap().await.unwrap() }
        }));
        assert!((&mut leader).now_or_never().is_none());
        let mut follower = pin!(flights.share(7, far(), || async { Ok(1) }));
        assert!((&mut follower).now_or_never().is_none());
        send.send(Err(failure)).unwrap();
        assert!(leader.await.is_err());
        follower.await
    }

    /// The first caller's `query timeout exceeded` went to everybody who waited, however much time they had left.
    #[tokio::test]
    async fn a_follower_tries_for_itself_when_the_first_runs_out_of_time_or_of_its_share() {
        assert_eq!(followed(Failure::Unavailable).await, Ok(1));
        assert_eq!(followed(Failure::OverCapacity).await, Ok(1));
        assert_eq!(followed(Failure::QueryTimeout).await, Ok(1));
        assert_eq!(followed(Failure::NotIndexed { from: 1, to: 2 }).await, Ok(1));
        assert_eq!(followed(Failure::CallTimeout(Duration::from_secs(5))).await, Ok(1));
        assert_eq!(followed(Failure::Lacking).await, Err(Failure::Lacking));
    }

    /// A panic of the work left its flight behind, and all who asked for the same waited for ever.
    #[tokio::test]
    async fn a_panic_ends_the_flight_and_not_those_who_wait() {
        let flights: Arc<Flights<u8, u8>> = Arc::default();
        let (pool, account) = (ThreadPool::start(1, 16).unwrap(), AccountId::unique());
        let (begin, begun) = std::sync::mpsc::channel::<()>();
        let mut leader = pin!(flights.join(7, account, &pool, |_| move || {
            let _released = begun.recv();
            panic!("a fault of ours")
        }));
        assert!((&mut leader).now_or_never().is_none());
        let mut follower = pin!(flights.join(7, account, &pool, |_| || Ok(1)));
        assert!((&mut follower).now_or_never().is_none());
        drop(begin);
        assert!(matches!(leader.await, Err(Failure::Broken(_))));
        assert!(matches!(follower.await, Err(Failure::Broken(_))));
        assert_eq!(flights.join(7, account, &pool, |_| || Ok(2)).await, Ok(2));
    }

    #[tokio::test]
    async fn a_follower_tries_for_itself_when_the_first_panics() {
        let flights: Flights<u8, u8> = Flights::default();
        let (begin, begun) = oneshot::channel::<()>();
        let mut begun = Some(begun);
        let leader = flights.share(7, far(), || {
            let begun = begun.take();
            async move {
                let _released = begun.unwrap().await;
                panic!("a fault of ours")
            }
        });
        let mut leader = pin!(std::panic::AssertUnwindSafe(leader).catch_unwind());
        assert!((&mut leader).now_or_never().is_none());
        let mut follower = pin!(flights.share(7, far(), || async { Ok(1) }));
        assert!((&mut follower).now_or_never().is_none());
        drop(begin);
        assert!(leader.await.is_err());
        assert_eq!(follower.await, Ok(1));
        assert!(flights.is_empty());
    }

    /// Callers that had gone stayed in the list of those who wait until the flight ended, 30 seconds later.
    #[tokio::test]
    async fn callers_that_have_gone_are_not_kept() {
        let flights: Flights<u8, u8> = Flights::default();
        let mut leader = pin!(flights.share(7, far(), pending));
        assert!((&mut leader).now_or_never().is_none());
        let waiting = || flights.under_way.lock().values().map(|flight| flight.waiters.len()).sum::<usize>();
        for _ in 0..100 {
            assert!(flights.share(7, far(), || async { Ok(1) }).now_or_never().is_none());
            assert!(flights.share(7, Instant::now(), || async { Ok(1) }).await.is_err());
        }
        assert_eq!(waiting(), 1, "only the leader is left");
        assert_eq!(flights.joined(), 200);
    }
}
