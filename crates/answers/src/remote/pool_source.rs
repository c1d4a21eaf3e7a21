//! The nodes as a source: what everything that answers from them shares.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use methods::{BlockParam, BlockRef, DeadlineKind, GatewayQuery, Method, WorkPlacement};
use nodes::view::SeenBlock;
use nodes::{CanonicalChain, Pool};
use resources::{AccountId, MemoryBudget, ThreadPool};

use super::absent::AbsentReceipts;
use super::chain_rules::ChainRules;
use super::confirmations::Confirmations;
use super::executed_chain::ExecutedChain;
use super::failovers::Failovers;
use super::flight_key::FlightKey;
use super::followed_chain::FollowedChain;
use super::integrity::IntegrityPolicy;
use super::proven_blocks::ProvenBlocks;
use super::proven_state::ProvenState;
use super::started_pool::StartedPool;
use super::state_mode::StateMode;
use super::suggested_fees::SuggestedFees;
use super::touched::TouchedState;
use crate::cache::Cache;
use crate::flights::Flights;
use crate::limits::AnswerLimits;
use crate::provenance::{Origin, Provenance, Verification};
use crate::query_plan::Subject;
use crate::results::Suggested;
use crate::shared::SharedAnswer;

/// Answers calls from nodes.
pub struct PoolSource {
    pub(super) pool: Arc<Pool>,
    pub(super) cache: Arc<Cache>,
    pub(super) blocks: ProvenBlocks,
    pub(super) followed: Option<Arc<FollowedChain>>,
    pub(super) proven_state: ProvenState,
    pub(super) touched: TouchedState,
    pub(super) rules: ChainRules,
    pub(super) executed: Option<Arc<ExecutedChain>>,
    pub(super) absent: AbsentReceipts,
    pub(super) suggested_fees: Suggested<SuggestedFees>,
    pub(super) flights: Flights<FlightKey>,
    pub(super) partner_flights: Flights<FlightKey>,
    /// Blocks below the window that nodes are asked for, in their epoch.
    pub(super) lookups: Flights<(AccountId, u64, BlockParam), ()>,
    /// Blocks that partners are asked for, by the method that the caller asks.
    pub(super) partner_lookups: Flights<(&'static str, BlockParam), Option<Arc<SeenBlock>>>,
    pub(super) failovers: Failovers,
    pub(super) integrity: IntegrityPolicy,
    pub(super) state: StateMode,
    pub(super) confirmations: Confirmations,
    pub(super) memory: MemoryBudget,
    /// Where large answers are read and proven.
    pub(super) threads: Arc<ThreadPool>,
    pub(super) limits: AnswerLimits,
    pub(super) family: nodes::ChainFamily,
    pub(super) call_timeout: Duration,
}

impl PoolSource {
    /// Answers from these nodes, within the limits of the answer step.
    pub(crate) fn new(
        started: StartedPool,
        threads: Arc<ThreadPool>,
        cache: Arc<Cache>,
        memory: MemoryBudget,
        limits: AnswerLimits,
    ) -> Self {
        let StartedPool { pool, followed, rules, executed, integrity, state, family, call_timeout } = started;
        Self {
            pool,
            cache,
            blocks: ProvenBlocks::new(limits.proven_bytes_max),
            followed,
            proven_state: ProvenState::new(limits.state_bytes_max),
            touched: TouchedState::default(),
            rules,
            executed,
            absent: AbsentReceipts::default(),
            suggested_fees: Suggested::default(),
            flights: Flights::default(),
            partner_flights: Flights::default(),
            lookups: Flights::default(),
            partner_lookups: Flights::default(),
            failovers: Failovers::default(),
            integrity,
            state,
            confirmations: Confirmations::default(),
            memory,
            threads,
            limits,
            family,
            call_timeout,
        }
    }

    /// The archive that follows the nodes, if there is one.
    pub fn executed_chain(&self) -> Option<&Arc<ExecutedChain>> {
        self.executed.as_ref()
    }

    pub fn pool(&self) -> &Pool {
        &self.pool
    }

    pub fn integrity(&self) -> &IntegrityPolicy {
        &self.integrity
    }

    pub fn state(&self) -> StateMode {
        self.state
    }

    pub fn confirmations(&self) -> &Confirmations {
        &self.confirmations
    }

    pub fn failovers(&self) -> &Failovers {
        &self.failovers
    }

    /// How many calls waited for the answer to an equal one.
    pub(crate) fn shared_calls(&self) -> u64 {
        self.flights.joined() + self.partner_flights.joined()
    }

    /// The answer to a query that needs nobody. `None` for all others, and for the chain id before any node has shown it.
    pub(super) fn known(&self, head: BlockRef, subject: Subject<'_>) -> Option<Bytes> {
        let query = match subject {
            Subject::Gateway(query) => query,
            Subject::Logs(_) | Subject::Node(_) => return None,
        };
        Some(match query {
            GatewayQuery::ChainId => format!("\"{:#x}\"", self.chain_id()?).into(),
            GatewayQuery::NetVersion => format!("\"{}\"", self.chain_id()?).into(),
            GatewayQuery::BlockNumber => format!("\"{:#x}\"", head.number).into(),
            GatewayQuery::Syncing => Bytes::from_static(b"false"),
            GatewayQuery::ClientVersion => Bytes::from_static(crate::archive_source::CLIENT_VERSION),
            GatewayQuery::Discover => Bytes::from_static(methods::OPENRPC.as_bytes()),
        })
    }

    /// A result on its way to its callers, whose accounts are charged for it from now on.
    pub(super) fn shared(
        &self,
        origin: Origin,
        block: Option<BlockRef>,
        verified: Verification,
        result: Bytes,
    ) -> SharedAnswer {
        let provenance = Provenance { origin, block, verified };
        SharedAnswer::new(provenance, self.pool.memory().hand_over(result))
    }

    /// Whether answers that are verified as far as this may be cached. Where nodes must agree, the answer of one node may not.
    pub(super) fn may_cache(&self, verified: Verification) -> bool {
        verified > Verification::None || self.state == StateMode::Trust || !self.integrity.proves()
    }

    /// How long a call may take over all nodes that are asked.
    pub(super) fn time(&self, method: &Method) -> Duration {
        match method.rules.work {
            WorkPlacement::Pooled(DeadlineKind::Logs) => self.limits.log_timeout,
            WorkPlacement::Pooled(DeadlineKind::Call) => self.limits.call_timeout,
            WorkPlacement::Inline | WorkPlacement::Pooled(DeadlineKind::Fees | DeadlineKind::Block) => {
                self.call_timeout
            }
        }
    }

    pub(super) fn gas_cap(&self, chain: &CanonicalChain) -> u64 {
        let gas_limit = chain.head_block().map_or(0, |block| block.gas_limit);
        gas_limit.saturating_mul(self.limits.call_gas_multiple)
    }
}

impl std::fmt::Debug for PoolSource {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PoolSource").field("pool", &self.pool).finish_non_exhaustive()
    }
}
