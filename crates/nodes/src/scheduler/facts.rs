//! The nodes of a call, as its decisions see them.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use super::next_action::NodeFacts;
use super::progress::Wanted;
use crate::call::{Ask, Needs, RpcCall};
use crate::health::Availability;
use crate::node::{HistoryKind, Membership, Node};
use crate::pick::Candidate;

pub(super) struct CallNodes<'a, A> {
    pub(super) nodes: &'a [Arc<Node<A>>],
    pub(super) call: &'a RpcCall,
    pub(super) wanted: Wanted,
}

impl<A: Ask> NodeFacts for CallNodes<'_, A> {
    fn needs(&self) -> Needs {
        self.call.needs
    }

    fn candidate(&self, node: usize, now: Instant) -> Candidate {
        let node = &self.nodes[node];
        let candidate = node.candidate(self.call, now);
        Candidate { excluded: candidate.excluded || !self.can_know(node), ..candidate }
    }

    fn availability(&self, node: usize, now: Instant) -> Availability {
        self.nodes[node].availability(now)
    }

    fn is_probe_due(&self, node: usize, now: Instant) -> bool {
        self.nodes[node].is_probe_due(now)
    }

    fn silent_since(&self, node: usize, then: Instant) -> Instant {
        self.nodes[node].silent_since(then)
    }

    fn has_fallen_silent(&self, node: usize) -> bool {
        self.nodes[node].has_fallen_silent()
    }

    fn is_lost(&self, node: usize) -> bool {
        self.nodes[node].presence().is_lost() && !self.nodes[node].is_alive(Instant::now())
    }

    fn may_know_soon(&self, node: usize, is_block_awaited: bool) -> bool {
        let node = &self.nodes[node];
        let capabilities = node.capabilities();
        let head = capabilities.head_number();
        let is_behind = || is_block_awaited && self.call.needs.block.is_some_and(|block| head < Some(block));
        is_member(node)
            && !capabilities.lacks(self.call.method)
            && (is_behind() || !self.can_know(node) && node.answers_watcher())
    }

    fn hedge_delay(&self, node: usize) -> Duration {
        self.nodes[node].hedge_delay(self.call.class)
    }
}

impl<A: Ask> CallNodes<'_, A> {
    /// Whether a node is known to have the state or the logs that a vote needs, or to lack them. One that has dropped what is old
    /// may return zero for it, or no logs.
    fn can_know(&self, node: &Node<A>) -> bool {
        let (needs, capabilities) = (self.call.needs, node.capabilities());
        let is_found_out = |from| capabilities.can_know(HistoryKind::Logs, from).is_some();
        self.wanted != Wanted::Several
            || needs.state_block().is_none_or(|block| capabilities.can_know_state(block))
                && needs.logs_from().is_none_or(is_found_out)
    }
}

pub(super) fn is_member<A: Ask>(node: &Node<A>) -> bool {
    node.capabilities().membership() == Membership::Member
}

/// Whether a node is not expected to answer at all.
pub(super) fn seems_down<A: Ask>(node: &Node<A>, now: Instant) -> bool {
    node.availability(now) == Availability::Down || !node.answers_watcher() || node.has_fallen_silent()
}
