//! The data of old blocks that the nodes of a pool were shown to have, and who may know of something that others do not find.

use std::collections::HashSet;

use tokio::time::Instant;

use super::Pool;
use crate::call::Fault;
use crate::node::{HistoryKind, HistoryReach};
use crate::node_id::NodeId;

/// The replies of nodes about something that may not exist.
#[derive(Debug, Default)]
pub struct AbsenceReplies {
    /// Nodes that do not find it.
    pub without: HashSet<NodeId>,
    /// Nodes that have replied anything else that can be read, or that cannot be reached.
    settled: HashSet<NodeId>,
}

/// How sure it is that something does not exist.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Absence {
    /// A quorum of nodes that were shown to have everything do not find it.
    Confirmed,
    /// No node finds it that answers, and a quorum does. They may lack what is old.
    Unconfirmed,
    /// A node that has not answered may know of it.
    Open,
}

impl AbsenceReplies {
    /// Records that a node has replied something else, so that it is not waited for.
    pub fn record_other(&mut self, node: NodeId) {
        self.settled.insert(node);
    }
}

impl Pool {
    /// How sure it is after these replies that something does not exist.
    pub fn absence(&self, kind: HistoryKind, method: &str, replies: &AbsenceReplies) -> Absence {
        let knowing = replies.without.iter().filter(|node| self.has_whole_history(**node, kind)).count();
        let quorum = self.view.quorum();
        if knowing >= quorum {
            Absence::Confirmed
        } else if replies.without.len() >= quorum && !self.is_some_awaited(method, replies) {
            Absence::Unconfirmed
        } else {
            Absence::Open
        }
    }

    /// Whether a node has not replied and may know more: one that is alive, however slow it is, and was not proven wrong. That calls
    /// to it were given up, or that it is down, shows nothing of what it knows.
    pub fn is_some_awaited(&self, method: &str, replies: &AbsenceReplies) -> bool {
        let now = Instant::now();
        self.same_chain().into_iter().any(|node| {
            let has_replied = replies.without.contains(&node.id()) || replies.settled.contains(&node.id());
            let may_reply = node.is_alive(now) && node.excluded_for(now).is_none();
            !has_replied && may_reply && !node.capabilities().lacks(method)
        })
    }

    /// Takes note of a failed call. A node that cannot be reached knows nothing, unless it was shown to have everything a moment
    /// ago: it may be back at once.
    pub fn record_unreachable(
        &self,
        kind: HistoryKind,
        node: NodeId,
        fault: Fault,
        replies: &mut AbsenceReplies,
    ) {
        let is_unreachable = matches!(
            fault,
            Fault::Connect | Fault::ConnectTimeout | Fault::Dns | Fault::Tls(_) | Fault::Closed
        );
        if is_unreachable && !self.has_whole_history(node, kind) {
            replies.settled.insert(node);
        }
    }

    /// Records that a node did not find what is in this block.
    pub fn record_lacking_history(&self, node: NodeId, kind: HistoryKind, block: u64) {
        if let Some(node) = self.node(node) {
            tracing::debug!(
                node = node.name(),
                kind = kind.name(),
                block,
                "node lacks what is in an old block"
            );
            node.capabilities().record_lacking_history(kind, block);
        }
    }

    /// Down to which block a node was shown to have this.
    pub fn history(&self, node: NodeId, kind: HistoryKind) -> HistoryReach {
        self.node(node).map_or(HistoryReach::Unknown, |node| node.capabilities().history(kind))
    }

    /// Whether a node can know what is in a block, so that what it does not find counts. `None` before that was found out.
    pub fn can_know(&self, node: NodeId, kind: HistoryKind, block: u64) -> Option<bool> {
        self.node(node)?.capabilities().can_know(kind, block)
    }

    /// Whether a node was shown to have the state of a block, or the block is so new that all nodes have it. Nobody looks at what
    /// partners have.
    pub fn shows_state(&self, node: NodeId, block: u64) -> bool {
        let Some(node) = self.node(node).filter(|node| !node.is_partner()) else { return true };
        let capabilities = node.capabilities();
        capabilities.can_know_state(block) && capabilities.lowest_state().is_none_or(|lowest| lowest <= block)
    }

    /// Whether a node was shown to have everything of this kind.
    pub fn has_whole_history(&self, node: NodeId, kind: HistoryKind) -> bool {
        self.history(node, kind) == HistoryReach::Whole
    }
}
