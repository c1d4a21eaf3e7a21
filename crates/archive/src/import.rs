//! Import: blocks come in, are checked, executed and proven, and become durable in groups.
//!
//! One thread decodes blocks and recovers senders; this one checks, executes and writes. A block is written
//! only after everything its header states about it was found to be true. The first block for which that
//! fails stops the import; what came before it stays.

mod error;
mod raw;
mod recover;
mod reorganise;

pub use error::{BadBlock, ImportError};
pub use raw::RawRecordsError;

use crate::{
    archive::Archive,
    blockfile::{BlockFile, BlockFileError},
    chain::Block,
    check::{self, Ancestry},
    execute::execute_block,
    logs::LogIndexer,
    read::Snapshot,
    rows::BlockSummary,
    store::{REPLACEABLE_BLOCKS_MIN, Savepoint, Savepoints, StoreError},
    write::{BlockTables, LatestState, NewBlock, ProvenExecution, StateTables, Tries},
};
use alloy_consensus::{Header, Sealed};
use alloy_primitives::{B256, U256};
use recover::{RecoveredBlock, RecoveryFault, ReplaceableBlocks, SourceBlock};
use redb::WriteTransaction;
use serde::{Deserialize, Serialize};
use std::{
    sync::mpsc::{Receiver, RecvTimeoutError, sync_channel},
    thread,
    time::{Duration, Instant},
};

/// How long a proven block may wait until it is durable.
const GROUP_TIME_MAX: Duration = Duration::from_millis(900);

/// Memory that the index rows of a group may take before the group is committed.
const GROUP_INDEX_BYTES_MAX: usize = 64 << 20;

/// How much gas a group may hold: bounds what one transaction of the store has to keep in memory.
const GROUP_GAS_MAX: u64 = 2_000_000_000;

/// Decoded blocks that may wait for execution. A block can have some 10 MB.
const QUEUE_BLOCKS_MAX: usize = 32;

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ImportProgress {
    /// Number of the newest block in the archive.
    pub head: u64,
    pub blocks: u64,
    /// Blocks that were skipped because the archive already had them.
    pub skipped: u64,
    pub transactions: u64,
    pub gas: u64,
    /// Bytes of the source that were read, which only its reader knows.
    #[serde(skip)]
    pub bytes_read: u64,
}

/// Receives the progress of an import, and may stop it after the current block.
pub trait ImportObserver {
    /// Called after every block.
    fn progressed(&mut self, progress: &ImportProgress);

    /// Whether the import should end now.
    fn should_stop(&self) -> bool {
        false
    }
}

/// Ignores progress and never stops the import.
#[derive(Clone, Copy, Debug)]
pub struct NoProgress;

impl ImportObserver for NoProgress {
    fn progressed(&mut self, _progress: &ImportProgress) {}
}

impl Archive {
    /// Imports the blocks of a file. Blocks that the archive already has are skipped.
    ///
    /// When it fails, everything before the block that is named in the error is stored and usable.
    pub fn import(
        &self,
        mut file: BlockFile,
        observer: &mut impl ImportObserver,
    ) -> Result<ImportProgress, ImportError> {
        let blocks = std::iter::from_fn(move || {
            let block = file.next()?.map(|found| found.block);
            Some(block.map(|block| SourceBlock { block, bytes_read: file.bytes_read() }))
        });
        self.import_from(blocks, ReplaceableBlocks::default(), observer)
    }

    /// Imports blocks that are in memory, as [`Self::import`] does with those of a file. They are final: no reorganisation can
    /// replace them.
    pub fn import_blocks<B>(
        &self,
        blocks: B,
        observer: &mut impl ImportObserver,
    ) -> Result<ImportProgress, ImportError>
    where
        B: IntoIterator<Item = Block, IntoIter: Send>,
    {
        let blocks = blocks.into_iter().map(|block| Ok(SourceBlock { block, bytes_read: 0 }));
        self.import_from(blocks, ReplaceableBlocks::default(), observer)
    }

