//! New blocks: fetched when the view shows them, and executed in their order.

use std::io;
use std::panic::resume_unwind;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::thread;
use std::time::Duration;

use alloy_consensus::BlockBody;
use archive::{Block, ImportError, ImportObserver, ImportProgress};
use futures_util::{Stream, StreamExt, stream};
use methods::BlockRef;
use nodes::CanonicalChain;
use resources::{AccountId, DiskWriter, Supervisor, WhenDown, counted};
use sources::Failure;
use tokio::sync::{mpsc, oneshot};
use tokio::time::timeout;

use super::branch::{MissingBranch, NoBranch, branch_of};
use super::worker::ExecutionWorker;
use crate::blocks::Blocks;
use crate::call_context::CallContext;
use crate::follower::executed_chain::{EXECUTE_TASK, ExecutedChain, ExecutionState};
use crate::follower::thread::{ChainReceiver, FollowThread, UNPROVEN_ATTEMPTS_MAX};
use crate::policy::{STOPPED_TRIED_AGAIN_AFTER, TRIED_AGAIN_AFTER};

/// Blocks that are fetched at the same time: enough that execution does not wait for them.
const FETCHED_AT_ONCE: usize = 16;

/// Fetched blocks that may wait for execution. A block can have some megabytes.
const WAITING_BLOCKS_MAX: usize = 16;

/// Blocks of another branch that are executed in one transaction: what they change is in memory until then. Those after them
/// follow as new blocks do.
const REPLACED_AT_ONCE: usize = 256;

/// Starts the thread that keeps the archive at the head.
pub(in crate::follower) fn start(
    executed_chain: Arc<ExecutedChain>,
    remote: Arc<Blocks>,
    supervisor: &Supervisor,
) -> io::Result<FollowThread> {
    let task = supervisor.task(EXECUTE_TASK, WhenDown::Degraded);
    let (worker, account) = (Arc::new(ExecutionWorker::start()?), AccountId::unique());
    FollowThread::start(task, move || {
        let (remote, executed_chain) = (Arc::clone(&remote), Arc::clone(&executed_chain));
        let worker = Arc::clone(&worker);
        async move {
            let live = ExecutionLoop {
                remote: &remote,
                executed_chain: &executed_chain,
                worker,
                account,
                is_written: true,
                unproven: 0,
            };
            // After a panic, blocks that the worker has begun are finished first.
            let _idle = live.worker.run(|| ()).await;
            live.keep_up().await;
        }
    })
}

struct ExecutionLoop<'a> {
    remote: &'a Blocks,
    executed_chain: &'a Arc<ExecutedChain>,
    worker: Arc<ExecutionWorker>,
    /// The account that the proofs of new blocks are charged to; no caller uses it.
    account: AccountId,
    /// Whether the last attempt to write the archive went well.
    is_written: bool,
    /// Times in a row that a block could not be proven.
    unproven: u32,
}

/// Why not all blocks were executed.
enum NotExecuted {
    /// Nodes did not give what was asked, or the view has changed.
    Temporary,
    /// A node said that the block has a transaction of an unknown type, or its data fails its proof.
    Unproven(String),
    /// The archive cannot be read or written.
    Disk(String),
    /// Trying again cannot succeed.
    Permanent(String),
}

