//! A node as its watcher sees it.

use std::sync::Arc;

use tokio::sync::watch;
use tokio::time::Instant;

use super::PoolNode;
use crate::call::{BlockId, Fault};
use crate::exclusion::ExclusionReason;
use crate::transport::{Client, Endpoint, pushed_heads};
use crate::watch::{HeadHint, Watched};

#[derive(Debug)]
pub(super) struct WatchedNode {
    pub(super) node: Arc<PoolNode>,
    /// Where it pushes new heads.
    pub(super) heads: Option<Endpoint>,
}

impl Watched for WatchedNode {
    type Client = Client;

    fn client(&self) -> &Client {
        self.node.client()
    }

    fn name(&self) -> &str {
        self.node.name()
    }

    fn record_question(&self) {
        self.node.presence().record_question(Instant::now());
    }

    fn record_reply(&self) {
        self.node.presence().record_reply();
    }

    fn record_loss(&self) {
        self.node.presence().record_loss();
    }

    fn has_replied_since(&self, then: Instant) -> bool {
        !self.node.is_silent_since(then)
    }

    fn record_poll(&self, outcome: Result<(), Fault>) {
        self.node.record_poll(outcome, Instant::now());
    }

    fn record_head(&self, head: BlockId) {
        self.node.capabilities().set_head(head);
    }

    fn set_lowest_state(&self, number: u64) {
        self.node.capabilities().set_lowest_state(number);
    }

    fn exclude(&self, reason: &ExclusionReason) {
        self.node.capabilities().exclude(reason.clone());
    }

    fn admit(&self) {
        let capabilities = self.node.capabilities();
        capabilities.admit();
        // Its program may have been exchanged for another version. What it refuses now is learned again.
        capabilities.forget_refusals();
    }

    fn hints(&self) -> Option<watch::Receiver<Option<HeadHint>>> {
        self.heads.clone().map(pushed_heads)
    }
}
