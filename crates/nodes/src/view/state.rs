//! All that the nodes have said, and what follows from it. Pure: the time is passed in.

use std::sync::Arc;

use tokio::time::Instant;

use super::block::SeenBlock;
use super::branch::{Branch, Link};
use super::canon::{Canon, WINDOW_BLOCKS};
use super::marks::{self, Mark, Step};
use super::tree::Tree;
use super::votes::{Electorate, Voter};
use crate::BlockId;

#[derive(Debug)]
pub(super) struct State {
    /// As it is configured.
    quorum: Option<usize>,
    pub(super) tree: Tree,
    voters: Vec<Voter>,
    canon: Option<Arc<Canon>>,
    pub(super) genesis: Option<BlockId>,
    /// When the head changed last.
    pub(super) moved: Instant,
    /// Whether the chain is what was known before a restart.
    pub(super) is_restored: bool,
    /// The last mark that went backwards, so that each is told once.
    alarmed: Option<BlockId>,
    checkpoint: Option<BlockId>,
    /// The head of the chain that was refused last, until another one is accepted.
    pub(super) refused: Option<BlockId>,
    /// The epoch of the first picture.
    first_epoch: u64,
}

impl State {
    pub(super) fn new(quorum: Option<usize>, checkpoint: Option<BlockId>) -> Self {
        Self {
            quorum,
            tree: Tree::default(),
            voters: Vec::new(),
            canon: None,
            genesis: None,
            moved: Instant::now(),
            is_restored: false,
            alarmed: None,
            checkpoint,
            refused: None,
            first_epoch: 0,
        }
    }

    /// Forgets the chain. What was kept of its old blocks is not to be found in a later epoch.
    pub(super) fn start_over(&mut self) {
        let first_epoch = self.canon.as_ref().map_or(self.first_epoch, |canon| canon.epoch() + 1);
        let voters = vec![Voter::new(); self.voters.len()];
        *self = Self { voters, first_epoch, ..Self::new(self.quorum, self.checkpoint) };
    }

    /// The first picture from blocks that were known before; `None` if there is one already.
    pub(super) fn restore(&mut self, head: SeenBlock, downwards: Vec<SeenBlock>) -> Option<Arc<Canon>> {
        if self.canon.is_some() {
            return None;
        }
        let below = downwards.into_iter().map(Arc::new).collect();
        let canon = Arc::new(Canon::first(&Arc::new(head), below, self.first_epoch));
        if self.checkpoint.is_some_and(|checkpoint| canon.contradicts(&[checkpoint])) {
            return None;
        }
        self.is_restored = true;
        self.canon = Some(Arc::clone(&canon));
        Some(canon)
    }

    pub(super) fn enrol(&mut self, nodes: usize) {
        self.voters = vec![Voter::new(); nodes];
    }

    /// How many nodes must agree: as many as are configured, or a majority of all nodes, whether they are up or not.
    pub(super) fn quorum(&self) -> usize {
        let nodes = self.voters.len();
        self.quorum.unwrap_or(nodes / 2 + 1).clamp(1, nodes.max(1))
    }

    pub(super) fn count(&mut self, node: usize, counted: bool) -> bool {
        let Some(voter) = self.voters.get_mut(node) else { return false };
        std::mem::replace(&mut voter.counted, counted) != counted
    }

    pub(super) fn mark(&mut self, node: usize, safe: Option<BlockId>, finalized: Option<BlockId>) {
        if let Some(voter) = self.voters.get_mut(node) {
            (voter.safe, voter.finalized) = (safe, finalized);
        }
    }