impl ExecutionLoop<'_> {
    async fn keep_up(mut self) {
        let mut changes = self.remote.pool.view().changes();
        loop {
            let chain = changes.borrow_and_update().clone();
            let pause = match chain {
                Some(chain) => self.step(&chain, &mut changes).await,
                None => Duration::MAX,
            };
            if !pause.is_zero() {
                // The view lives as long as the nodes, and so longer than this.
                let _changed_or_late = timeout(pause, changes.changed()).await;
            }
        }
    }

    /// Executes what is missing, or some of it. Gives how long to wait for a change of the view.
    async fn step(&mut self, chain: &Arc<CanonicalChain>, changes: &mut ChainReceiver) -> Duration {
        let advanced = self.advance(chain, changes).await;
        self.executed_chain.forget_old_snapshot(&self.remote.pool);
        let has_failed_before =
            !std::mem::replace(&mut self.is_written, !matches!(advanced, Err(NotExecuted::Disk(_))));
        match &advanced {
            Ok(_) => self.executed_chain.disk.record(DiskWriter::Archive, &Ok::<_, &str>(())),
            Err(NotExecuted::Disk(cause)) => {
                self.executed_chain.disk.record(DiskWriter::Archive, &Err::<(), _>(cause));
            }
            Err(_) => {}
        }
        let is_unproven = matches!(advanced, Err(NotExecuted::Unproven(_)));
        self.unproven = if is_unproven { self.unproven + 1 } else { 0 };
        match advanced {
            Ok(true) => {
                self.executed_chain.set_state(ExecutionState::AtHead);
                Duration::MAX
            }
            Ok(false) => {
                self.executed_chain.set_state(ExecutionState::Behind);
                Duration::ZERO
            }
            Err(NotExecuted::Temporary) => TRIED_AGAIN_AFTER,
            Err(NotExecuted::Unproven(_)) if self.unproven < UNPROVEN_ATTEMPTS_MAX => TRIED_AGAIN_AFTER,
            Err(NotExecuted::Disk(cause)) => {
                if !has_failed_before {
                    tracing::error!(
                        cause,
                        "the archive cannot be read or written: no block is executed until it can"
                    );
                }
                let reason = format!("the archive cannot be read or written: {cause}");
                self.executed_chain.set_state(ExecutionState::Stopped(reason));
                TRIED_AGAIN_AFTER
            }
            Err(NotExecuted::Permanent(reason) | NotExecuted::Unproven(reason)) => {
                self.executed_chain.set_stopped(reason);
                STOPPED_TRIED_AGAIN_AFTER
            }
        }
    }

    /// Goes towards the head of the view. `false` if more is to be done.
    async fn advance(
        &self,
        chain: &Arc<CanonicalChain>,
        changes: &mut ChainReceiver,
    ) -> Result<bool, NotExecuted> {
        let archive = self.executed_chain.archive();
        archive.set_finalized(chain.finalized().map(|block| block.number));
        let snapshot = archive.snapshot();
        self.check_genesis(chain)?;
        let head = snapshot.head();
        let lowest = archive.lowest_replaceable(head.min(chain.head().number));
        let branch =
            branch_of(self.remote, CallContext::of_follower(self.account, chain), &snapshot, lowest).await;
        // It would keep pages from being used again while blocks are executed.
        drop(snapshot);
        let mut branch = branch.map_err(|reason| why_no_branch(reason, head, lowest))?;
        if branch.blocks.is_empty() && !self.is_reverted(head, branch.ancestor)? {
            return Ok(true);
        }
        add_deep_blocks(chain, &branch.blocks);
        let is_last = branch.blocks.last().is_none_or(|block| block.hash == chain.head().hash);
        if branch.ancestor == head {
            self.extend(chain, branch).await?;
            return Ok(is_last);
        }
        let is_whole = branch.blocks.len() <= REPLACED_AT_ONCE;
        branch.blocks.truncate(REPLACED_AT_ONCE);
        self.reorganise(chain, branch, changes).await?;
        Ok(is_last && is_whole)
    }

    /// Whether the nodes have removed the blocks of the archive above their head. Where those are final, because they were imported or
    /// are old, real nodes are late, and a development node has gone back too far.
    fn is_reverted(&self, head: u64, newest_common: u64) -> Result<bool, NotExecuted> {
        let can_go_back = || {
            let can_go_back = self.executed_chain.archive().can_go_back_to(newest_common);
            can_go_back.map_err(|cause| NotExecuted::Disk(cause.to_string()))
        };
        Ok(newest_common < head && (self.remote.pool.view().mines_on_demand() || can_go_back()?))
    }

    /// Another genesis means another chain, and none of its blocks fits.
    fn check_genesis(&self, chain: &CanonicalChain) -> Result<(), NotExecuted> {
        let ours = self
            .executed_chain
            .archive()
            .current()
            .genesis_hash()
            .map_err(|cause| NotExecuted::Disk(cause.to_string()))?;
        match chain.genesis() {
            Some(theirs) if theirs.hash != ours => Err(NotExecuted::Permanent(format!(
                "the archive holds the chain with genesis {ours}, the nodes the one with genesis {}; \
                 use another data_dir or other nodes",
                theirs.hash
            ))),
            _ => Ok(()),
        }
    }

    /// Executes blocks that follow the archive's head, while further ones are fetched.
    async fn extend(&self, chain: &Arc<CanonicalChain>, branch: MissingBranch) -> Result<(), NotExecuted> {
        self.executed_chain.set_executing();
        let (sender, mut receiver) = mpsc::channel(WAITING_BLOCKS_MAX);
        let executed_chain = Arc::clone(self.executed_chain);
        let execution = self.worker.run(move || {
            let blocks = std::iter::from_fn(move || receiver.blocking_recv());
            executed_chain
                .archive()
                .follow_blocks(blocks, &mut BlockCounter { executed_chain: &executed_chain, blocks: 0 })
        });
        let fetched = self.send_blocks(chain, &branch.blocks, sender).await;
        executed(execution.await)?;
        fetched
    }

    async fn send_blocks(
        &self,
        chain: &CanonicalChain,
        blocks: &[BlockRef],
        sender: mpsc::Sender<Block>,
    ) -> Result<(), NotExecuted> {
        let mut fetched = std::pin::pin!(self.fetch(chain, blocks));
        while let Some(block) = fetched.next().await {
            if sender.send(block?).await.is_err() {
                // Execution has ended, and says why.
                return Ok(());
            }
        }
        Ok(())
    }

    /// Replaces blocks of the archive. Nothing changes before the whole branch is there.
    async fn reorganise(
        &self,
        chain: &CanonicalChain,
        branch: MissingBranch,
        changes: &mut ChainReceiver,
    ) -> Result<(), NotExecuted> {
        let mut blocks = Vec::with_capacity(branch.blocks.len());
        let mut fetched = std::pin::pin!(self.fetch(chain, &branch.blocks));
        while let Some(block) = fetched.next().await {
            blocks.push(block?);
        }
        if changes.has_changed().unwrap_or(false) && !still_leads_there(changes, &branch) {
            return Err(NotExecuted::Temporary);
        }
        let (executed_chain, ancestor) = (Arc::clone(self.executed_chain), branch.ancestor);
        let depth = executed_chain.head().saturating_sub(ancestor);
        tracing::info!(depth, ancestor, blocks = blocks.len(), "the chain is reorganised");
        let replaced = self.worker.run(move || executed_chain.archive().reorganise(ancestor, blocks)).await;
        executed(replaced)?;
        self.executed_chain.counts.reorganisations.fetch_add(1, Relaxed);
        self.executed_chain.counts.blocks.fetch_add(branch.blocks.len() as u64, Relaxed);
        Ok(())
    }

    /// Blocks in their order, some of them fetched ahead.
    fn fetch<'s>(
        &'s self,
        chain: &'s CanonicalChain,
        blocks: &'s [BlockRef],
    ) -> impl Stream<Item = Result<Block, NotExecuted>> + 's {
        stream::iter(blocks).map(move |block| self.fetch_one(chain, *block)).buffered(FETCHED_AT_ONCE)
    }

    async fn fetch_one(&self, chain: &CanonicalChain, block: BlockRef) -> Result<Block, NotExecuted> {
        let context = CallContext::of_follower(self.account, chain);
        let held =
            |failure| why_not_fetched(failure, block.number, self.remote.pool.why_unproven(block.number));
        let body = self.remote.body(context, block).await.map_err(held)?;
        let uncles = self.remote.uncles(context, &body).await.map_err(held)?;
        Ok(Block {
            header: body.header().clone(),
            body: BlockBody {
                transactions: body.transactions().to_vec(),
                ommers: uncles.headers().to_vec(),
                withdrawals: body.withdrawals().cloned(),
            },
        })
    }
}

