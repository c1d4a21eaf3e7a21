//! Insert and remove: one key on its way down from the root.
//!
//! Everything that can fail comes before the first change, so that an edit happens as a whole or not at all.

use std::{mem, sync::Arc};

use alloy_primitives::{B256, keccak256};
use alloy_trie::Nibbles;

use super::{
    NodeSource, TrieError,
    node::{Children, LoadedNode, LoadedNodeKind, TrieLink},
};

/// One change of one key.
#[derive(Debug)]
pub(super) struct Edit<'a, S> {
    key: Nibbles,
    source: &'a S,
    gone: &'a mut Vec<Nibbles>,
    loaded: &'a mut usize,
}

/// The effect of a removal on a node.
#[derive(Debug, PartialEq, Eq)]
enum Removal {
    /// The key was not below it.
    Nothing,
    Changed,
    /// The node is the leaf of that key. It is still in place: its parent takes it out.
    TakeOut,
}

impl<'a, S: NodeSource> Edit<'a, S> {
    pub(super) fn new(key: B256, source: &'a S, gone: &'a mut Vec<Nibbles>, loaded: &'a mut usize) -> Self {
        Self { key: Nibbles::unpack_array(&key.0), source, gone, loaded }
    }

    /// Sets the value below `link`, which lies `depth` nibbles down. Says whether that changed anything.
    pub(super) fn insert(
        &mut self,
        link: &mut TrieLink,
        depth: usize,
        value: &[u8],
    ) -> Result<bool, TrieError<S::Error>> {
        let node = Arc::make_mut(self.load(link, self.path(depth))?);
        match &mut node.kind {
            LoadedNodeKind::Leaf { rest, value: old } => {
                let common = self.common(rest, depth);
                if common < rest.len() {
                    let below =
                        LoadedNodeKind::Leaf { rest: rest.slice(common + 1..), value: mem::take(old) };
                    let below = self.make(below);
                    node.kind = self.part(*rest, common, below, depth, value);
                } else if **old == *value {
                    return Ok(false);
                } else {
                    *old = value.into();
                }
            }
            LoadedNodeKind::Extension { rest, child } => {
                let common = self.common(rest, depth);
                if common < rest.len() {
                    let below = self.shorten(rest.slice(common + 1..), child.clone());
                    node.kind = self.part(*rest, common, below, depth, value);
                } else if !self.insert(child, depth + common, value)? {
                    return Ok(false);
                }
            }
            LoadedNodeKind::Branch(children) => match &mut children[self.nibble(depth)] {
                Some(child) => {
                    if !self.insert(child, depth + 1, value)? {
                        return Ok(false);
                    }
                }
                none => *none = Some(self.leaf(depth + 1, value)),
            },
        }
        node.touch();
        Ok(true)
    }

    /// Takes the key out of a whole trie.
    pub(super) fn remove_from(&mut self, root: &mut Option<TrieLink>) -> Result<(), TrieError<S::Error>> {
        let Some(link) = root else { return Ok(()) };
        if self.remove(link, 0)? == Removal::TakeOut {
            self.take_out(root, Nibbles::new());
        }
        Ok(())
    }

    fn remove(&mut self, link: &mut TrieLink, depth: usize) -> Result<Removal, TrieError<S::Error>> {
        let node = Arc::make_mut(self.load(link, self.path(depth))?);
        match &mut node.kind {
            LoadedNodeKind::Leaf { rest, .. } => {
                let found = self.common(rest, depth) == rest.len();
                return Ok(if found { Removal::TakeOut } else { Removal::Nothing });
            }
            LoadedNodeKind::Extension { rest, child } => {
                let below = depth + rest.len();
                // The child is a branch, which is never taken out: it has two children at least.
                if self.common(rest, depth) < rest.len() || self.remove(child, below)? != Removal::Changed {
                    return Ok(Removal::Nothing);
                }
                // This cannot fail any more, as the child is in memory.
                node.kind = self.join(*rest, child, self.path(below))?;
            }
            LoadedNodeKind::Branch(children) => {
                let nibble = self.nibble(depth);
                let Some(child) = &mut children[nibble] else { return Ok(Removal::Nothing) };
                match self.remove(child, depth + 1)? {
                    Removal::Nothing => return Ok(Removal::Nothing),
                    Removal::Changed => {}
                    Removal::TakeOut => {
                        let alone = self.collapse(children, nibble, depth)?;
                        self.take_out(&mut children[nibble], self.path(depth + 1));
                        if let Some(kind) = alone {
                            node.kind = kind;
                        }
                    }
                }
            }
        }
        node.touch();
        Ok(Removal::Changed)
    }

    /// The node in place of a branch at `depth` when its child at `nibble` leaves only one other behind.
    fn collapse(
        &mut self,
        children: &mut Children,
        nibble: usize,
        depth: usize,
    ) -> Result<Option<LoadedNodeKind>, TrieError<S::Error>> {
        let others = (0_u8..).zip(children).filter(|(other, _)| usize::from(*other) != nibble);
        let mut others = others.filter_map(|(other, link)| Some((other, link.as_mut()?)));
        let (Some((other, link)), None) = (others.next(), others.next()) else { return Ok(None) };
        let step = Nibbles::from_nibbles_unchecked([other]);
        self.join(step, link, self.path(depth).join(&step)).map(Some)
    }

