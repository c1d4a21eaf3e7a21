//! One node: greet → follow → lost, and again. A node that is not of this chain is left out.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use tokio::sync::watch;
use tokio::time::{Instant, sleep, timeout};

use super::chain::Identity;
use super::questions::{Questions, Which};
use super::{Common, Hint, LeftOut, Watched};
use crate::outage_log::{OutageLog, advice};
use crate::view::{Branch, Link, SeenBlock, WINDOW_BLOCKS};
use crate::{BlockId, Fault};

/// Polling is never quicker than this: a node has other things to do.
const POLL_EVERY_MIN: Duration = Duration::from_millis(100);
/// Polling is never slower than this: a caller should not wait longer for a block that is there.
const POLL_EVERY_MAX: Duration = Duration::from_secs(4);
/// Polling before the block time is known.
const POLL_EVERY_AT_FIRST: Duration = Duration::from_secs(1);
/// A third of the block time: a new block is seen after a sixth of it on average.
const POLLS_PER_BLOCK: u32 = 3;

/// The first wait for a node that has not answered. It doubles each time.
const RETRY_AFTER_MIN: Duration = Duration::from_millis(100);
/// The longest wait: a node that returns is found within this.
const RETRY_AFTER_MAX: Duration = Duration::from_secs(2);
/// How often a node that is left out is looked at again.
const LOOK_AGAIN_AFTER: Duration = Duration::from_secs(5);
/// How long the nodes may take to agree on a chain before that is told.
const SETTLE_TIMEOUT: Duration = Duration::from_secs(10);

/// How long a node may say nothing before it is asked whether it is there. `/ready` tells within two seconds that all nodes
/// are gone: this, and the time that a node has for its answer.
const SILENCE_MAX: Duration = Duration::from_millis(750);

/// Blocks that are fetched at once.
const FETCHES_AT_ONCE: u64 = 16;
/// Rounds of fetching for one head. A window takes 17 of them when the node's numbers and hashes tell one story.
const FETCH_ROUNDS_MAX: usize = 64;
/// How long fetching for one head may take before the node's newest block is looked at again.
const FETCH_TIMEOUT: Duration = Duration::from_secs(10);
/// Heads between two looks at safe and finalized,
const HEADS_PER_MARKS: u32 = 4;
/// and polls, if there are fewer heads: twice the time that heads take.
const POLLS_PER_MARKS: u32 = 2 * HEADS_PER_MARKS * POLLS_PER_BLOCK;

/// What a node's watcher does next.
#[derive(Clone, Debug)]
enum Next {
    Greet,
    Follow,
    Lost,
    LeftOut(LeftOut),
}

/// What a node says when it is greeted.
struct Introduction {
    identity: Identity,
    is_syncing: bool,
    other_checkpoint: Option<LeftOut>,
}

/// The watcher of one node.
#[derive(Debug)]
pub(super) struct Watcher<W> {
    place: usize,
    node: Arc<W>,
    common: Arc<Common>,
    hints: Option<watch::Receiver<Option<Hint>>>,
    /// Reasons to look at the node before the next poll is due.
    looks: watch::Receiver<u64>,
    /// What it said last that it is.
    identity: Option<Identity>,
    head: Option<BlockId>,
    /// Blocks of a branch whose fetching was broken off, so that the next poll need not start anew.
    unfinished: Option<Branch>,
    heads_until_marks: u32,
    polls_since_marks: u32,
    /// Times that it was lost in a row.
    losses: u32,
    outage: OutageLog,
    left_out: Option<LeftOut>,
}

impl<W: Watched> Watcher<W> {
    pub(super) fn new(place: usize, node: Arc<W>, common: Arc<Common>) -> Self {
        let (hints, looks) = (node.hints(), common.view.looks());
        Self {
            place,
            node,
            common,
            hints,
            looks,
            identity: None,
            head: None,
            unfinished: None,
            heads_until_marks: 0,
            polls_since_marks: 0,
            losses: 0,
            outage: OutageLog::default(),
            left_out: None,
        }
    }

