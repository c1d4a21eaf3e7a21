//! All the chains that there are in a test, true and false ones.

use alloy_primitives::keccak256;
use alloy_primitives::map::B256Map;

use super::super::*;
use super::id;

pub(super) const SALT_A: u64 = 1;
pub(super) const SALT_B: u64 = 2;

pub(super) struct Land {
    pub(super) genesis: B256,
    blocks: B256Map<SeenBlock>,
    /// Seconds by which new blocks are later than one each twelve seconds.
    later: u64,
}

impl Land {
    pub(super) fn new() -> Self {
        Self::with_genesis(B256::repeat_byte(0x11))
    }

    pub(super) fn with_genesis(genesis: B256) -> Self {
        let block = block(BlockId { number: 0, hash: genesis }, B256::ZERO);
        Self { genesis, blocks: [(genesis, block)].into_iter().collect(), later: 0 }
    }

    /// Blocks upon `from`; those of equal salt are equal.
    pub(super) fn grow(&mut self, from: B256, blocks: u64, salt: u64) -> B256 {
        let mut parent = self.id(from);
        for _ in 0..blocks {
            let hash = keccak256([parent.hash.as_slice(), &salt.to_be_bytes()].concat());
            let id = BlockId { number: parent.number + 1, hash };
            let new = || {
                let block = block(id, parent.hash);
                SeenBlock { timestamp: block.timestamp + self.later, ..block }
            };
            self.blocks.entry(hash).or_insert_with(new);
            parent = id;
        }
        parent.hash
    }

    /// Makes no blocks for so many seconds.
    pub(super) fn pause(&mut self, seconds: u64) {
        self.later += seconds;
    }

    pub(super) fn block(&self, hash: B256) -> SeenBlock {
        self.blocks[&hash].clone()
    }

    pub(super) fn id(&self, hash: B256) -> BlockId {
        self.blocks[&hash].id
    }

    pub(super) fn ancestor(&self, of: B256, generations: u64) -> B256 {
        (0..generations).fold(of, |hash, _| self.blocks[&hash].parent)
    }

    /// Whether `hash` is `ancestor` or above it.
    pub(super) fn descends(&self, hash: B256, ancestor: B256) -> bool {
        let generations = self.id(hash).number.checked_sub(self.id(ancestor).number);
        generations.is_some_and(|generations| self.ancestor(hash, generations) == ancestor)
    }

    /// Brings a head to the view as a watcher does, with all the blocks that the view asks for.
    pub(super) fn bring(&self, view: &NodesView, node: usize, head: B256) -> BranchLink {
        let mut branch = HeadBranch::new(self.block(head));
        while let BranchLink::Missing(missing) = view.link(&branch) {
            let more = missing.number.min(15);
            (0..=more).for_each(|below| branch.add(self.block(self.ancestor(missing.hash, below))));
        }
        view.report(id(node), branch)
    }

    pub(super) fn show(&self, view: &NodesView, node: usize, head: B256) {
        assert_eq!(self.bring(view, node, head), BranchLink::Linked);
    }
}

fn block(id: BlockId, parent: B256) -> SeenBlock {
    SeenBlock {
        logs_bloom: Default::default(),
        id,
        parent,
        timestamp: id.number * 12,
        gas_limit: 30_000_000,
        transactions_root: B256::ZERO,
        reported: Arc::new(BlockLists::new(vec![keccak256(id.hash)], Vec::new())),
        agreed: Default::default(),
    }
}
