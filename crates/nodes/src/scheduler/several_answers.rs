//! Asking for several answers, or for one of every node. The asker compares them.

use std::fmt;
use std::time::Duration;

use tokio::time::Instant;

use super::driver::{Driver, DriverEvent};
use super::progress::{AttemptOutcome, Wanted};
use super::{CallRules, NodeReply, Nodes};
use crate::call::{Ask, Fault, RpcCall};
use crate::node::Node;
use crate::node_id::NodeId;
use crate::proof_failure::ProofFailure;

/// The reply of one node.
#[derive(Debug)]
pub struct NodeAnswer {
    pub node: NodeId,
    pub reply: NodeReply,
}

/// The next event of a call to several nodes.
#[derive(Debug)]
pub enum AnswersEvent {
    Answer(NodeAnswer),
    /// An attempt has failed. It may be made once more.
    Failed {
        node: NodeId,
        fault: Fault,
    },
    /// A node has answered, all others that were asked are overdue and silent, and no other healthy node can be asked. The call still
    /// waits for them. This event comes once.
    Stalled,
    /// No node is left that could answer in time.
    Over,
}

/// One call to several nodes, none of which answers twice.
pub struct SeveralAnswers<'a, A: Ask> {
    driver: Driver<'a, A, RpcCall>,
    rules: &'a CallRules,
}

impl<'a, A: Ask> SeveralAnswers<'a, A> {
    /// Begins a call. No node is asked before [`Self::next`].
    pub(crate) fn new(
        nodes: Nodes<A>,
        call: &'a RpcCall,
        wanted: Wanted,
        rules: &'a CallRules,
        deadline: Instant,
    ) -> Self {
        Self { driver: Driver::new(nodes, call, wanted, rules, deadline), rules }
    }

    /// Waits for the next event, while this many more answers are wanted; it does not matter where all nodes are asked. It is cancel
    /// safe.
    pub async fn next(&mut self, wanted: usize) -> AnswersEvent {
        if self.driver.progress.terms.wanted == Wanted::Several {
            self.driver.progress.missing = wanted.max(1);
        }
        match self.driver.next().await {
            DriverEvent::Reply { node, reason, reply } => {
                self.driver.record_won(node, reason);
                AnswersEvent::Answer(NodeAnswer { node: self.driver.nodes[node].id(), reply })
            }
            DriverEvent::Failed { node, fault } => {
                AnswersEvent::Failed { node: self.driver.nodes[node].id(), fault }
            }
            DriverEvent::Stalled => AnswersEvent::Stalled,
            DriverEvent::Ended(_) => AnswersEvent::Over,
        }
    }

    /// How many nodes there were when the call began.
    pub fn nodes(&self) -> usize {
        self.driver.nodes.len()
    }

    /// Limits the time for the remaining answers, because there are enough already.
    pub(crate) fn wait_at_most(&mut self, time: Duration) {
        let deadline = &mut self.driver.progress.terms.deadline;
        *deadline = (*deadline).min(Instant::now() + time);
    }

    /// Records that the answer of a node could be used.
    pub fn record_accepted(&self, node: NodeId) {
        if let Some((_, node)) = self.node(node) {
            node.record_success(Instant::now());
        }
    }

    /// Records that the answer of a node cannot be one to this call.
    pub fn record_refused(&self, node: NodeId, reason: ProofFailure) {
        if let Some((_, node)) = self.node(node) {
            node.record_wrong_answer(self.driver.payload, reason.to_string());
        }
    }

    /// Records that a node lacks something that exists, so that its answer is none. It is asked again a little later.
    pub fn record_late(&mut self, node: NodeId) {
        self.record_accepted(node);
        self.rules.view.request_polls();
        if let Some((position, _)) = self.node(node) {
            self.driver.settle(position, AttemptOutcome::Late);
        }
    }

    /// How often nodes were asked.
    pub fn calls(&self) -> u64 {
        self.driver.attempts_made
    }

    fn node(&self, id: NodeId) -> Option<(usize, &Node<A>)> {
        let mut nodes = self.driver.nodes.iter().enumerate();
        nodes.find(|(_, node)| node.id() == id).map(|(position, node)| (position, &**node))
    }
}

impl<A: Ask> fmt::Debug for SeveralAnswers<'_, A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let method = self.driver.payload.method;
        f.debug_struct("SeveralAnswers").field("method", &method).finish_non_exhaustive()
    }
}