    /// Walks down from the head of a branch until there is solid ground.
    pub(super) fn link(&self, branch: &Branch) -> Link {
        let mut block = &branch.head;
        for _ in 1..WINDOW_BLOCKS {
            if self.canon.as_ref().is_some_and(|canon| canon.has(&block.id.hash)) {
                return Link::Linked;
            }
            let Some(below) = block.id.number.checked_sub(1) else { return self.link_to_genesis(block) };
            let parent = branch.blocks.get(&block.parent).or_else(|| self.tree.get(&block.parent));
            match parent {
                Some(parent) if parent.id.number == below => block = parent,
                Some(_) => return Link::Broken,
                None => return Link::Missing(BlockId { number: below, hash: block.parent }),
            }
        }
        Link::Linked
    }

    fn link_to_genesis(&self, block: &SeenBlock) -> Link {
        let same = self.genesis.is_none_or(|genesis| genesis == block.id);
        if same { Link::Linked } else { Link::Broken }
    }

    pub(super) fn report(&mut self, node: usize, branch: Branch) -> Link {
        let link = self.link(&branch);
        if link == Link::Linked
            && let Some(voter) = self.voters.get_mut(node)
        {
            voter.head = Some(branch.head.id);
            let majority = self.voters.len() / 2 + 1;
            branch.blocks.into_values().for_each(|block| self.tree.insert(node, block, majority));
            self.tidy();
        }
        link
    }

    /// The highest block of the present chain that a node has; its own head, if that is above.
    pub(super) fn reach(&self, node: usize) -> Option<BlockId> {
        let (head, canon) = (self.voters.get(node)?.head?, self.canon.as_ref()?);
        let common = self.tree.line(&head.hash).find(|block| canon.has(&block.id.hash))?.id;
        Some(if common == canon.head() { head } else { common })
    }

    /// A node was polled for this look.
    pub(super) fn looked_at(&mut self, node: usize, look: u64) {
        if let Some(voter) = self.voters.get_mut(node) {
            voter.looked_at = look;
        }
    }

    /// Whether all nodes whose word counts were polled for this look.
    pub(super) fn has_looked_at_all(&self, look: u64) -> bool {
        self.voters.iter().filter(|voter| voter.counted).all(|voter| voter.looked_at >= look)
    }

    /// Whether a node has left the branch of this block for another one. The others may be about to.
    pub(super) fn is_contested(&self, block: BlockId) -> bool {
        let has_left = |(node, voter): (usize, &Voter)| {
            let reach = self.reach(node).filter(|reach| voter.counted && reach.number < block.number);
            reach.is_some_and(|reach| voter.head != Some(reach))
        };
        self.voters.iter().enumerate().any(has_left)
    }

    /// Keeps what the heads and the present chain need, once there is much more than that.
    fn tidy(&mut self) {
        if self.tree.len() <= (self.voters.len() + 2) * WINDOW_BLOCKS {
            return;
        }
        let heads = self.voters.iter().filter_map(|voter| voter.head);
        let present = self.canon.iter().map(|canon| canon.head());
        self.tree.keep(heads.chain(present).map(|head| head.hash));
    }

    /// The next picture, if it differs from the present one.
    pub(super) fn decide(&mut self, now: Instant) -> Option<Arc<Canon>> {
        let electorate = Electorate::of(&self.voters, self.quorum());
        let best = electorate.best(&self.tree, self.canon.as_ref().map(|canon| canon.head()));
        self.is_restored &= best.is_none();
        let moved = best.and_then(|best| self.picture(best));
        let contradicts =
            |canon: &Canon| self.checkpoint.is_some_and(|checkpoint| canon.contradicts(&[checkpoint]));
        let (moved, refused) = match moved {
            Some(canon) if contradicts(&canon) => (None, Some(canon.head())),
            Some(canon) => (Some(canon), None),
            None => (None, self.refused),
        };
        if let (Some(head), Some(checkpoint)) =
            (refused.filter(|head| self.refused != Some(*head)), self.checkpoint)
        {
            tell_refused(head, checkpoint);
        }
        self.refused = refused;
        let mut canon = match (&moved, &self.canon) {
            (Some(moved), _) => moved.clone(),
            (None, Some(present)) => Canon::clone(present),
            (None, None) => return None,
        };
        canon.genesis = self.genesis;
        let (safe, finalized) = (canon.safe, canon.finalized);
        canon.safe = marked(marks::SAFE, safe, &electorate, &canon, &mut self.alarmed);
        canon.finalized = marked(marks::FINALIZED, finalized, &electorate, &canon, &mut self.alarmed);
        if moved.is_some() {
            self.moved = now;
        } else if self.canon.as_ref().is_some_and(|present| same(present, &canon)) {
            return None;
        }
        let canon = Arc::new(canon);
        self.canon = Some(Arc::clone(&canon));
        Some(canon)
    }

