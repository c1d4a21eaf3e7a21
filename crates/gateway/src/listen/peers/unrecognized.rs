//! Connections on which no key was recognised yet: the first to go when there is no place for another one.

use std::collections::BTreeMap;

use parking_lot::Mutex;
use tokio::sync::oneshot;

/// By the number of the connection, so that the oldest comes first.
#[derive(Debug, Default)]
pub(crate) struct UnrecognizedConnections {
    closers: Mutex<BTreeMap<u64, oneshot::Sender<()>>>,
}

/// Resolves when the connection has to make room for another one.
#[derive(Debug)]
pub(crate) struct MustClose(oneshot::Receiver<()>);

impl MustClose {
    pub(crate) async fn wait(self) {
        // An error means that the connection is not in the list any more, because its key was recognised.
        if self.0.await.is_err() {
            std::future::pending::<()>().await;
        }
    }
}

impl UnrecognizedConnections {
    pub(crate) fn add(&self, connection: u64) -> MustClose {
        let (closer, closed) = oneshot::channel();
        self.closers.lock().insert(connection, closer);
        MustClose(closed)
    }

    /// Its key was recognised, or it has ended.
    pub(crate) fn remove(&self, connection: u64) {
        self.closers.lock().remove(&connection);
    }

    /// Closes the oldest one to make room. `false`: there is none.
    pub(crate) fn close_oldest(&self) -> bool {
        while let Some((_, closer)) = { self.closers.lock().pop_first() } {
            if closer.send(()).is_ok() {
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

    #[test]
    fn the_oldest_connection_without_a_key_is_closed_first() {
        let connections = UnrecognizedConnections::default();
        let [first, second, third] = [1, 2, 3].map(|number| connections.add(number));
        connections.remove(1);
        assert!(connections.close_oldest());
        assert_eq!(first.wait().now_or_never(), None, "its key was recognised");
        assert_eq!(second.wait().now_or_never(), Some(()));
        drop(third);
        assert!(!connections.close_oldest(), "the last one has ended by itself");
    }
}
