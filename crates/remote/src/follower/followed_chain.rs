//! The chain that is followed: how its blocks come into the file, and how that goes.

use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use archive::{BlocksFileLimits, EncodedBlock, StoreError, StoredChainId};
use methods::{BlockRef, Network};
use nodes::CanonicalChain;
use parking_lot::Mutex;
use resources::{AccountId, DiskHealth, Supervisor};
use tokio::time::Instant;

use super::retries::{AwaitedBlock, BlockRetries, FetchProblem};
use crate::blocks::StoredChain;
use crate::settings::FollowSettings;

/// Blocks that could not be fetched: so many of them are shown.
const AWAITED_BLOCKS_SHOWN_MAX: usize = 16;

/// The name of the task that follows.
pub(super) const FOLLOW_TASK: &str = "follower of blocks";

/// The chain that is followed.
pub struct FollowedChain {
    stored: Arc<StoredChain>,
    pub(super) settings: FollowSettings,
    /// The account that the proofs of new blocks are charged to; no caller uses it.
    pub(super) account: AccountId,
    progress: Mutex<FollowProgress>,
    /// The head when following began. A task that starts again after a panic goes on from there.
    first_head: OnceLock<u64>,
    filled_blocks: AtomicU64,
    supervisor: Supervisor,
}

/// How following goes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum FollowState {
    /// No node has shown its chain yet.
    #[default]
    Starting,
    Following,
    /// The disk cannot be written.
    Paused,
    /// The chain contradicts the stored blocks; nodes answer.
    Stopped,
    /// The task that follows does not run, for this reason.
    TaskDown(String),
}

impl FollowState {
    /// The state in plain words, for `/status` and the console.
    pub fn text(&self) -> String {
        match self {
            Self::Starting => "no node has shown its chain yet".to_owned(),
            Self::Following => "following".to_owned(),
            Self::Paused => "paused: the disk cannot be written".to_owned(),
            Self::Stopped => "stopped: the chain contradicts the stored blocks, see the log".to_owned(),
            Self::TaskDown(reason) => format!("stopped: the task that follows does not run: {reason}"),
        }
    }
}

/// Who writes blocks to the file.
#[derive(Clone, Copy, Debug)]
pub(super) enum BlockWriter {
    /// Writes new blocks, as soon as they are deep enough.
    NewBlocks,
    /// Writes the older blocks that are missing.
    MissingBlocks,
}

/// How following goes, what is waited for, and whose last write has failed.
#[derive(Debug, Default)]
struct FollowProgress {
    state: FollowState,
    retries: BlockRetries,
    new_blocks_failed: bool,
    missing_blocks_failed: bool,
}

impl std::fmt::Debug for FollowedChain {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("FollowedChain").field("stored", &self.stored).finish_non_exhaustive()
    }
}

impl FollowedChain {
    pub(crate) fn open(
        data_dir: &Path,
        settings: FollowSettings,
        network: &Network,
        supervisor: Supervisor,
        disk: DiskHealth,
    ) -> Result<Self, String> {
        let limits = BlocksFileLimits { blocks_max: settings.blocks_max, headers_max: settings.headers_max };
        Ok(Self {
            stored: Arc::new(StoredChain::open(data_dir, limits, network, disk)?),
            settings,
            account: AccountId::unique(),
            progress: Mutex::default(),
            first_head: OnceLock::new(),
            filled_blocks: AtomicU64::new(0),
            supervisor,
        })
    }

    /// Writes blocks, and what chain they are of if that is not in the file yet.
    pub(super) fn put_blocks(
        &self,
        writer: BlockWriter,
        new_chain: Option<StoredChainId>,
        blocks: &[EncodedBlock],
    ) -> Result<(), StoreError> {
        let written = self.stored.put_blocks(new_chain, blocks);
        self.record_write(writer, written.as_ref().err());
        written
    }

    /// Removes the blocks above one that the nodes have gone back to.
    pub(super) fn remove_above(&self, number: u64) -> Result<(), StoreError> {
        let removed = self.stored.remove_above(number);
        self.record_write(BlockWriter::NewBlocks, removed.as_ref().err());
        removed
    }

