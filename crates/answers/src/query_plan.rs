//! What a query is about, and so who can answer it.
//!
//! Every query is listed in [`QueryPlan::of`] and nowhere else in this crate. Code that answers one kind of query takes the type of
//! that kind, so that a new query does not compile before it has a kind, an answer and a call to nodes.

use std::sync::Arc;

use alloy_primitives::{Address, B256};
use methods::{BlockRef, CallMessage, LogBlocks, LogFilterParams, Percentile, Query};

/// Everything that is decided about a query before it is answered.
#[derive(Clone, Copy, Debug)]
pub(crate) struct QueryPlan<'q> {
    pub(crate) subject: Subject<'q>,
    pub(crate) effort: Effort,
}

/// What a query is about.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Subject<'q> {
    /// The gateway answers from what it knows anyway.
    Gateway(GatewayQuery),
    Logs(LogsQuery<'q>),
    /// One call to a node answers it.
    Node(NodeQuery<'q>),
}

/// How much work an answer is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Effort {
    /// Whether an answer is put together from many rows of the archive or by running code. A single value is read as fast as it
    /// would be found among those that are kept.
    pub(crate) is_composed: bool,
    /// Whether an honest answer of a node may be too large to be read at once, or code is run for it here.
    pub(crate) takes_long: bool,
}

/// A query about the gateway and its chain as a whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum GatewayQuery {
    ChainId,
    NetVersion,
    BlockNumber,
    Syncing,
    ClientVersion,
    Discover,
}

/// A query for logs, which may take several calls to nodes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LogsQuery<'q> {
    pub(crate) filter: &'q Arc<LogFilterParams>,
    pub(crate) blocks: LogBlocks<BlockRef>,
}

