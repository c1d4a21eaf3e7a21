//! A call on its way, and whoever waits for what comes of it.

use bytes::Bytes;
use tokio::sync::oneshot;
use tokio::time::Instant;

use crate::call::{Call, Fault, Reply};

/// What a call costs in bytes beyond its method and params.
const CALL_BYTES: usize = 64;

/// A call that waits for its turn or its reply.
#[derive(Debug)]
pub(super) struct Waiting {
    pub(super) method: &'static str,
    pub(super) params: Bytes,
    pub(super) deadline: Instant,
    caller: oneshot::Sender<Result<Reply, Fault>>,
}

impl Waiting {
    pub(super) fn new(call: &Call, deadline: Instant) -> (Self, oneshot::Receiver<Result<Reply, Fault>>) {
        let (caller, reply) = oneshot::channel();
        (Self { method: call.method, params: call.params.clone(), deadline, caller }, reply)
    }

    /// Nobody hears it when the caller has gone; that is fine.
    pub(super) fn answer(self, reply: Result<Reply, Fault>) {
        let _ = self.caller.send(reply);
    }

    pub(super) fn is_abandoned(&self) -> bool {
        self.caller.is_closed()
    }

    pub(super) fn bytes(&self) -> usize {
        self.method.len() + self.params.len() + CALL_BYTES
    }
}