    /// Imports blocks of a chain that may be reorganised: the newest ones can be replaced later.
    pub fn follow_blocks<B>(
        &self,
        blocks: B,
        observer: &mut impl ImportObserver,
    ) -> Result<ImportProgress, ImportError>
    where
        B: IntoIterator<Item = Block, IntoIter: Send>,
    {
        let blocks = blocks.into_iter().map(|block| Ok(SourceBlock { block, bytes_read: 0 }));
        let replaceable = ReplaceableBlocks { last: REPLACEABLE_BLOCKS_MIN, after: self.finalized() };
        self.import_from(blocks, replaceable, observer)
    }

    fn import_from<B>(
        &self,
        blocks: B,
        replaceable: ReplaceableBlocks,
        observer: &mut impl ImportObserver,
    ) -> Result<ImportProgress, ImportError>
    where
        B: Iterator<Item = Result<SourceBlock, BlockFileError>> + Send,
    {
        let _only_one = self.begin_import();
        thread::scope(|scope| {
            let (sender, receiver) = sync_channel(QUEUE_BLOCKS_MAX);
            let chain = self.chain();
            scope.spawn(move || recover::run(chain, blocks, replaceable, &sender));
            let import = {
                // No page of the file is used again while a snapshot is older than it, so none is held during the import.
                let snapshot = self.snapshot();
                Import::resume(self, &snapshot, snapshot.head(), receiver)?
            };
            import.run(observer)
        })
    }
}

type Queue = Receiver<Result<RecoveredBlock, RecoveryFault>>;

struct Import<'a> {
    archive: &'a Archive,
    queue: Queue,
    tries: Tries,
    ancestry: Ancestry,
    /// Place of the newest block.
    summary: BlockSummary,
    progress: ImportProgress,
    /// Whether the blocks from now on can be replaced: each group begins with a savepoint.
    is_replaceable: bool,
    /// A block that waits for the next group.
    waiting: Option<RecoveredBlock>,
}

/// How a group of blocks ended.
enum GroupEnd {
    Full,
    SourceEmpty,
    Stopped,
    Fault(ImportError),
}

impl<'a> Import<'a> {
    /// Goes on after the block `head`.
    fn resume(
        archive: &'a Archive,
        snapshot: &Snapshot,
        head: u64,
        queue: Queue,
    ) -> Result<Self, ImportError> {
        let missing = || StoreError::MissingRow("the head block");
        let header = snapshot.header(head)?.ok_or_else(missing)?;
        let summary = snapshot.summary(head)?.ok_or_else(missing)?;
        Ok(Self {
            archive,
            queue,
            tries: Tries::with_root(header.state_root),
            ancestry: load_ancestry(snapshot, head)?,
            summary,
            progress: ImportProgress { head, ..ImportProgress::default() },
            is_replaceable: false,
            waiting: None,
        })
    }

    fn run(mut self, observer: &mut impl ImportObserver) -> Result<ImportProgress, ImportError> {
        loop {
            match self.import_group(observer)? {
                GroupEnd::Full => {}
                GroupEnd::SourceEmpty | GroupEnd::Stopped => return Ok(self.progress),
                GroupEnd::Fault(fault) => return Err(fault),
            }
        }
    }

    /// Imports blocks until it is time to make them durable, and does so.
    fn import_group(&mut self, observer: &mut impl ImportObserver) -> Result<GroupEnd, ImportError> {
        let transaction = self.archive.begin_write()?;
        let before = self.progress.blocks;
        let savepoint = match self.is_replaceable {
            true => Some(Savepoint::make(&transaction, self.progress.head)?),
            false => None,
        };
        let end = {
            let mut group = BlockGroup::open(&transaction)?;
            let savepoints = Savepoints::read(&group.blocks.meta)?;
            let end = self.fill(&mut group, observer)?;
            self.finish(&mut group)?;
            match savepoint {
                Some(new) => {
                    let lowest = self.archive.lowest_replaceable(self.progress.head);
                    savepoints.with(new).keep_from(lowest, &transaction, &mut group.blocks.meta)?;
                }
                // These blocks are final, so that nothing below them is replaced, and savepoints would only make the file grow.
                None => savepoints.delete(&transaction, &mut group.blocks.meta)?,
            }
            end
        };
        if self.progress.blocks > before {
            self.archive.commit(transaction)?;
        } else {
            transaction.abort().map_err(StoreError::from)?;
        }
        Ok(end)
    }

