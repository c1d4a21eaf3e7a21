//! Stored blocks: recent ones in memory, older ones in the file, and how far they are known to be canonical.

use std::ops::RangeInclusive;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use alloy_primitives::B256;
use archive::{
    BLOCKS_FILE, BlocksFile, BlocksFileLimits, BlocksFileSnapshot, EncodedBlock, StoreError, StoredChainId,
    StoredHeader,
};
use methods::{BlockRef, Network};
use nodes::{CanonicalChain, TrustMark};
use parking_lot::{Mutex, RwLock};
use resources::{AccountId, DiskHealth, DiskWriter, RepeatedWarning, Supervisor};
use tokio::sync::Notify;

use super::block_retries::{AwaitedBlock, BlockRetries, FetchProblem};
use super::follow_settings::FollowSettings;
use super::recent_blocks::{RecentBlock, RecentBlocks};

/// Blocks that could not be fetched: so many of them are shown.
const AWAITED_BLOCKS_SHOWN_MAX: usize = 16;

/// The name of the task that follows.
pub(super) const FOLLOW_TASK: &str = "follower of blocks";

/// The chain that is followed, as far as it is stored here.
pub struct FollowedChain {
    store: BlocksFile,
    pub(super) settings: FollowSettings,
    /// The account that the proofs of new blocks are charged to; no caller uses it.
    pub(super) account: AccountId,
    pub(super) recent: RwLock<RecentBlocks>,
    linked: Mutex<Linked>,
    progress: Mutex<FollowProgress>,
    /// The head when following began. A task that starts again after a panic goes on from there.
    first_head: OnceLock<u64>,
    /// Told when there may be something to fill.
    pub(super) grown: Notify,
    filled_blocks: AtomicU64,
    disk_failures: AtomicU64,
    read_warnings: RepeatedWarning,
    supervisor: Supervisor,
    disk: DiskHealth,
}

/// Which blocks of the file are known to be canonical.
#[derive(Clone, Copy, Debug, Default)]
struct Linked {
    epoch: u64,
    /// The lowest ancestor of the head; `None` while nothing is known.
    from: Option<u64>,
    /// The lowest ancestor of a block below the window that nodes have reported, and how far they are trusted.
    reported: Option<(u64, TrustMark)>,
}

impl Linked {
    fn lowest(&self) -> Option<u64> {
        self.from.into_iter().chain(self.reported.map(|(from, _)| from)).min()
    }
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

/// Whether the stored blocks are of the chain that the configuration names. With all nodes dead nobody else would notice.
fn check_identity(store: &BlocksFile, network: &Network) -> Result<(), String> {
    let Some(StoredChainId { chain_id, genesis }) = store.snapshot().chain() else { return Ok(()) };
    let what_to_do = format!("remove {BLOCKS_FILE} from data_dir, or use another data_dir");
    if let Some(ours) = network.chain_id.filter(|ours| *ours != chain_id) {
        return Err(format!(
            "the stored blocks have chain id {chain_id}, but chain_id in [network] is {ours}; {what_to_do}"
        ));
    }
    match network.genesis_hash.zip(genesis) {
        Some((ours, theirs)) if ours != theirs => Err(format!(
            "the stored blocks belong to the chain with block 0 {theirs}, but genesis_hash in [network] is {ours}; {what_to_do}"
        )),
        _ => Ok(()),
    }
}

impl std::fmt::Debug for FollowedChain {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("FollowedChain").field("store", &self.store).finish_non_exhaustive()
    }
}

impl FollowedChain {
    pub(in crate::remote) fn open(
        data_dir: &Path,
        settings: FollowSettings,
        network: &Network,
        supervisor: Supervisor,
        disk: DiskHealth,
    ) -> Result<Self, String> {
        let limits = BlocksFileLimits { blocks_max: settings.blocks_max, headers_max: settings.headers_max };
        let store =
            BlocksFile::open_or_create(data_dir, limits).map_err(|cause| format!("[follow] {cause}"))?;
        check_identity(&store, network)?;
        Ok(Self {
            store,
            settings,
            account: AccountId::unique(),
            recent: RwLock::default(),
            linked: Mutex::default(),
            progress: Mutex::default(),
            first_head: OnceLock::new(),
            grown: Notify::new(),
            filled_blocks: AtomicU64::new(0),
            disk_failures: AtomicU64::new(0),
            read_warnings: RepeatedWarning::default(),
            supervisor,
            disk,
        })
    }

    pub fn snapshot(&self) -> Arc<BlocksFileSnapshot> {
        self.store.snapshot()
    }

