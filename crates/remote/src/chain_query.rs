//! Queries about the chain that one call to a node answers.
//!
//! Code that answers one kind of query takes the type of that kind, so that a new query does not compile before it has an
//! answer of each source.

use methods::{BlockQuery, BlockRef, FeeQuery, Query, SimulationQuery, StateQuery, TransactionQuery};

/// A query about the chain that one call to a node answers.
#[derive(Clone, Copy, Debug)]
pub(super) enum ChainQuery<'q> {
    Fees(&'q FeeQuery<BlockRef>),
    State(StateQuery<BlockRef>),
    Simulation(&'q SimulationQuery<BlockRef>),
    Block(BlockQuery<BlockRef>),
    Transaction(TransactionQuery),
    RawTransactions(BlockRef),
}

impl<'q> ChainQuery<'q> {
    /// `None` for what the gateway knows anyway, and for logs, which may take several calls.
    pub(super) fn of(query: &'q Query<BlockRef>) -> Option<Self> {
        match query {
            Query::Gateway(_) | Query::Logs(_) => None,
            Query::Fees(query) => Some(Self::Fees(query)),
            Query::State(query) => Some(Self::State(*query)),
            Query::Simulation(query) => Some(Self::Simulation(query)),
            Query::Block(query) => Some(Self::Block(*query)),
            Query::Transaction(query) => Some(Self::Transaction(*query)),
            Query::RawTransactions(block) => Some(Self::RawTransactions(*block)),
        }
    }

    /// The block that the query names.
    pub(super) fn block(self) -> Option<BlockRef> {
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
    pub(super) fn transaction(self) -> Option<TransactionQuery> {
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
    pub(super) fn is_simulation(self) -> bool {
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
