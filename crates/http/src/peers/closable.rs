//! Selects the connection that is closed when `connections_max` is reached and another caller connects.
//!
//! The oldest connection without a recognised key is closed first. If there is none, an idle connection of the account with
//! most connections is closed, so that no account keeps out others with connections that it does not use. If that account has
//! no idle connection, the next largest accounts are tried. As a last resort, an account with more than half of all
//! connections loses its oldest one.
//!
//! Apart from that, a connection with a recognised key is closed only while no request on it is known to be running. A request
//! or the end of a reply that is in transit at that moment is lost, as when an idle connection times out.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use parking_lot::Mutex;
use resources::AccountId;
use tokio::sync::oneshot;

use crate::connection_state::ConnectionState;
use crate::policy::{SEARCHED_ACCOUNTS_MAX, SEARCHED_MAX};

/// All open connections.
#[derive(Debug, Default)]
pub(crate) struct ClosableConnections {
    lists: Mutex<ConnectionLists>,
}

/// Connections by number, so that the oldest comes first.
#[derive(Debug, Default)]
struct ConnectionLists {
    unrecognized: BTreeMap<u64, oneshot::Sender<()>>,
    by_account: HashMap<AccountId, AccountConnections>,
    /// The number of connections of each account; the account with most comes last.
    counts: BTreeSet<(usize, AccountId)>,
}

#[derive(Debug, Default)]
struct AccountConnections {
    connections: BTreeMap<u64, KnownConnection>,
    /// Start of the next search for an idle connection; the connections before it were busy recently.
    next: u64,
}

#[derive(Debug)]
struct KnownConnection {
    closer: oneshot::Sender<()>,
    state: Arc<ConnectionState>,
}

/// Resolves when the connection has to be closed to make room for another one.
#[derive(Debug)]
pub(crate) struct MustClose(oneshot::Receiver<()>);

impl MustClose {
    pub(crate) async fn wait(self) {
        // An error means that the connection was removed from the list, because it has ended.
        if self.0.await.is_err() {
            std::future::pending::<()>().await;
        }
    }
}

impl ClosableConnections {
    pub(crate) fn add(&self, connection: u64) -> MustClose {
        let (closer, closed) = oneshot::channel();
        self.lists.lock().unrecognized.insert(connection, closer);
        MustClose(closed)
    }

    /// Moves a connection to the list of its account.
    pub(crate) fn recognize(&self, connection: u64, account: AccountId, state: &Arc<ConnectionState>) {
        let mut lists = self.lists.lock();
        if let Some(closer) = lists.unrecognized.remove(&connection) {
            let known = KnownConnection { closer, state: Arc::clone(state) };
            lists.insert_known(connection, account, known);
        }
    }

    pub(crate) fn remove(&self, connection: u64, state: &ConnectionState) {
        let mut lists = self.lists.lock();
        lists.unrecognized.remove(&connection);
        // Read under the lock, because a request on another thread may recognise a key at the same time.
        if let Some(&account) = state.account.get() {
            lists.remove_known(connection, account);
        }
    }

    /// Closes one of `connections_max` connections to make room. `false`: none may be closed.
    pub(crate) fn close_one(&self, connections_max: usize) -> bool {
        let mut lists = self.lists.lock();
        while let Some((_, closer)) = lists.unrecognized.pop_first() {
            if closer.send(()).is_ok() {
                return true;
            }
        }
        let largest = lists.counts.iter().rev().take(SEARCHED_ACCOUNTS_MAX);
        let largest: Vec<_> = largest.map(|&(_, account)| account).collect();
        largest.into_iter().any(|account| lists.close_idle(account))
            || lists.close_of_majority(connections_max)
    }
}

impl ConnectionLists {
    fn insert_known(&mut self, number: u64, account: AccountId, connection: KnownConnection) {
        let own = self.by_account.entry(account).or_default();
        self.counts.remove(&(own.connections.len(), account));
        own.connections.insert(number, connection);
        self.counts.insert((own.connections.len(), account));
    }

    fn remove_known(&mut self, number: u64, account: AccountId) -> Option<KnownConnection> {
        let own = self.by_account.get_mut(&account)?;
        let connection = own.connections.remove(&number)?;
        let left = own.connections.len();
        self.counts.remove(&(left + 1, account));
        if left > 0 {
            self.counts.insert((left, account));
        } else {
            self.by_account.remove(&account);
        }
        Some(connection)
    }

    /// Closes the oldest connection of an account that has more than half of all, and not just one.
    fn close_of_majority(&mut self, connections_max: usize) -> bool {
        while let Some(&(count, account)) = self.counts.last()
            && count > (connections_max / 2).max(1)
            && let Some((&oldest, _)) =
                self.by_account.get(&account).and_then(|own| own.connections.first_key_value())
        {
            let connection = self.remove_known(oldest, account);
            // A connection that has already ended makes no room.
            if connection.is_some_and(|connection| connection.closer.send(()).is_ok()) {
                return true;
            }
        }
        false
    }

    /// Closes an idle connection of this account, if one search finds one.
    fn close_idle(&mut self, account: AccountId) -> bool {
        while let Some(number) = self.by_account.get_mut(&account).and_then(AccountConnections::find_idle) {
            let connection = self.remove_known(number, account);
            // A connection that has already ended makes no room.
            if connection.is_some_and(|connection| connection.closer.send(()).is_ok()) {
                return true;
            }
        }
        false
    }
}