    /// Writes the rows that are written once per group.
    fn finish(&mut self, group: &mut BlockGroup<'_>) -> Result<(), StoreError> {
        group.indexer.flush(&mut group.blocks.log_index)?;
        self.tries.flush(&mut group.state.trie_nodes)
    }

    fn fill(
        &mut self,
        group: &mut BlockGroup<'_>,
        observer: &mut impl ImportObserver,
    ) -> Result<GroupEnd, ImportError> {
        while !group.is_full() {
            if observer.should_stop() {
                return Ok(GroupEnd::Stopped);
            }
            let next = self
                .waiting
                .take()
                .map_or_else(|| self.queue.recv_timeout(group.wait_max()), |block| Ok(Ok(block)));
            let recovered = match next {
                Ok(Ok(recovered)) => recovered,
                Ok(Err(fault)) => return Ok(GroupEnd::Fault(fault.into())),
                Err(RecvTimeoutError::Timeout) => return Ok(GroupEnd::Full),
                Err(RecvTimeoutError::Disconnected) => return Ok(GroupEnd::SourceEmpty),
            };
            if recovered.is_replaceable && !self.is_replaceable {
                (self.is_replaceable, self.waiting) = (true, Some(recovered));
                return Ok(GroupEnd::Full);
            }
            self.progress.bytes_read = recovered.bytes_read;
            match self.import_block(group, &recovered) {
                Ok(()) => {}
                Err(ImportError::Store(cause)) => return Err(cause.into()),
                Err(fault) => return Ok(GroupEnd::Fault(fault)),
            }
            observer.progressed(&self.progress);
        }
        Ok(GroupEnd::Full)
    }

    fn import_block(
        &mut self,
        group: &mut BlockGroup<'_>,
        recovered: &RecoveredBlock,
    ) -> Result<(), ImportError> {
        let number = recovered.block.header.number;
        if number <= self.progress.head {
            self.progress.skipped += 1;
            return already_there(group, recovered, number);
        }
        check_place(self.ancestry.parent(), recovered)?;
        let proven = self.prove(group, recovered)?;
        Ok(self.store(group, recovered, proven)?)
    }

    /// Checks and executes a block, and compares everything with its header. Changes nothing.
    fn prove(
        &self,
        group: &BlockGroup<'_>,
        recovered: &RecoveredBlock,
    ) -> Result<ProvenExecution, ImportError> {
        let (chain, block) = (self.archive.chain(), &recovered.block);
        let wrong = |fault| ImportError::bad_block(recovered, BadBlock::Check(fault));
        let checked = check::check_block(chain, &self.ancestry, block).map_err(wrong)?;

        let source = LatestState::new(&group.blocks, &group.state);
        let mut tries = self.tries.begin(&group.state.trie_nodes, &group.state.accounts);
        let rules = chain.rules_at(&block.header);
        let executed = execute_block(rules, block, &recovered.senders, &source, &mut tries)
            .map_err(|fault| ImportError::execution(recovered, fault, source.failure()))?;
        check::check_execution(&block.header, &executed.outcome()).map_err(wrong)?;
        Ok(ProvenExecution { checked, executed, changed: tries.finish() })
    }

    fn store(
        &mut self,
        group: &mut BlockGroup<'_>,
        recovered: &RecoveredBlock,
        proven: ProvenExecution,
    ) -> Result<(), StoreError> {
        let block = &recovered.block;
        let new = NewBlock {
            block,
            hash: proven.checked.hash,
            size: recovered.size,
            total_difficulty: proven.checked.total_difficulty,
            senders: &recovered.senders,
            receipts: &proven.executed.receipts,
            blob_gas_price: self.archive.chain().blob_fee(&block.header).unwrap_or(0),
        };
        let number = block.header.number;
        let storage_roots = &proven.changed.storage_roots;
        group.state.store(number, &proven.executed.changes, storage_roots)?;
        self.summary = group.blocks.store(&new, Some(&self.summary), &mut group.indexer)?;
        self.tries.accept(proven.changed);
        let header = Sealed::new_unchecked(block.header.clone(), proven.checked.hash);
        self.ancestry.push(header, proven.checked.uncle_hashes);
        group.gas += block.header.gas_used;

        self.progress.head = number;
        self.progress.blocks += 1;
        self.progress.transactions += block.body.transactions.len() as u64;
        self.progress.gas += block.header.gas_used;
        Ok(())
    }
}