    /// The chain with `best` as its head; `None` if the head stays where it is.
    fn picture(&self, best: BlockId) -> Option<Canon> {
        // The head itself, one of its ancestors, or something so low that nobody can say whose ancestor it is.
        let stays = |present: &Arc<Canon>| present.has(&best.hash) || best.number < present.lowest();
        if self.canon.as_ref().is_some_and(stays) {
            return None;
        }
        let mut line = self.tree.line(&best.hash).cloned();
        let head = line.next()?;
        let below: Vec<_> = line.collect();
        let Some(present) = &self.canon else { return Some(Canon::first(&head, below, self.first_epoch)) };
        let Some(common) = below.iter().find(|block| present.has(&block.id.hash)) else {
            tell_jump(present, best);
            return Some(present.next_epoch(&head, below));
        };
        let common = common.id;
        let mut next = present.next(&head, below);
        if common != present.head() {
            tell_reorganisation(present, best, common);
            next.safe = still_there(marks::SAFE, next.safe, common);
            next.finalized = still_there(marks::FINALIZED, next.finalized, common);
        }
        Some(next)
    }
}

fn same(one: &Canon, other: &Canon) -> bool {
    (one.safe, one.finalized, one.genesis) == (other.safe, other.finalized, other.genesis)
}

/// A mark on a branch that was given up is void until the nodes agree on a new one.
fn still_there(mark: Mark, block: Option<BlockId>, common: BlockId) -> Option<BlockId> {
    let lost = block.filter(|block| block.number > common.number);
    if let Some(lost) = lost {
        let (name, number, hash) = (mark.name, lost.number, lost.hash);
        tracing::error!(mark = name, number, %hash, "a reorganisation went below a mark; the mark is void");
        return None;
    }
    block
}

fn marked(
    mark: Mark,
    present: Option<BlockId>,
    electorate: &Electorate<'_>,
    canon: &Canon,
    alarmed: &mut Option<BlockId>,
) -> Option<BlockId> {
    match mark.step(present, electorate, canon) {
        Step::Keep => present,
        Step::To(block) => {
            canon.learn(block);
            Some(block)
        }
        Step::Backwards(block) => {
            if alarmed.replace(block) != Some(block) {
                let (name, to) = (mark.name, block.number);
                let from = present.map(|present| present.number);
                tracing::error!(mark = name, from, to, "most nodes moved a mark backwards");
            }
            canon.learn(block);
            Some(block)
        }
    }
}

fn tell_reorganisation(present: &Canon, to: BlockId, common: BlockId) {
    let from = present.head();
    let depth = from.number - common.number;
    tracing::warn!(depth, from = from.number, to = to.number, hash = %to.hash, "the chain was reorganised");
}

fn tell_refused(head: BlockId, checkpoint: BlockId) {
    let (number, hash) = (head.number, head.hash);
    tracing::error!(
        number,
        %hash,
        checkpoint = checkpoint.number,
        "a quorum of the nodes has a chain without the checkpoint; it is refused"
    );
}

fn tell_jump(present: &Canon, to: BlockId) {
    let (from, to, hash) = (present.head().number, to.number, to.hash);
    tracing::warn!(from, to, %hash, "the new head has no known block in common with the old one: a new epoch");
}
