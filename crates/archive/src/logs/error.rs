//! Errors of writing and reading logs.

use redb::StorageError;
use thiserror::Error;

use super::row::TopicsTooMany;

/// A row that cannot be what was once written: the file was damaged, or written by something else.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("the archive is damaged: {what} of log {ordinal}")]
pub(crate) struct DamagedLogRow {
    pub(crate) what: &'static str,
    pub(crate) ordinal: u64,
}

/// Why new logs did not reach the index. The write transaction has to be given up.
#[derive(Debug, Error)]
pub(crate) enum IndexError {
    #[error(transparent)]
    TopicsTooMany(#[from] TopicsTooMany),
    #[error("log {0} is beyond what the index can count")]
    OrdinalTooLarge(u64),
    #[error(transparent)]
    Damaged(#[from] DamagedLogRow),
    #[error(transparent)]
    Store(#[from] StorageError),
}

/// Why a query has no answer. The first three are due to the query, the others to the archive.
#[derive(Debug, Error)]
pub(crate) enum QueryError {
    /// `count` is how many had been found when the search stopped: more than the limit, and not necessarily
    /// all. The first `limit` matches lie before `first_beyond`, the match with number `limit` from 0.
    #[error("query has more matches than its limit")]
    TooMany { count: u64, first_beyond: u64 },
    #[error("query timeout exceeded")]
    Timeout,
    #[error("query was cancelled")]
    Cancelled,
    #[error(transparent)]
    Damaged(#[from] DamagedLogRow),
    #[error(transparent)]
    Store(#[from] StorageError),
}
