//! What the accounts of one process share and how it is divided and measured. Knows nothing of requests, and of an account
//! only its id.

mod account_id; // whose share something is taken from
mod clock; // time, read once and handed on
mod fair_share; // the rule by which accounts share what is bounded
mod memory; // what bodies and replies may take
mod threads; // a pool for work that would hold up others
mod rate; // so many per second
mod histogram; // how long things took
mod repeated_warning; // one line for many equal events

pub use account_id::AccountId;
pub use clock::{Clock, Moment};
pub use fair_share::is_within_share;
pub use histogram::{BOUNDS_US, Histogram, Times};
pub use memory::{
    AccountMemory, CHARGED_BYTES_MIN, ChargedBuffer, MemoryBudget, MemoryCharge, OverBudget, Readers,
    UnchargedBytes,
};
pub use rate::{Bucket, RateExceeded};
pub use repeated_warning::RepeatedWarning;
pub use threads::{THREADS_MAX, Threads, ThreadsBusy, lower_priority};