    /// A block in memory.
    pub(in crate::remote) fn recent(&self, hash: &B256) -> Option<RecentBlock> {
        self.recent.read().get(hash).cloned()
    }

    /// Reads something of a block from the file; `None` if it is not there or cannot be read.
    pub(in crate::remote) fn read<T>(
        &self,
        block: BlockRef,
        read: impl FnOnce(&BlocksFileSnapshot) -> Result<Option<T>, StoreError>,
    ) -> Option<T> {
        self.reading(|snapshot| match snapshot.header(block.number)? {
            Some(header) if header.hash == block.hash => read(snapshot),
            _ => Ok(None),
        })
    }

    fn reading<T>(
        &self,
        read: impl FnOnce(&BlocksFileSnapshot) -> Result<Option<T>, StoreError>,
    ) -> Option<T> {
        match read(&self.store.snapshot()) {
            Ok(found) => found,
            Err(cause) => {
                self.read_failed(&cause);
                None
            }
        }
    }

    /// Counts and logs a failed read, after which the nodes are asked instead.
    pub(in crate::remote) fn read_failed(&self, cause: &dyn std::fmt::Display) {
        self.disk_failures.fetch_add(1, Relaxed);
        if let Some(failures) = self.read_warnings.count(Instant::now()) {
            tracing::error!(%cause, failures, "a stored block cannot be read; nodes are asked");
        }
    }

    /// Whether a block is stored, in memory or in the file.
    pub(in crate::remote) fn has(&self, block: BlockRef) -> bool {
        let is_whole = |snapshot: &BlocksFileSnapshot| {
            let is_whole = snapshot.ranges().any(|range| range.contains(&block.number));
            Ok(is_whole.then_some(()))
        };
        self.recent.read().get(&block.hash).is_some() || self.read(block, is_whole).is_some()
    }

    /// The canonical block of a number, if it is stored whole in the file, and how far nodes are trusted that it is canonical, unless
    /// the head commits to it.
    pub(in crate::remote) fn by_number(
        &self,
        chain: &CanonicalChain,
        number: u64,
    ) -> Option<(BlockRef, Option<TrustMark>)> {
        // After the nodes have gone back, the file may have blocks that were removed.
        let linked = self.linked(chain.epoch()).filter(|_| number <= chain.head().number)?;
        let trust = match linked.from.is_some_and(|from| number >= from) {
            true => None,
            false => Some(linked.reported.filter(|(from, _)| number >= *from)?.1),
        };
        self.reading(|snapshot| {
            let is_whole = snapshot.ranges().any(|range| range.contains(&number));
            let header = if is_whole { snapshot.header(number)? } else { None };
            Ok(header.map(|header| (BlockRef { number, hash: header.hash }, trust)))
        })
    }

    /// The canonical block of a hash, if it is stored whole in the file, and how far nodes are trusted about it.
    pub(in crate::remote) fn by_hash(
        &self,
        chain: &CanonicalChain,
        hash: &B256,
    ) -> Option<(BlockRef, Option<TrustMark>)> {
        let number = self.reading(|snapshot| snapshot.number_of(hash))?;
        self.by_number(chain, number).filter(|(block, _)| block.hash == *hash)
    }

    /// The canonical block of a transaction, if it is in memory or in the file.
    pub(in crate::remote) fn place(&self, chain: &CanonicalChain, transaction: &B256) -> Option<BlockRef> {
        let recent = self.recent.read().place(transaction);
        let is_canonical = |block: &BlockRef| chain.by_hash(&block.hash).is_some();
        recent.filter(is_canonical).or_else(|| {
            let (number, _) = self.reading(|snapshot| snapshot.place(transaction))?;
            Some(self.by_number(chain, number)?.0)
        })
    }

    /// The lowest block of the file that is canonical in this epoch of the view.
    pub(super) fn linked_from(&self, epoch: u64) -> Option<u64> {
        self.linked(epoch)?.lowest()
    }

    fn linked(&self, epoch: u64) -> Option<Linked> {
        Some(*self.linked.lock()).filter(|linked| linked.epoch == epoch)
    }

    /// Whether the newest blocks of the file are canonical, and how far nodes are trusted about that, unless the head commits to them.
    pub(super) fn newest_link(&self, chain: &CanonicalChain) -> Option<Option<TrustMark>> {
        let newest = *self.store.snapshot().ranges().next_back()?.end();
        self.by_number(chain, newest).map(|(_, trust)| trust)
    }

