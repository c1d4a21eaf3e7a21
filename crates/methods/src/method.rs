//! The row type of the method table.

use crate::param::Param;
use crate::params::{BlockParam, ParamFault, ParamReader, Query, Tag};

/// One method. No field has a default, so that a new method does not compile before everything about it is decided.
#[derive(Debug)]
pub struct Method {
    pub name: &'static str,
    /// The result of the method, in one sentence without a full stop.
    pub about: &'static str,
    /// The positional parameters that every call has.
    pub required: &'static [Param],
    /// The positional parameters after them.
    pub optional: &'static [Param],
    /// Reads the parameters into a query. The row states the data that it asks for; the methods of one kind share a reader.
    pub(crate) read: fn(&mut ParamReader<'_>) -> Result<Query<BlockParam>, ParamFault>,
    /// Parameters as JSON with which the method has a short and typical result on the demo chain. Documents show that call,
    /// and tests and fuzzing make it.
    pub example: &'static str,
    /// The type of the result, as the generated documents name it.
    pub result: &'static str,
    /// Price of an admitted call.
    pub credits: u64,
    pub rules: MethodRules,
}

/// How calls of a method are handled. A row states only what differs from the rules of its kind.
#[derive(Clone, Copy, Debug)]
pub struct MethodRules {
    pub families: &'static [NetworkFamily],
    pub work: WorkPlacement,
    pub effort: Effort,
    pub cacheable: Cacheable,
    pub missing: MissingBlock,
    /// Whether a partner may answer during an outage; the configuration can override it.
    pub failover: bool,
    /// Whether a call at `pending` is forwarded to a node; for all other methods, `pending` means the newest block. Wallets
    /// read their next nonce with `eth_getTransactionCount` at `pending`.
    pub asks_nodes_at_pending: bool,
}

impl Method {
    /// All parameters in their order.
    pub fn params(&self) -> impl Iterator<Item = Param> {
        self.required.iter().chain(self.optional).copied()
    }

    pub fn exists_on(&self, families: &[NetworkFamily]) -> bool {
        self.rules.families.iter().any(|family| families.contains(family))
    }

    /// Reads the parameters of a call into a typed query.
    pub fn read(&self, params: &jsonrpc::Params<'_>) -> Result<Query<BlockParam>, ParamFault> {
        (self.read)(&mut ParamReader::new(params, self.required.len() + self.optional.len())?)
    }

    /// The query of the example, which shows what kind of queries the method has.
    pub fn example_query(&self) -> Result<Query<BlockParam>, ParamFault> {
        let body = self.example_request();
        match jsonrpc::parse(body.as_bytes()) {
            Ok(jsonrpc::Request::Single(Ok(call))) => self.read(&call.params),
            _ => Err(ParamFault::NotArray),
        }
    }

    pub fn example_request(&self) -> String {
        let Self { name, example, .. } = self;
        format!(r#"{{"jsonrpc":"2.0","id":1,"method":"{name}","params":{example}}}"#)
    }

    /// Whether a query of this method names the pending block and is forwarded to nodes.
    pub fn is_forwarded_at_pending(&self, query: &Query<BlockParam>) -> bool {
        let is_pending = |block| block == BlockParam::Tag(Tag::Pending);
        self.rules.asks_nodes_at_pending && query.blocks().any(is_pending)
    }
}

/// The kind of network that a method exists on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NetworkFamily {
    Ethereum,
    Zksync,
}

/// How much work an answer is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effort {
    /// A single value, which is read as fast as it would be found in the cache.
    Value,
    /// A single value that an honest node may need long to send.
    LargeValue,
    /// Put together from rows of the archive, and small.
    SmallObject,
    /// Put together from many rows of the archive or by running code, and possibly too large to be read at once.
    Composed,
}

impl Effort {
    /// Whether an answer is put together from many rows of the archive or by running code.
    pub fn is_composed(self) -> bool {
        matches!(self, Self::SmallObject | Self::Composed)
    }

    /// Whether an honest answer of a node may be too large to be read at once, or code is run for it here.
    pub fn takes_long(self) -> bool {
        matches!(self, Self::LargeValue | Self::Composed)
    }
}

/// The thread that executes a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WorkPlacement {
    /// Runs on the thread of the connection, because it always takes microseconds.
    Inline,
    /// Is tried for 200 µs on the thread of the connection and then runs in the thread pool until its deadline, because it
    /// may take seconds. Equal calls in flight share one execution.
    Pooled(DeadlineKind),
}

/// Selects the time limit of pooled work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeadlineKind {
    Logs,
    Call,
    Fees,
    /// Blocks and receipts, which may be megabytes large.
    Block,
}

/// How long an answer stays valid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cacheable {
    Never,
    /// Forever, because the call names its block by hash.
    BlockHash,
    /// As long as the block is canonical.
    CanonicalBlock,
    /// Until the head changes.
    Head,
}

/// The answer to a call that names a block which does not exist.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MissingBlock {
    Null,
    EmptyList,
    Error,
}

impl MissingBlock {
    /// The result as JSON text. Not called for `Error`.
    pub fn json(self) -> &'static [u8] {
        match self {
            Self::Null | Self::Error => b"null",
            Self::EmptyList => b"[]",
        }
    }
}
