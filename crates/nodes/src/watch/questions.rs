//! What a watcher asks, and how the replies are read.

use std::time::Duration;

use alloy_primitives::{B256, U64};
use bytes::Bytes;
use serde::de::DeserializeOwned;
use tokio::time::{Instant, sleep};

use super::Watched;
use super::header::{self, HeaderCheck};
use crate::attempt::{self, ErrorMeaning};
use crate::view::SeenBlock;
use crate::{Ask, Call, Class, Fault, Needs, Reply};

/// A node's name for itself is cut to this: it goes to the log and to metrics.
const VERSION_CHARS_MAX: usize = 128;

/// Codes by which nodes and providers say that there were too many requests.
const RATE_LIMIT_CODES: [i64; 3] = [429, -32005, -32029];

/// How often a node is asked for block 0 that answers with an error,
const GENESIS_ATTEMPTS_MAX: u32 = 3;
/// and the pause before it is asked again.
const GENESIS_ASKED_AGAIN_AFTER: Duration = Duration::from_millis(200);

/// Which block.
#[derive(Clone, Copy, Debug)]
pub(super) enum Which {
    Latest,
    Safe,
    Finalized,
    Number(u64),
    Hash(B256),
}

impl Which {
    fn call(self) -> Call {
        let by_number = |block: &str| plain("eth_getBlockByNumber", format!(r#"["{block}",false]"#));
        match self {
            Self::Latest => by_number("latest"),
            Self::Safe => by_number("safe"),
            Self::Finalized => by_number("finalized"),
            Self::Number(number) => by_number(&format!("{number:#x}")),
            Self::Hash(hash) => plain("eth_getBlockByHash", format!(r#"["{hash}",false]"#)),
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

/// The questions to one node.
#[derive(Debug)]
pub(super) struct Questions<'a, W> {
    pub(super) node: &'a W,
    pub(super) timeout: Duration,
    pub(super) headers: &'a HeaderCheck,
}

impl<W: Watched> Questions<'_, W> {
    pub(super) async fn chain_id(&self) -> Result<u64, Fault> {
        let result = self.result(plain("eth_chainId", "[]".to_owned())).await?;
        read::<U64>(&result).map(|id| id.to())
    }

    /// Nodes that do not know the question are not syncing.
    pub(super) async fn is_syncing(&self) -> Result<bool, Fault> {
        let reply = self.reply(plain("eth_syncing", "[]".to_owned())).await?;
        Ok(matches!(reply, Reply::Result(result) if result.first() == Some(&b'{')))
    }

    pub(super) async fn version(&self) -> Result<Option<String>, Fault> {
        let reply = self.reply(plain("web3_clientVersion", "[]".to_owned())).await?;
        let Reply::Result(result) = reply else { return Ok(None) };
        let version: Option<String> = serde_json::from_slice(&result).ok();
        Ok(version.map(|version| version.chars().take(VERSION_CHARS_MAX).collect()))
    }

    /// The hash of block 0, which some nodes have dropped. Its header is not checked: not all chains began with one
    /// that is of the form of the others.
    pub(super) async fn genesis(&self) -> Result<Option<B256>, Fault> {
        let Some(result) = self.genesis_reply().await? else { return Ok(None) };
        let block = header::read(&result)?;
        if block.as_ref().is_some_and(|block| block.id.number != 0) {
            return Err(Fault::Wrong);
        }
        Ok(block.map(|block| block.id.hash))
    }

    /// What it says of block 0, which it is asked again after an error: that may be a moment's trouble, and without an answer the
    /// node has no say about block 0 until it is greeted again.
    async fn genesis_reply(&self) -> Result<Option<Bytes>, Fault> {
        for attempt in 1..=GENESIS_ATTEMPTS_MAX {
            match self.reply(Which::Number(0).call()).await? {
                Reply::Result(result) => return Ok(Some(result)),
                Reply::Error(_) if attempt < GENESIS_ATTEMPTS_MAX => sleep(GENESIS_ASKED_AGAIN_AFTER).await,
                Reply::Error(_) => {}
            }
        }
        Ok(None)
    }

    /// A block, or `None` if the node does not have it. An error is a fault here: a node must know its blocks.
    pub(super) async fn block(&self, which: Which) -> Result<Option<SeenBlock>, Fault> {
        let result = self.result(which.call()).await?;
        self.checked(which, &result)
    }

    /// A block that the node may not know of: `None` also when it refuses.
    pub(super) async fn block_if_known(&self, which: Which) -> Result<Option<SeenBlock>, Fault> {
        match self.reply(which.call()).await? {
            Reply::Result(result) => self.checked(which, &result),
            Reply::Error(_) => Ok(None),
        }
    }

    /// Whether the node has the state after a block. Whatever it says instead of a balance, it does not, unless it wants fewer calls:
    /// that says nothing about its states.
    pub(super) async fn has_state(&self, number: u64) -> Result<bool, Fault> {
        let params = format!(r#"["0x0000000000000000000000000000000000000000","{number:#x}"]"#);
        let call = plain("eth_getBalance", params);
        match self.reply(call.clone()).await? {
            Reply::Result(balance) if balance.starts_with(b"\"0x") => Ok(true),
            Reply::Result(_) => Err(Fault::Garbled),
            Reply::Error(error) => match attempt::read(&error, &call) {
                ErrorMeaning::Node(Fault::RateLimited) => Err(Fault::RateLimited),
                _ => Ok(false),
            },
        }
    }

    fn checked(&self, which: Which, json: &[u8]) -> Result<Option<SeenBlock>, Fault> {
        let Some(block) = header::read(json)? else { return Ok(None) };
        let believed = which.is(&block) && self.headers.believes(json, &block);
        if believed { Ok(Some(header::without_long_lists(block))) } else { Err(Fault::Wrong) }
    }

    async fn result(&self, call: Call) -> Result<Bytes, Fault> {
        match self.reply(call).await? {
            Reply::Result(result) => Ok(result),
            Reply::Error(error) if RATE_LIMIT_CODES.contains(&error.code) => Err(Fault::RateLimited),
            // An error is no answer to a question that every node can answer.
            Reply::Error(_) => Err(Fault::Refused),
        }
    }

    async fn reply(&self, call: Call) -> Result<Reply, Fault> {
        self.node.is_asked();
        let reply = self.node.ask().ask(&call, Instant::now() + self.timeout).await;
        if reply.is_ok() {
            self.node.has_replied();
        }
        reply
    }
}

fn plain(method: &'static str, params: String) -> Call {
    let params = Bytes::from(params);
    Call { method, params, class: Class::Quick, needs: Needs::default(), may_hedge: false }
}

fn read<T: DeserializeOwned>(json: &[u8]) -> Result<T, Fault> {
    serde_json::from_slice(json).map_err(|_| Fault::Garbled)
}
