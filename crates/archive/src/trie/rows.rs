//! Flush writes changed nodes to the store; forget drops loaded nodes that can be read again.

use std::sync::Arc;

use alloy_trie::Nibbles;

use super::node::{LoadedNode, LoadedNodeKind, TrieLink};

/// Writes the unsaved nodes from `link` down, and takes away the rows of those that are inlined by now.
pub(super) fn flush<E>(
    link: &mut TrieLink,
    path: Nibbles,
    scratch: &mut Vec<u8>,
    sink: &mut impl FnMut(&Nibbles, Option<&[u8]>) -> Result<(), E>,
) -> Result<(), E> {
    let TrieLink::Loaded(node) = link else { return Ok(()) };
    if !node.unsaved {
        return Ok(());
    }
    let node = Arc::make_mut(node);
    // The root has a row at any length, as there is no parent to inline it in.
    let inlined = !path.is_empty() && !node.reference(scratch).is_hash();
    if !inlined {
        node.encode(scratch);
        sink(&path, Some(scratch))?;
    } else if node.has_row {
        sink(&path, None)?;
    }
    node.has_row = !inlined;
    node.unsaved = false;
    for (step, child) in children(node) {
        flush(child, path.join(&step), scratch, sink)?;
    }
    Ok(())
}

/// Drops what lies `levels` or more nodes below the root. Returns how many nodes are left.
pub(super) fn forget(link: &mut TrieLink, depth: usize, levels: usize) -> usize {
    let TrieLink::Loaded(node) = link else { return 0 };
    if depth >= levels && node.has_row && !node.unsaved {
        *link = TrieLink::Stored(link.hash());
        return 0;
    }
    if let LoadedNodeKind::Leaf { .. } = node.kind {
        return 1;
    }
    let below = children(Arc::make_mut(node)).map(|(_, child)| forget(child, depth + 1, levels));
    1 + below.sum::<usize>()
}

/// The children of a node, each with the nibbles that lead to it.
fn children(node: &mut LoadedNode) -> impl Iterator<Item = (Nibbles, &mut TrieLink)> {
    let (extension, branch) = match &mut node.kind {
        LoadedNodeKind::Leaf { .. } => (None, None),
        LoadedNodeKind::Extension { rest, child } => (Some((*rest, child)), None),
        LoadedNodeKind::Branch(children) => (None, Some(children.iter_mut())),
    };
    let branch = (0..).zip(branch.into_iter().flatten());
    let branch = branch.filter_map(|(nibble, child): (u8, &mut Option<TrieLink>)| {
        Some((Nibbles::from_nibbles_unchecked([nibble]), child.as_mut()?))
    });
    extension.into_iter().chain(branch)
}
