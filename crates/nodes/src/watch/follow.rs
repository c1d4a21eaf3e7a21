//! The watcher of one node: identify → follow → lost, and again. A node that is not of this chain is excluded.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use tokio::sync::watch;
use tokio::time::{Instant, sleep, timeout};

use super::chain::Identity;
use super::questions::{BlockSelector, NodeIntroduction, Questions};
use super::{ExclusionReason, HeadHint, WatchContext, Watched, log_exclusion};
use crate::call::{BlockId, Fault};
use crate::node_fault::NodeFault;
use crate::outage_log::OutageLog;
use crate::view::{BranchLink, HeadBranch, SeenBlock, WINDOW_BLOCKS};

/// Shortest time between two polls, to limit the load on the node.
const POLL_EVERY_MIN: Duration = Duration::from_millis(100);
/// Longest time between two polls, because callers should not wait longer for a new block.
const POLL_EVERY_MAX: Duration = Duration::from_secs(4);
/// Time between two polls before the block time is known.
const POLL_EVERY_AT_FIRST: Duration = Duration::from_secs(1);
/// Polls per block time. A new block is seen after a quarter of the block time on average.
const POLLS_PER_BLOCK: u32 = 2;

/// The first wait before a lost node is asked for its identity again. It doubles each time.
const RETRY_AFTER_MIN: Duration = Duration::from_millis(100);
/// The longest wait before a lost node is asked for its identity again.
const RETRY_AFTER_MAX: Duration = Duration::from_secs(2);
/// How often an excluded node is asked for its identity again.
const EXCLUDED_IDENTIFY_EVERY: Duration = Duration::from_secs(5);
/// How long the nodes may take to agree on a chain before they are excluded with the reason.
const SETTLE_TIMEOUT: Duration = Duration::from_secs(10);

/// How long a node may say nothing before it is asked whether it is there. Together with the time for its answer, `/ready` reports
/// within two seconds that all nodes are gone.
const SILENCE_MAX: Duration = Duration::from_millis(750);

/// Blocks that are fetched concurrently.
const FETCHES_AT_ONCE: u64 = 16;
/// The most rounds of fetching for one head. A whole window takes 17 when the node's numbers and hashes are consistent.
const FETCH_ROUNDS_MAX: usize = 64;
/// How long fetching for one head may take before the node's newest block is polled again.
const FETCH_TIMEOUT: Duration = Duration::from_secs(10);
/// New heads between two polls of safe and finalized.
const HEADS_PER_MARKS: u32 = 4;
/// The most polls of the head between two polls of safe and finalized, for when there are few new heads.
const POLLS_PER_MARKS: u32 = 2 * HEADS_PER_MARKS * POLLS_PER_BLOCK;

/// The next step of the watcher.
#[derive(Clone, Debug)]
enum WatcherStep {
    Identify,
    Follow,
    Lost,
    Excluded(ExclusionReason),
}

/// The watcher of one node.
#[derive(Debug)]
pub(super) struct NodeWatcher<W> {
    node: Arc<W>,
    context: Arc<WatchContext>,
    hints: Option<watch::Receiver<Option<HeadHint>>>,
    /// Requests to poll the node before the next poll is due.
    poll_requests: watch::Receiver<u64>,
    /// Its identity when it was last asked for it.
    identity: Option<Identity>,
    head: Option<BlockId>,
    /// Blocks of a branch whose fetching was interrupted, so that the next poll need not start over.
    unfinished: Option<HeadBranch>,
    heads_until_marks: u32,
    polls_since_marks: u32,
    /// How often it was lost in a row.
    losses: u32,
    outage: OutageLog,
    exclusion: Option<ExclusionReason>,
}

impl<W: Watched> NodeWatcher<W> {
    pub(super) fn new(node: Arc<W>, context: Arc<WatchContext>) -> Self {
        let (hints, poll_requests) = (node.hints(), context.view.poll_requests());
        Self {
            node,
            context,
            hints,
            poll_requests,
            identity: None,
            head: None,
            unfinished: None,
            heads_until_marks: 0,
            polls_since_marks: 0,
            losses: 0,
            outage: OutageLog::default(),
            exclusion: None,
        }
    }

    pub(super) async fn run(mut self) {
        let mut next = WatcherStep::Identify;
        loop {
            next = match next {
                WatcherStep::Identify => self.identify().await,
                WatcherStep::Follow => self.follow().await,
                WatcherStep::Lost => self.lost().await,
                WatcherStep::Excluded(reason) => self.exclude(reason).await,
            };
        }
    }

