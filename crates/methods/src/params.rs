//! Typed parameters: what a call asks, checked before anything is spent on it.
//!
//! `Query<B>` is what the steps hand on. `B` is how its blocks are named: `BlockParam` as the caller wrote them, and
//! `BlockRef` once `resolve` has pinned them. A source takes only pinned queries, so no tag can reach it, and a pinned
//! query is its own key wherever equal calls have to be recognised.

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
pub use filter::{Blocks, LogFilter};
pub(crate) use read::*;
pub(crate) use value::Args;

/// What a call asks.
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
    Logs { filter: Arc<LogFilter>, blocks: Blocks<B> },
    Call { message: Box<Message>, at: B },
    EstimateGas { message: Box<Message>, at: B },
}

impl<B> Query<B> {
    /// The same question with every block named in another way.
    pub fn try_map<C, E>(self, mut name: impl FnMut(B) -> Result<C, E>) -> Result<Query<C>, E> {
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
                Query::FeeHistory { blocks, newest: name(newest)?, percentiles }
            }
            Self::Balance { address, at } => Query::Balance { address, at: name(at)? },
            Self::Code { address, at } => Query::Code { address, at: name(at)? },
            Self::TransactionCount { address, at } => Query::TransactionCount { address, at: name(at)? },
            Self::StorageAt { address, position, at } => {
                Query::StorageAt { address, position, at: name(at)? }
            }
            Self::Block { block, full } => Query::Block { block: name(block)?, full },
            Self::BlockTransactionCount { block } => Query::BlockTransactionCount { block: name(block)? },
            Self::BlockReceipts { block } => Query::BlockReceipts { block: name(block)? },
            Self::UncleCount { block } => Query::UncleCount { block: name(block)? },
            Self::Uncle { block, index } => Query::Uncle { block: name(block)?, index },
            Self::TransactionByIndex { block, index } => {
                Query::TransactionByIndex { block: name(block)?, index }
            }
            Self::TransactionByHash { hash } => Query::TransactionByHash { hash },
            Self::TransactionReceipt { hash } => Query::TransactionReceipt { hash },
            Self::RawBlockTransactions { block } => Query::RawBlockTransactions { block: name(block)? },
            Self::Logs { filter, blocks } => Query::Logs { filter, blocks: blocks.try_map(name)? },
            Self::Call { message, at } => Query::Call { message, at: name(at)? },
            Self::EstimateGas { message, at } => Query::EstimateGas { message, at: name(at)? },
        })
    }
}

impl<B: Copy> Query<B> {
    /// Whether it is about the state after a block.
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

    /// Every block that the question names.
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
            | Self::Logs { blocks: Blocks::One(at), .. }
            | Self::Call { at, .. }
            | Self::EstimateGas { at, .. } => [Some(*at), None],
            Self::Logs { blocks: Blocks::Range { from, to }, .. } => [Some(*from), Some(*to)],
        };
        pair.into_iter().flatten()
    }

    /// The blocks that the question names, in the order in which [`Self::try_map`] names them anew.
    pub fn named(&self) -> [Option<B>; 2] {
        let mut blocks = self.blocks();
        [blocks.next(), blocks.next()]
    }

    /// What the question holds beyond its own size, in bytes.
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

/// What `eth_call` and `eth_estimateGas` are to run.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Message {
    pub request: TransactionRequest,
    pub overrides: Overrides,
}

impl Message {
    fn heap_bytes(&self) -> usize {
        // Overrides are held twice, as they were written and as they were read: an account that is named and left as it is
        // takes ten times as much as its text.
        let written: usize = self.overrides.written.iter().map(|text| text.len()).sum();
        let input = self.request.input.input().map_or(0, |input| input.len());
        let blobs = &self.request.blob_versioned_hashes;
        let lists = serde_json::to_vec(&(&self.request.access_list, &self.request.authorization_list, blobs));
        size_of::<Self>() + input + 12 * written + lists.map_or(0, |text| text.len())
    }
}

/// Changes to state and block for one simulation. Two are equal when the caller wrote the same bytes: that is exact,
/// and maps have no order to hash in.
#[derive(Clone, Debug, Default)]
pub struct Overrides {
    pub state: Option<StateOverride>,
    pub block: Option<Box<BlockOverrides>>,
    written: [Box<str>; 2],
}

impl PartialEq for Overrides {
    fn eq(&self, other: &Self) -> bool {
        self.written == other.written
    }
}

impl Eq for Overrides {}

impl Hash for Overrides {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.written.hash(state);
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
        most: usize,
    },
    Missing {
        position: usize,
    },
    Wrong {
        position: usize,
        what: Cow<'static, str>,
    },
    /// A text that clients know as it is, without the position.
    Said(Cow<'static, str>),
    /// `eth_getLogs` with more values than one query may have.
    TooManyLogParams {
        count: usize,
        most: usize,
    },
}
