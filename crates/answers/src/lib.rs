//! Who answers: which blocks a call means, the embedded chain or nodes, and the chain that all calls of one request share. Knows
//! nothing of keys, plans or HTTP.
//!
//! `gateway` asks it, in two steps: [`resolve`] settles the blocks of a query, and the request's [`Chain`] answers it.
//!
//! ```no_run
//! fn newest_block(answers: &answers::Answers) -> Option<u64> {
//!     answers.chain().head()
//! }
//! ```

mod resolve; // tags → blocks of the chain
mod call_account; // in whose share a call is answered
mod timings; // how long heavy work took
mod archive_source; // the embedded chain, as a source
mod inline_try; // pooled work that turns out to be cheap
mod embedded; // the embedded chain: where its work is done
mod chain; // the chain as one request sees it
mod changes; // what happens to the chain
mod answers; // all of them behind one question

pub use answers::{Answers, Sources};
pub use archive_source::ArchiveSource;
pub use call_account::CallAccount;
pub use chain::{CallChain, Chain};
pub use changes::{ChainChange, ChainChanges, ChainEvent};
pub use resolve::{ResolveRules, Resolved, Unresolved, resolve};
pub use timings::Timings;
