//! Typed parameters.
//!
//! `Query<B>` is a call with typed parameters. `B` is `BlockParam` as the caller wrote it, and `BlockRef` after `resolve` has
//! pinned it to a number and a hash. Sources take only pinned queries, so they never see a tag, and a pinned query can be used
//! as a cache key.

mod block; // block parameters
mod call; // call objects and overrides
mod filter; // filter objects
mod read; // one reader per method
mod value; // quantities, data, addresses, hashes

use std::borrow::Cow;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use alloy_primitives::{Address, B256};
use alloy_rpc_types_eth::{BlockOverrides, TransactionRequest, state::StateOverride};

pub use block::{BlockParam, Tag};
pub use filter::{LogBlocks, LogFilterParams};
pub(crate) use read::*;
pub(crate) use value::ParamReader;

/// A call with typed parameters; `B` is the type of its block references.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Query<B> {
    ChainId,
    NetVersion,
    BlockNumber,
    Syncing,
    ClientVersion,
    Discover,
    GasPrice,
    MaxPriorityFeePerGas,
    FeeHistory { blocks: u64, newest: B, percentiles: Vec<Percentile> },
    Balance { address: Address, at: B },
    Code { address: Address, at: B },
    TransactionCount { address: Address, at: B },
    StorageAt { address: Address, position: B256, at: B },
    Block { block: B, full: bool },
    BlockTransactionCount { block: B },
    BlockReceipts { block: B },
    UncleCount { block: B },
    Uncle { block: B, index: u64 },
    TransactionByIndex { block: B, index: u64 },
    TransactionByHash { hash: B256 },
    TransactionReceipt { hash: B256 },
    RawBlockTransactions { block: B },
    Logs { filter: Arc<LogFilterParams>, blocks: LogBlocks<B> },
    Call { message: Box<CallMessage>, at: B },
    EstimateGas { message: Box<CallMessage>, at: B },
}

impl<B> Query<B> {
    /// Converts every block reference.
    pub fn try_map<C, E>(self, mut convert: impl FnMut(B) -> Result<C, E>) -> Result<Query<C>, E> {
        Ok(match self {
            Self::ChainId => Query::ChainId,
            Self::NetVersion => Query::NetVersion,
            Self::BlockNumber => Query::BlockNumber,
            Self::Syncing => Query::Syncing,
            Self::ClientVersion => Query::ClientVersion,
            Self::Discover => Query::Discover,
            Self::GasPrice => Query::GasPrice,
            Self::MaxPriorityFeePerGas => Query::MaxPriorityFeePerGas,
            Self::FeeHistory { blocks, newest, percentiles } => {
                Query::FeeHistory { blocks, newest: convert(newest)?, percentiles }
            }
            Self::Balance { address, at } => Query::Balance { address, at: convert(at)? },
            Self::Code { address, at } => Query::Code { address, at: convert(at)? },
            Self::TransactionCount { address, at } => Query::TransactionCount { address, at: convert(at)? },
            Self::StorageAt { address, position, at } => {
                Query::StorageAt { address, position, at: convert(at)? }
            }
            Self::Block { block, full } => Query::Block { block: convert(block)?, full },
            Self::BlockTransactionCount { block } => Query::BlockTransactionCount { block: convert(block)? },
            Self::BlockReceipts { block } => Query::BlockReceipts { block: convert(block)? },
            Self::UncleCount { block } => Query::UncleCount { block: convert(block)? },
            Self::Uncle { block, index } => Query::Uncle { block: convert(block)?, index },
            Self::TransactionByIndex { block, index } => {
                Query::TransactionByIndex { block: convert(block)?, index }
            }
            Self::TransactionByHash { hash } => Query::TransactionByHash { hash },
            Self::TransactionReceipt { hash } => Query::TransactionReceipt { hash },
            Self::RawBlockTransactions { block } => Query::RawBlockTransactions { block: convert(block)? },
            Self::Logs { filter, blocks } => Query::Logs { filter, blocks: blocks.try_map(convert)? },
            Self::Call { message, at } => Query::Call { message, at: convert(at)? },
            Self::EstimateGas { message, at } => Query::EstimateGas { message, at: convert(at)? },
        })
    }
}

impl<B: Copy> Query<B> {
    /// Whether the query reads the state of a block.
    pub fn reads_state(&self) -> bool {
        match self {
            Self::Balance { .. }
            | Self::Code { .. }
            | Self::TransactionCount { .. }
            | Self::StorageAt { .. }
            | Self::Call { .. }
            | Self::EstimateGas { .. } => true,
            Self::ChainId
            | Self::NetVersion
            | Self::BlockNumber
            | Self::Syncing
            | Self::ClientVersion
            | Self::Discover
            | Self::GasPrice
            | Self::MaxPriorityFeePerGas
            | Self::FeeHistory { .. }
            | Self::Block { .. }
            | Self::BlockTransactionCount { .. }
            | Self::BlockReceipts { .. }
            | Self::UncleCount { .. }
            | Self::Uncle { .. }
            | Self::TransactionByIndex { .. }
            | Self::TransactionByHash { .. }
            | Self::TransactionReceipt { .. }
            | Self::RawBlockTransactions { .. }
            | Self::Logs { .. } => false,
        }
    }

