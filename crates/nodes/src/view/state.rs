//! The reports of all nodes, and which chain follows from them. Pure: the time is passed in.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use super::block::SeenBlock;
use super::branch::{BranchLink, HeadBranch};
use super::canonical_chain::{CanonicalChain, WINDOW_BLOCKS};
use super::marks::{self, BlockMark, MarkChange};
use super::tree::Tree;
use super::votes::{Electorate, NodeVote};
use crate::trust::{TrustEpoch, TrustMark};
use crate::{BlockId, NodeId};

#[derive(Debug)]
pub(super) struct ViewState {
    /// The configured quorum.
    quorum: Option<usize>,
    pub(super) tree: Tree,
    votes: BTreeMap<NodeId, NodeVote>,
    chain: Option<Arc<CanonicalChain>>,
    pub(super) chain_id: Option<u64>,
    pub(super) genesis: Option<BlockId>,
    pub(super) head_changed_at: Instant,
    /// Whether the chain is the one from before a restart.
    pub(super) is_restored: bool,
    /// The last mark that went backwards, so that each is logged once.
    logged_backwards: Option<BlockId>,
    checkpoint: Option<BlockId>,
    /// The head of the chain that was refused last, until another one is accepted.
    pub(super) refused_head: Option<BlockId>,
    /// The epoch of the first chain.
    first_epoch: u64,
    /// How often the chain was reorganised, and when it was last.
    pub(super) reorganisations: (u64, Option<Instant>),
    /// The block below the head to which a quorum has gone back, and since when it is there.
    gone_back: Option<(BlockId, Instant)>,
    trust: TrustEpoch,
}

impl ViewState {
    pub(super) fn new(quorum: Option<usize>, checkpoint: Option<BlockId>, trust: TrustEpoch) -> Self {
        Self {
            quorum,
            tree: Tree::default(),
            votes: BTreeMap::new(),
            chain: None,
            chain_id: None,
            genesis: None,
            head_changed_at: Instant::now(),
            is_restored: false,
            logged_backwards: None,
            checkpoint,
            refused_head: None,
            first_epoch: 0,
            reorganisations: (0, None),
            gone_back: None,
            trust,
        }
    }

    /// Forgets the chain. What is cached or remembered of it is not found in the new epoch.
    pub(super) fn start_over(&mut self) {
        let first_epoch = self.chain.as_ref().map_or(self.first_epoch, |chain| chain.epoch() + 1);
        let votes = self.votes.keys().map(|node| (*node, NodeVote::default())).collect();
        *self = Self { votes, first_epoch, ..Self::new(self.quorum, self.checkpoint, self.trust.clone()) };
    }

    /// The first chain, from blocks that were known before a restart. `None` if there is a chain already.
    pub(super) fn restore(
        &mut self,
        head: SeenBlock,
        downwards: Vec<SeenBlock>,
    ) -> Option<Arc<CanonicalChain>> {
        if self.chain.is_some() {
            return None;
        }
        let below = downwards.into_iter().map(Arc::new).collect();
        let chain = Arc::new(CanonicalChain::first(&Arc::new(head), below, self.first_epoch));
        if self.checkpoint.is_some_and(|checkpoint| chain.contradicts(&[checkpoint])) {
            return None;
        }
        self.is_restored = true;
        self.chain = Some(Arc::clone(&chain));
        Some(chain)
    }

    /// Nodes that stay keep their votes. Returns whether that is a change.
    pub(super) fn set_nodes(&mut self, nodes: &[NodeId]) -> bool {
        let gone: Vec<_> = self.votes.keys().filter(|node| !nodes.contains(node)).copied().collect();
        for node in &gone {
            self.votes.remove(node);
            self.tree.forget_reports(*node);
        }
        let before = self.votes.len();
        nodes.iter().for_each(|node| _ = self.votes.entry(*node).or_default());
        !gone.is_empty() || self.votes.len() != before
    }

    /// How many nodes must agree: the configured number, or a majority of all nodes, whether they are up or not.
    pub(super) fn quorum(&self) -> usize {
        let nodes = self.votes.len();
        self.quorum.unwrap_or(nodes / 2 + 1).clamp(1, nodes.max(1))
    }

