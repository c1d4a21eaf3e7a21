//! The store of accounts, keys, people, usage and the audit log: a SQLite file or a PostgreSQL database.
//!
//! This crate knows rows and statements, and no rules: which change is allowed is decided in `callers::administration` and
//! `callers::people`.
//! Keys and secrets are never stored, only their keyed hashes. Nothing on the request path uses this crate.
//!
//! Every change increments the revision of the store and stamps the changed rows with it, in one transaction that holds
//! the lock of the revision. Transactions therefore commit in the order of their revisions, and whoever reads the rows
//! after a revision misses none.
//!
//! Every change has a random identity besides its number. Whoever follows the store compares the identity of the last change
//! that it saw, and so notices a copy without the newest changes that took the place of the store, or a restored backup, also
//! if the numbers are equal. A trigger chooses the identity, so that no writer can forget it.
//!
//! `callers` is its only user in the request path's process; commands open the same store:
//!
//! ```no_run
//! # async fn open() -> Result<(), store::StoreFailure> {
//! let location = store::StoreLocation::in_data_dir("/var/lib/chaingate".as_ref());
//! let store = store::Store::new(location);
//! store.prepare().await?;
//! let accounts = store.accounts_after(0).await?;
//! # Ok(())
//! # }
//! ```

mod policy; // times and limits of this crate
mod failure; // why an operation failed
mod location; // which database is used
mod hash_key; // keyed hashes of keys, secrets and tokens
mod records; // accounts, keys, audit entries
mod columns; // columns of statements → rows
mod list_page; // a page of a list
mod backend; // the two kinds of databases
mod operation_timeout; // how long an operation may take
mod migrations; // the tables, and how older ones are brought up to date
mod pool; // opens a database
mod file_copy; // copies of a SQLite file that is in use
mod inspection; // one look at a store
mod transaction; // changes
mod store; // reads
mod lists; // lists for people, page by page
mod listener; // notifications about changes
mod people; // users of the console, their sessions and links
mod usage; // usage by minute, hour and day

pub use failure::StoreFailure;
pub use file_copy::copy_sqlite;
pub use hash_key::{HASH_BYTES, HashKey};
pub use inspection::{StoreInspection, inspect};
pub use list_page::{ListPage, NamePosition};
pub use listener::ChangeListener;
pub use lists::{AUDIT_COUNT_MAX, AuditSearch, KeyAgePosition, KeyCounts};
pub use location::{SQLITE_FILE, StoreLocation};
pub use people::{LinkKind, LinkRecord, ListedUser, SessionRecord, UserRecord, UserRole, UserStatus};
pub use records::{
    AccountRecord, AccountStatus, AuditRecord, ChangeMark, KeyRecord, KeyStatus, RowPosition, StoreHistory,
};
pub use store::{KEY_PAGE_ROWS, Store};
pub use transaction::StoreTransaction;
pub use usage::{
    DayTotal, KeyDaySum, StoredUsage, UsageCounts, UsageDimension, UsageFlush, UsageGroup, UsageQuery,
    UsageRow, UsageStep, UsedKey,
};
