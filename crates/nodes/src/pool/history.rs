//! The data of old blocks that the nodes of a pool were shown to have, and who may know of something that others do not find.

use std::collections::HashSet;

use super::Pool;
use crate::call::Fault;
use crate::health::Availability;
use crate::node::{HistoryKind, HistoryReach};

/// The replies of nodes about something that may not exist.
#[derive(Debug, Default)]
pub struct AbsenceReplies {
    /// Nodes that do not find it.
    pub without: HashSet<usize>,
    /// Nodes that have replied anything else that can be read, or that cannot be reached.
    settled: HashSet<usize>,
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
    pub fn record_other(&mut self, node: usize) {
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
        } else if replies.without.len() >= quorum && !self.is_some_awaited(kind, method, replies) {
            Absence::Unconfirmed
        } else {
            Absence::Open
        }
    }

    /// Whether a node is live that has not replied and may know more. One whose calls fail is waited for only if it was shown to
    /// have everything. That calls to it were given up shows nothing: it may only be slow.
    pub fn is_some_awaited(&self, kind: HistoryKind, method: &str, replies: &AbsenceReplies) -> bool {
        let mut awaited = self.counted().filter(|node| {
            let number = self.number_of(node);
            !replies.without.contains(&number) && !replies.settled.contains(&number)
        });
        awaited.any(|node| {
            let is_up = node.availability(tokio::time::Instant::now()) != Availability::Down
                || node.has_only_been_given_up();
            let has_whole = node.capabilities().history(kind) == HistoryReach::Whole;
            !node.capabilities().lacks(method) && (is_up || has_whole)
        })
    }

    /// Takes note of a failed call. A node that cannot be reached knows nothing, unless it was shown to have everything a moment
    /// ago: it may be back at once.
    pub fn record_unreachable(
        &self,
        kind: HistoryKind,
        node: usize,
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
    pub fn record_lacking_history(&self, node: usize, kind: HistoryKind, block: u64) {
        if let Some(node) = self.nodes.get(node) {
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
    pub fn history(&self, node: usize, kind: HistoryKind) -> HistoryReach {
        self.nodes.get(node).map_or(HistoryReach::Unknown, |node| node.capabilities().history(kind))
    }

    /// Whether a node can know what is in a block, so that what it does not find counts. `None` before that was found out.
    pub fn can_know(&self, node: usize, kind: HistoryKind, block: u64) -> Option<bool> {
        self.nodes.get(node)?.capabilities().can_know(kind, block)
    }

    /// Whether a node was shown to have everything of this kind.
    pub fn has_whole_history(&self, node: usize, kind: HistoryKind) -> bool {
        self.history(node, kind) == HistoryReach::Whole
    }
}
