//! Logs of a block range by a filter: counted first, read after.

use super::Snapshot;
use crate::{
    logs::{self, LogFilter, LogQuery, LogRef, Matches, QueryError, StopConditions},
    store::StoreError,
};
use std::{
    ops::{ControlFlow, Range, RangeInclusive},
    sync::atomic::AtomicBool,
    time::Instant,
};

/// The limits of a log query.
#[derive(Debug, Clone, Copy)]
pub struct LogLimits<'a> {
    /// The largest number of logs that may match.
    pub results_max: usize,
    pub deadline: Option<Instant>,
    /// Ends the query when it becomes true.
    pub cancel: Option<&'a AtomicBool>,
}

impl LogLimits<'_> {
    /// No limits at all.
    pub const NONE: Self = Self { results_max: usize::MAX, deadline: None, cancel: None };
}

/// The logs that match a filter: how many is known, none has been read yet.
#[derive(Debug)]
pub struct FoundLogs<'a> {
    snapshot: &'a Snapshot,
    matches: Matches,
    stop: StopConditions<'a>,
}

impl Snapshot {
    /// The logs of these blocks that match a filter. Blocks beyond the head have none.
    pub fn logs<'a>(
        &'a self,
        blocks: RangeInclusive<u64>,
        filter: &LogFilter,
        limits: LogLimits<'a>,
    ) -> Result<FoundLogs<'a>, LogsError> {
        let stop = StopConditions { deadline: limits.deadline, cancel: limits.cancel };
        let from = *blocks.start();
        let query =
            LogQuery { ordinals: self.log_ordinals(blocks)?, filter, limit: limits.results_max, stop };
        match logs::plan(&self.log_index, &query) {
            Ok(matches) => Ok(FoundLogs { snapshot: self, matches, stop }),
            Err(QueryError::TooMany { first_beyond, .. }) => {
                Err(LogsError::TooMany { widest_to: self.last_block_before(first_beyond, from)? })
            }
            Err(cause) => Err(cause.into()),
        }
    }

    pub fn logs_by_ordinal(&self, ordinals: Range<u64>) -> FoundLogs<'_> {
        let stop = StopConditions { deadline: None, cancel: None };
        FoundLogs { snapshot: self, matches: Matches::all(ordinals), stop }
    }

    fn log_ordinals(&self, blocks: RangeInclusive<u64>) -> Result<Range<u64>, StoreError> {
        let (from, to) = (*blocks.start(), (*blocks.end()).min(self.head()));
        if from > to {
            return Ok(0..0);
        }
        let missing = StoreError::MissingRow("a block");
        let first = self.summary(from)?.ok_or(missing.clone())?;
        let last = self.summary(to)?.ok_or(missing)?;
        Ok(first.first_log..last.first_log + u64::from(last.logs))
    }

    /// The last block from `from` on that has no log from this ordinal on.
    fn last_block_before(&self, ordinal: u64, from: u64) -> Result<Option<u64>, LogsError> {
        let found = self.logs_by_ordinal(ordinal..ordinal + 1);
        let number = found.read(|log| ControlFlow::Break(log.block_number()))?.break_value();
        Ok(number.filter(|number| *number > from).map(|number| number - 1))
    }
}

impl FoundLogs<'_> {
    pub fn len(&self) -> u64 {
        self.matches.len()
    }

    pub fn is_empty(&self) -> bool {
        self.matches.is_empty()
    }

    /// Passes the logs to `each` in chain order, until it breaks.
    pub fn read<B>(
        &self,
        mut each: impl FnMut(LogRef<'_>) -> ControlFlow<B>,
    ) -> Result<ControlFlow<B>, LogsError> {
        Ok(logs::read(&self.snapshot.logs, &self.matches, self.stop, |_, log| each(log))?)
    }
}

/// Why a query for logs has no answer.
#[derive(Debug, thiserror::Error)]
pub enum LogsError {
    #[error("more logs match than the limit allows")]
    TooMany {
        /// The last block up to which an answer from the same start fits; nothing if not even the first does.
        widest_to: Option<u64>,
    },
    #[error("the deadline passed")]
    Timeout,
    #[error("the query was cancelled")]
    Cancelled,
    /// Reading failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl From<QueryError> for LogsError {
    fn from(cause: QueryError) -> Self {
        match cause {
            QueryError::TooMany { .. } => Self::TooMany { widest_to: None },
            QueryError::Timeout => Self::Timeout,
            QueryError::Cancelled => Self::Cancelled,
            QueryError::Damaged(cause) => StoreError::Index(cause.to_string()).into(),
            QueryError::Store(cause) => StoreError::from(cause).into(),
        }
    }
}
