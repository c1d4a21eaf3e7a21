//! A call that waits to be sent or to be answered.

use bytes::Bytes;
use resources::AccountId;
use tokio::sync::oneshot;
use tokio::time::Instant;

use crate::call::{Fault, RpcCall, RpcReply};
use crate::trace_context::TraceContext;

/// Bytes of a call beyond its method and params.
const CALL_BYTES: usize = 64;

/// A call that waits for its turn or its reply.
#[derive(Debug)]
pub(super) struct PendingCall {
    pub(super) method: &'static str,
    pub(super) params: Bytes,
    pub(super) deadline: Instant,
    pub(super) account: AccountId,
    pub(super) trace: Option<TraceContext>,
    caller: oneshot::Sender<Result<RpcReply, Fault>>,
}

impl PendingCall {
    pub(super) fn new(
        call: &RpcCall,
        deadline: Instant,
    ) -> (Self, oneshot::Receiver<Result<RpcReply, Fault>>) {
        let (caller, reply) = oneshot::channel();
        let RpcCall { method, account, trace, .. } = *call;
        (Self { method, params: call.params.clone(), deadline, account, trace, caller }, reply)
    }

    /// Sends the reply to the caller, if it is still waiting.
    pub(super) fn answer(self, reply: Result<RpcReply, Fault>) {
        let _ = self.caller.send(reply);
    }

    pub(super) fn is_abandoned(&self) -> bool {
        self.caller.is_closed()
    }

    /// Waits until the caller does not wait any more.
    pub(super) async fn abandoned(&mut self) {
        self.caller.closed().await;
    }

    pub(super) fn bytes(&self) -> usize {
        self.method.len() + self.params.len() + CALL_BYTES
    }
}
