//! Which connection is closed when all places are taken and another caller comes.
//!
//! The first to go is the oldest connection on which no key was recognised. If there is none, an idle connection of the
//! account that has most connections goes, so that no account shuts out the others by connections that it does not use.
//! A connection of a known caller is never closed while a request on it is being sent or answered.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use parking_lot::Mutex;
use tokio::sync::oneshot;

use crate::callers::AccountId;
use crate::listen::connection::State;

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

/// Connections that one search for an idle one looks at, so that a crowd of busy ones does not delay accepting.
const SEARCHED_MAX: usize = 64;

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

    /// A key of this account was recognised on it.
    pub(in crate::listen) fn recognize(&self, connection: u64, account: AccountId, state: &Arc<State>) {
        let mut lists = self.lists.lock();
        if let Some(closer) = lists.unrecognized.remove(&connection) {
            let known = KnownConnection { closer, state: Arc::clone(state) };
            lists.by_account.entry(account).or_default().connections.insert(connection, known);
        }
    }

    /// It has ended.
    pub(crate) fn remove(&self, connection: u64, account: Option<AccountId>) {
        let mut lists = self.lists.lock();
        lists.unrecognized.remove(&connection);
        if let Some(account) = account
            && let Some(own) = lists.by_account.get_mut(&account)
        {
            own.connections.remove(&connection);
            if own.connections.is_empty() {
                lists.by_account.remove(&account);
            }
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
        let largest = lists.by_account.values_mut().max_by_key(|own| own.connections.len());
        largest.is_some_and(AccountConnections::close_idle)
    }
}

impl AccountConnections {
    /// Closes the first idle connection of those that the search comes to.
    fn close_idle(&mut self) -> bool {
        for _ in 0..SEARCHED_MAX.min(self.connections.len()) {
            let mut from_here = self.connections.range(self.next..).chain(&self.connections);
            let Some((&number, connection)) = from_here.next() else { return false };
            self.next = number + 1;
            if connection.state.is_idle.load(Relaxed)
                && let Some(connection) = self.connections.remove(&number)
                && connection.closer.send(()).is_ok()
            {
                return true;
            }
        }
        false
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;

    use super::*;

    fn is_told_to_close(must_close: MustClose) -> bool {
        must_close.wait().now_or_never().is_some()
    }

    /// Adds connections with these numbers that an account has; `true` for those that are idle.
    fn add_known<const N: usize>(
        connections: &ClosableConnections,
        account: AccountId,
        numbers: [(u64, bool); N],
    ) -> [MustClose; N] {
        numbers.map(|(number, is_idle)| {
            let must_close = connections.add(number);
            let state = Arc::<State>::default();
            state.is_idle.store(is_idle, Relaxed);
            connections.recognize(number, account, &state);
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

    #[test]
    fn nothing_is_left_of_connections_that_have_ended() {
        let (connections, account) = (ClosableConnections::default(), AccountId::unique());
        let _known = add_known(&connections, account, [(1, true), (2, false)]);
        let _unknown = connections.add(3);
        assert!(connections.close_one());
        for (number, account) in [(1, Some(account)), (2, Some(account)), (3, None)] {
            connections.remove(number, account);
        }
        let lists = connections.lists.lock();
        assert!(lists.unrecognized.is_empty() && lists.by_account.is_empty());
    }
}