    /// Returns whether that is a change.
    pub(super) fn set_counted(&mut self, node: NodeId, is_counted: bool) -> bool {
        let Some(vote) = self.votes.get_mut(&node) else { return false };
        std::mem::replace(&mut vote.is_counted, is_counted) != is_counted
    }

    pub(super) fn set_mines_on_demand(&mut self, node: NodeId, mines_on_demand: bool) {
        if let Some(vote) = self.votes.get_mut(&node) {
            vote.mines_on_demand = mines_on_demand;
        }
    }

    /// Whether all nodes that have shown a head mine when they are told to.
    pub(super) fn mines_on_demand(&self) -> bool {
        let mut heads = self.votes.values().filter(|vote| vote.is_counted && vote.head.is_some()).peekable();
        heads.peek().is_some() && heads.all(|vote| vote.mines_on_demand)
    }

    /// Whether a quorum has gone back to a block below the head, which becomes the head if that lasts.
    pub(super) fn has_gone_back(&self) -> bool {
        self.gone_back.is_some()
    }

    #[cfg(test)]
    pub(super) fn is_counted(&self, node: NodeId) -> bool {
        self.votes[&node].is_counted
    }

    pub(super) fn record_marks(&mut self, node: NodeId, safe: Option<BlockId>, finalized: Option<BlockId>) {
        if let Some(vote) = self.votes.get_mut(&node) {
            (vote.safe, vote.finalized) = (safe, finalized);
        }
    }

    /// Walks down from the head of a branch to a known block, to genesis, or through a whole window.
    pub(super) fn link(&self, branch: &HeadBranch) -> BranchLink {
        let mut block = &branch.head;
        for _ in 1..WINDOW_BLOCKS {
            if self.chain.as_ref().is_some_and(|chain| chain.has(&block.id.hash)) {
                return BranchLink::Linked;
            }
            let Some(below) = block.id.number.checked_sub(1) else { return self.link_to_genesis(block) };
            let parent = branch.blocks.get(&block.parent).or_else(|| self.tree.get(&block.parent));
            match parent {
                Some(parent) if parent.id.number == below => block = parent,
                Some(_) => return BranchLink::Broken,
                None => return BranchLink::Missing(BlockId { number: below, hash: block.parent }),
            }
        }
        BranchLink::Linked
    }

    fn link_to_genesis(&self, block: &SeenBlock) -> BranchLink {
        let same = self.genesis.is_none_or(|genesis| genesis == block.id);
        if same { BranchLink::Linked } else { BranchLink::Broken }
    }

    pub(super) fn report(&mut self, node: NodeId, branch: HeadBranch) -> BranchLink {
        let link = self.link(&branch);
        if link == BranchLink::Linked
            && let Some(vote) = self.votes.get_mut(&node)
        {
            vote.head = Some(branch.head.id);
            let majority = self.votes.len() / 2 + 1;
            branch.blocks.into_values().for_each(|block| self.tree.insert(node, block, majority));
            self.drop_unneeded_blocks();
        }
        link
    }

    /// The highest canonical block that a node has, or its own head if that is above the canonical one.
    pub(super) fn reach(&self, node: NodeId) -> Option<BlockId> {
        let (head, chain) = (self.votes.get(&node)?.head?, self.chain.as_ref()?);
        let common = self.tree.ancestors(&head.hash).find(|block| chain.has(&block.id.hash))?.id;
        Some(if common == chain.head() { head } else { common })
    }

    pub(super) fn record_poll(&mut self, node: NodeId, request: u64) {
        if let Some(vote) = self.votes.get_mut(&node) {
            vote.polled_for = request;
        }
    }

    /// Whether all nodes that count were polled after this request.
    pub(super) fn has_polled_all(&self, request: u64) -> bool {
        self.votes.values().filter(|vote| vote.is_counted).all(|vote| vote.polled_for >= request)
    }

    /// Whether a node has left the branch of this block for another one. The others may be about to.
    pub(super) fn is_contested(&self, block: BlockId) -> bool {
        let has_left = |(node, vote): (&NodeId, &NodeVote)| {
            let reach = self.reach(*node).filter(|reach| vote.is_counted && reach.number < block.number);
            reach.is_some_and(|reach| vote.head != Some(reach))
        };
        self.votes.iter().any(has_left)
    }