impl AccountConnections {
    /// Examines up to `SEARCHED_MAX` connections, and returns the first idle one.
    fn find_idle(&mut self) -> Option<u64> {
        for _ in 0..SEARCHED_MAX.min(self.connections.len()) {
            let mut from_here = self.connections.range(self.next..).chain(&self.connections);
            let (&number, connection) = from_here.next()?;
            self.next = number + 1;
            if connection.state.may_make_room() {
                return Some(number);
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::Ordering::Relaxed;

    use futures_util::FutureExt;

    use super::*;
    use crate::connection_state::RunningRequest;

    /// So many that no account has more than half of them.
    const MANY: usize = 1_000;

    fn must_close_now(must_close: MustClose) -> bool {
        must_close.wait().now_or_never().is_some()
    }

    fn state_of(account: AccountId, is_idle: bool) -> Arc<ConnectionState> {
        let state = Arc::<ConnectionState>::default();
        state.account.set(account).unwrap();
        state.is_idle.store(is_idle, Relaxed);
        state
    }

    /// Adds connections of an account with these numbers; `true` for idle ones.
    fn add_known<const N: usize>(
        connections: &ClosableConnections,
        account: AccountId,
        numbers: [(u64, bool); N],
    ) -> [MustClose; N] {
        numbers.map(|(number, is_idle)| {
            let must_close = connections.add(number);
            connections.recognize(number, account, &state_of(account, is_idle));
            must_close
        })
    }

    #[test]
    fn the_oldest_connection_without_a_key_is_closed_first() {
        let connections = ClosableConnections::default();
        let [first] = add_known(&connections, AccountId::unique(), [(1, true)]);
        let [second, third] = [2, 3].map(|number| connections.add(number));
        assert!(connections.close_one(MANY));
        assert!(!must_close_now(first), "it has a recognised key");
        assert!(must_close_now(second));
        drop(third);
        assert!(!connections.close_one(MANY), "the others have ended");
    }

    #[test]
    fn an_idle_connection_of_the_account_with_most_connections_is_closed_next() {
        let connections = ClosableConnections::default();
        let [few] = add_known(&connections, AccountId::unique(), [(1, true)]);
        let [busy, idle, last] =
            add_known(&connections, AccountId::unique(), [(2, false), (3, true), (4, true)]);
        assert!(connections.close_one(MANY));
        assert!(!must_close_now(busy), "it has a running request");
        assert!(must_close_now(idle));
        assert!(!must_close_now(few) && !must_close_now(last));
    }

    #[test]
    fn busy_connections_are_not_closed_and_idle_ones_are_found_behind_them() {
        const BUSY: u64 = 3 * SEARCHED_MAX as u64;
        let (connections, account) = (ClosableConnections::default(), AccountId::unique());
        let busy: Vec<_> =
            (0..BUSY).flat_map(|number| add_known(&connections, account, [(number, false)])).collect();
        assert!((0..10).all(|_| !connections.close_one(MANY)));
        let [idle] = add_known(&connections, account, [(BUSY, true)]);
        assert!((0..10).any(|_| connections.close_one(MANY)), "a later search finds the idle one");
        assert!(must_close_now(idle));
        assert!(!busy.into_iter().any(must_close_now));
    }

    /// Only the account with most connections was searched, so an account with only busy connections kept out all others.
    #[test]
    fn an_idle_connection_of_the_next_largest_account_is_closed_if_the_largest_has_none() {
        let connections = ClosableConnections::default();
        let [small] = add_known(&connections, AccountId::unique(), [(1, true)]);
        let [idle, other] = add_known(&connections, AccountId::unique(), [(2, true), (3, false)]);
        let busy = add_known(&connections, AccountId::unique(), [(4, false), (5, false), (6, false)]);
        assert!(connections.close_one(MANY));
        assert!(must_close_now(idle));
        assert!(!must_close_now(other) && !busy.into_iter().any(must_close_now));
        assert!(connections.close_one(MANY));
        assert!(must_close_now(small), "the others have none");
        assert!(!connections.close_one(MANY));
    }

    /// An account could keep out all others with requests that were always running.
    #[test]
    fn an_account_with_more_than_half_of_all_loses_its_oldest_connection_even_if_it_is_busy() {
        let connections = ClosableConnections::default();
        let [other] = add_known(&connections, AccountId::unique(), [(1, false)]);
        let [oldest, second, third] =
            add_known(&connections, AccountId::unique(), [(2, false), (3, false), (4, false)]);
        assert!(!connections.close_one(6), "half of all is no reason");
        assert!(connections.close_one(4));
        assert!(must_close_now(oldest) && !must_close_now(second) && !must_close_now(third));
        assert!(!connections.close_one(4), "it has half of all now");
        assert!(!must_close_now(other));
    }

    #[test]
    fn a_connection_with_a_running_http2_request_is_busy() {
        let (connections, account) = (ClosableConnections::default(), AccountId::unique());
        let state = state_of(account, true);
        let must_close = connections.add(1);
        connections.recognize(1, account, &state);
        let running = RunningRequest::start(Arc::clone(&state));
        state.is_idle.store(true, Relaxed);
        assert!(!connections.close_one(MANY));
        drop(running);
        assert!(connections.close_one(MANY) && must_close_now(must_close));
    }

    #[test]
    fn ended_connections_have_no_entry() {
        let (connections, account) = (ClosableConnections::default(), AccountId::unique());
        let _known = add_known(&connections, account, [(1, true), (2, true), (3, false)]);
        assert!(connections.close_one(MANY));
        let _unknown = connections.add(4);
        for number in [1, 2, 3] {
            connections.remove(number, &state_of(account, true));
        }
        connections.remove(4, &ConnectionState::default());
        connections.recognize(4, account, &state_of(account, true));
        let lists = connections.lists.lock();
        assert!(lists.unrecognized.is_empty() && lists.by_account.is_empty() && lists.counts.is_empty());
    }
}
