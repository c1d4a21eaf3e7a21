//! What is asked of a node, and what it says.

use std::future::Future;

use alloy_primitives::B256;
use bytes::Bytes;
use tokio::time::Instant;

/// A block by number and hash.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct BlockId {
    pub number: u64,
    pub hash: B256,
}

/// A call as it goes to a node. Its id is the transport's affair.
#[derive(Clone, Debug)]
pub struct Call {
    pub method: &'static str,
    /// A JSON array, written by us: a caller's bytes never reach a node.
    pub params: Bytes,
    pub class: Class,
    pub needs: Needs,
    /// Whether a second node may be asked while the first is still at it.
    pub may_hedge: bool,
}

/// Calls of one class take about the same time; their latencies are kept apart from those of other classes, and a
/// slow one never counts against the quick ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Class {
    /// Look-ups and state reads. Those that wait for the same node may travel together.
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

    pub fn name(self) -> &'static str {
        match self {
            Self::Quick => "quick",
            Self::Evm => "evm",
            Self::Logs => "logs",
            Self::Bulk => "bulk",
        }
    }
}

/// What a node must have to be asked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Needs {
    /// The newest block that the call is about. Nodes whose head is below it are not asked.
    pub block: Option<u64>,
    /// Whether the state of that block is needed, which many nodes drop after a while.
    pub state: bool,
    /// Blocks that a log query spans. Nodes that are known to search fewer at once are not asked.
    pub log_blocks: u64,
}

/// What a node said, once it is certain that it is the reply to this call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reply {
    /// The result, as the node wrote it. A large one may turn out to be no JSON, which whoever reads it finds out.
    Result(Bytes),
    Error(RpcError),
}

/// A node's error, in its own words. They go to the dialect, and to nobody else.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RpcError {
    pub code: i64,
    pub message: String,
    /// JSON text.
    pub data: Option<Bytes>,
}

/// Someone who can be asked: the transport to a node, or a script in a test.
pub trait Ask: Send + Sync + 'static {
    /// Asks, and waits for the reply until the deadline. Dropping the future gives the call up.
    fn ask(&self, call: &Call, deadline: Instant) -> impl Future<Output = Result<Reply, Fault>> + Send;
}

/// Why there is no reply. All of these but those of [`Self::is_our_shortage`] are the node's doing, or the network's on the way
/// to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
pub enum Fault {
    #[error("cannot connect")]
    Connect,
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
    /// Our own shortage, for which no node is to blame.
    #[error("no memory was free for the reply")]
    NoMemory,
    /// Our own limit, for which no node is to blame: the reply is smaller than `reply_bytes_max`, but larger than what one
    /// node may use of the memory.
    #[error("the reply is larger than what one node may use of reply_memory_bytes")]
    LargerThanMemory,
    /// An HTTP status other than 200 without a JSON-RPC reply in its body.
    #[error("HTTP status {0}")]
    Status(u16),
    /// An error of its own making: it will not or cannot.
    #[error("the node refuses")]
    Refused,
    #[error("too many requests")]
    RateLimited,
    #[error("the reply is no JSON-RPC")]
    Garbled,
    #[error("the reply has another id")]
    WrongId,
    /// The reply is well-formed, and cannot be true.
    #[error("the answer is wrong")]
    Wrong,
}

impl Fault {
    /// Whether it is our memory that is short, and nothing is wrong with the node.
    pub fn is_our_shortage(self) -> bool {
        matches!(self, Self::NoMemory | Self::LargerThanMemory)
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