    /// Logs once that the disk cannot be written, and once that it can again: when no writer fails any more. A full disk often
    /// has room for the few new blocks and not for the many that are missing.
    fn record_write(&self, writer: BlockWriter, failure: Option<&StoreError>) {
        let mut progress = self.progress.lock();
        match writer {
            BlockWriter::NewBlocks => progress.new_blocks_failed = failure.is_some(),
            BlockWriter::MissingBlocks => progress.missing_blocks_failed = failure.is_some(),
        }
        let is_failing = progress.new_blocks_failed || progress.missing_blocks_failed;
        match (failure, &progress.state) {
            (Some(cause), FollowState::Starting | FollowState::Following) => {
                progress.state = FollowState::Paused;
                tracing::error!(%cause, "blocks cannot be stored: following pauses until the disk can be written");
            }
            (None, FollowState::Paused) if !is_failing => {
                progress.state = FollowState::Following;
                tracing::info!("the disk can be written again: following resumes");
            }
            _ => {}
        }
    }

    /// Records that no more of the older blocks are wanted, so that a failure to write them does not matter any more.
    pub(super) fn record_completeness(&self) {
        self.record_write(BlockWriter::MissingBlocks, None);
    }

    /// Those of the missing blocks that may be fetched now. What is below `lowest` is not missed any more.
    pub(super) fn due(&self, chain: &CanonicalChain, lowest: u64, missing: Vec<BlockRef>) -> Vec<BlockRef> {
        let (now, mut progress) = (Instant::now(), self.progress.lock());
        progress.retries.retain(lowest, |hash| chain.by_hash(hash).is_some());
        missing.into_iter().filter(|block| progress.retries.is_due(*block, now)).collect()
    }

    pub(super) fn record_fetched(&self, number: u64) {
        self.progress.lock().retries.remove(number);
    }

    /// Lets a block that was not fetched wait, longer each time. Returns whether the problem is new.
    pub(super) fn record_not_fetched(&self, block: BlockRef, problem: FetchProblem) -> bool {
        self.progress.lock().retries.record_failure(block, problem, Instant::now())
    }

    /// How long it takes until a block is fetched again that could not be fetched. `None` if there is none.
    pub(super) fn next_fetch_in(&self) -> Option<Duration> {
        self.progress.lock().retries.next_due_in(Instant::now())
    }

    pub(super) fn record_started(&self) {
        let mut progress = self.progress.lock();
        if progress.state == FollowState::Starting {
            progress.state = FollowState::Following;
        }
    }

    /// The head when following began, which is this one at the first call.
    pub(super) fn first_head(&self, head: u64) -> u64 {
        *self.first_head.get_or_init(|| head)
    }

    /// Stops following: the blocks in the file are not used any more, and those in memory are dropped.
    pub(super) fn stop(&self, reason: &str) {
        self.progress.lock().state = FollowState::Stopped;
        self.stored.disown();
        tracing::error!(
            reason,
            "following has stopped, and nodes answer; to start over, stop this program and remove blocks.redb from data_dir"
        );
    }

    pub(super) fn add_filled_blocks(&self, blocks: u64) {
        self.filled_blocks.fetch_add(blocks, Relaxed);
    }
}

/// For the metrics.
impl FollowedChain {
    pub fn state(&self) -> FollowState {
        let why_down = self.supervisor.why_down(FOLLOW_TASK);
        why_down.map_or_else(|| self.progress.lock().state.clone(), FollowState::TaskDown)
    }

    /// The lowest new blocks that could not be fetched, and why.
    pub fn awaited_blocks(&self) -> Vec<AwaitedBlock> {
        self.progress.lock().retries.lowest(AWAITED_BLOCKS_SHOWN_MAX, Instant::now())
    }

    /// Where its blocks are stored.
    pub fn stored(&self) -> &Arc<StoredChain> {
        &self.stored
    }

    pub fn filled_blocks(&self) -> u64 {
        self.filled_blocks.load(Relaxed)
    }
}
