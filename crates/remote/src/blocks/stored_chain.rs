//! The chain as far as it is stored here: recent blocks in memory, older ones in a file, and how far they are known to be canonical.

use std::ops::RangeInclusive;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Instant;

use alloy_primitives::B256;
use archive::{
    BLOCKS_FILE, BlocksFile, BlocksFileLimits, BlocksFileSnapshot, EncodedBlock, StoreError, StoredChainId,
    StoredHeader,
};
use methods::{BlockRef, Network};
use nodes::{CanonicalChain, TrustMark};
use parking_lot::{Mutex, RwLock};
use resources::{DiskHealth, DiskWriter, RepeatedWarning};
use tokio::sync::Notify;

use super::recent::{RecentBlock, RecentBlocks};

/// The chain of the nodes, as far as its blocks are stored here.
pub struct StoredChain {
    file: Arc<BlocksFile>,
    pub(crate) recent: RwLock<RecentBlocks>,
    linked: Mutex<Linked>,
    /// Told when more blocks of the file are known to be canonical.
    pub(crate) grown: Notify,
    disk_failures: AtomicU64,
    read_warnings: RepeatedWarning,
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

impl std::fmt::Debug for StoredChain {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("StoredChain").field("file", &self.file).finish_non_exhaustive()
    }
}

impl StoredChain {
    pub(crate) fn open(
        data_dir: &Path,
        limits: BlocksFileLimits,
        network: &Network,
        disk: DiskHealth,
    ) -> Result<Self, String> {
        let file =
            BlocksFile::open_or_create(data_dir, limits).map_err(|cause| format!("[follow] {cause}"))?;
        check_identity(&file, network)?;
        Ok(Self {
            file: Arc::new(file),
            recent: RwLock::default(),
            linked: Mutex::default(),
            grown: Notify::new(),
            disk_failures: AtomicU64::new(0),
            read_warnings: RepeatedWarning::default(),
            disk,
        })
    }

    /// The file of stored blocks.
    pub(crate) fn file(&self) -> &Arc<BlocksFile> {
        &self.file
    }

    pub fn snapshot(&self) -> Arc<BlocksFileSnapshot> {
        self.file.snapshot()
    }

    /// A block in memory.
    pub(crate) fn recent(&self, hash: &B256) -> Option<RecentBlock> {
        self.recent.read().get(hash).cloned()
    }

    /// Reads something of a block from the file; `None` if it is not there or cannot be read.
    pub(crate) fn read<T>(
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
        match read(&self.file.snapshot()) {
            Ok(found) => found,
            Err(cause) => {
                self.read_failed(&cause);
                None
            }
        }
    }

    /// Counts and logs a failed read, after which the nodes are asked instead.
    pub(crate) fn read_failed(&self, cause: &dyn std::fmt::Display) {
        self.disk_failures.fetch_add(1, Relaxed);
        if let Some(failures) = self.read_warnings.count(Instant::now()) {
            tracing::error!(%cause, failures, "a stored block cannot be read; nodes are asked");
        }
    }

    /// Whether a block is stored, in memory or in the file.
    pub(crate) fn has(&self, block: BlockRef) -> bool {
        let is_whole = |snapshot: &BlocksFileSnapshot| {
            let is_whole = snapshot.ranges().any(|range| range.contains(&block.number));
            Ok(is_whole.then_some(()))
        };
        self.recent.read().get(&block.hash).is_some() || self.read(block, is_whole).is_some()
    }

    /// The canonical block of a number, if it is stored whole in the file, and how far nodes are trusted that it is canonical, unless
    /// the head commits to it.
    pub(crate) fn by_number(
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
    pub(crate) fn by_hash(
        &self,
        chain: &CanonicalChain,
        hash: &B256,
    ) -> Option<(BlockRef, Option<TrustMark>)> {
        let number = self.reading(|snapshot| snapshot.number_of(hash))?;
        self.by_number(chain, number).filter(|(block, _)| block.hash == *hash)
    }

    /// The canonical block of a transaction, if it is in memory or in the file.
    pub(crate) fn place(&self, chain: &CanonicalChain, transaction: &B256) -> Option<BlockRef> {
        let recent = self.recent.read().place(transaction);
        let is_canonical = |block: &BlockRef| chain.by_hash(&block.hash).is_some();
        recent.filter(is_canonical).or_else(|| {
            let (number, _) = self.reading(|snapshot| snapshot.place(transaction))?;
            Some(self.by_number(chain, number)?.0)
        })
    }

    /// The lowest block of the file that is canonical in this epoch of the view.
    pub(crate) fn linked_from(&self, epoch: u64) -> Option<u64> {
        self.linked(epoch)?.lowest()
    }

    fn linked(&self, epoch: u64) -> Option<Linked> {
        Some(*self.linked.lock()).filter(|linked| linked.epoch == epoch)
    }

    /// Whether the newest blocks of the file are canonical, and how far nodes are trusted about that, unless the head commits to them.
    pub(crate) fn newest_link(&self, chain: &CanonicalChain) -> Option<Option<TrustMark>> {
        let newest = *self.file.snapshot().ranges().next_back()?.end();
        self.by_number(chain, newest).map(|(_, trust)| trust)
    }

    /// Says that all blocks of the range of this block are canonical, because nodes have reported it or, without
    /// `trust`, because the head commits to it.
    pub(crate) fn link(&self, epoch: u64, number: u64, trust: Option<TrustMark>) {
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
    pub(crate) fn extend_link(&self, epoch: u64, number: u64) {
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
    pub(crate) fn unlink_reported(&self) {
        self.linked.lock().reported = None;
    }

    fn relink(&self, epoch: u64, number: u64, change: impl FnOnce(&mut Linked, &RangeInclusive<u64>)) {
        let snapshot = self.file.snapshot();
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

    /// Stops using the blocks of the file, and drops those in memory.
    pub(crate) fn disown(&self) {
        *self.linked.lock() = Linked::default();
        self.recent.write().clear();
    }

    /// Writes blocks, and what chain they are of if that is not in the file yet.
    pub(crate) fn put_blocks(
        &self,
        new_chain: Option<StoredChainId>,
        blocks: &[EncodedBlock],
    ) -> Result<(), StoreError> {
        let named = new_chain.map_or(Ok(()), |chain| self.file.set_chain(chain));
        self.count_failure(named.and_then(|()| self.file.put_blocks(blocks)))
    }

    /// Removes the blocks above one that the nodes have gone back to.
    pub(crate) fn remove_above(&self, number: u64) -> Result<(), StoreError> {
        self.count_failure(self.file.remove_above(number))
    }

    /// Writes headers that a log query has fetched. Following does not depend on them.
    pub(crate) fn put_headers(&self, headers: &[StoredHeader]) -> Result<(), StoreError> {
        self.count_failure(self.file.put_headers(headers))
    }

    fn count_failure(&self, written: Result<(), StoreError>) -> Result<(), StoreError> {
        self.disk.record(DiskWriter::Blocks, &written);
        if written.is_err() {
            self.disk_failures.fetch_add(1, Relaxed);
        }
        written
    }

    pub fn disk_failures(&self) -> u64 {
        self.disk_failures.load(Relaxed)
    }

    pub fn file_bytes(&self) -> u64 {
        self.file.file_bytes()
    }

    /// Blocks in memory, and the bytes that they take.
    pub fn in_memory(&self) -> (usize, usize) {
        let recent = self.recent.read();
        (recent.len(), recent.bytes())
    }
}
