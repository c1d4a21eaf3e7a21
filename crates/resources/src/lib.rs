//! Memory, threads, rates and clocks that all accounts of a process share. This crate does not know requests, and identifies
//! accounts by their ids.
//!
//! All crates with limits use it, such as `callers` for credits and `http_server` for requests without a key:
//!
//! ```
//! use resources::{MonoTime, TokenBucket};
//!
//! let now = MonoTime::default();
//! let mut per_second = TokenBucket::per_second(2);
//! assert!(per_second.take(2, now).is_ok());
//! assert_eq!(per_second.take(1, now).unwrap_err().wait_ms, 500);
//! ```

mod account_id; // ids of accounts
mod box_future; // large futures on the heap
mod counted; // numbers with their nouns
mod clock; // monotonic time and the wall clock
mod utc_time; // dates and times of the calendar
mod day_quota; // limits per day
mod fair_share; // the rule that divides bounded resources between accounts
mod fair_queue; // the next job, fair between accounts
mod fair_turns; // turns on the threads of connections
mod rest; // times for which something rests
mod memory; // the memory budget of bodies and replies
mod thread_pool; // a pool for work that would delay connections
mod token_bucket; // limits per second
mod disk_health; // whether the data directory can be written
mod histogram; // durations
mod repeated_warning; // one log line for many equal events
mod supervisor; // tasks beside requests: caught, started again, known

pub use account_id::AccountId;
pub use box_future::box_future;
pub use clock::{Clock, MonoTime, unix_seconds, unix_time};
pub use counted::counted;
pub use day_quota::{DAY_S, DayQuota, DayQuotaExceeded};
pub use disk_health::{DiskHealth, DiskSpace, DiskWriter, DiskWriterReport};
pub use fair_queue::{FairQueue, QueueFull};
pub use fair_share::is_within_share;
pub use fair_turns::FairTurns;
pub use histogram::{BOUNDS_US, BUCKETS, Histogram, HistogramSum, bucket_of};
pub use memory::{
    AccountMemory, CHARGED_BYTES_MIN, ChargedBuffer, ChargedReaders, MemoryBudget, MemoryCharge, OverBudget,
    UnchargedBytes,
};
pub use repeated_warning::RepeatedWarning;
pub use rest::Rest;
pub use supervisor::{SupervisedTask, Supervisor, TaskReport, WhenDown};
pub use thread_pool::{PoolFailure, THREADS_MAX, ThreadPool, lower_priority};
pub use token_bucket::{BucketRate, RateExceeded, TokenBucket};
pub use utc_time::UtcTime;
