//! What a query is about, and so who can answer it.
//!
//! Code that answers one kind of query takes the type of that kind, so that a new query does not compile before it has an
//! answer of each source.

use alloy_primitives::B256;
use methods::{
    BlockPart, BlockQuery, BlockRef, FeeQuery, GatewayQuery, LogsQuery, Query, SimulationQuery, StateQuery,
    StateValue, TransactionPart, TransactionQuery,
};

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
    /// May take several calls to nodes.
    Logs(&'q LogsQuery<BlockRef>),
    /// One call to a node answers it.
    Node(NodeQuery<'q>),
}

/// How much work an answer is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Effort {
    /// Whether an answer is put together from many rows of the archive or by running code. A single value is read as fast as it
    /// would be found in the cache.
    pub(crate) is_composed: bool,
    /// Whether an honest answer of a node may be too large to be read at once, or code is run for it here.
    pub(crate) takes_long: bool,
}

/// A query that one call to a node answers.
#[derive(Clone, Copy, Debug)]
pub(crate) enum NodeQuery<'q> {
    Fees(&'q FeeQuery<BlockRef>),
    State(StateQuery<BlockRef>),
    Simulation(&'q SimulationQuery<BlockRef>),
    Block(BlockQuery<BlockRef>),
    Transaction(TransactionQuery),
    RawTransactions(BlockRef),
}

impl<'q> QueryPlan<'q> {
    pub(crate) fn of(query: &'q Query<BlockRef>) -> Self {
        let (subject, effort) = match query {
            Query::Gateway(query) => (Subject::Gateway(*query), SINGLE_VALUE),
            Query::Fees(query) => (Subject::Node(NodeQuery::Fees(query)), fee_effort(query)),
            Query::State(query) => (Subject::Node(NodeQuery::State(*query)), state_effort(query.value)),
            Query::Simulation(query) => (Subject::Node(NodeQuery::Simulation(query)), COMPOSED),
            Query::Block(query) => (Subject::Node(NodeQuery::Block(*query)), block_effort(query.part)),
            Query::Transaction(query) => (Subject::Node(NodeQuery::Transaction(*query)), COMPOSED),
            Query::RawTransactions(block) => (Subject::Node(NodeQuery::RawTransactions(*block)), COMPOSED),
            Query::Logs(query) => (Subject::Logs(query), COMPOSED),
        };
        Self { subject, effort }
    }
}

const SINGLE_VALUE: Effort = Effort { is_composed: false, takes_long: false };
const LARGE_VALUE: Effort = Effort { is_composed: false, takes_long: true };
const SMALL_OBJECT: Effort = Effort { is_composed: true, takes_long: false };
const COMPOSED: Effort = Effort { is_composed: true, takes_long: true };

fn fee_effort(query: &FeeQuery<BlockRef>) -> Effort {
    match query {
        FeeQuery::NextBlock(_) => SINGLE_VALUE,
        FeeQuery::History { .. } => COMPOSED,
    }
}

fn state_effort(value: StateValue) -> Effort {
    match value {
        StateValue::Balance | StateValue::TransactionCount | StateValue::Storage { .. } => SINGLE_VALUE,
        StateValue::Code => LARGE_VALUE,
    }
}

fn block_effort(part: BlockPart) -> Effort {
    match part {
        BlockPart::TransactionCount | BlockPart::UncleCount => SINGLE_VALUE,
        BlockPart::Header | BlockPart::Uncle { .. } => SMALL_OBJECT,
        BlockPart::Whole { .. } | BlockPart::Receipts | BlockPart::Transaction { .. } => COMPOSED,
    }
}

impl Subject<'_> {
    /// The transaction that is asked for, or whose receipt is.
    pub(crate) fn transaction(self) -> Option<B256> {
        match self {
            Self::Node(query) => query.transaction().map(|query| query.hash),
            Self::Gateway(_) | Self::Logs(_) => None,
        }
    }

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
            Self::Fees(FeeQuery::NextBlock(_)) | Self::Transaction(_) => None,
            Self::Fees(FeeQuery::History { newest: block, .. })
            | Self::Simulation(SimulationQuery { at: block, .. }) => Some(*block),
            Self::State(StateQuery { at: block, .. })
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

    /// Whether a message is run. Its result also depends on how much gas a node allows, so honest nodes may differ, and a
    /// caller could make them look like liars.
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
