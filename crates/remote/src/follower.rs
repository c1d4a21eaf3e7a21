//! Following: the chain of the nodes is kept here as it grows, so that queries about it need no node.
//!
//! With `[follow] mode = "blocks"`, proven blocks are stored in a file; with `full`, an archive executes them. Blocks are fetched, proven
//! and kept on threads of their own.

mod thread; // a thread that follows the chain, and its limits
mod retries; // when blocks that could not be fetched are tried again
mod followed_chain; // a chain whose blocks are stored
mod executed_chain; // an archive that follows the nodes
mod store; // new and missing blocks are stored
mod execute; // new blocks are executed

use std::io;
use std::sync::Arc;

use resources::Supervisor;

use crate::blocks::{Blocks, StoredChain};

pub use executed_chain::{AlignedChains, ExecutedChain, ExecutionState};
pub use followed_chain::{FollowState, FollowedChain};
pub use retries::AwaitedBlock;
pub use thread::FollowThread;

/// Who keeps the chain of the nodes.
#[derive(Clone, Debug)]
pub(super) enum Follower {
    /// Its blocks are stored in a file.
    Stored(Arc<FollowedChain>),
    /// An archive executes its blocks.
    Executed(Arc<ExecutedChain>),
}

impl Follower {
    /// Begins to follow, with blocks that are proven here.
    pub(super) fn start(&self, blocks: &Arc<Blocks>, supervisor: &Supervisor) -> io::Result<FollowThread> {
        match self {
            Self::Stored(followed) => store::start(Arc::clone(followed), Arc::clone(blocks), supervisor),
            Self::Executed(executed) => execute::start(Arc::clone(executed), Arc::clone(blocks), supervisor),
        }
    }

    pub(super) fn followed_chain(&self) -> Option<&Arc<FollowedChain>> {
        match self {
            Self::Stored(followed) => Some(followed),
            Self::Executed(_) => None,
        }
    }

    pub(super) fn executed_chain(&self) -> Option<&Arc<ExecutedChain>> {
        match self {
            Self::Stored(_) => None,
            Self::Executed(executed) => Some(executed),
        }
    }

    /// Where blocks are stored, if they are.
    pub(super) fn stored_chain(&self) -> Option<&Arc<StoredChain>> {
        self.followed_chain().map(|followed| followed.stored())
    }
}