/// Whether a branch is still part of the chain of the view, and one without blocks all that follows its ancestor.
fn still_leads_there(changes: &ChainReceiver, branch: &MissingBranch) -> bool {
    let chain = changes.borrow();
    let leads_there = |chain: &Arc<CanonicalChain>| match branch.blocks.last() {
        Some(last) => chain.by_hash(&last.hash).is_some(),
        None => chain.head().number == branch.ancestor,
    };
    chain.as_ref().is_some_and(leads_there)
}

/// Adds blocks below the window to the chain of the view. The newest of them leads to all others by the hashes of parents: if only
/// nodes say that it is canonical, the others rest on their word, too.
fn add_deep_blocks(chain: &CanonicalChain, blocks: &[BlockRef]) {
    let id = |block: &BlockRef| nodes::BlockId { number: block.number, hash: block.hash };
    let Some(newest) = blocks.last().map(id) else { return };
    if chain.by_number(newest.number) != Some(newest) {
        return;
    }
    let trust = chain.trust(newest.number);
    for block in blocks.iter().map(id) {
        match trust {
            Some(trust) => chain.add_reported_block(block, trust),
            None => chain.add_linked_block(block),
        }
    }
}

fn why_no_branch(reason: NoBranch, head: u64, lowest: u64) -> NotExecuted {
    match reason {
        NoBranch::Unknown => NotExecuted::Temporary,
        NoBranch::Archive(failure) => NotExecuted::Disk(format!("{failure:?}")),
        NoBranch::TooDeep => NotExecuted::Permanent(format!(
            "the nodes have none of the last {} of the archive up to block {head}, and older ones cannot be \
             replaced; make a new archive with `chaingate import`",
            counted(head.saturating_sub(lowest), "block")
        )),
    }
}