/// The blocks that become durable together.
struct BlockGroup<'txn> {
    blocks: BlockTables<'txn>,
    state: StateTables<'txn>,
    indexer: LogIndexer,
    /// When the group is committed; `None` if it takes all blocks of the queue.
    until: Option<Instant>,
    gas: u64,
}

impl<'txn> BlockGroup<'txn> {
    fn open(transaction: &'txn WriteTransaction) -> Result<Self, StoreError> {
        Ok(Self {
            blocks: BlockTables::open(transaction)?,
            state: StateTables::open(transaction)?,
            indexer: LogIndexer::default(),
            until: Some(Instant::now() + GROUP_TIME_MAX),
            gas: 0,
        })
    }

    fn is_full(&self) -> bool {
        self.until.is_some_and(|until| {
            self.gas >= GROUP_GAS_MAX
                || self.indexer.memory_bytes() >= GROUP_INDEX_BYTES_MAX
                || Instant::now() >= until
        })
    }

    /// How long to wait for the next block.
    fn wait_max(&self) -> Duration {
        self.until.map_or(Duration::MAX, |until| until.saturating_duration_since(Instant::now()))
    }
}

/// The blocks that the next one is checked against.
fn load_ancestry(snapshot: &Snapshot, head: u64) -> Result<Ancestry, StoreError> {
    let mut numbers = head.saturating_sub(check::GENERATIONS as u64 - 1)..=head;
    let first = snapshot.ancestor(numbers.next().unwrap_or(head))?;
    let mut ancestry = Ancestry::starting_at(first.header, first.uncle_hashes, first.total_difficulty);
    for number in numbers {
        let block = snapshot.ancestor(number)?;
        if block.header.parent_hash != ancestry.parent().hash() {
            return Err(StoreError::MissingRow("the parent of a block"));
        }
        ancestry.push(block.header, block.uncle_hashes);
    }
    Ok(ancestry)
}

impl Snapshot {
    fn ancestor(&self, number: u64) -> Result<StoredAncestor, StoreError> {
        let block = self.block(number)?.ok_or(StoreError::MissingRow("a block"))?;
        Ok(StoredAncestor {
            uncle_hashes: block.uncles.iter().map(Header::hash_slow).collect(),
            header: Sealed::new_unchecked(block.header, block.summary.hash),
            total_difficulty: block.summary.total_difficulty,
        })
    }
}

struct StoredAncestor {
    header: Sealed<Header>,
    uncle_hashes: Vec<B256>,
    total_difficulty: U256,
}

/// Rejects a block if blocks between the head and it are missing, or if its chain has another genesis. The header check
/// finds any other wrong parent.
fn check_place(head: &Sealed<Header>, recovered: &RecoveredBlock) -> Result<(), ImportError> {
    let header = &recovered.block.header;
    if header.parent_hash == head.hash() {
        return Ok(());
    }
    if header.number > head.number.saturating_add(1) {
        let (first, last) = (head.number.saturating_add(1), header.number - 1);
        return Err(ImportError::MissingBlocks { number: header.number, first, last });
    }
    if header.number == 1 {
        return Err(ImportError::OtherGenesis { found: header.parent_hash, genesis: head.hash() });
    }
    Ok(())
}

/// A block that the archive has already must be the same block.
fn already_there(group: &BlockGroup<'_>, recovered: &RecoveredBlock, number: u64) -> Result<(), ImportError> {
    use crate::state::StateSource;
    let stored = LatestState::new(&group.blocks, &group.state).block_hash(number)?;
    if stored == recovered.hash {
        return Ok(());
    }
    if number == 0 {
        return Err(ImportError::OtherGenesis { found: recovered.hash, genesis: stored });
    }
    Err(ImportError::OtherChain { number, stored, found: recovered.hash })
}
