//! The calls of a watcher, and how their replies are read.

use std::time::Duration;

use alloy_primitives::{Address, B256, U64, U256};
use bytes::Bytes;
use resources::AccountId;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};

use super::chain::Identity;
use super::header::{self, HeaderCheck, ReportedBlockFault};
use super::{ExclusionReason, Watched};
use crate::call::{Ask, BlockId, Class, Fault, Needs, RpcCall, RpcReply};
use crate::node_fault::NodeFault;
use crate::scheduler::{self, ErrorMeaning};
use crate::view::SeenBlock;

/// Error codes of nodes and providers for too many requests.
const RATE_LIMIT_CODES: [i64; 3] = [429, -32005, -32029];

/// How often a node that returns an error is asked for block 0.
const GENESIS_ATTEMPTS_MAX: u32 = 3;
/// Pause before a node is asked for block 0 again.
const GENESIS_ASKED_AGAIN_AFTER: Duration = Duration::from_millis(200);

/// The most characters of a client version that are kept.
const CLIENT_VERSION_MAX: usize = 100;

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

    /// A fault of the answer about this block.
    fn fault(self, ReportedBlockFault { kind, problem }: ReportedBlockFault) -> NodeFault {
        let block = match self {
            Self::Latest => "latest".to_owned(),
            Self::Safe => "safe".to_owned(),
            Self::Finalized => "finalized".to_owned(),
            Self::Number(number) => format!("{number:#x}"),
            Self::Hash(hash) => hash.to_string(),
        };
        NodeFault::of_answer(kind, self.call().method, Some(block), problem)
    }
}

/// The calls to one node.
#[derive(Debug)]
pub(super) struct Questions<'a, W> {
    pub(super) node: &'a W,
    pub(super) timeout: Duration,
    pub(super) headers: &'a HeaderCheck,
    /// Whether a node that does not answer seems to be away. Look-ups of old data may take long.
    pub(super) shows_presence: bool,
}

/// The statements of a node about itself before it is followed or asked.
pub(super) struct NodeIntroduction {
    pub(super) identity: Identity,
    pub(super) is_syncing: bool,
    pub(super) other_checkpoint: Option<ExclusionReason>,
}