    /// Asks the node for its identity, before any of its blocks count.
    async fn identify(&mut self) -> WatcherStep {
        let introduction = self.questions().introduction(self.context.settings.checkpoint).await;
        let NodeIntroduction { identity, is_syncing, other_checkpoint } = match introduction {
            Ok(introduction) => introduction,
            Err(fault) => return self.record_fault(fault),
        };
        self.identity = Some(identity);
        let chain = &self.context.chain;
        // Such a node has no say about the chain, unlike one that disagrees with other nodes.
        if let Some(reason) = chain.contradicts_configuration(identity).or(other_checkpoint) {
            return WatcherStep::Excluded(reason);
        }
        chain.record(self.node.id(), identity);
        let Ok(ours) = timeout(SETTLE_TIMEOUT, chain.settled()).await else {
            return WatcherStep::Excluded(chain.why_unsettled());
        };
        if let Some(reason) = chain.differs(identity) {
            return WatcherStep::Excluded(reason);
        }
        if is_syncing {
            return WatcherStep::Excluded(ExclusionReason::Syncing);
        }
        self.context.view.set_identity(ours.chain_id, ours.genesis);
        // Its last head may be of another chain, which the view has dropped.
        self.head = None;
        self.admit();
        WatcherStep::Follow
    }

    /// Whether the node is of another chain than the one that was agreed on.
    fn is_of_another_chain(&self) -> bool {
        self.identity.is_some_and(|identity| self.context.chain.differs(identity).is_some())
    }

    /// Polls until the node is lost, or must be asked for its identity again.
    async fn follow(&mut self) -> WatcherStep {
        let identify_at = Instant::now() + self.context.settings.identify_every;
        let mut is_client_asked = false;
        while Instant::now() < identify_at && !self.is_of_another_chain() {
            let request = *self.poll_requests.borrow_and_update();
            match self.poll().await {
                Ok(()) => self.record_success(),
                // Our own shortage says nothing about the node.
                Err(fault) if fault.kind.is_our_shortage() => self.node.record_poll(Err(fault)),
                Err(fault) => return self.record_fault(fault),
            }
            match self.context.view.reach(self.node.id()) {
                Some(reach) => self.node.record_head(reach),
                None => match self.has_left_chain().await {
                    Ok(false) => {}
                    Ok(true) => return WatcherStep::Identify,
                    Err(fault) => return self.record_fault(fault),
                },
            }
            self.context.view.record_poll(self.node.id(), request);
            if !std::mem::replace(&mut is_client_asked, true) {
                self.ask_client_version().await;
            }
            match self.wait().await {
                Ok(true) => {}
                Ok(false) => return WatcherStep::Identify,
                Err(fault) => return self.record_fault(fault),
            }
        }
        WatcherStep::Identify
    }

    /// Asks what the node is. A node that does not say it is as good as others.
    async fn ask_client_version(&self) {
        let questions = Questions { shows_presence: false, ..self.questions() };
        if let Ok(Some(version)) = questions.client_version().await {
            self.context.view.set_mines_on_demand(self.node.id(), mines_on_demand(&version));
            self.node.set_client_version(&version);
        }
    }

    /// Whether the node has become one of another chain. It is asked if its head is not linked to the chain of the others.
    async fn has_left_chain(&self) -> Result<bool, NodeFault> {
        if self.head.is_none() || self.context.view.canonical_chain().is_none() {
            return Ok(false);
        }
        let questions = self.questions();
        let (chain_id, genesis) = tokio::try_join!(questions.chain_id(), questions.genesis())?;
        Ok(self.context.chain.differs(Identity { chain_id, genesis }).is_some())
    }

    /// Waits, longer each time, and then asks the node for its identity again: another node may answer at its url now.
    async fn lost(&mut self) -> WatcherStep {
        let wait = RETRY_AFTER_MIN.saturating_mul(1 << self.losses.min(16)).min(RETRY_AFTER_MAX);
        self.losses = self.losses.saturating_add(1);
        sleep(wait).await;
        WatcherStep::Identify
    }

    async fn exclude(&mut self, reason: ExclusionReason) -> WatcherStep {
        if self.exclusion.as_ref() != Some(&reason) {
            log_exclusion(self.node.name(), &reason);
        }
        self.node.exclude(&reason);
        self.exclusion = Some(reason);
        self.context.view.set_counted(self.node.id(), false);
        sleep(EXCLUDED_IDENTIFY_EVERY).await;
        WatcherStep::Identify
    }

