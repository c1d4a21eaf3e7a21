//! The executed chain: an imported archive that goes on with the blocks of the nodes. What it has is answered from it.
//!
//! The module `execute` keeps it at the head of the view. A request sees the archive and the view as they are at one moment
//! (`aligned_chains`). While the archive is at the head it answers everything; while it is not, it answers what is about blocks
//! that both have, and nodes answer the rest.

mod aligned_chains; // archive and view as one request sees them

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use arc_swap::ArcSwap;
use archive::Archive;
use nodes::Pool;
use parking_lot::Mutex;
use resources::{DiskHealth, Supervisor};

pub use aligned_chains::AlignedChains;
use sources::SnapshotSource;

/// The name of the task that executes new blocks.
pub(super) const EXECUTE_TASK: &str = "execution of blocks";

/// An archive that follows the nodes.
pub struct ExecutedChain {
    archive: Arc<Archive>,
    source: Arc<dyn SnapshotSource>,
    /// The newest pair that a request has seen.
    chains: ArcSwap<AlignedChains>,
    state: Mutex<ExecutionState>,
    pub(super) counts: ExecutionCounts,
    supervisor: Supervisor,
    pub(super) disk: DiskHealth,
}

/// Counters since the start.
#[derive(Debug, Default)]
pub(super) struct ExecutionCounts {
    pub(super) blocks: AtomicU64,
    pub(super) reorganisations: AtomicU64,
    pub(super) failures: AtomicU64,
}

/// How the execution of new blocks goes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum ExecutionState {
    /// No node has shown its chain yet.
    #[default]
    Starting,
    /// Blocks are missing, and are being fetched and executed.
    Behind,
    /// The newest block of the nodes is executed.
    AtHead,
    /// The next block cannot be executed or written, or the archive cannot return to a block that is old enough. Nodes answer
    /// what it lacks.
    Stopped(String),
}

impl ExecutedChain {
    pub(crate) fn new(
        archive: Arc<Archive>,
        source: Arc<dyn SnapshotSource>,
        supervisor: Supervisor,
        disk: DiskHealth,
    ) -> Self {
        let chains = AlignedChains::new(source.snapshot(), None);
        Self {
            archive,
            source,
            chains: ArcSwap::from_pointee(chains),
            state: Mutex::default(),
            counts: ExecutionCounts::default(),
            supervisor,
            disk,
        }
    }

    /// Who answers from it.
    pub fn source(&self) -> &Arc<dyn SnapshotSource> {
        &self.source
    }

    pub fn archive(&self) -> &Arc<Archive> {
        &self.archive
    }

    /// Archive and view as they are now.
    pub fn current_view(&self, pool: &Pool) -> Arc<AlignedChains> {
        let (snapshot, chain) = (self.source.snapshot(), pool.canonical_chain());
        let known = self.chains.load_full();
        if known.is_of(&snapshot, chain.as_ref()) {
            return known;
        }
        let chains = Arc::new(AlignedChains::new(snapshot, chain));
        self.chains.store(Arc::clone(&chains));
        chains
    }

    /// Drops the snapshot of the newest view if it is old, because it keeps pages of the file from being used again.
    pub(super) fn forget_old_snapshot(&self, pool: &Pool) {
        self.current_view(pool);
    }

    pub(super) fn set_state(&self, state: ExecutionState) {
        *self.state.lock() = state;
    }

    /// Sets the state before blocks are executed. A chain that has stopped counts as stopped until that succeeds.
    pub(super) fn set_executing(&self) {
        let mut present = self.state.lock();
        if !matches!(*present, ExecutionState::Stopped(_)) {
            *present = ExecutionState::Behind;
        }
    }

    /// Sets the state to stopped, and logs each new reason once.
    pub(super) fn set_stopped(&self, reason: String) {
        self.counts.failures.fetch_add(1, Relaxed);
        let state = ExecutionState::Stopped(reason);
        let mut present = self.state.lock();
        if let ExecutionState::Stopped(reason) = &state
            && *present != state
        {
            tracing::error!(
                reason,
                "the next block cannot be executed: nodes answer about the blocks that the archive lacks, and it is tried again with every new head"
            );
        }
        *present = state;
    }
}

/// For the metrics.
impl ExecutedChain {
    pub fn state(&self) -> ExecutionState {
        let stopped = |reason| {
            ExecutionState::Stopped(format!("the task that executes new blocks does not run: {reason}"))
        };
        self.supervisor.why_down(EXECUTE_TASK).map_or_else(|| self.state.lock().clone(), stopped)
    }

    /// Number of the newest block that was executed.
    pub fn head(&self) -> u64 {
        self.archive().current().head()
    }

    pub fn executed_blocks(&self) -> u64 {
        self.counts.blocks.load(Relaxed)
    }

    pub fn reorganisations(&self) -> u64 {
        self.counts.reorganisations.load(Relaxed)
    }

    pub fn failures(&self) -> u64 {
        self.counts.failures.load(Relaxed)
    }
}

impl std::fmt::Debug for ExecutedChain {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ExecutedChain").field("archive", &self.archive).finish_non_exhaustive()
    }
}
