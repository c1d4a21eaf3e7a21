//! The calls of a watcher, and how their replies are read.

use std::time::Duration;

use alloy_primitives::{B256, U64};
use bytes::Bytes;
use resources::AccountId;
use serde::de::DeserializeOwned;
use tokio::time::{Instant, sleep};

use super::Watched;
use super::header::{self, HeaderCheck};
use crate::attempt::{self, ErrorMeaning};
use crate::call::{Ask, Class, Fault, Needs, RpcCall, RpcReply};
use crate::view::SeenBlock;

/// Error codes of nodes and providers for too many requests.
const RATE_LIMIT_CODES: [i64; 3] = [429, -32005, -32029];

/// How often a node that returns an error is asked for block 0.
const GENESIS_ATTEMPTS_MAX: u32 = 3;
/// Pause before a node is asked for block 0 again.
const GENESIS_ASKED_AGAIN_AFTER: Duration = Duration::from_millis(200);

/// Which block is asked for.
#[derive(Clone, Copy, Debug)]
pub(super) enum BlockSelector {
    Latest,
    Safe,
    Finalized,
    Number(u64),
    Hash(B256),
}

impl BlockSelector {
    fn call(self) -> RpcCall {
        let by_number = |block: &str| watcher_call("eth_getBlockByNumber", format!(r#"["{block}",false]"#));
        match self {
            Self::Latest => by_number("latest"),
            Self::Safe => by_number("safe"),
            Self::Finalized => by_number("finalized"),
            Self::Number(number) => by_number(&format!("{number:#x}")),
            Self::Hash(hash) => watcher_call("eth_getBlockByHash", format!(r#"["{hash}",false]"#)),
        }
    }

    /// Whether this is the block that was asked for.
    fn is(self, block: &SeenBlock) -> bool {
        match self {
            Self::Number(number) => block.id.number == number,
            Self::Hash(hash) => block.id.hash == hash,
            Self::Latest | Self::Safe | Self::Finalized => true,
        }
    }
}

/// The calls to one node.
#[derive(Debug)]
pub(super) struct Questions<'a, W> {
    pub(super) node: &'a W,
    pub(super) timeout: Duration,
    pub(super) headers: &'a HeaderCheck,
}

impl<W: Watched> Questions<'_, W> {
    pub(super) async fn chain_id(&self) -> Result<u64, Fault> {
        let result = self.result(watcher_call("eth_chainId", "[]".to_owned())).await?;
        read::<U64>(&result).map(|id| id.to())
    }

    /// Whether the node is syncing. A node that does not know the method is not.
    pub(super) async fn is_syncing(&self) -> Result<bool, Fault> {
        let reply = self.reply(watcher_call("eth_syncing", "[]".to_owned())).await?;
        Ok(matches!(reply, RpcReply::Result(result) if result.first() == Some(&b'{')))
    }

    /// The hash of block 0, which some nodes have dropped. Its header is not checked, because not all chains started with one of the
    /// usual form.
    pub(super) async fn genesis(&self) -> Result<Option<B256>, Fault> {
        let Some(result) = self.genesis_reply().await? else { return Ok(None) };
        let block = header::read(&result)?;
        if block.as_ref().is_some_and(|block| block.id.number != 0) {
            return Err(Fault::Wrong);
        }
        Ok(block.map(|block| block.id.hash))
    }

    /// The reply to the request for block 0. It is repeated after an error, which may be temporary: without an answer, the node has no
    /// say about block 0 until it is asked for its identity again.
    async fn genesis_reply(&self) -> Result<Option<Bytes>, Fault> {
        for attempt in 1..=GENESIS_ATTEMPTS_MAX {
            match self.reply(BlockSelector::Number(0).call()).await? {
                RpcReply::Result(result) => return Ok(Some(result)),
                RpcReply::Error(_) if attempt < GENESIS_ATTEMPTS_MAX => {
                    sleep(GENESIS_ASKED_AGAIN_AFTER).await;
                }
                RpcReply::Error(_) => {}
            }
        }
        Ok(None)
    }

    /// A block, or `None` if the node does not have it. An error is a fault.
    pub(super) async fn block(&self, which: BlockSelector) -> Result<Option<SeenBlock>, Fault> {
        let result = self.result(which.call()).await?;
        self.checked(which, &result)
    }

    /// A block, or `None` if the node does not have it or returns an error.
    pub(super) async fn block_if_known(&self, which: BlockSelector) -> Result<Option<SeenBlock>, Fault> {
        match self.reply(which.call()).await? {
            RpcReply::Result(result) => self.checked(which, &result),
            RpcReply::Error(_) => Ok(None),
        }
    }

    /// Whether the node has the state after a block. Any error means that it does not, except one about too many requests.
    pub(super) async fn has_state(&self, number: u64) -> Result<bool, Fault> {
        let params = format!(r#"["0x0000000000000000000000000000000000000000","{number:#x}"]"#);
        let call = watcher_call("eth_getBalance", params);
        match self.reply(call.clone()).await? {
            RpcReply::Result(balance) if balance.starts_with(b"\"0x") => Ok(true),
            RpcReply::Result(_) => Err(Fault::Garbled),
            RpcReply::Error(error) => match attempt::read(&error, &call) {
                ErrorMeaning::Node(Fault::RateLimited) => Err(Fault::RateLimited),
                _ => Ok(false),
            },
        }
    }

    fn checked(&self, which: BlockSelector, json: &[u8]) -> Result<Option<SeenBlock>, Fault> {
        let Some(block) = header::read(json)? else { return Ok(None) };
        let is_valid = which.is(&block) && self.headers.accepts(json, &block);
        if is_valid { Ok(Some(header::without_long_lists(block))) } else { Err(Fault::Wrong) }
    }

    async fn result(&self, call: RpcCall) -> Result<Bytes, Fault> {
        match self.reply(call).await? {
            RpcReply::Result(result) => Ok(result),
            RpcReply::Error(error) if RATE_LIMIT_CODES.contains(&error.code) => Err(Fault::RateLimited),
            // Every node must be able to answer these calls.
            RpcReply::Error(_) => Err(Fault::Refused),
        }
    }

    async fn reply(&self, call: RpcCall) -> Result<RpcReply, Fault> {
        self.node.record_question();
        let reply = self.node.client().ask(&call, Instant::now() + self.timeout).await;
        if reply.is_ok() {
            self.node.record_reply();
        }
        reply
    }
}

fn watcher_call(method: &'static str, params: String) -> RpcCall {
    let params = Bytes::from(params);
    let (class, needs, account) = (Class::Quick, Needs::default(), AccountId::GATEWAY);
    RpcCall { method, params, class, needs, may_hedge: false, account }
}

fn read<T: DeserializeOwned>(json: &[u8]) -> Result<T, Fault> {
    serde_json::from_slice(json).map_err(|_| Fault::Garbled)
}
