//! The nodes as a source: what everything that answers from them shares.

mod order; // in which order sources are asked
mod pending; // calls about the pending block
mod reorganised; // how long a call goes on

use std::io;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use methods::{BlockParam, DeadlineKind, Method, Query, WorkPlacement};
use nodes::{CanonicalChain, Pool};
use resources::{AccountId, MemoryBudget, Supervisor, ThreadPool};
use sources::{
    Cache, CacheKey, CurrentLimits, Failure, Flights, Origin, Provenance, SharedAnswer, Verification,
};
use tokio::time::Instant;

use super::blocks::Blocks;
use super::fees::Fees;
use super::follower::{ExecutedChain, FollowThread, FollowedChain, Follower};
use super::integrity::IntegrityPolicy;
use super::known_answers::KnownAnswers;
use super::logs::Logs;
use super::partners::Partners;
use super::settings::StateMode;
use super::started_pool::StartedPool;
use super::state::{Confirmations, State};
use super::workers::Workers;
use crate::call_key::CallKey;

/// Answers calls from nodes.
pub struct PoolSource {
    known: KnownAnswers,
    pub(super) blocks: Arc<Blocks>,
    logs: Logs,
    state: Arc<State>,
    fees: Fees,
    follower: Option<Follower>,
    flights: Flights<CallKey<CacheKey>>,
    partners: Partners,
    limits: CurrentLimits,
    call_timeout: Duration,
}

impl PoolSource {
    /// Answers from these nodes, within the limits of the answer step.
    pub fn new(
        started: StartedPool,
        threads: Arc<ThreadPool>,
        cache: Arc<Cache>,
        memory: MemoryBudget,
        limits: impl Into<CurrentLimits>,
    ) -> Self {
        let limits = limits.into();
        let StartedPool {
            pool,
            rules,
            follower,
            integrity,
            state: mode,
            family,
            call_timeout,
            supervisor: _,
            disk: _,
        } = started;
        let workers = Arc::new(Workers::new(threads, memory, integrity, limits.clone()));
        let stored = follower.as_ref().and_then(Follower::stored_chain).cloned();
        let blocks = Blocks::new(Arc::clone(&pool), workers, family, stored, limits.now().proven_bytes_max);
        let blocks = Arc::new(blocks);
        let state = State::new(Arc::clone(&blocks), rules, mode, Arc::clone(&cache), limits.clone());
        let state = Arc::new(state);
        Self {
            known: KnownAnswers::new(cache, Arc::clone(&blocks), Arc::clone(&state)),
            logs: Logs::new(Arc::clone(&blocks), Arc::clone(&state), limits.clone()),
            state,
            fees: Fees::new(Arc::clone(&blocks)),
            blocks,
            follower,
            flights: Flights::default(),
            partners: Partners::new(pool),
            limits,
            call_timeout,
        }
    }

    /// Makes sure that the view can say which blocks a query means, as far as they exist. Returns how far it is verified that one
    /// that it does not have does not exist.
    pub async fn find_blocks(
        &self,
        account: AccountId,
        chain: &CanonicalChain,
        query: &Query<BlockParam>,
    ) -> Result<Verification, Failure> {
        if query.blocks().all(|block| self.blocks.knows(chain, block)) {
            return Ok(self.blocks.by_quorum());
        }
        // Boxed, because the future is large and few calls need it.
        let deadline = Instant::now() + self.call_timeout;
        Box::pin(self.blocks.learn_all(account, chain, query, deadline)).await.map_err(
            |failure| match failure {
                Failure::Unavailable => Failure::NotServed { reason: UNKNOWN_BLOCK.to_owned() },
                failure => failure,
            },
        )
    }

    /// How far it is verified that the blocks of a query are the ones that it means.
    pub fn blocks_verified(&self, chain: &CanonicalChain, query: &Query<BlockParam>) -> Verification {
        self.blocks.blocks_verified(chain, query)
    }

    /// Begins to follow the chain, if it is followed.
    pub fn start_following(&self, supervisor: &Supervisor) -> io::Result<Option<FollowThread>> {
        self.follower.as_ref().map(|follower| follower.start(&self.blocks, supervisor)).transpose()
    }

    /// The archive that follows the nodes, if there is one.
    pub fn executed_chain(&self) -> Option<&Arc<ExecutedChain>> {
        self.follower.as_ref()?.executed_chain()
    }

    pub fn pool(&self) -> &Pool {
        &self.blocks.pool
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
        self.follower.as_ref()?.followed_chain()
    }

    pub fn partners(&self) -> &Partners {
        &self.partners
    }

    /// How many calls waited for the answer to an equal one.
    pub fn shared_calls(&self) -> u64 {
        self.flights.joined() + self.partners.flights.joined()
    }

    /// A result on its way to its callers, whose accounts are charged for it from now on.
    fn shared(&self, provenance: Provenance, result: Bytes) -> SharedAnswer {
        SharedAnswer::new(provenance, self.pool().memory().hand_over(result))
    }

    /// Where it came from that there is no such block on the chain of the nodes.
    pub fn absent_at_nodes(verified: Verification) -> Provenance {
        Provenance { origin: Origin::Node, block: None, verified, node: None }
    }

    /// How long a call may take over all nodes that are asked.
    fn time(&self, method: &Method) -> Duration {
        match method.rules.work {
            WorkPlacement::Pooled(DeadlineKind::Logs) => self.limits.now().log_timeout,
            WorkPlacement::Pooled(DeadlineKind::Call) => self.limits.now().call_timeout,
            WorkPlacement::Inline | WorkPlacement::Pooled(DeadlineKind::Fees | DeadlineKind::Block) => {
                self.call_timeout
            }
        }
    }
}

const UNKNOWN_BLOCK: &str = "too few nodes say which block is meant: they have dropped it, or do not answer";

impl std::fmt::Debug for PoolSource {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PoolSource").field("pool", self.pool()).finish_non_exhaustive()
    }
}
