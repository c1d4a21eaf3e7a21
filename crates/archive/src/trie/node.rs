//! One node in memory: its RLP, and the reference by which its parent names it.

use std::sync::{Arc, OnceLock};

use alloy_primitives::{B256, keccak256};
use alloy_rlp::{Decodable, EMPTY_STRING_CODE, Encodable};
use alloy_trie::{
    Nibbles, TrieMask,
    nodes::{BranchNodeRef, ExtensionNodeRef, LeafNodeRef, RlpNode, TrieNode},
};

/// The nibbles of a hashed key: where every path ends.
const KEY_NIBBLES: usize = 64;

/// An RLP of this length or more is not inlined in its parent.
const HASHED_FROM: usize = 32;

#[derive(Debug, Clone)]
pub(super) struct LoadedNode {
    pub(super) kind: LoadedNodeKind,
    /// How the parent names this node: computed when first asked for, then common to all clones.
    reference: OnceLock<RlpNode>,
    /// The store has a row at the path of this node, whatever that row says.
    pub(super) has_row: bool,
    /// Changed since the last flush. What leads to an unsaved node is unsaved too.
    pub(super) unsaved: bool,
}

/// `rest` is the part of the path from the node to the value or to the child.
#[derive(Debug, Clone)]
pub(super) enum LoadedNodeKind {
    Leaf { rest: Nibbles, value: Box<[u8]> },
    Extension { rest: Nibbles, child: TrieLink },
    Branch(Box<Children>),
}

/// A branch holds no value of its own, since all keys have the same length.
pub(super) type Children = [Option<TrieLink>; 16];

/// The way from a parent to its child.
#[derive(Debug, Clone)]
pub(super) enum TrieLink {
    /// Not in memory. The store's row at the child's path has this hash.
    Stored(B256),
    Loaded(Arc<LoadedNode>),
}

impl TrieLink {
    /// A node that the store does not have yet.
    pub(super) fn new(kind: LoadedNodeKind) -> Self {
        Self::Loaded(Arc::new(LoadedNode { kind, reference: OnceLock::new(), has_row: false, unsaved: true }))
    }

    pub(super) fn reference(&self, scratch: &mut Vec<u8>) -> RlpNode {
        match self {
            Self::Stored(hash) => RlpNode::word_rlp(hash),
            Self::Loaded(node) => node.reference(scratch).clone(),
        }
    }

    /// The hash of a node that has a row.
    pub(super) fn hash(&self) -> B256 {
        let reference = self.reference(&mut Vec::new());
        // A root of less than 32 bytes is hashed all the same, as it has no parent to be inlined in.
        reference.as_hash().unwrap_or_else(|| keccak256(reference))
    }

    /// A child as its parent's RLP names it: by hash, or inlined.
    fn decode(reference: &RlpNode, depth: usize) -> alloy_rlp::Result<Self> {
        if reference.first() == Some(&(EMPTY_STRING_CODE + 32)) {
            return reference.as_hash().map(Self::Stored).ok_or(alloy_rlp::Error::UnexpectedLength);
        }
        if reference.len() >= HASHED_FROM {
            return Err(alloy_rlp::Error::Custom("an inlined node is too long"));
        }
        let kind = LoadedNodeKind::decode(reference, depth)?;
        Ok(Self::Loaded(Arc::new(LoadedNode::clean(kind, reference.clone(), false))))
    }
}

impl LoadedNode {
    /// The node of a row whose hash was found right, at `depth` nibbles below the root.
    pub(super) fn from_row(rlp: &[u8], hash: &B256, depth: usize) -> alloy_rlp::Result<Self> {
        Ok(Self::clean(LoadedNodeKind::decode(rlp, depth)?, RlpNode::word_rlp(hash), true))
    }

    fn clean(kind: LoadedNodeKind, reference: RlpNode, has_row: bool) -> Self {
        Self { kind, reference: OnceLock::from(reference), has_row, unsaved: false }
    }

    /// To be called after each change of the node or of anything below it.
    pub(super) fn touch(&mut self) {
        self.reference.take();
        self.unsaved = true;
    }

    /// How the parent names this node. The scratch space saves an allocation per node.
    pub(super) fn reference(&self, scratch: &mut Vec<u8>) -> &RlpNode {
        self.reference.get_or_init(|| {
            self.encode(scratch);
            RlpNode::from_rlp(scratch)
        })
    }

    /// Leaves the RLP of the node in `out`, and nothing else.
    pub(super) fn encode(&self, out: &mut Vec<u8>) {
        match &self.kind {
            LoadedNodeKind::Leaf { rest, value } => {
                out.clear();
                LeafNodeRef { key: rest, value }.encode(out);
            }
            LoadedNodeKind::Extension { rest, child } => {
                let child = child.reference(out);
                out.clear();
                ExtensionNodeRef { key: rest, child: &child }.encode(out);
            }
            LoadedNodeKind::Branch(children) => {
                let mut references: [RlpNode; 16] = Default::default();
                let (mut mask, mut count) = (TrieMask::default(), 0);
                for (nibble, link) in (0..).zip(children.iter()) {
                    if let Some(link) = link {
                        references[count] = link.reference(out);
                        mask.set_bit(nibble);
                        count += 1;
                    }
                }
                out.clear();
                BranchNodeRef::new(&references[..count], mask).encode(out);
            }
        }
    }
}

impl LoadedNodeKind {
    /// Besides the RLP, checks what the rest of this module relies on: no path ends anywhere but at the length
    /// of a key, and a branch branches.
    fn decode(mut rlp: &[u8], depth: usize) -> alloy_rlp::Result<Self> {
        let node = TrieNode::decode(&mut rlp)?;
        if !rlp.is_empty() {
            return Err(alloy_rlp::Error::UnexpectedLength);
        }
        match node {
            TrieNode::Leaf(leaf) if depth + leaf.key.len() == KEY_NIBBLES => {
                Ok(Self::Leaf { rest: leaf.key, value: leaf.value.into() })
            }
            TrieNode::Extension(extension)
                if !extension.key.is_empty() && depth + extension.key.len() < KEY_NIBBLES =>
            {
                let child = TrieLink::decode(&extension.child, depth + extension.key.len())?;
                Ok(Self::Extension { rest: extension.key, child })
            }
            TrieNode::Branch(branch) if branch.stack.len() >= 2 && depth < KEY_NIBBLES => {
                let mut children = Box::<Children>::default();
                for (slot, (_, reference)) in children.iter_mut().zip(branch.as_ref().children()) {
                    *slot = reference.map(|reference| TrieLink::decode(reference, depth + 1)).transpose()?;
                }
                Ok(Self::Branch(children))
            }
            _ => Err(alloy_rlp::Error::Custom("no such node can be at this depth")),
        }
    }
}
