//! A node as its watcher sees it.

use std::sync::Arc;

use resources::{Supervisor, WhenDown};
use tokio::sync::watch;
use tokio::time::Instant;

use super::PoolNode;
use crate::call::BlockId;
use crate::exclusion::ExclusionReason;
use crate::node::{HistoryReaches, Membership};
use crate::node_fault::NodeFault;
use crate::node_id::NodeId;
use crate::partner::PartnerTerms;
use crate::transport::{Client, Endpoint, pushed_heads};
use crate::watch::{HeadHint, Watched};

#[derive(Debug)]
pub(super) struct WatchedNode {
    pub(super) node: Arc<PoolNode>,
    /// Where it pushes new heads.
    pub(super) heads: Option<Endpoint>,
    pub(super) supervisor: Supervisor,
}

impl Watched for WatchedNode {
    type Client = Client;

    fn id(&self) -> NodeId {
        self.node.id()
    }

    fn client(&self) -> &Client {
        self.node.client()
    }

    fn name(&self) -> &str {
        self.node.name()
    }

    fn partner_terms(&self) -> Option<&PartnerTerms> {
        self.node.partner_terms()
    }

    fn record_question(&self) {
        self.node.presence().record_question(Instant::now());
    }

    fn record_reply(&self) {
        self.node.presence().record_reply(Instant::now());
    }

    fn record_late_reply(&self) {
        self.node.presence().record_late_reply(Instant::now());
    }

    fn record_loss(&self) {
        self.node.presence().record_loss();
        self.node.capabilities().forget_history();
        self.node.capabilities().forget_refusals();
    }

    fn is_lost(&self) -> bool {
        self.node.presence().is_lost()
    }

    fn has_replied_since(&self, then: Instant) -> bool {
        self.node.silent_since(then) > then
    }

    fn record_poll(&self, outcome: Result<(), NodeFault>) {
        self.node.record_poll(outcome, Instant::now());
    }

    fn record_head(&self, head: BlockId) {
        self.node.capabilities().set_head(head);
    }

    fn set_client_version(&self, version: &str) {
        self.node.capabilities().set_client_version(version);
    }

    fn set_lowest_state(&self, number: u64) {
        self.node.capabilities().set_lowest_state(number);
    }

    fn set_history(&self, reaches: HistoryReaches, head: u64) {
        self.node.capabilities().set_history(reaches, head);
    }

    fn is_history_known(&self) -> bool {
        self.node.capabilities().is_history_known()
    }

    fn exclude(&self, reason: &ExclusionReason) {
        let is_of_another_chain = match reason {
            ExclusionReason::OtherChain { .. }
            | ExclusionReason::OtherGenesis { .. }
            | ExclusionReason::OtherCheckpoint { .. } => true,
            ExclusionReason::Syncing | ExclusionReason::TooFew { .. } | ExclusionReason::Undecided { .. } => {
                false
            }
        };
        let capabilities = self.node.capabilities();
        let was_member = capabilities.membership() == Membership::Member;
        capabilities.exclude(reason.clone());
        if was_member && is_of_another_chain {
            self.node.end_trust_epoch();
        }
    }

    fn admit(&self) {
        let capabilities = self.node.capabilities();
        capabilities.admit();
        capabilities.forget_old_refusals(Instant::now());
    }

    fn hints(&self) -> Option<watch::Receiver<Option<HeadHint>>> {
        let task = || self.supervisor.task(format!("heads of node {}", self.name()), WhenDown::Degraded);
        self.heads.clone().map(|endpoint| pushed_heads(endpoint, task()))
    }
}
