//! The question to a node: one call, or several that the same node must answer.

use std::pin::Pin;
use std::sync::Arc;

use bytes::Bytes;
use futures_util::future::join_all;
use tokio::time::Instant;

use super::policy::CALLS_AT_ONCE_MAX;
use crate::call::{Ask, Fault, RpcCall, RpcError, RpcReply};
use crate::node::Node;

pub(crate) type AttemptFuture<'a, R> =
    Pin<Box<dyn Future<Output = Result<PayloadReply<'a, R>, Fault>> + Send + 'a>>;

/// The reply of a node to a payload.
pub(crate) enum PayloadReply<'a, R> {
    Results(R),
    /// The first error, and the call that it is about.
    Error(RpcError, &'a RpcCall),
}

/// The question to a node.
pub(crate) trait Payload: Sync {
    type Results: Send;

    /// The call that stands for all, where a node is chosen and timed.
    fn call(&self) -> &RpcCall;
    /// How many calls there are.
    fn calls(&self) -> usize;
    /// Whether results are a null or an empty list.
    fn is_nothing(results: &Self::Results) -> bool;
    fn ask<'a, A: Ask>(&'a self, node: Arc<Node<A>>, deadline: Instant) -> AttemptFuture<'a, Self::Results>;
}

impl Payload for RpcCall {
    type Results = Bytes;

    fn call(&self) -> &RpcCall {
        self
    }

    fn calls(&self) -> usize {
        1
    }

    fn is_nothing(result: &Bytes) -> bool {
        matches!(result.trim_ascii(), b"null" | b"[]")
    }

    fn ask<'a, A: Ask>(&'a self, node: Arc<Node<A>>, deadline: Instant) -> AttemptFuture<'a, Bytes> {
        Box::pin(async move {
            Ok(match node.ask(self, deadline).await? {
                RpcReply::Result(result) => PayloadReply::Results(result),
                RpcReply::Error(error) => PayloadReply::Error(error, self),
            })
        })
    }
}

/// Several calls, of which there is at least one.
pub(crate) struct Calls<'c> {
    first: &'c RpcCall,
    all: &'c [RpcCall],
}

impl<'c> Calls<'c> {
    pub(crate) fn new(all: &'c [RpcCall]) -> Option<Self> {
        Some(Self { first: all.first()?, all })
    }
}

impl Payload for Calls<'_> {
    type Results = Vec<Bytes>;

    fn call(&self) -> &RpcCall {
        self.first
    }

    fn calls(&self) -> usize {
        self.all.len()
    }

    fn is_nothing(_: &Vec<Bytes>) -> bool {
        false
    }

    fn ask<'a, A: Ask>(&'a self, node: Arc<Node<A>>, deadline: Instant) -> AttemptFuture<'a, Vec<Bytes>> {
        Box::pin(async move {
            let mut results = Vec::with_capacity(self.all.len());
            for calls in self.all.chunks(CALLS_AT_ONCE_MAX) {
                let replies = join_all(calls.iter().map(|call| node.ask(call, deadline))).await;
                for (reply, call) in replies.into_iter().zip(calls) {
                    match reply? {
                        RpcReply::Result(result) => results.push(result),
                        RpcReply::Error(error) => return Ok(PayloadReply::Error(error, call)),
                    }
                }
            }
            Ok(PayloadReply::Results(results))
        })
    }
}
