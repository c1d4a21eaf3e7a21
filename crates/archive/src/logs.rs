//! The exact log index: which logs match a filter, and how many, known before any log is read.
//!
//! Every log has an ordinal, counted over the whole chain. For each address, each topic at each position and
//! each number of topics the index holds the set of ordinals that have it. A filter is then unions and
//! intersections of such sets. It is exact: no log has to be read to see whether it really matches.
//!
//! It does not know which ordinals a block has, nor anything of JSON or of what a caller may ask for.

mod chunk; // 65,536 ordinals as a bitmap, in memory and as a row
mod error; // errors
mod term_group; // the values that a filter allows at one place
mod index; // ordinals of new logs → rows of the index
mod matches; // the answer of a query: ordinals, and their logs
mod pack; // consecutive logs as a row
mod packer; // new logs → packs
mod query; // a filter over a range of ordinals → matches
mod row; // one log
mod stop; // deadline and cancellation
mod term; // an address or a topic: the key of an index row
mod union; // many sets within a chunk as one

pub(crate) use error::{IndexError, QueryError};
pub(crate) use index::LogIndexer;
pub(crate) use matches::{Matches, read};
pub(crate) use pack::PACK_LOGS;
pub(crate) use packer::LogPacker;
pub use query::LogFilter;
pub(crate) use query::{LogQuery, plan};
pub use row::LogRef;
pub(crate) use row::{LogBlock, LogRow};
pub(crate) use stop::StopConditions;

/// The EVM has LOG0 to LOG4 and nothing beyond.
pub(crate) const TOPICS_MAX: usize = 4;

#[cfg(test)]
mod tests;