    pub(super) async fn run(mut self) {
        let mut next = Next::Greet;
        loop {
            next = match next {
                Next::Greet => self.greet().await,
                Next::Follow => self.follow().await,
                Next::Lost => self.lost().await,
                Next::LeftOut(reason) => self.leave_out(reason).await,
            };
        }
    }

    /// Asks who the node is, before anything that it says is believed.
    async fn greet(&mut self) -> Next {
        let Introduction { identity, is_syncing, other_checkpoint } = match self.introduction().await {
            Ok(introduction) => introduction,
            Err(fault) => return self.fault(fault),
        };
        self.identity = Some(identity);
        let chain = &self.common.chain;
        // Not to be confused with nodes that disagree, for which everybody waits. They have no say about the chain.
        if let Some(reason) = chain.contradicts_configuration(identity).or(other_checkpoint) {
            return Next::LeftOut(reason);
        }
        chain.says(self.place, identity);
        let Ok(ours) = timeout(SETTLE_TIMEOUT, chain.settled()).await else {
            return Next::LeftOut(chain.why_unsettled());
        };
        if let Some(reason) = chain.differs(identity) {
            return Next::LeftOut(reason);
        }
        if is_syncing {
            return Next::LeftOut(LeftOut::Syncing);
        }
        self.common.view.set_identity(ours.chain_id, ours.genesis);
        // What it showed before may have belonged to another chain, of which the view has forgotten everything.
        self.head = None;
        self.welcome();
        Next::Follow
    }

    async fn introduction(&self) -> Result<Introduction, Fault> {
        let questions = self.questions();
        let (chain_id, is_syncing, version, genesis) = tokio::try_join!(
            questions.chain_id(),
            questions.is_syncing(),
            questions.version(),
            questions.genesis(),
        )?;
        if let Some(version) = version {
            self.node.saw_version(&version);
        }
        let other_checkpoint = self.other_checkpoint().await?;
        Ok(Introduction { identity: Identity { chain_id, genesis }, is_syncing, other_checkpoint })
    }

    /// Whether the node has another block in the place of the checkpoint. One that does not have it may have dropped it.
    async fn other_checkpoint(&self) -> Result<Option<LeftOut>, Fault> {
        let Some(ours) = self.common.settings.checkpoint else { return Ok(None) };
        let theirs = self.questions().block_if_known(Which::Number(ours.number)).await?;
        let theirs = theirs.map(|block| block.id.hash).filter(|theirs| *theirs != ours.hash);
        Ok(theirs.map(|theirs| LeftOut::OtherCheckpoint { theirs, ours }))
    }

    /// Whether it has turned out that the node is of another chain than the others.
    fn is_of_another_chain(&self) -> bool {
        self.identity.is_some_and(|identity| self.common.chain.differs(identity).is_some())
    }

    /// Polls until the node is lost, or should say again who it is.
    async fn follow(&mut self) -> Next {
        let greet_at = Instant::now() + self.common.settings.greet_every;
        while Instant::now() < greet_at && !self.is_of_another_chain() {
            let look = *self.looks.borrow_and_update();
            match self.poll().await {
                Ok(()) => self.good(),
                // Our own shortage says nothing about the node.
                Err(fault) if fault.is_our_shortage() => self.node.polled(Err(fault)),
                Err(fault) => return self.fault(fault),
            }
            if let Some(reach) = self.common.view.reach(self.place) {
                self.node.saw_head(reach);
            }
            self.common.view.looked_at(self.place, look);
            match self.rest().await {
                Ok(true) => {}
                Ok(false) => return Next::Greet,
                Err(fault) => return self.fault(fault),
            }
        }
        Next::Greet
    }

    /// Waits a little longer each time, then greets: what answers may be another node.
    async fn lost(&mut self) -> Next {
        let wait = RETRY_AFTER_MIN.saturating_mul(1 << self.losses.min(16)).min(RETRY_AFTER_MAX);
        self.losses = self.losses.saturating_add(1);
        sleep(wait).await;
        Next::Greet
    }

