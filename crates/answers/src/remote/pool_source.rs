//! The nodes as a source: what everything that answers from them shares.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use methods::{BlockRef, DeadlineKind, Method, WorkPlacement};
use nodes::Pool;
use resources::{MemoryBudget, Supervisor, ThreadPool};

use super::blocks::Blocks;
use super::executed_chain::ExecutedChain;
use super::fees::Fees;
use super::flight_key::FlightKey;
use super::followed_chain::FollowedChain;
use super::integrity::IntegrityPolicy;
use super::known_answers::KnownAnswers;
use super::logs::Logs;
use super::partner_answers::PartnerAnswers;
use super::started_pool::StartedPool;
use super::state::{Confirmations, State};
use super::state_mode::StateMode;
use super::workers::Workers;
use crate::cache::Cache;
use crate::flights::Flights;
use crate::limits::AnswerLimits;
use crate::provenance::{Origin, Provenance, Verification};
use crate::shared::SharedAnswer;

/// Answers calls from nodes.
pub struct PoolSource {
    pub(super) pool: Arc<Pool>,
    pub(crate) known: KnownAnswers,
    pub(crate) blocks: Arc<Blocks>,
    pub(super) logs: Logs,
    pub(super) state: Arc<State>,
    pub(super) fees: Fees,
    pub(super) executed: Option<Arc<ExecutedChain>>,
    pub(super) flights: Flights<FlightKey>,
    pub(super) partner_answers: PartnerAnswers,
    pub(super) limits: AnswerLimits,
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
            state: mode,
            family,
            call_timeout,
            supervisor,
            disk: _,
        } = started;
        let workers = Arc::new(Workers::new(threads, memory, integrity, limits.log_timeout));
        let blocks = Blocks::new(Arc::clone(&pool), workers, family, followed, limits.proven_bytes_max);
        let blocks = Arc::new(blocks);
        let state = State::new(Arc::clone(&blocks), rules, mode, Arc::clone(&cache), limits.clone());
        let state = Arc::new(state);
        Self {
            pool,
            known: KnownAnswers::new(cache, Arc::clone(&blocks), Arc::clone(&state)),
            logs: Logs::new(Arc::clone(&blocks), Arc::clone(&state), limits.clone()),
            state,
            fees: Fees::new(Arc::clone(&blocks)),
            blocks,
            executed,
            flights: Flights::default(),
            partner_answers: PartnerAnswers::default(),
            limits,
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
        &self.blocks.workers.integrity
    }

    pub fn state(&self) -> StateMode {
        self.state.mode
    }

    pub fn confirmations(&self) -> &Confirmations {
        &self.state.confirmations
    }

    /// The stored blocks, if blocks are stored.
    pub fn followed_chain(&self) -> Option<&Arc<FollowedChain>> {
        self.blocks.followed_chain()
    }

    pub fn partner_answers(&self) -> &PartnerAnswers {
        &self.partner_answers
    }

    /// How many calls waited for the answer to an equal one.
    pub(crate) fn shared_calls(&self) -> u64 {
        self.flights.joined()
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

    /// Where it came from that there is no such block on the chain of the nodes.
    pub(crate) fn absent_at_nodes(verified: Verification) -> Provenance {
        Provenance { origin: Origin::Node, block: None, verified }
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
}

impl std::fmt::Debug for PoolSource {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PoolSource").field("pool", &self.pool).finish_non_exhaustive()
    }
}
