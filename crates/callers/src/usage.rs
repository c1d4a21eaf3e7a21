//! The ledger of usage: one record per call, whatever becomes of it.
//!
//! 1. `recorder`: workers sum calls up by key, method, outcome and tag.
//! 2. `collector`: ten times a second, the sums are written to the spool. While it takes nothing, they wait in `memory_queue`.
//! 3. `spool`: files of checksummed entries, each with a sequence number.
//! 4. `flusher`: moves entries, and what waits in memory, to the store, where each number is counted once.
//!
//! Usage that is lost anywhere on this way is counted in [`LedgerCounts`].

mod outcome; // outcomes of calls
mod utc_time; // dates and times ↔ text
mod usage_settings; // [usage]
mod entry; // rows ↔ bytes of the spool
mod spool; // files of entries that are not in the store yet
mod ledger_counts; // counters of the ledger, for metrics
mod account_totals; // usage of each account since the start
mod tags; // the names that callers give their work
mod recorder; // counts calls on the request path
mod memory_queue; // usage that the spool does not take
mod collector; // shards → memory → spool
mod day_credits; // credits used on one day
mod flusher; // spool and memory → store
mod usage_ledger; // the threads that do this
mod usage_report; // sums of usage for people and programs
mod usage_format; // a report as text

pub use account_totals::{AccountTotals, AccountUsage};
pub use day_credits::DayCredits;
pub use flusher::{FlushFailure, LeftOverFailure, flush_left_over};
pub use ledger_counts::LedgerCounts;
pub use outcome::Outcome;
pub use recorder::{CallUsage, UsageMethod, UsageRecorder, UsageShard};
pub use store::{UsageDimension, UsageRow, UsageStep, UsedKey};
pub use tags::UsageTag;
pub use usage_format::{UsageFormat, aligned};
pub use usage_ledger::{LedgerConfig, UsageLedger};
pub use usage_report::{REPORT_ROWS_MAX, UsageReport, UsageReportFailure, UsageReportRequest};
pub use usage_settings::UsageSettings;