    /// Drops blocks that neither a head nor the present chain needs, once there are many of them.
    fn drop_unneeded_blocks(&mut self) {
        if self.tree.len() <= (self.votes.len() + 2) * WINDOW_BLOCKS {
            return;
        }
        let heads = self.votes.values().filter_map(|vote| vote.head);
        let present = self.chain.iter().map(|chain| chain.head());
        self.tree.keep(heads.chain(present).map(|head| head.hash));
    }

    /// The next chain, if it differs from the present one. Nodes that go back to a block of the chain are followed once all of a
    /// quorum have been there for `rollback_after`.
    pub(super) fn decide(&mut self, now: Instant, rollback_after: Duration) -> Option<Arc<CanonicalChain>> {
        let electorate = Electorate::of(&self.votes, self.quorum());
        let best = electorate.best(&self.tree, self.chain.as_ref().map(|chain| chain.head()));
        self.is_restored &= best.is_none();
        let below = best.filter(|best| {
            let is_below = |chain: &Arc<CanonicalChain>| {
                let is_of_window = chain.has(&best.hash);
                // A quorum of real nodes that falls so far back is syncing. A development node does what it is told.
                let is_reverted = best.number < chain.lowest() && self.mines_on_demand();
                *best != chain.head() && (is_of_window || is_reverted) && electorate.is_below_head(chain)
            };
            self.chain.as_ref().is_some_and(is_below)
        });
        self.gone_back = match (below, self.gone_back) {
            (Some(below), Some((before, since))) if below == before => Some((below, since)),
            (Some(below), _) => Some((below, now)),
            (None, _) => None,
        };
        let rolled_back = self.gone_back.filter(|(_, since)| now.duration_since(*since) >= rollback_after);
        let moved = match (rolled_back, &self.chain) {
            (Some((to, since)), Some(present)) => self.roll_back(present, to, now.duration_since(since)),
            _ => best.and_then(|best| self.chain_to(best)),
        };
        let contradicts = |chain: &CanonicalChain| {
            self.checkpoint.is_some_and(|checkpoint| chain.contradicts(&[checkpoint]))
        };
        let (moved, refused_head) = match moved {
            Some(chain) if contradicts(&chain) => (None, Some(chain.head())),
            Some(chain) => (Some(chain), None),
            None => (None, self.refused_head),
        };
        if let (Some(head), Some(checkpoint)) =
            (refused_head.filter(|head| self.refused_head != Some(*head)), self.checkpoint)
        {
            log_refusal(head, checkpoint);
        }
        self.refused_head = refused_head;
        let mut chain = match (&moved, &self.chain) {
            (Some(moved), _) => moved.clone(),
            (None, Some(present)) => CanonicalChain::clone(present),
            (None, None) => return None,
        };
        chain.genesis = self.genesis;
        let safe = marked(marks::SAFE, chain.safe, &electorate, &chain, &mut self.logged_backwards);
        let finalized =
            marked(marks::FINALIZED, chain.finalized, &electorate, &chain, &mut self.logged_backwards);
        let moved_marks = [(chain.safe, safe), (chain.finalized, finalized)].into_iter();
        for block in moved_marks.filter_map(|(before, now)| now.filter(|_| now != before)) {
            chain.add_reported_block(block, TrustMark::expired(self.trust.now()));
        }
        chain.mark(safe, finalized);
        if moved.is_some() {
            self.head_changed_at = now;
            // Blocks of another epoch may be descendants that are too far away to tell.
            let loses = |present: &Arc<CanonicalChain>| {
                present.epoch() == chain.epoch() && !chain.has(&present.head().hash)
            };
            if self.chain.as_ref().is_some_and(loses) {
                self.reorganisations = (self.reorganisations.0 + 1, Some(now));
            }
        } else if self.chain.as_ref().is_some_and(|present| same(present, &chain)) {
            return None;
        }
        let chain = Arc::new(chain);
        self.chain = Some(Arc::clone(&chain));
        Some(chain)
    }