    /// Every block that the query names.
    pub fn blocks(&self) -> impl Iterator<Item = B> {
        let pair = match self {
            Self::ChainId
            | Self::NetVersion
            | Self::BlockNumber
            | Self::Syncing
            | Self::ClientVersion
            | Self::Discover
            | Self::GasPrice
            | Self::MaxPriorityFeePerGas
            | Self::TransactionByHash { .. }
            | Self::TransactionReceipt { .. } => [None, None],
            Self::FeeHistory { newest: at, .. }
            | Self::Balance { at, .. }
            | Self::Code { at, .. }
            | Self::TransactionCount { at, .. }
            | Self::StorageAt { at, .. }
            | Self::Block { block: at, .. }
            | Self::BlockTransactionCount { block: at }
            | Self::BlockReceipts { block: at }
            | Self::UncleCount { block: at }
            | Self::Uncle { block: at, .. }
            | Self::TransactionByIndex { block: at, .. }
            | Self::RawBlockTransactions { block: at }
            | Self::Logs { blocks: LogBlocks::One(at), .. }
            | Self::Call { at, .. }
            | Self::EstimateGas { at, .. } => [Some(*at), None],
            Self::Logs { blocks: LogBlocks::Range { from, to }, .. } => [Some(*from), Some(*to)],
        };
        pair.into_iter().flatten()
    }

    /// The blocks that the query names, in the order in which [`Self::try_map`] converts them.
    pub fn block_pair(&self) -> [Option<B>; 2] {
        let mut blocks = self.blocks();
        [blocks.next(), blocks.next()]
    }

    /// Heap memory of the query, in bytes.
    pub fn heap_bytes(&self) -> usize {
        match self {
            Self::FeeHistory { percentiles, .. } => percentiles.len() * size_of::<Percentile>(),
            Self::Logs { filter, .. } => filter.heap_bytes(),
            Self::Call { message, .. } | Self::EstimateGas { message, .. } => message.heap_bytes(),
            Self::ChainId
            | Self::NetVersion
            | Self::BlockNumber
            | Self::Syncing
            | Self::ClientVersion
            | Self::Discover
            | Self::GasPrice
            | Self::MaxPriorityFeePerGas
            | Self::Balance { .. }
            | Self::Code { .. }
            | Self::TransactionCount { .. }
            | Self::StorageAt { .. }
            | Self::Block { .. }
            | Self::BlockTransactionCount { .. }
            | Self::BlockReceipts { .. }
            | Self::UncleCount { .. }
            | Self::Uncle { .. }
            | Self::TransactionByIndex { .. }
            | Self::TransactionByHash { .. }
            | Self::TransactionReceipt { .. }
            | Self::RawBlockTransactions { .. } => 0,
        }
    }
}

/// The message that `eth_call` or `eth_estimateGas` executes.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct CallMessage {
    pub request: TransactionRequest,
    pub overrides: CallOverrides,
}

impl CallMessage {
    fn heap_bytes(&self) -> usize {
        // Overrides are held as text and parsed; parsed, an account without changes takes ten times as much as its text.
        let texts: usize = self.overrides.texts.iter().map(|text| text.len()).sum();
        let input = self.request.input.input().map_or(0, |input| input.len());
        let blobs = &self.request.blob_versioned_hashes;
        let lists = serde_json::to_vec(&(&self.request.access_list, &self.request.authorization_list, blobs));
        size_of::<Self>() + input + 12 * texts + lists.map_or(0, |text| text.len())
    }
}

/// Changes to state and block for one simulation. They are compared and hashed by the caller's text, because maps have no
/// order to hash in.
#[derive(Clone, Debug, Default)]
pub struct CallOverrides {
    pub state: Option<StateOverride>,
    pub block: Option<Box<BlockOverrides>>,
    /// The JSON of `state` and `block` as the caller wrote it.
    texts: [Box<str>; 2],
}

impl PartialEq for CallOverrides {
    fn eq(&self, other: &Self) -> bool {
        self.texts == other.texts
    }
}

impl Eq for CallOverrides {}

impl Hash for CallOverrides {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.texts.hash(state);
    }
}

/// A percentile of `eth_feeHistory`, from 0 to 100.
#[derive(Clone, Copy, Debug)]
pub struct Percentile(f64);

impl Percentile {
    /// `None` outside 0 to 100.
    pub fn new(percentile: f64) -> Option<Self> {
        (0.0..=100.0).contains(&percentile).then_some(Self(percentile))
    }

    pub fn get(self) -> f64 {
        self.0
    }
}

impl PartialEq for Percentile {
    fn eq(&self, other: &Self) -> bool {
        self.0.to_bits() == other.0.to_bits()
    }
}

impl Eq for Percentile {}

impl Hash for Percentile {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.to_bits().hash(state);
    }
}

/// What is wrong with the parameters of a call. Positions count from 0.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ParamFault {
    NotArray,
    TooMany {
        max: usize,
    },
    Missing {
        position: usize,
    },
    Invalid {
        position: usize,
        reason: Cow<'static, str>,
    },
    /// The whole error message. It has no position, because clients compare it with the text of other nodes.
    Text(Cow<'static, str>),
    /// `eth_getLogs` with more addresses and topics than one query may have.
    TooManyLogParams {
        count: usize,
        max: usize,
    },
}
