//! Typed queries, grouped by what they are about.
//!
//! `B` is the type of block references: `BlockParam` as the caller wrote it, and `BlockRef` after `resolve` has pinned it to
//! a number and a hash. Sources take only pinned queries, so they never see a tag, and a pinned query can be used as a cache
//! key.

use std::sync::Arc;

use alloy_primitives::{Address, B256};

use super::{CallMessage, LogBlocks, LogFilterParams, Percentile};

/// A call with typed parameters.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Query<B> {
    Gateway(GatewayQuery),
    Fees(FeeQuery<B>),
    State(StateQuery<B>),
    Simulation(SimulationQuery<B>),
    Block(BlockQuery<B>),
    Transaction(TransactionQuery),
    /// The transactions of a block in the internal format of zkSync nodes, which no header commits to.
    RawTransactions(B),
    Logs(LogsQuery<B>),
}

/// A query about the gateway and its chain as a whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum GatewayQuery {
    ChainId,
    NetVersion,
    BlockNumber,
    Syncing,
    ClientVersion,
    Discover,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum FeeQuery<B> {
    NextBlock(NextBlockFee),
    History { blocks: u64, newest: B, percentiles: Vec<Percentile> },
}

/// A single fee of the block after the head.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum NextBlockFee {
    GasPrice,
    PriorityFee,
}

/// A value of the state after a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct StateQuery<B> {
    pub address: Address,
    pub at: B,
    pub value: StateValue,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum StateValue {
    Balance,
    TransactionCount,
    Code,
    Storage { position: B256 },
}

/// A message to execute on the state after a block.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct SimulationQuery<B> {
    pub kind: SimulationKind,
    pub message: Box<CallMessage>,
    pub at: B,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SimulationKind {
    Call,
    Estimate,
}

/// A part of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct BlockQuery<B> {
    pub block: B,
    pub part: BlockPart,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum BlockPart {
    Whole { full: bool },
    Header,
    TransactionCount,
    Receipts,
    UncleCount,
    Uncle { index: u64 },
    Transaction { index: u64 },
}

/// A transaction by its hash, in whichever block it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct TransactionQuery {
    pub hash: B256,
    pub part: TransactionPart,
}

/// The part of a transaction that a call asks for. Nodes have no receipt while it is pending.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TransactionPart {
    Transaction,
    Receipt,
}

/// The logs of some blocks that match a filter.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct LogsQuery<B> {
    pub filter: Arc<LogFilterParams>,
    pub blocks: LogBlocks<B>,
}

impl<B> Query<B> {
    /// Converts every block reference.
    pub fn try_map<C, E>(self, mut convert: impl FnMut(B) -> Result<C, E>) -> Result<Query<C>, E> {
        Ok(match self {
            Self::Gateway(query) => Query::Gateway(query),
            Self::Fees(FeeQuery::NextBlock(fee)) => Query::Fees(FeeQuery::NextBlock(fee)),
            Self::Fees(FeeQuery::History { blocks, newest, percentiles }) => {
                Query::Fees(FeeQuery::History { blocks, newest: convert(newest)?, percentiles })
            }
            Self::State(StateQuery { address, at, value }) => {
                Query::State(StateQuery { address, at: convert(at)?, value })
            }
            Self::Simulation(SimulationQuery { kind, message, at }) => {
                Query::Simulation(SimulationQuery { kind, message, at: convert(at)? })
            }
            Self::Block(BlockQuery { block, part }) => {
                Query::Block(BlockQuery { block: convert(block)?, part })
            }
            Self::Transaction(query) => Query::Transaction(query),
            Self::RawTransactions(block) => Query::RawTransactions(convert(block)?),
            Self::Logs(LogsQuery { filter, blocks }) => {
                Query::Logs(LogsQuery { filter, blocks: blocks.try_map(convert)? })
            }
        })
    }
}

impl<B: Copy> Query<B> {
    /// Whether the query reads the state of a block.
    pub fn reads_state(&self) -> bool {
        match self {
            Self::State(_) | Self::Simulation(_) => true,
            Self::Gateway(_)
            | Self::Fees(_)
            | Self::Block(_)
            | Self::Transaction(_)
            | Self::RawTransactions(_)
            | Self::Logs(_) => false,
        }
    }

    /// The transaction that the query names by its hash.
    pub fn transaction(&self) -> Option<TransactionQuery> {
        match self {
            Self::Transaction(query) => Some(*query),
            Self::Gateway(_)
            | Self::Fees(_)
            | Self::State(_)
            | Self::Simulation(_)
            | Self::Block(_)
            | Self::RawTransactions(_)
            | Self::Logs(_) => None,
        }
    }

    /// The transaction whose receipt is asked for.
    pub fn receipt(&self) -> Option<B256> {
        let receipt = self.transaction().filter(|query| query.part == TransactionPart::Receipt);
        receipt.map(|query| query.hash)
    }

    /// Every block that the query names.
    pub fn blocks(&self) -> impl Iterator<Item = B> {
        self.block_pair().into_iter().flatten()
    }

    /// The blocks that the query names, in the order in which [`Self::try_map`] converts them.
    pub fn block_pair(&self) -> [Option<B>; 2] {
        match self {
            Self::Gateway(_) | Self::Fees(FeeQuery::NextBlock(_)) | Self::Transaction(_) => [None, None],
            Self::Fees(FeeQuery::History { newest: block, .. })
            | Self::State(StateQuery { at: block, .. })
            | Self::Simulation(SimulationQuery { at: block, .. })
            | Self::Block(BlockQuery { block, .. })
            | Self::RawTransactions(block)
            | Self::Logs(LogsQuery { blocks: LogBlocks::One(block), .. }) => [Some(*block), None],
            Self::Logs(LogsQuery { blocks: LogBlocks::Range { from, to }, .. }) => [Some(*from), Some(*to)],
        }
    }

    /// Heap memory of the query, in bytes.
    pub fn heap_bytes(&self) -> usize {
        match self {
            Self::Fees(FeeQuery::History { percentiles, .. }) => percentiles.len() * size_of::<Percentile>(),
            Self::Simulation(query) => query.message.heap_bytes(),
            Self::Logs(query) => query.filter.heap_bytes(),
            Self::Gateway(_)
            | Self::Fees(FeeQuery::NextBlock(_))
            | Self::State(_)
            | Self::Block(_)
            | Self::Transaction(_)
            | Self::RawTransactions(_) => 0,
        }
    }
}