    /// Says that all blocks of the range of this block are canonical, because nodes have reported it or, without
    /// `trust`, because the head commits to it.
    pub(super) fn link(&self, epoch: u64, number: u64, trust: Option<TrustMark>) {
        let lowest = |range: &RangeInclusive<u64>, from: Option<u64>| {
            from.map_or(*range.start(), |from| from.min(*range.start()))
        };
        self.relink(epoch, number, |linked, range| match trust {
            None => linked.from = Some(lowest(range, linked.from)),
            Some(trust) => {
                linked.reported = Some((lowest(range, linked.reported.map(|(from, _)| from)), trust));
            }
        });
    }

    /// Says that the range of this block has grown downwards, by the hashes of parents.
    pub(super) fn extend_link(&self, epoch: u64, number: u64) {
        self.relink(epoch, number, |linked, range| {
            linked
                .from
                .iter_mut()
                .filter(|from| range.contains(from))
                .for_each(|from| *from = *range.start());
            let reported = linked.reported.iter_mut().map(|(from, _)| from);
            reported.filter(|from| range.contains(from)).for_each(|from| *from = *range.start());
        });
    }

    /// Says that the blocks which nodes have reported are not canonical: others have reported another one.
    pub(super) fn unlink_reported(&self) {
        self.linked.lock().reported = None;
    }

    fn relink(&self, epoch: u64, number: u64, change: impl FnOnce(&mut Linked, &RangeInclusive<u64>)) {
        let snapshot = self.store.snapshot();
        let Some(range) = snapshot.ranges().find(|range| range.contains(&number)) else { return };
        let mut linked = self.linked.lock();
        // Somebody has looked at an older view.
        if epoch < linked.epoch {
            return;
        }
        if epoch > linked.epoch {
            *linked = Linked { epoch, ..Linked::default() };
        }
        change(&mut linked, &range);
        drop(linked);
        self.grown.notify_one();
    }

    /// Writes blocks, and what chain they are of if that is not in the file yet.
    pub(super) fn put_blocks(
        &self,
        writer: BlockWriter,
        new_chain: Option<StoredChainId>,
        blocks: &[EncodedBlock],
    ) -> Result<(), StoreError> {
        let named = new_chain.map_or(Ok(()), |chain| self.store.set_chain(chain));
        let written = self.count_failure(named.and_then(|()| self.store.put_blocks(blocks)));
        self.record_write(writer, written.as_ref().err());
        written
    }

    /// Removes the blocks above one that the nodes have gone back to.
    pub(super) fn remove_above(&self, number: u64) -> Result<(), StoreError> {
        let removed = self.count_failure(self.store.remove_above(number));
        self.record_write(BlockWriter::NewBlocks, removed.as_ref().err());
        removed
    }

    /// Writes headers that a log query has fetched. Following does not depend on them.
    pub(in crate::remote) fn put_headers(&self, headers: &[StoredHeader]) -> Result<(), StoreError> {
        self.count_failure(self.store.put_headers(headers))
    }

    fn count_failure(&self, written: Result<(), StoreError>) -> Result<(), StoreError> {
        self.disk.record(DiskWriter::Blocks, &written);
        if written.is_err() {
            self.disk_failures.fetch_add(1, Relaxed);
        }
        written
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
        let (now, mut progress) = (tokio::time::Instant::now(), self.progress.lock());
        progress.retries.retain(lowest, |hash| chain.by_hash(hash).is_some());
        missing.into_iter().filter(|block| progress.retries.is_due(*block, now)).collect()
    }

    pub(super) fn record_fetched(&self, number: u64) {
        self.progress.lock().retries.remove(number);
    }

    /// Lets a block that was not fetched wait, longer each time. Returns whether the problem is new.
    pub(super) fn record_not_fetched(&self, block: BlockRef, problem: FetchProblem) -> bool {
        self.progress.lock().retries.record_failure(block, problem, tokio::time::Instant::now())
    }

    /// How long it takes until a block is fetched again that could not be fetched. `None` if there is none.
    pub(super) fn next_fetch_in(&self) -> Option<Duration> {
        self.progress.lock().retries.next_due_in(tokio::time::Instant::now())
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
        *self.linked.lock() = Linked::default();
        self.recent.write().clear();
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
        self.progress.lock().retries.lowest(AWAITED_BLOCKS_SHOWN_MAX, tokio::time::Instant::now())
    }

    pub fn filled_blocks(&self) -> u64 {
        self.filled_blocks.load(Relaxed)
    }

    pub fn disk_failures(&self) -> u64 {
        self.disk_failures.load(Relaxed)
    }

    pub fn file_bytes(&self) -> u64 {
        self.store.file_bytes()
    }

    /// Blocks in memory, and the bytes that they take.
    pub fn in_memory(&self) -> (usize, usize) {
        let recent = self.recent.read();
        (recent.len(), recent.bytes())
    }
}
