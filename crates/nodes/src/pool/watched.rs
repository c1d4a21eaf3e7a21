//! A node as its watcher sees it.

use std::sync::Arc;

use tokio::sync::watch;
use tokio::time::Instant;

use super::PoolNode;
use crate::call::{BlockId, Fault};
use crate::left_out::LeftOut;
use crate::transport::{Client, Endpoint, heads};
use crate::watch::{Hint, Watched};

#[derive(Debug)]
pub(super) struct WatchedNode {
    pub(super) node: Arc<PoolNode>,
    /// Where it pushes new heads.
    pub(super) heads: Option<Endpoint>,
}

impl Watched for WatchedNode {
    type Asked = Client;

    fn ask(&self) -> &Client {
        self.node.asked()
    }

    fn name(&self) -> &str {
        self.node.name()
    }

    fn is_asked(&self) {
        self.node.presence().is_asked(Instant::now());
    }

    fn has_replied(&self) {
        self.node.presence().has_replied();
    }

    fn is_lost(&self) {
        self.node.presence().set_lost();
    }

    fn has_replied_since(&self, then: Instant) -> bool {
        !self.node.silent_since(then)
    }

    fn polled(&self, outcome: Result<(), Fault>) {
        self.node.polled(outcome, Instant::now());
    }

    fn saw_head(&self, head: BlockId) {
        self.node.known().set_head(head);
    }

    fn set_lowest_state(&self, number: u64) {
        self.node.known().set_lowest_state(number);
    }

    fn saw_version(&self, version: &str) {
        self.node.known().set_client_version(version.to_owned());
    }

    fn leave_out(&self, reason: &LeftOut) {
        self.node.known().leave_out(reason.clone());
    }

    fn welcome(&self) {
        let known = self.node.known();
        known.welcome();
        // It may have become another version meanwhile. What it refuses now is learned again.
        known.forget_lacks();
    }

    fn hints(&self) -> Option<watch::Receiver<Option<Hint>>> {
        self.heads.clone().map(heads)
    }
}