/// A query that one call to a node answers.
#[derive(Clone, Copy, Debug)]
pub(crate) enum NodeQuery<'q> {
    Fees(FeeQuery<'q>),
    State(StateQuery),
    Simulation(SimulationQuery<'q>),
    Block(BlockQuery),
    Transaction(TransactionQuery),
    /// The transactions of a block in the internal format of zkSync nodes, which no header commits to.
    RawTransactions(BlockRef),
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum FeeQuery<'q> {
    GasPrice,
    PriorityFee,
    History { blocks: u64, newest: BlockRef, percentiles: &'q [Percentile] },
}

/// A value of the state after a block.
#[derive(Clone, Copy, Debug)]
pub(crate) struct StateQuery {
    pub(crate) address: Address,
    pub(crate) at: BlockRef,
    pub(crate) value: StateValue,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StateValue {
    Balance,
    TransactionCount,
    Code,
    Storage { position: B256 },
}

/// A message to run on the state after a block.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SimulationQuery<'q> {
    pub(crate) kind: SimulationKind,
    pub(crate) message: &'q CallMessage,
    pub(crate) at: BlockRef,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SimulationKind {
    Call,
    Estimate,
}

/// A part of a block.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BlockQuery {
    pub(crate) block: BlockRef,
    pub(crate) part: BlockPart,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BlockPart {
    Whole { full: bool },
    TransactionCount,
    Receipts,
    UncleCount,
    Uncle { index: u64 },
    Transaction { index: u64 },
}

/// A transaction by its hash, in whichever block it is.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TransactionQuery {
    pub(crate) hash: B256,
    pub(crate) part: TransactionPart,
}

/// What is asked for of a transaction. Nodes know of no receipt while it is pending.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TransactionPart {
    Transaction,
    Receipt,
}

impl<'q> QueryPlan<'q> {
    /// Lists every query, so that everything about a new one has to be decided here.
    pub(crate) fn of(query: &'q Query<BlockRef>) -> Self {
        match *query {
            Query::ChainId => gateway(GatewayQuery::ChainId),
            Query::NetVersion => gateway(GatewayQuery::NetVersion),
            Query::BlockNumber => gateway(GatewayQuery::BlockNumber),
            Query::Syncing => gateway(GatewayQuery::Syncing),
            Query::ClientVersion => gateway(GatewayQuery::ClientVersion),
            Query::Discover => gateway(GatewayQuery::Discover),
            Query::GasPrice => fees(FeeQuery::GasPrice, SINGLE_VALUE),
            Query::MaxPriorityFeePerGas => fees(FeeQuery::PriorityFee, SINGLE_VALUE),
            Query::FeeHistory { blocks, newest, ref percentiles } => {
                fees(FeeQuery::History { blocks, newest, percentiles }, COMPOSED)
            }
            Query::Balance { address, at } => state(address, at, StateValue::Balance, SINGLE_VALUE),
            Query::TransactionCount { address, at } => {
                state(address, at, StateValue::TransactionCount, SINGLE_VALUE)
            }
            Query::Code { address, at } => state(address, at, StateValue::Code, LARGE_VALUE),
            Query::StorageAt { address, position, at } => {
                state(address, at, StateValue::Storage { position }, SINGLE_VALUE)
            }
            Query::Block { block, full } => of_block(block, BlockPart::Whole { full }, COMPOSED),
            Query::BlockTransactionCount { block } => {
                of_block(block, BlockPart::TransactionCount, SINGLE_VALUE)
            }
            Query::BlockReceipts { block } => of_block(block, BlockPart::Receipts, COMPOSED),
            Query::UncleCount { block } => of_block(block, BlockPart::UncleCount, SINGLE_VALUE),
            Query::Uncle { block, index } => of_block(block, BlockPart::Uncle { index }, SMALL_OBJECT),
            Query::TransactionByIndex { block, index } => {
                of_block(block, BlockPart::Transaction { index }, COMPOSED)
            }
            Query::TransactionByHash { hash } => transaction(hash, TransactionPart::Transaction),
            Query::TransactionReceipt { hash } => transaction(hash, TransactionPart::Receipt),
            Query::RawBlockTransactions { block } => node(NodeQuery::RawTransactions(block), COMPOSED),
            Query::Logs { ref filter, blocks } => {
                Self { subject: Subject::Logs(LogsQuery { filter, blocks }), effort: COMPOSED }
            }
            Query::Call { ref message, at } => simulation(SimulationKind::Call, message, at),
            Query::EstimateGas { ref message, at } => simulation(SimulationKind::Estimate, message, at),
        }
    }
}

const SINGLE_VALUE: Effort = Effort { is_composed: false, takes_long: false };
const LARGE_VALUE: Effort = Effort { is_composed: false, takes_long: true };
const SMALL_OBJECT: Effort = Effort { is_composed: true, takes_long: false };
const COMPOSED: Effort = Effort { is_composed: true, takes_long: true };

fn gateway<'q>(query: GatewayQuery) -> QueryPlan<'q> {
    QueryPlan { subject: Subject::Gateway(query), effort: SINGLE_VALUE }
}

fn node(query: NodeQuery<'_>, effort: Effort) -> QueryPlan<'_> {
    QueryPlan { subject: Subject::Node(query), effort }
}

fn fees(query: FeeQuery<'_>, effort: Effort) -> QueryPlan<'_> {
    node(NodeQuery::Fees(query), effort)
}

fn state<'q>(address: Address, at: BlockRef, value: StateValue, effort: Effort) -> QueryPlan<'q> {
    node(NodeQuery::State(StateQuery { address, at, value }), effort)
}

fn simulation(kind: SimulationKind, message: &CallMessage, at: BlockRef) -> QueryPlan<'_> {
    node(NodeQuery::Simulation(SimulationQuery { kind, message, at }), COMPOSED)
}

fn of_block<'q>(block: BlockRef, part: BlockPart, effort: Effort) -> QueryPlan<'q> {
    node(NodeQuery::Block(BlockQuery { block, part }), effort)
}

fn transaction<'q>(hash: B256, part: TransactionPart) -> QueryPlan<'q> {
    node(NodeQuery::Transaction(TransactionQuery { hash, part }), COMPOSED)
}

impl Subject<'_> {
    /// The transaction whose receipt is asked for.
    pub(crate) fn receipt(self) -> Option<B256> {
        match self {
            Self::Node(query) => query
                .transaction()
                .filter(|query| query.part == TransactionPart::Receipt)
                .map(|query| query.hash),
            Self::Gateway(_) | Self::Logs(_) => None,
        }
    }

    /// Whether nodes may have something that no block has: a transaction that is pending.
    pub(crate) fn may_be_pending(self) -> bool {
        match self {
            Self::Node(query) => {
                query.transaction().is_some_and(|query| query.part == TransactionPart::Transaction)
            }
            Self::Gateway(_) | Self::Logs(_) => false,
        }
    }
}

impl NodeQuery<'_> {
    /// The block that the query names.
    pub(crate) fn block(self) -> Option<BlockRef> {
        match self {
            Self::Fees(FeeQuery::GasPrice | FeeQuery::PriorityFee) | Self::Transaction(_) => None,
            Self::Fees(FeeQuery::History { newest: block, .. })
            | Self::State(StateQuery { at: block, .. })
            | Self::Simulation(SimulationQuery { at: block, .. })
            | Self::Block(BlockQuery { block, .. })
            | Self::RawTransactions(block) => Some(block),
        }
    }

    /// The transaction that the query names by its hash.
    pub(crate) fn transaction(self) -> Option<TransactionQuery> {
        match self {
            Self::Transaction(query) => Some(query),
            Self::Fees(_)
            | Self::State(_)
            | Self::Simulation(_)
            | Self::Block(_)
            | Self::RawTransactions(_) => None,
        }
    }

    /// Whether a message is run. What it comes to depends on how much gas a node grants it, too, so that honest nodes may differ, and
    /// a caller could have them taken for liars.
    pub(crate) fn is_simulation(self) -> bool {
        match self {
            Self::Simulation(_) => true,
            Self::Fees(_)
            | Self::State(_)
            | Self::Block(_)
            | Self::Transaction(_)
            | Self::RawTransactions(_) => false,
        }
    }
}