impl<W: Watched> Questions<'_, W> {
    pub(super) async fn introduction(
        &self,
        checkpoint: Option<BlockId>,
    ) -> Result<NodeIntroduction, NodeFault> {
        let (chain_id, is_syncing, genesis) =
            tokio::try_join!(self.chain_id(), self.is_syncing(), self.genesis())?;
        let other_checkpoint = self.other_checkpoint(checkpoint).await?;
        Ok(NodeIntroduction { identity: Identity { chain_id, genesis }, is_syncing, other_checkpoint })
    }

    /// The same of a partner, each of whose answers costs money.
    pub(super) async fn partner_introduction(
        &self,
        checkpoint: Option<BlockId>,
    ) -> Result<NodeIntroduction, NodeFault> {
        let identity = Identity { chain_id: self.chain_id().await?, genesis: None };
        let other_checkpoint = self.other_checkpoint(checkpoint).await?;
        Ok(NodeIntroduction { identity, is_syncing: false, other_checkpoint })
    }

    pub(super) async fn chain_id(&self) -> Result<u64, NodeFault> {
        let result = self.result(watcher_call("eth_chainId", "[]".to_owned())).await?;
        let id = serde_json::from_slice::<U64>(&result);
        let malformed = |_| NodeFault::of_answer(Fault::Garbled, "eth_chainId", None, "it is not a number");
        id.map(|id| id.to()).map_err(malformed)
    }

    /// The name that the node gives itself, with its version: printable characters, and not many. Not all nodes say it.
    pub(super) async fn client_version(&self) -> Result<Option<String>, NodeFault> {
        let reply = self.reply(watcher_call("web3_clientVersion", "[]".to_owned())).await?;
        let RpcReply::Result(result) = reply else { return Ok(None) };
        let version: Option<String> = serde_json::from_slice(&result).ok();
        let printable = |version: String| {
            version.chars().filter(|c| c.is_ascii_graphic() || *c == ' ').take(CLIENT_VERSION_MAX).collect()
        };
        Ok(version.map(printable))
    }

    /// Whether the node is syncing. A node that does not know the method is not.
    pub(super) async fn is_syncing(&self) -> Result<bool, NodeFault> {
        let reply = self.reply(watcher_call("eth_syncing", "[]".to_owned())).await?;
        Ok(matches!(reply, RpcReply::Result(result) if result.first() == Some(&b'{')))
    }

    /// The hash of block 0, which some nodes have dropped. Its header is not checked, because not all chains started with one of the
    /// usual form.
    pub(super) async fn genesis(&self) -> Result<Option<B256>, NodeFault> {
        let Some(result) = self.genesis_reply().await? else { return Ok(None) };
        let first = BlockSelector::Number(0);
        let block = header::read(&result).map_err(|fault| first.fault(fault))?;
        if block.as_ref().is_some_and(|block| !first.is(block)) {
            return Err(first.fault(ReportedBlockFault::other_block()));
        }
        Ok(block.map(|block| block.id.hash))
    }

    /// The reply to the request for block 0. It is repeated after an error, which may be temporary: without an answer, the node has no
    /// say about block 0 until it is asked for its identity again.
    async fn genesis_reply(&self) -> Result<Option<Bytes>, NodeFault> {
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
    pub(super) async fn block(&self, which: BlockSelector) -> Result<Option<SeenBlock>, NodeFault> {
        let result = self.result(which.call()).await?;
        self.checked(which, &result)
    }

    /// A block, or `None` if the node does not have it or returns an error.
    pub(super) async fn block_if_known(&self, which: BlockSelector) -> Result<Option<SeenBlock>, NodeFault> {
        match self.reply(which.call()).await? {
            RpcReply::Result(result) => self.checked(which, &result),
            RpcReply::Error(_) => Ok(None),
        }
    }

    /// Whether the node has another block of the checkpoint's number. A node without that block may have dropped it.
    pub(super) async fn other_checkpoint(
        &self,
        ours: Option<BlockId>,
    ) -> Result<Option<ExclusionReason>, NodeFault> {
        let Some(ours) = ours else { return Ok(None) };
        let theirs = self.block_if_known(BlockSelector::Number(ours.number)).await?;
        let theirs = theirs.map(|block| block.id.hash).filter(|theirs| *theirs != ours.hash);
        Ok(theirs.map(|theirs| ExclusionReason::OtherCheckpoint { theirs, ours }))
    }

    /// Whether the node has the state after a block. Any error means that it does not, except one about too many requests. Some
    /// nodes (Besu) return zero for what they have dropped, so the nonce of whoever sent a transaction in this block or below must
    /// be above that of the transaction. Without one, any answer counts.
    pub(super) async fn has_state(
        &self,
        number: u64,
        sent: Option<&SentTransaction>,
    ) -> Result<bool, NodeFault> {
        let block = Value::from(format!("{number:#x}"));
        let (method, account) = match sent {
            Some(sent) => ("eth_getTransactionCount", sent.from),
            None => ("eth_getBalance", Address::ZERO),
        };
        let call = watcher_call(method, json!([account, block]).to_string());
        match self.reply(call.clone()).await? {
            RpcReply::Result(value) => {
                let block = Some(format!("{number:#x}"));
                let value: U256 = read(&value)
                    .map_err(|fault| NodeFault::of_answer(fault, call.method, block, "it is not a number"))?;
                // It may be higher by more, because code of the account may have created contracts.
                Ok(sent.is_none_or(|sent| value > sent.nonce))
            }
            RpcReply::Error(error) => match scheduler::read(&error, &call) {
                ErrorMeaning::Node(Fault::RateLimited) => Err(Fault::RateLimited.into()),
                _ => Ok(false),
            },
        }
    }

    /// The last transaction of a block. `None` if there is none, the node does not show it, or its sender does not count it.
    pub(super) async fn last_transaction(&self, number: u64) -> Result<Option<SentTransaction>, NodeFault> {
        let Some(block) = self.block_if_known(BlockSelector::Number(number)).await? else { return Ok(None) };
        let Some(index) = block.reported.transactions().len().checked_sub(1) else { return Ok(None) };
        let params = json!([block.id.hash, format!("{index:#x}")]).to_string();
        let call = watcher_call("eth_getTransactionByBlockHashAndIndex", params);
        let method = call.method;
        match self.reply(call).await? {
            RpcReply::Result(transaction) => {
                let transaction: Option<SentTransaction> = read(&transaction).map_err(|fault| {
                    let block = Some(format!("{number:#x}"));
                    NodeFault::of_answer(fault, method, block, "it is not a transaction")
                })?;
                Ok(transaction.filter(SentTransaction::is_counted))
            }
            RpcReply::Error(_) => Ok(None),
        }
    }

    fn checked(&self, which: BlockSelector, json: &[u8]) -> Result<Option<SeenBlock>, NodeFault> {
        let checked = || {
            let Some(block) = header::read(json)? else { return Ok(None) };
            if !which.is(&block) {
                return Err(ReportedBlockFault::other_block());
            }
            self.headers.check(json, &block).map(|()| Some(header::without_long_lists(block)))
        };
        checked().map_err(|fault| which.fault(fault))
    }

    async fn result(&self, call: RpcCall) -> Result<Bytes, NodeFault> {
        let method = call.method;
        match self.reply(call).await? {
            RpcReply::Result(result) => Ok(result),
            RpcReply::Error(error) if RATE_LIMIT_CODES.contains(&error.code) => {
                Err(Fault::RateLimited.into())
            }
            // Every node must be able to answer these calls.
            RpcReply::Error(_) => Err(NodeFault::of_answer(Fault::Refused, method, None, "it is an error")),
        }
    }

    pub(super) async fn reply(&self, call: RpcCall) -> Result<RpcReply, NodeFault> {
        // Calls of another class are sent apart, so that no poll shares a batch with a look-up of old data.
        let class = if self.shows_presence { call.class } else { Class::Bulk };
        let call = RpcCall { class, ..call };
        if self.shows_presence {
            self.node.record_question();
        }
        let reply = self.node.client().ask(&call, Instant::now() + self.timeout).await;
        match (&reply, self.shows_presence) {
            (Ok(_), true) => self.node.record_reply(),
            (Ok(_), false) => self.node.record_late_reply(),
            (Err(_), _) => {}
        }
        Ok(reply?)
    }
}

/// Who sent a transaction, and with which nonce.
#[derive(Debug, Deserialize)]
pub(super) struct SentTransaction {
    from: Address,
    nonce: U256,
    #[serde(default, rename = "type")]
    kind: U64,
    #[serde(default)]
    r: U256,
}

/// The highest type of transactions whose senders count them. Layer 2 chains use higher ones for transactions of their own.
const COUNTED_TYPE_MAX: U64 = U64::from_limbs([4]);

impl SentTransaction {
    /// Whether it was signed by its sender, whose nonce it has raised.
    fn is_counted(&self) -> bool {
        self.kind <= COUNTED_TYPE_MAX && !self.r.is_zero()
    }
}

pub(super) fn watcher_call(method: &'static str, params: String) -> RpcCall {
    let params = Bytes::from(params);
    let (class, needs, account) = (Class::Quick, Needs::default(), AccountId::GATEWAY);
    RpcCall { method, params, class, needs, may_hedge: false, account, block_by_hash: None, trace: None }
}

pub(super) fn read<T: DeserializeOwned>(json: &[u8]) -> Result<T, Fault> {
    serde_json::from_slice(json).map_err(|_| Fault::Garbled)
}
