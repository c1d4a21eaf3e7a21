//! Calls to a node, its replies and its faults.

use std::future::Future;

use alloy_primitives::B256;
use bytes::Bytes;
use http1_framing::FramingError;
use resources::AccountId;
use tokio::time::Instant;

use crate::trace_context::TraceContext;

/// A block by number and hash.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct BlockId {
    pub number: u64,
    pub hash: B256,
}

/// A call as it is sent to a node. The transport adds the id.
#[derive(Clone, Debug)]
pub struct RpcCall {
    pub method: &'static str,
    /// A JSON array, written by the gateway: bytes of callers never reach a node.
    pub params: Bytes,
    pub class: Class,
    pub needs: Needs,
    /// Whether a second node may be asked before the first has answered.
    pub may_hedge: bool,
    /// In whose share of the connections to a node it is sent.
    pub account: AccountId,
    /// The block that the parameters name by its hash.
    pub block_by_hash: Option<BlockId>,
    /// The trace that the node is told; set when an attempt begins.
    pub trace: Option<TraceContext>,
}

impl RpcCall {
    /// The same call with the number of its block in place of the hash, for nodes that take no hash in this method.
    pub(crate) fn by_number(&self) -> Option<(Self, BlockId)> {
        let block = self.block_by_hash?;
        let params = std::str::from_utf8(&self.params).ok()?;
        let (hash, number) = (format!("\"{}\"", block.hash), format!("\"{:#x}\"", block.number));
        let object = format!(r#"{{"blockHash":{hash}}}"#);
        let named = if params.contains(&object) { object } else { hash };
        let params = params.replacen(&named, &number, 1).into();
        Some((Self { params, block_by_hash: None, ..self.clone() }, block))
    }

    /// The same call, sent for this account.
    pub fn for_account(self, account: AccountId) -> Self {
        Self { account, ..self }
    }
}

/// Calls of one class take about the same time. Latencies are recorded by class, so that a slow call never counts against quick ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Class {
    /// Look-ups and state reads. They may always be batched.
    Quick,
    /// Simulations.
    Evm,
    /// Log queries.
    Logs,
    /// Whole blocks and their receipts.
    Bulk,
}

impl Class {
    pub const ALL: [Self; 4] = [Self::Quick, Self::Evm, Self::Logs, Self::Bulk];
}

/// The capabilities that a call needs of a node.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Needs {
    /// The newest block that the call is about. Nodes whose head is below it are not asked.
    pub block: Option<u64>,
    /// Whether the state of that block is needed, which many nodes drop after a while.
    pub state: bool,
    /// Blocks that a log query spans, down from `block`. Nodes that are known to search fewer at once, or to lack the lowest one,
    /// are not asked.
    pub log_blocks: u64,
    /// The gas that the call names. Nodes that are known to grant less are not asked.
    pub gas: u64,
}

impl Needs {
    /// The block whose state is needed.
    pub(crate) fn state_block(&self) -> Option<u64> {
        self.block.filter(|_| self.state)
    }

    /// The lowest block whose logs are needed.
    pub(crate) fn logs_from(&self) -> Option<u64> {
        let blocks_below = self.log_blocks.checked_sub(1)?;
        self.block.map(|newest| newest.saturating_sub(blocks_below))
    }
}

/// A node's reply to a call, matched by its id.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RpcReply {
    /// The result, as the node wrote it. A large one may turn out to be no JSON when it is read.
    Result(Bytes),
    Error(RpcError),
}

/// A node's error in its own words. Only the dialect reads it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RpcError {
    pub code: i64,
    pub message: String,
    /// JSON text.
    pub data: Option<Bytes>,
}

/// The client of a node, or a scripted node in a test.
pub trait Ask: Send + Sync + 'static {
    /// Sends a call, and waits for the reply until the deadline. If the future is dropped, a call that is still queued is not
    /// sent; one that was sent is given up after half a second, unless its reply has come or others wait for the same exchange.
    fn ask(&self, call: &RpcCall, deadline: Instant) -> impl Future<Output = Result<RpcReply, Fault>> + Send;
}

/// Why there is no usable reply. All of these except those of [`Self::is_our_shortage`] are faults of the node or the network.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
pub enum Fault {
    #[error("cannot connect")]
    Connect,
    #[error("no connection in time")]
    ConnectTimeout,
    #[error("its host name cannot be resolved")]
    Dns,
    #[error("{0}")]
    Tls(TlsFailure),
    #[error("the connection ended before the reply")]
    Closed,
    #[error("no reply in time")]
    Timeout,
    #[error("the reply is larger than allowed")]
    TooLarge,
    /// The account has as many calls waiting for a connection as it may. The node is not blamed.
    #[error("too many calls of the same account wait for the node")]
    QueueFull,
    /// Our own memory is short. The node is not blamed.
    #[error("no memory was free for the reply")]
    NoMemory,
    /// The reply is larger than the share of memory that one node may use. The node is not blamed.
    #[error("the reply is larger than what one node may use of reply_memory_bytes")]
    LargerThanMemory,
    /// An HTTP status other than 200 without a JSON-RPC reply in its body.
    #[error("HTTP status {0}")]
    Status(u16),
    /// The node returned an error that is its own fault.
    #[error("the node returned an error of its own")]
    Refused,
    #[error("too many requests")]
    RateLimited,
    #[error("the reply is not JSON-RPC")]
    Garbled,
    #[error("the reply has another id")]
    WrongId,
    /// The reply is well-formed but cannot be true.
    #[error("the answer is wrong")]
    Wrong,
}

impl Fault {
    /// Whether our memory or our connections are short, and nothing is wrong with the node.
    pub(crate) fn is_our_shortage(self) -> bool {
        matches!(self, Self::QueueFull | Self::NoMemory | Self::LargerThanMemory)
    }

    /// Whether the same call may succeed a moment later.
    pub(crate) fn may_be_temporary(self) -> bool {
        matches!(self, Self::Status(_) | Self::RateLimited | Self::Garbled | Self::Closed)
    }
}

impl From<FramingError> for Fault {
    fn from(error: FramingError) -> Self {
        match error {
            FramingError::Ambiguous | FramingError::LinesTooLong => Self::Garbled,
        }
    }
}

/// Why a connection could not be made secure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
pub enum TlsFailure {
    #[error("its certificate is not from an authority that this machine trusts")]
    UnknownIssuer,
    #[error("its certificate is for another host name")]
    OtherName,
    #[error("its certificate has expired")]
    Expired,
    #[error("its certificate is not valid yet")]
    NotYetValid,
    #[error("its certificate is not valid")]
    BadCertificate,
    #[error("it does not speak TLS")]
    NoTls,
    #[error("the TLS handshake failed")]
    Handshake,
}