fn why_not_fetched(failure: Failure, number: u64, why_unproven: Option<String>) -> NotExecuted {
    match failure {
        Failure::CannotBeProven { transaction_type } => NotExecuted::Unproven(format!(
            "block {number} has a transaction of type {transaction_type:#x}, which is unknown to this version"
        )),
        _ => why_unproven.map_or(NotExecuted::Temporary, NotExecuted::Unproven),
    }
}

/// The outcome of an execution. A panic of the worker is one of the task, which begins anew with what the archive has.
fn executed(
    ended: Result<thread::Result<Result<ImportProgress, ImportError>>, oneshot::error::RecvError>,
) -> Result<(), NotExecuted> {
    match ended {
        Ok(Ok(Ok(_))) => Ok(()),
        Ok(Ok(Err(ImportError::Store(cause)))) => Err(NotExecuted::Disk(cause.to_string())),
        Ok(Ok(Err(cause))) => Err(NotExecuted::Permanent(cause.to_string())),
        Ok(Err(panic)) => resume_unwind(panic),
        Err(_) => Err(NotExecuted::Permanent("the thread that executes blocks has ended".to_owned())),
    }
}

/// Counts blocks as they are executed.
struct BlockCounter<'a> {
    executed_chain: &'a ExecutedChain,
    blocks: u64,
}

impl ImportObserver for BlockCounter<'_> {
    fn progressed(&mut self, progress: &ImportProgress) {
        let new = progress.blocks - std::mem::replace(&mut self.blocks, progress.blocks);
        self.executed_chain.counts.blocks.fetch_add(new, Relaxed);
    }
}