    /// The chain with `best` as its head. `None` if the head does not change.
    fn chain_to(&self, best: BlockId) -> Option<CanonicalChain> {
        // The head itself, one of its ancestors, or a block so low that nobody can say whose ancestor it is.
        let stays = |present: &Arc<CanonicalChain>| present.has(&best.hash) || best.number < present.lowest();
        if self.chain.as_ref().is_some_and(stays) {
            return None;
        }
        let mut line = self.tree.ancestors(&best.hash).cloned();
        let head = line.next()?;
        let below: Vec<_> = line.collect();
        let Some(present) = &self.chain else {
            return Some(CanonicalChain::first(&head, below, self.first_epoch));
        };
        let Some(common) = below.iter().find(|block| present.has(&block.id.hash)) else {
            log_new_epoch(present, best);
            return Some(present.next_epoch(&head, below));
        };
        let common = common.id;
        let mut next = present.next(&head, below);
        if common != present.head() {
            log_reorganisation(present, best, common);
            next.safe = surviving_mark(marks::SAFE, next.safe, common);
            next.finalized = surviving_mark(marks::FINALIZED, next.finalized, common);
        }
        Some(next)
    }

    /// The chain up to this block. Below the window it begins an epoch.
    fn roll_back(&self, present: &CanonicalChain, to: BlockId, after: Duration) -> Option<CanonicalChain> {
        let mut next = present.rolled_back_to(&to).or_else(|| {
            let mut line = self.tree.ancestors(&to.hash).cloned();
            Some(present.next_epoch(&line.next()?, line.collect()))
        })?;
        let (from, to_number, hash, seconds) =
            (present.head().number, to.number, to.hash, after.as_secs_f32());
        tracing::warn!(from, to = to_number, %hash, seconds, "a quorum of the nodes went back to an older block; following it");
        next.safe = surviving_mark(marks::SAFE, next.safe, to);
        next.finalized = surviving_mark(marks::FINALIZED, next.finalized, to);
        Some(next)
    }
}

fn same(one: &CanonicalChain, other: &CanonicalChain) -> bool {
    (one.safe, one.finalized, one.genesis) == (other.safe, other.finalized, other.genesis)
}

/// A mark above the common block is dropped until the nodes agree on a new one.
fn surviving_mark(mark: BlockMark, block: Option<BlockId>, common: BlockId) -> Option<BlockId> {
    let lost = block.filter(|block| block.number > common.number);
    if let Some(lost) = lost {
        let (name, number, hash) = (mark.name, lost.number, lost.hash);
        tracing::error!(mark = name, number, %hash, "a reorganisation went below this mark; it is dropped until the nodes agree on a new one");
        return None;
    }
    block
}

fn marked(
    mark: BlockMark,
    present: Option<BlockId>,
    electorate: &Electorate<'_>,
    chain: &CanonicalChain,
    logged_backwards: &mut Option<BlockId>,
) -> Option<BlockId> {
    match mark.change(present, electorate, chain) {
        MarkChange::Keep => present,
        MarkChange::To(block) => Some(block),
        MarkChange::Backwards(block) => {
            if logged_backwards.replace(block) != Some(block) {
                let (name, to) = (mark.name, block.number);
                let from = present.map(|present| present.number);
                tracing::error!(
                    mark = name,
                    from,
                    to,
                    "most nodes moved this mark backwards; check the consensus clients of the nodes"
                );
            }
            Some(block)
        }
    }
}

fn log_reorganisation(present: &CanonicalChain, to: BlockId, common: BlockId) {
    let from = present.head();
    let depth = from.number - common.number;
    tracing::warn!(depth, from = from.number, to = to.number, hash = %to.hash, "the chain was reorganised");
}

fn log_refusal(head: BlockId, checkpoint: BlockId) {
    let (number, hash) = (head.number, head.hash);
    tracing::error!(
        number,
        %hash,
        checkpoint = checkpoint.number,
        "a quorum of the nodes has a chain without the checkpoint; refusing it: check the nodes, and checkpoint in [network]"
    );
}

fn log_new_epoch(present: &CanonicalChain, to: BlockId) {
    let (from, to, hash) = (present.head().number, to.number, to.hash);
    tracing::warn!(from, to, %hash, "the new head has no known block in common with the old one; dropping what was known of old blocks");
}
