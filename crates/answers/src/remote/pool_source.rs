//! The nodes as a source: what everything that answers from them shares.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use methods::{BlockParam, BlockRef, DeadlineKind, GatewayQuery, Method, Query, Tag, WorkPlacement};
use nodes::view::SeenBlock;
use nodes::{CanonicalChain, Pool, Standing};
use resources::{AccountId, MemoryBudget, Supervisor, ThreadPool};

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

/// Nodes that a quorum must have to confirm anything.
pub(super) const CONFIRMING_NODES_MIN: usize = 2;

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
    pub(super) lookups: Flights<(AccountId, u64, BlockParam), Verification>,
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
    pub(super) supervisor: Supervisor,
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
        let StartedPool {
            pool,
            followed,
            rules,
            executed,
            integrity,
            state,
            family,
            call_timeout,
            supervisor,
            disk: _,
        } = started;
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
            supervisor,
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

    /// Whether answers that are verified as far as this may be cached. Where nodes must agree, the answer of one node may not,
    /// unless one node is the quorum.
    pub(super) fn may_cache(&self, verified: Verification) -> bool {
        verified > Verification::None
            || self.state == StateMode::Trust
            || !self.integrity.proves()
            || self.by_quorum() == Verification::None
    }

    /// How far something is verified that a quorum of the nodes has said. One node confirms nothing.
    pub(super) fn by_quorum(&self) -> Verification {
        match self.pool.quorum() >= CONFIRMING_NODES_MIN {
            true => Verification::Confirmed,
            false => Verification::None,
        }
    }

    /// How far it is verified that the block of this number is on the chain: the head commits to its ancestors, and which
    /// other blocks are older is what nodes say.
    fn number_verified(&self, chain: &CanonicalChain, number: u64) -> Verification {
        if chain.is_linked(number) { Verification::Proven } else { self.by_quorum() }
    }

    /// How far it is verified that these are the blocks that a query means. Of a range, the hash of the last one stands for
    /// all.
    pub(crate) fn blocks_verified(&self, chain: &CanonicalChain, query: &Query<BlockParam>) -> Verification {
        let number = match query.blocks().last() {
            None | Some(BlockParam::Tag(Tag::Latest | Tag::Pending)) => None,
            // Only nodes say that an old block is canonical, if the caller demands that.
            Some(BlockParam::Hash { hash, must_be_canonical }) => {
                chain.by_hash(&hash).filter(|_| must_be_canonical).map(|block| block.number)
            }
            Some(BlockParam::Number(number)) => Some(number),
            Some(BlockParam::Tag(Tag::Earliest)) => Some(0),
            Some(BlockParam::Tag(Tag::Safe)) => chain.safe().map(|block| block.number),
            Some(BlockParam::Tag(Tag::Finalized)) => chain.finalized().map(|block| block.number),
        };
        number.map_or(Verification::Proven, |number| self.number_verified(chain, number))
    }

    /// How far it is verified that an answer about a transaction belongs to the chain.
    pub(crate) fn place_verified(&self, chain: &CanonicalChain, block: Option<BlockRef>) -> Verification {
        block.map_or(Verification::Proven, |block| self.number_verified(chain, block.number))
    }

    /// Where it came from that there is no such block on the chain of the nodes.
    pub(crate) fn absent_at_nodes(verified: Verification) -> Provenance {
        Provenance { origin: Origin::Node, block: None, verified }
    }

    /// Whether a number, if it is known which block has it, need not be asked for again. Watchers ask for the marks all the time.
    pub(super) fn is_good_number(&self, chain: &CanonicalChain, number: u64) -> bool {
        let stands = |given_by| self.pool.standing(given_by) == Standing::Good;
        let is_mark =
            |mark: Option<nodes::BlockId>| mark.is_some_and(|mark| chain.by_number(number) == Some(mark));
        chain.given_by(number).is_none_or(stands) || is_mark(chain.safe()) || is_mark(chain.finalized())
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
