//! Which connection is closed when all places are taken and another caller comes.
//!
//! The first to go is the oldest connection on which no key was recognised. If there is none, an idle connection of the
//! account that has most connections goes, so that no account shuts out the others by connections that it does not use. If
//! that account has no idle one, the next largest accounts are tried.
//!
//! A connection of a known caller is closed only while no request on it is known to be under way. A request or the end of a
//! reply that is in transit at that moment is lost, as when an idle connection times out.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use parking_lot::Mutex;
use resources::AccountId;
use tokio::sync::oneshot;

use crate::connection_state::State;

/// All connections, until they end.
#[derive(Debug, Default)]
pub(crate) struct ClosableConnections {
    lists: Mutex<ConnectionLists>,
}

/// By the number of the connection, so that the oldest comes first.
#[derive(Debug, Default)]
struct ConnectionLists {
    unrecognized: BTreeMap<u64, oneshot::Sender<()>>,
    by_account: HashMap<AccountId, AccountConnections>,
    /// How many connections each account has; the account with most comes last.
    counts: BTreeSet<(usize, AccountId)>,
}

#[derive(Debug, Default)]
struct AccountConnections {
    connections: BTreeMap<u64, KnownConnection>,
    /// Where the next search for an idle one begins: those before it were found busy lately.
    next: u64,
}

#[derive(Debug)]
struct KnownConnection {
    closer: oneshot::Sender<()>,
    state: Arc<State>,
}

/// Connections of one account that a search for an idle one looks at, so that a crowd of busy ones does not delay accepting.
const SEARCHED_MAX: usize = 32;

/// Accounts whose connections are searched, for the same reason.
const SEARCHED_ACCOUNTS_MAX: usize = 8;

/// Resolves when the connection has to make room for another one.
#[derive(Debug)]
pub(crate) struct MustClose(oneshot::Receiver<()>);

impl MustClose {
    pub(crate) async fn wait(self) {
        // An error means that the connection is not in the list any more, because it ends by itself.
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

    /// Moves a connection to the list of its account once a key was recognised.
    pub(crate) fn recognize(&self, connection: u64, account: AccountId, state: &Arc<State>) {
        let mut lists = self.lists.lock();
        if let Some(closer) = lists.unrecognized.remove(&connection) {
            let known = KnownConnection { closer, state: Arc::clone(state) };
            lists.insert_known(connection, account, known);
        }
    }

    /// Removes a connection that has ended.
    pub(crate) fn remove(&self, connection: u64, state: &State) {
        let mut lists = self.lists.lock();
        lists.unrecognized.remove(&connection);
        // Read under the lock, because a request that still runs on another thread may recognise its key right now.
        if let Some(&account) = state.account.get() {
            lists.remove_known(connection, account);
        }
    }

    /// Closes one to make room. `false`: there is none that may be closed.
    pub(crate) fn close_one(&self) -> bool {
        let mut lists = self.lists.lock();
        while let Some((_, closer)) = lists.unrecognized.pop_first() {
            if closer.send(()).is_ok() {
                return true;
            }
        }
        let largest = lists.counts.iter().rev().take(SEARCHED_ACCOUNTS_MAX);
        let largest: Vec<_> = largest.map(|&(_, account)| account).collect();
        largest.into_iter().any(|account| lists.close_idle(account))
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

    /// Closes an idle connection of this account, if the search comes to one.
    fn close_idle(&mut self, account: AccountId) -> bool {
        while let Some(number) = self.by_account.get_mut(&account).and_then(AccountConnections::find_idle) {
            let connection = self.remove_known(number, account);
            // A connection that has just ended by itself makes no room.
            if connection.is_some_and(|connection| connection.closer.send(()).is_ok()) {
                return true;
            }
        }
        false
    }
}

impl AccountConnections {
    /// The first idle connection of those that the search comes to.
    fn find_idle(&mut self) -> Option<u64> {
        for _ in 0..SEARCHED_MAX.min(self.connections.len()) {
            let mut from_here = self.connections.range(self.next..).chain(&self.connections);
            let (&number, connection) = from_here.next()?;
            self.next = number + 1;
            if connection.state.is_idle.load(Relaxed) {
                return Some(number);
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;

    use super::*;

    fn is_told_to_close(must_close: MustClose) -> bool {
        must_close.wait().now_or_never().is_some()
    }

    fn state_of(account: AccountId, is_idle: bool) -> Arc<State> {
        let state = Arc::<State>::default();
        state.account.set(account).unwrap();
        state.is_idle.store(is_idle, Relaxed);
        state
    }

    /// Adds connections with these numbers that an account has; `true` for those that are idle.
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
        assert!(connections.close_one());
        assert!(!is_told_to_close(first), "its key was recognised");
        assert!(is_told_to_close(second));
        drop(third);
        assert!(!connections.close_one(), "the others have ended by themselves");
    }

    #[test]
    fn then_an_idle_connection_of_the_account_with_most_is_closed() {
        let connections = ClosableConnections::default();
        let [few] = add_known(&connections, AccountId::unique(), [(1, true)]);
        let [busy, idle, last] =
            add_known(&connections, AccountId::unique(), [(2, false), (3, true), (4, true)]);
        assert!(connections.close_one());
        assert!(!is_told_to_close(busy), "a request on it is being answered");
        assert!(is_told_to_close(idle));
        assert!(!is_told_to_close(few) && !is_told_to_close(last));
    }

    #[test]
    fn busy_connections_are_never_closed_and_do_not_hide_idle_ones() {
        const BUSY: u64 = 3 * SEARCHED_MAX as u64;
        let (connections, account) = (ClosableConnections::default(), AccountId::unique());
        let busy: Vec<_> =
            (0..BUSY).flat_map(|number| add_known(&connections, account, [(number, false)])).collect();
        assert!((0..10).all(|_| !connections.close_one()));
        let [idle] = add_known(&connections, account, [(BUSY, true)]);
        assert!((0..10).any(|_| connections.close_one()), "a later search gets to the idle one");
        assert!(is_told_to_close(idle));
        assert!(!busy.into_iter().any(is_told_to_close));
    }

    /// Only the account with most connections was searched, so one whose connections were all busy kept every place.
    #[test]
    fn if_the_largest_account_has_no_idle_connection_the_next_largest_gives_one() {
        let connections = ClosableConnections::default();
        let [small] = add_known(&connections, AccountId::unique(), [(1, true)]);
        let [idle, other] = add_known(&connections, AccountId::unique(), [(2, true), (3, false)]);
        let busy = add_known(&connections, AccountId::unique(), [(4, false), (5, false), (6, false)]);
        assert!(connections.close_one());
        assert!(is_told_to_close(idle));
        assert!(!is_told_to_close(other) && !busy.into_iter().any(is_told_to_close));
        assert!(connections.close_one());
        assert!(is_told_to_close(small), "the others have none");
        assert!(!connections.close_one());
    }

    #[test]
    fn nothing_is_left_of_connections_that_have_ended() {
        let (connections, account) = (ClosableConnections::default(), AccountId::unique());
        let _known = add_known(&connections, account, [(1, true), (2, true), (3, false)]);
        assert!(connections.close_one());
        let _unknown = connections.add(4);
        for number in [1, 2, 3] {
            connections.remove(number, &state_of(account, true));
        }
        connections.remove(4, &State::default());
        connections.recognize(4, account, &state_of(account, true));
        let lists = connections.lists.lock();
        assert!(lists.unrecognized.is_empty() && lists.by_account.is_empty() && lists.counts.is_empty());
    }
}
