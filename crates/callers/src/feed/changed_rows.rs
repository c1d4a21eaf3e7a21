//! Reads rows of the store in the order of their changes: all of them for a load, or those after a position.

use store::{KEY_PAGE_ROWS, RowPosition, Store, StoreFailure};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio::time::Instant;

use super::apply::StoredRow;
use super::within_bound;

use crate::policy::{CHANGED_KEYS_MAX, FEED_PAGES_WAITING_MAX};

/// How far the rows of the store have been read.
#[derive(Clone, Debug)]
pub(super) struct Positions {
    accounts: RowPosition<i64>,
    keys: RowPosition<String>,
}

impl Positions {
    /// Before all rows whose last change is newer than `revision`.
    pub(super) fn after(revision: i64) -> Self {
        let revision = revision.saturating_add(1);
        Self { accounts: RowPosition { revision, id: 0 }, keys: RowPosition { revision, id: String::new() } }
    }

    /// The newest revision of which rows may have been read.
    pub(super) fn revision(&self) -> i64 {
        self.accounts.revision.max(self.keys.revision)
    }

    /// The next changed rows; empty after the last ones.
    ///
    /// Of each page of keys, the accounts are read after the keys and returned before them, so that the account of a key is
    /// always known.
    pub(super) async fn next_changes(&mut self, store: &Store) -> Result<Vec<StoredRow>, StoreFailure> {
        let keys = within_bound(store.keys_changed_after(&self.keys, CHANGED_KEYS_MAX)).await?;
        let mut rows = Vec::new();
        loop {
            let accounts = within_bound(store.accounts_changed_after(&self.accounts)).await?;
            let Some((last, _)) = accounts.last() else { break };
            self.accounts = last.clone();
            rows.extend(accounts.into_iter().map(|(_, row)| StoredRow::Account(row)));
        }
        if let Some((last, _)) = keys.last() {
            self.keys = last.clone();
        }
        rows.extend(keys.into_iter().map(|(_, row)| StoredRow::Key(row)));
        Ok(rows)
    }
}

/// Reads all rows in a task of its own, so that changes are followed meanwhile.
#[derive(Debug)]
pub(super) struct RunningLoad {
    /// Closed after the last page.
    pages: mpsc::Receiver<Result<Vec<StoredRow>, StoreFailure>>,
    task: JoinHandle<()>,
    pub(super) started: Instant,
    /// Rows that were changed after the load began. They are read again at its end.
    pub(super) changes: Positions,
    /// Whether everything was read and applied.
    pub(super) is_read: bool,
    /// Whether the store has lost changes that were in effect, which is why it is loaded.
    pub(super) has_lost_changes: bool,
}

impl RunningLoad {
    /// `newest` is the revision of the store.
    pub(super) fn start(store: Store, newest: i64, has_lost_changes: bool) -> Self {
        let (sender, pages) = mpsc::channel(FEED_PAGES_WAITING_MAX);
        let task = tokio::spawn(async move {
            if let Err(failure) = read_all(&store, &sender).await {
                // The feed has given the load up if it does not listen.
                let _unheard = sender.send(Err(failure)).await;
            }
        });
        let (started, changes) = (Instant::now(), Positions::after(newest));
        Self { pages, task, started, changes, is_read: false, has_lost_changes }
    }

    /// The next page; `None` after the last one.
    pub(super) async fn next(&mut self) -> Option<Result<Vec<StoredRow>, StoreFailure>> {
        if let Some(page) = self.pages.recv().await {
            return Some(page);
        }
        // A task that has panicked has not sent all pages.
        match (&mut self.task).await {
            Ok(()) => None,
            Err(_) => Some(Err(StoreFailure::Unavailable("the load has panicked, see the log".to_owned()))),
        }
    }
}

impl Drop for RunningLoad {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Reads all rows, the accounts of a page of keys before the keys.
async fn read_all(
    store: &Store,
    pages: &mpsc::Sender<Result<Vec<StoredRow>, StoreFailure>>,
) -> Result<(), StoreFailure> {
    let (mut keys_read, mut accounts_read) = (RowPosition::default(), RowPosition::default());
    loop {
        let keys = store.keys_changed_after(&keys_read, KEY_PAGE_ROWS).await?;
        loop {
            let accounts = store.accounts_changed_after(&accounts_read).await?;
            let Some((last, _)) = accounts.last() else { break };
            accounts_read = last.clone();
            let page = accounts.into_iter().map(|(_, row)| StoredRow::Account(row)).collect();
            let _given_up = pages.send(Ok(page)).await;
        }
        let Some((last, _)) = keys.last() else { return Ok(()) };
        keys_read = last.clone();
        let page = keys.into_iter().map(|(_, row)| StoredRow::Key(row)).collect();
        let _given_up = pages.send(Ok(page)).await;
    }
}