    fn admit(&mut self) {
        if self.exclusion.take().is_some() {
            tracing::info!(node = self.node.name(), "node is used again");
        }
        self.node.admit();
    }

    fn record_success(&mut self) {
        self.losses = 0;
        self.outage.log_recovery(self.node.name());
        self.node.record_poll(Ok(()));
        self.context.view.set_counted(self.node.id(), !self.is_of_another_chain());
    }

    fn record_fault(&mut self, fault: NodeFault) -> WatcherStep {
        self.outage.log_fault(self.node.name(), &fault);
        self.node.record_poll(Err(fault));
        // A single failure may be temporary.
        if self.losses > 0 {
            self.node.record_loss();
            self.context.view.set_counted(self.node.id(), false);
        }
        WatcherStep::Lost
    }

    /// Waits until the next poll is due, is requested, or the node pushes a new block. Meanwhile a silent node is asked for its chain id,
    /// so that its absence is noticed before the next poll. Returns `false` if it has become a node of another chain.
    async fn wait(&mut self) -> Result<bool, NodeFault> {
        let mut left = self.interval();
        while left > SILENCE_MAX {
            let began = Instant::now();
            if self.wait_for(SILENCE_MAX).await {
                return Ok(true);
            }
            if !self.node.has_replied_since(began) {
                let chain_id = self.questions().chain_id().await?;
                if self.context.view.chain_id() != Some(chain_id) {
                    return Ok(false);
                }
            }
            left = left.saturating_sub(began.elapsed());
        }
        self.wait_for(left).await;
        Ok(true)
    }

    /// Waits for `interval`. Returns whether there is a reason to poll now.
    async fn wait_for(&mut self, interval: Duration) -> bool {
        // However many heads a node pushes and however many calls fail, it is not polled more often.
        let at_least = interval.min(POLL_EVERY_MIN);
        sleep(at_least).await;
        let (hints, requests, head) = (&mut self.hints, &mut self.poll_requests, self.head);
        let reason = async {
            tokio::select! {
                // It cannot be closed: the sender is in the view.
                _ = requests.changed() => {}
                () = new_head(hints, head) => {}
            }
        };
        timeout(interval - at_least, reason).await.is_ok()
    }

    fn interval(&self) -> Duration {
        let adaptive = || match self.context.view.block_time() {
            Some(time) => (time / POLLS_PER_BLOCK).clamp(POLL_EVERY_MIN, POLL_EVERY_MAX),
            None => POLL_EVERY_AT_FIRST,
        };
        self.context.settings.poll_every.unwrap_or_else(adaptive)
    }

    /// Polls the node's newest block, and reports it to the view if it is another one than before.
    async fn poll(&mut self) -> Result<(), NodeFault> {
        let latest = self.questions().block(BlockSelector::Latest).await?;
        let latest = latest.ok_or_else(NodeFault::no_newest_block)?;
        self.polls_since_marks += 1;
        if self.head == Some(latest.id) {
            // Marks may change without a new head.
            if self.polls_since_marks >= POLLS_PER_MARKS {
                self.poll_marks().await?;
            }
            return Ok(());
        }
        let is_first = self.head.is_none();
        // Before the head, because otherwise a chain without marks would be served for a moment.
        if is_first {
            self.poll_marks().await?;
        }
        if self.report(latest).await? && !is_first && self.marks_are_due() {
            self.poll_marks().await?;
        }
        Ok(())
    }

    /// Reports a head to the view, with those of its ancestors that are not known. Returns whether it was linked.
    async fn report(&mut self, head: SeenBlock) -> Result<bool, NodeFault> {
        let mut branch = match self.unfinished.take() {
            Some(unfinished) => unfinished.with_head(head),
            None => HeadBranch::new(head),
        };
        // The blocks that were fetched until then stay in the branch.
        let outcome = timeout(FETCH_TIMEOUT, self.link(&mut branch)).await.unwrap_or(Ok(false));
        if !matches!(outcome, Ok(true)) {
            let is_broken =
                outcome.as_ref().is_err_and(|fault| matches!(fault.kind, Fault::Wrong | Fault::Refused));
            self.unfinished = Some(branch).filter(|_| !is_broken);
            return outcome;
        }
        if self.is_of_another_chain() {
            return Ok(false);
        }
        let head = branch.head();
        // Before the view may make it the canonical head: from then on, calls go to nodes that are known to have it.
        self.node.record_head(head);
        let is_linked = self.context.view.report(self.node.id(), branch) == BranchLink::Linked;
        if is_linked {
            self.head = Some(head);
        }
        Ok(is_linked)
    }