    async fn leave_out(&mut self, reason: LeftOut) -> Next {
        if self.left_out.as_ref() != Some(&reason) {
            tell_left_out(self.node.name(), &reason);
        }
        self.node.leave_out(&reason);
        self.left_out = Some(reason);
        self.common.view.count(self.place, false);
        sleep(LOOK_AGAIN_AFTER).await;
        Next::Greet
    }

    fn welcome(&mut self) {
        if self.left_out.take().is_some() {
            tracing::info!(node = self.node.name(), "this node is used again");
        }
        self.node.welcome();
    }

    fn good(&mut self) {
        self.losses = 0;
        if self.outage.recovered(Instant::now()) {
            tracing::info!(node = self.node.name(), "this node is back");
        }
        self.node.polled(Ok(()));
        self.common.view.count(self.place, !self.is_of_another_chain());
    }

    fn fault(&mut self, fault: Fault) -> Next {
        if let Some(failures) = self.outage.failed(Instant::now()) {
            let advice = advice(fault);
            tracing::warn!(node = self.node.name(), %fault, advice, failures, "this node cannot be used");
        }
        self.node.polled(Err(fault));
        // A single failure may be temporary.
        if self.losses > 0 {
            self.node.is_lost();
            self.common.view.count(self.place, false);
        }
        Next::Lost
    }

    /// Waits until the next poll is due, or the node says that it has a new block. Meanwhile a silent node is asked for its
    /// chain id, so that its absence is noticed before the next poll. `false`: it has become a node of another chain.
    async fn rest(&mut self) -> Result<bool, Fault> {
        let mut left = self.interval();
        while left > SILENCE_MAX {
            let began = Instant::now();
            if self.rest_for(SILENCE_MAX).await {
                return Ok(true);
            }
            if !self.node.has_replied_since(began) {
                let chain_id = self.questions().chain_id().await?;
                if self.common.view.chain_id() != chain_id {
                    return Ok(false);
                }
            }
            left = left.saturating_sub(began.elapsed());
        }
        self.rest_for(left).await;
        Ok(true)
    }

    /// Waits for `interval`. `true`: there is a reason to poll now.
    async fn rest_for(&mut self, interval: Duration) -> bool {
        // However many heads a node pushes and however many calls fail, it is not polled more often than this.
        let at_least = interval.min(POLL_EVERY_MIN);
        sleep(at_least).await;
        let (hints, looks, head) = (&mut self.hints, &mut self.looks, self.head);
        let reason = async {
            tokio::select! {
                // It cannot be closed: the sender is in the view.
                _ = looks.changed() => {}
                () = new_head(hints, head) => {}
            }
        };
        timeout(interval - at_least, reason).await.is_ok()
    }

    fn interval(&self) -> Duration {
        let adaptive = || match self.common.view.block_time() {
            Some(time) => (time / POLLS_PER_BLOCK).clamp(POLL_EVERY_MIN, POLL_EVERY_MAX),
            None => POLL_EVERY_AT_FIRST,
        };
        self.common.settings.poll_every.unwrap_or_else(adaptive)
    }

    /// Looks at the node's newest block, and brings it to the view if it is another one than before.
    async fn poll(&mut self) -> Result<(), Fault> {
        let latest = self.questions().block(Which::Latest).await?.ok_or(Fault::Refused)?;
        self.polls_since_marks += 1;
        if self.head == Some(latest.id) {
            // They may be other ones without a new head, such as when a node that lied about them is honest again.
            if self.polls_since_marks >= POLLS_PER_MARKS {
                self.look_at_marks().await?;
            }
            return Ok(());
        }
        let is_first = self.head.is_none();
        // Before the head, or it would be served for a moment as one of a chain that has no marks.
        if is_first {
            self.look_at_marks().await?;
        }
        if self.bring(latest).await? && !is_first && self.marks_are_due() {
            self.look_at_marks().await?;
        }
        Ok(())
    }

