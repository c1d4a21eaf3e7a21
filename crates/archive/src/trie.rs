//! State roots at the price of what changed: a Merkle Patricia trie that reads only the nodes that it needs.
//!
//! A [`Trie`] starts as nothing but its root hash. A change reads the nodes on the way to its key, [`Trie::root`]
//! hashes those that changed, and [`Trie::flush`] writes them back. The cost of a block is therefore that of
//! what it touches, times the depth of the trie.
//!
//! Nodes are stored by their *path* and not by their hash, so that the store holds one state and never needs
//! garbage collection: a node that moves or goes away takes its row with it. Each node that is not inlined in
//! its parent has one row; the root has one unless the trie is empty. A row that is read must have the hash
//! that its parent names, so that a damaged store gives an error and never a wrong root.
//!
//! Why this is written here: `alloy-trie` builds roots from a sorted list of all leaves, and the tries on the
//! registry that can be updated store their nodes by hash for ever. The node types, their RLP and the nibbles
//! are those of `alloy-trie`.
//!
//! This module knows neither the database nor what an account is. Keys arrive hashed, values as leaf payloads.

mod edit; // insert and remove
mod keys; // the rows of all tries in one table
mod node; // one node, its RLP and its hash
mod rows; // writing changed nodes and dropping loaded ones

use alloy_primitives::B256;
use alloy_trie::{EMPTY_ROOT_HASH, Nibbles};

use edit::Edit;
use node::TrieLink;

pub(crate) use keys::{node_key, storage_trie_range};

/// A trie with 32-byte keys, of which only the nodes that were needed are in memory.
///
/// A clone is cheap, shares all nodes, and is independent of the original: to undo changes, go back to a clone
/// that was made before them. This also holds where the changes were flushed to a transaction that was then
/// aborted. Once that transaction is committed, the older clones no longer fit the store and must be dropped.
///
/// An `insert` or `remove` that fails leaves the trie as it was.
#[derive(Debug, Clone)]
pub(crate) struct Trie {
    root: Option<TrieLink>,
    /// Paths whose rows lost their node since the last flush. A new node may have come to such a path.
    gone: Vec<Nibbles>,
    /// Nodes loaded or made since they were last counted.
    loaded: usize,
}

/// Where the stored nodes of one trie are read from.
pub(crate) trait NodeSource {
    type Error;

    /// Hands the row at `path` to `read`; `None` where there is no row. A closure, because stores lend their
    /// rows and a copy would serve nobody.
    fn node<T>(&self, path: &Nibbles, read: impl FnOnce(&[u8]) -> T) -> Result<Option<T>, Self::Error>;
}

/// Why a trie could not be read. All but `Source` mean that the store is damaged or belongs to another root.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum TrieError<E> {
    #[error("the trie node at {path:?} could not be read")]
    Source { path: Nibbles, source: E },
    #[error("the trie node at {path:?} is missing")]
    Missing { path: Nibbles },
    #[error("the trie node at {path:?} is corrupt: {reason}")]
    Corrupt { path: Nibbles, reason: alloy_rlp::Error },
}

impl Trie {
    pub(crate) const fn empty() -> Self {
        Self { root: None, gone: Vec::new(), loaded: 0 }
    }

    /// The stored trie with this root. Nothing is read yet.
    pub(crate) fn with_root(root: B256) -> Self {
        if root == EMPTY_ROOT_HASH {
            return Self::empty();
        }
        Self { root: Some(TrieLink::Stored(root)), ..Self::empty() }
    }

    /// Sets the value of a hashed key. An empty value is the absence of one, as it is in the protocol.
    pub(crate) fn insert<S: NodeSource>(
        &mut self,
        key: B256,
        value: &[u8],
        source: &S,
    ) -> Result<(), TrieError<S::Error>> {
        if value.is_empty() {
            return self.remove(key, source);
        }
        let mut edit = Edit::new(key, source, &mut self.gone, &mut self.loaded);
        match &mut self.root {
            Some(root) => edit.insert(root, 0, value).map(drop),
            none => {
                *none = Some(edit.leaf(0, value));
                Ok(())
            }
        }
    }

    /// Takes a hashed key away. A key that is not there changes nothing.
    pub(crate) fn remove<S: NodeSource>(&mut self, key: B256, source: &S) -> Result<(), TrieError<S::Error>> {
        let mut edit = Edit::new(key, source, &mut self.gone, &mut self.loaded);
        edit.remove_from(&mut self.root)
    }

    /// The root hash. Hashes what changed since it was last asked for; clones profit from it.
    pub(crate) fn root(&self) -> B256 {
        self.root.as_ref().map_or(EMPTY_ROOT_HASH, TrieLink::hash)
    }

    /// Brings the store to the present state: first `None` for each path whose node is gone, then `Some(rlp)`
    /// for each node that changed. A path may get both, in this order.
    ///
    /// Where the sink fails, drop the trie with the transaction and go back to a clone.
    pub(crate) fn flush<E>(
        &mut self,
        sink: &mut impl FnMut(&Nibbles, Option<&[u8]>) -> Result<(), E>,
    ) -> Result<(), E> {
        for path in self.gone.drain(..) {
            sink(&path, None)?;
        }
        match &mut self.root {
            Some(root) => rows::flush(root, Nibbles::new(), &mut Vec::new(), sink),
            None => Ok(()),
        }
    }

    /// Drops the loaded nodes that lie `levels` or more below the root (0: all of them) and have no unflushed
    /// change. They are read again when needed, from where they were flushed to.
    pub(crate) fn forget(&mut self, levels: usize) {
        self.loaded = match &mut self.root {
            Some(root) => rows::forget(root, 0, levels),
            None => 0,
        };
    }

    /// About how many nodes are in memory: those that came and went since the last [`forget`](Self::forget)
    /// still count, those that were inlined in a loaded one do not count before it.
    pub(crate) const fn loaded_nodes(&self) -> usize {
        self.loaded
    }
}

#[cfg(test)]
mod tests;
