//! A source of answers, and what the embedded chain and the chain of nodes have in common: why there is no answer, how much work
//! one may be, which calls share one, where it is cached, and how it is written as JSON.
//!
//! `answers` has the embedded source and chooses between the two; `remote` is the source in front of nodes. Neither knows the other's
//! side of this interface.
//!
//! ```
//! use sources::{Json, Verification};
//!
//! let mut result = Vec::new();
//! Json(&mut result).quantity(26);
//! assert_eq!(result, br#""0x1a""#);
//! assert!(Verification::Confirmed < Verification::Proven);
//! ```

mod failure; // why there is no answer
mod provenance; // an answer, and where it came from
mod limits; // limits of an answer: time, memory, results
mod budget; // time and memory of one answer while it is made
mod view; // the interface to whoever holds the chain
mod cache; // cached answers, by what they depend on
mod shared; // one answer for several callers
mod flights; // equal calls share one answer
mod results; // results as JSON text
mod simulation; // what a simulation fails with

pub use budget::{AnswerBudget, ReplyCharge};
pub use cache::{Cache, CacheKey, CacheLookup, CachedAnswer};
pub use failure::Failure;
pub use flights::Flights;
pub use limits::{AnswerLimits, CALL_MEMORY_BYTES_MAX, CurrentLimits};
pub use provenance::{Answer, Origin, Provenance, Verification};
pub use results::{
    BlockFees, BlockFields, FeeHistory, HISTORY_BLOCKS_MAX, Json, LOG_BYTES_TYPICAL, LogFields, LogWriter,
    MinedTransaction, PriorityFee, Reward, SUGGESTION_BLOCKS, Suggested, rewards_at, suggested_priority_fee,
    write_block, write_block_header, write_pending_transaction, write_receipt, write_transaction,
    write_uncle,
};
pub use shared::SharedAnswer;
pub use simulation::{call_failure, overrides};
pub use view::{ChainView, SnapshotSource, Source, block_ref};