    /// Fetches ancestors until the branch is linked. Returns `false` if the node does not have one of them.
    async fn link(&self, branch: &mut HeadBranch) -> Result<bool, NodeFault> {
        for round in 0..FETCH_ROUNDS_MAX {
            match self.context.view.link(branch) {
                BranchLink::Linked => return Ok(true),
                // It may have become a node of another chain. It is not blamed, but asked for its identity again.
                BranchLink::Broken => {
                    let head = Some(branch.head().hash.to_string());
                    let problem = "its ancestors are of another chain";
                    return Err(NodeFault::of_answer(Fault::Refused, "eth_getBlockByHash", head, problem));
                }
                BranchLink::Missing(block) => {
                    // Mostly one block is missing. If there are more, blocks below are fetched by number, many at once, and those
                    // that do not fit are fetched by hash.
                    if round > 0 {
                        self.fetch_down(branch, block.number).await?;
                    }
                    if !branch.has(&block.hash) && !self.fetch(branch, block).await? {
                        return Ok(false);
                    }
                }
            }
        }
        Ok(false)
    }

    async fn fetch(&self, branch: &mut HeadBranch, block: BlockId) -> Result<bool, NodeFault> {
        let found = self.questions().block_if_known(BlockSelector::Hash(block.hash)).await?;
        let is_found = found.is_some();
        found.into_iter().for_each(|found| branch.add(found));
        Ok(is_found)
    }

    /// Fetches blocks by number from `top` down. Those that arrived are added to the branch even if another one failed.
    async fn fetch_down(&self, branch: &mut HeadBranch, top: u64) -> Result<(), NodeFault> {
        let bottom = branch.head().number.saturating_sub(WINDOW_BLOCKS as u64 - 1);
        let bottom = bottom.max((top + 1).saturating_sub(FETCHES_AT_ONCE));
        let questions = self.questions();
        let fetches = (bottom..=top).map(|number| questions.block_if_known(BlockSelector::Number(number)));
        let mut failed = None;
        for fetched in join_all(fetches).await {
            match fetched {
                Ok(found) => found.into_iter().for_each(|block| branch.add(block)),
                Err(fault) => failed = Some(fault),
            }
        }
        failed.map_or(Ok(()), Err)
    }

    fn marks_are_due(&mut self) -> bool {
        let due = self.heads_until_marks == 0;
        self.heads_until_marks = if due { HEADS_PER_MARKS - 1 } else { self.heads_until_marks - 1 };
        due
    }

    /// Polls safe and finalized. A node that does not know these tags has none.
    async fn poll_marks(&mut self) -> Result<(), NodeFault> {
        self.polls_since_marks = 0;
        let questions = self.questions();
        let (safe, finalized) = tokio::try_join!(
            questions.block_if_known(BlockSelector::Safe),
            questions.block_if_known(BlockSelector::Finalized),
        )?;
        self.context.view.record_marks(
            self.node.id(),
            safe.map(|block| block.id),
            finalized.map(|block| block.id),
        );
        Ok(())
    }

    fn questions(&self) -> Questions<'_, W> {
        let WatchContext { settings, headers, .. } = &*self.context;
        Questions { node: &*self.node, timeout: settings.poll_timeout, headers, shows_presence: true }
    }
}

/// Whether this is a program for development, which mines when it is told to.
fn mines_on_demand(client_version: &str) -> bool {
    let version = client_version.to_ascii_lowercase();
    ["anvil", "hardhat", "ganache", "testrpc"].iter().any(|name| version.contains(name))
}

/// Waits until the node pushes another head than this. Waits for ever if it pushes none.
async fn new_head(hints: &mut Option<watch::Receiver<Option<HeadHint>>>, head: Option<BlockId>) {
    while let Some(receiver) = hints {
        match receiver.changed().await {
            Ok(()) if *receiver.borrow_and_update() != head => return,
            Ok(()) => {}
            Err(_closed) => *hints = None,
        }
    }
    std::future::pending::<()>().await;
}
