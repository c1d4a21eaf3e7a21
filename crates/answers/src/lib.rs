//! Who answers: proven blocks, cache, embedded chain, nodes and partners, and the view that all calls of one request share.
//! Knows nothing of keys, plans or HTTP.
//!
//! `gateway` asks it, in two steps: [`resolve`] settles the blocks of a query, and a [`RequestView`] answers it.
//!
//! ```no_run
//! fn newest_block(answers: &answers::Answers) -> Option<u64> {
//!     let view = answers.request_view();
//!     view.head()
//! }
//! ```

mod failure; // why there is no answer
mod provenance; // an answer, and where it came from
mod limits; // limits of an answer: time, memory, results
mod budget; // time and memory of one answer while it is made
mod view; // the interface to whoever holds the chain
mod resolve; // tags → blocks of the view
mod query_plan; // what a query is about, and so who can answer it
mod call_account; // in whose share a call is answered
mod unanswered; // calls that are handed back
mod timings; // how long heavy work took
mod cache; // cached answers, by what they depend on
mod shared; // one answer for several callers
mod flights; // equal calls share one answer
mod results; // results as JSON text
mod simulation; // what a simulation fails with
mod archive_source; // the embedded chain, as a source
mod inline_try; // pooled work that turns out to be cheap
mod embedded; // the embedded chain: where its work is done
mod remote; // the pool: nodes and partners
mod pool_backend; // the pool, and the executed chain that answers without it
mod changes; // what happens to the chain
mod request_view; // the chain as one request sees it
mod answers; // all of them behind one question

pub use answers::{Answers, Sources};
pub use archive_source::ArchiveSource;
pub use budget::AnswerBudget;
pub use cache::Cache;
pub use call_account::CallAccount;
pub use changes::{ChainChange, ChainChanges, ChainEvent};
pub use failure::Failure;
pub use limits::{AnswerLimits, CALL_MEMORY_BYTES_MAX};
pub use provenance::{Answer, Origin, Provenance, Verification};
pub use remote::{
    AwaitedBlock, ExecutedChain, ExecutionState, FollowMode, FollowState, FollowedChain, PoolSource,
    StartedPool, change_nodes, check_genesis, settings as remote_settings,
};
pub use request_view::{CallView, PinnedCall, RequestView};
pub use resolve::{ResolveRules, Resolved, Unresolved, resolve};
pub use timings::Timings;
pub use unanswered::{HandedBack, Repetition, Unanswered};
pub use view::{ChainView, SnapshotSource, Source};