    /// Brings a head to the view, with those of its ancestors that are not known. Whether it was taken.
    async fn bring(&mut self, head: SeenBlock) -> Result<bool, Fault> {
        let mut branch = match self.unfinished.take() {
            Some(unfinished) => unfinished.with_head(head),
            None => Branch::new(head),
        };
        // What was fetched until then is kept in the branch.
        let outcome = timeout(FETCH_TIMEOUT, self.link(&mut branch)).await.unwrap_or(Ok(false));
        if !matches!(outcome, Ok(true)) {
            let is_broken = matches!(outcome, Err(Fault::Wrong | Fault::Refused));
            self.unfinished = Some(branch).filter(|_| !is_broken);
            return outcome;
        }
        if self.is_of_another_chain() {
            return Ok(false);
        }
        let head = branch.head();
        // Before the view may make it the head of all: from then on, calls go to those who are known to have it.
        self.node.saw_head(head);
        let taken = self.common.view.report(self.place, branch) == Link::Linked;
        if taken {
            self.head = Some(head);
        }
        Ok(taken)
    }

    /// Fetches ancestors until the branch is linked. `false` if the node does not have one of them.
    async fn link(&self, branch: &mut Branch) -> Result<bool, Fault> {
        for round in 0..FETCH_ROUNDS_MAX {
            match self.common.view.link(branch) {
                Link::Linked => return Ok(true),
                // It may have become a node of another chain, which is no lie: it is asked again who it is.
                Link::Broken => return Err(Fault::Refused),
                Link::Missing(block) => {
                    // Mostly one block is missing. If it is more, the chain below is asked for by number, many at
                    // once, and whatever does not fit there is found by its hash.
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

    async fn fetch(&self, branch: &mut Branch, block: BlockId) -> Result<bool, Fault> {
        let found = self.questions().block_if_known(Which::Hash(block.hash)).await?;
        let is_found = found.is_some();
        found.into_iter().for_each(|found| branch.add(found));
        Ok(is_found)
    }

    /// Fetches blocks by number from `top` down. What came is kept even if one of them failed.
    async fn fetch_down(&self, branch: &mut Branch, top: u64) -> Result<(), Fault> {
        let bottom = branch.head().number.saturating_sub(WINDOW_BLOCKS as u64 - 1);
        let bottom = bottom.max((top + 1).saturating_sub(FETCHES_AT_ONCE));
        let questions = self.questions();
        let fetches = (bottom..=top).map(|number| questions.block_if_known(Which::Number(number)));
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

    /// A node that does not know these tags has none.
    async fn look_at_marks(&mut self) -> Result<(), Fault> {
        self.polls_since_marks = 0;
        let questions = self.questions();
        let (safe, finalized) = tokio::try_join!(
            questions.block_if_known(Which::Safe),
            questions.block_if_known(Which::Finalized),
        )?;
        self.common.view.mark(self.place, safe.map(|block| block.id), finalized.map(|block| block.id));
        Ok(())
    }

    fn questions(&self) -> Questions<'_, W> {
        let Common { settings, headers, .. } = &*self.common;
        Questions { node: &*self.node, timeout: settings.poll_timeout, headers }
    }
}

/// A chain without the checkpoint may be forged by as many nodes as a quorum takes, so that is an error.
fn tell_left_out(node: &str, reason: &LeftOut) {
    match reason {
        LeftOut::OtherCheckpoint { .. } => tracing::error!(node, %reason, "this node is not used"),
        _ => tracing::warn!(node, %reason, "this node is not used"),
    }
}

/// Waits until the node pushes another head than this; for ever, if it pushes none.
async fn new_head(hints: &mut Option<watch::Receiver<Option<Hint>>>, head: Option<BlockId>) {
    while let Some(receiver) = hints {
        match receiver.changed().await {
            Ok(()) if *receiver.borrow_and_update() != head => return,
            Ok(()) => {}
            Err(_closed) => *hints = None,
        }
    }
    std::future::pending::<()>().await;
}