    /// The node that leads over `rest` to `child`, which lies at `path`. Where the child is itself a leaf or an
    /// extension, the two become one, and the child's path is left.
    fn join(
        &mut self,
        rest: Nibbles,
        child: &mut TrieLink,
        path: Nibbles,
    ) -> Result<LoadedNodeKind, TrieError<S::Error>> {
        let node = Arc::clone(self.load(child, path)?);
        let joined = match &node.kind {
            LoadedNodeKind::Leaf { rest: more, value } => {
                LoadedNodeKind::Leaf { rest: rest.join(more), value: value.clone() }
            }
            LoadedNodeKind::Extension { rest: more, child } => {
                LoadedNodeKind::Extension { rest: rest.join(more), child: child.clone() }
            }
            LoadedNodeKind::Branch(_) => {
                return Ok(LoadedNodeKind::Extension { rest, child: TrieLink::Loaded(node) });
            }
        };
        self.leave(&node, path);
        Ok(joined)
    }

    /// Where `rest` parts from the key after `common` nibbles: a branch with what was below and a new leaf.
    fn part(
        &mut self,
        rest: Nibbles,
        common: usize,
        below: TrieLink,
        depth: usize,
        value: &[u8],
    ) -> LoadedNodeKind {
        let depth = depth + common;
        let mut children = Box::<Children>::default();
        children[usize::from(rest.get_unchecked(common))] = Some(below);
        children[self.nibble(depth)] = Some(self.leaf(depth + 1, value));
        let branch = LoadedNodeKind::Branch(children);
        if common == 0 {
            return branch;
        }
        LoadedNodeKind::Extension { rest: rest.slice(..common), child: self.make(branch) }
    }

    /// The rest of an extension to `child` when only `rest` is left of its path. The child does not move.
    fn shorten(&mut self, rest: Nibbles, child: TrieLink) -> TrieLink {
        if rest.is_empty() { child } else { self.make(LoadedNodeKind::Extension { rest, child }) }
    }

    /// A leaf for the key, `depth` nibbles down.
    pub(super) fn leaf(&mut self, depth: usize, value: &[u8]) -> TrieLink {
        self.make(LoadedNodeKind::Leaf { rest: self.key.slice(depth..), value: value.into() })
    }

    fn make(&mut self, kind: LoadedNodeKind) -> TrieLink {
        *self.loaded += 1;
        TrieLink::new(kind)
    }

    fn take_out(&mut self, slot: &mut Option<TrieLink>, path: Nibbles) {
        if let Some(TrieLink::Loaded(node)) = slot.take() {
            self.leave(&node, path);
        }
    }

    /// Remembers the row of a node that will not be at `path` any more.
    fn leave(&mut self, node: &LoadedNode, path: Nibbles) {
        if node.has_row {
            self.gone.push(path);
        }
    }

    /// The node behind a link, read and checked if it is not in memory yet.
    fn load<'l>(
        &mut self,
        link: &'l mut TrieLink,
        path: Nibbles,
    ) -> Result<&'l mut Arc<LoadedNode>, TrieError<S::Error>> {
        if let TrieLink::Stored(hash) = link {
            let node = read(self.source, hash, path)?;
            *self.loaded += 1;
            *link = TrieLink::Loaded(Arc::new(node));
        }
        match link {
            TrieLink::Loaded(node) => Ok(node),
            TrieLink::Stored(_) => unreachable!("the link was loaded above"),
        }
    }

    fn path(&self, depth: usize) -> Nibbles {
        self.key.slice(..depth)
    }

    fn nibble(&self, depth: usize) -> usize {
        usize::from(self.key.get_unchecked(depth))
    }

    /// How many nibbles of `rest` the key follows from `depth` on.
    fn common(&self, rest: &Nibbles, depth: usize) -> usize {
        self.key.slice(depth..).common_prefix_length(rest)
    }
}

/// The stored node at `path`, which must have this hash.
pub(super) fn read<S: NodeSource>(
    source: &S,
    hash: &B256,
    path: Nibbles,
) -> Result<LoadedNode, TrieError<S::Error>> {
    let decode = |rlp: &[u8]| {
        if keccak256(rlp) != *hash {
            return Err(alloy_rlp::Error::Custom("it does not have the hash that its parent names"));
        }
        LoadedNode::from_row(rlp, hash, path.len())
    };
    match source.node(&path, decode) {
        Ok(Some(Ok(node))) => Ok(node),
        Ok(Some(Err(reason))) => Err(TrieError::Corrupt { path, reason }),
        Ok(None) => Err(TrieError::Missing { path }),
        Err(source) => Err(TrieError::Source { path, source }),
    }
}
