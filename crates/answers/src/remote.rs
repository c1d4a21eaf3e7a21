//! The pool as a source: cached answers and stored blocks, then the nodes of the operator, then (by plan) partners.

pub mod settings; // the configuration
mod follow_settings; // which blocks are stored
mod state_mode; // how far nodes are believed about the state
mod block_ids; // blocks of the nodes' chain
mod asking; // what questions to nodes have in common
mod simulation_gas; // how much gas simulations have that nodes run
mod encode; // queries → calls
mod node_failures; // errors of nodes → failures of ours
mod fetched; // answers, and how long they may be cached
mod integrity; // what answers about blocks are made from
mod workers; // work on large answers runs in the pool of threads
mod mined; // proven blocks as JSON

// What is known, in memory or in files:

mod absent; // receipts that are not there yet
mod executed_chain; // an archive that follows the nodes
mod partner_answers; // how often partners have answered
mod flight_key; // which calls share an answer while it is fetched
mod recent_blocks; // blocks in memory
mod block_retries; // when blocks that could not be fetched are tried again
mod followed_chain; // blocks that are stored, and how far they are known to be canonical

// Who gives answers, one owner each:

mod blocks; // proven blocks and headers, and where a transaction is
mod fees; // fees from proven blocks
pub(crate) mod state; // state, and everything else that no block proves
mod logs; // log queries

// In which order they are asked:

mod started_pool; // nodes that are watched
mod node_changes; // other nodes in their place
mod known_answers; // answers that nobody has to be asked for
mod pool_source; // all of these, and the nodes
mod block_lookup; // which blocks are meant, and who can say so
mod not_served; // why no node answers
mod pending; // calls about the pending block
mod partner; // who is asked when no node of the operator can answer

// What runs beside requests:

mod follow_thread; // a thread that follows the chain
mod follow; // blocks that are stored as the chain grows
mod execute; // new blocks are executed

#[cfg(test)]
#[path = "remote/tests/test_blocks.rs"]
mod test_blocks; // blocks without nodes that answer
#[cfg(test)]
#[path = "remote/tests/test_source.rs"]
mod test_source; // a source without nodes that answer

use std::pin::pin;
use std::sync::Arc;

use methods::{BlockRef, Method, Network, Query};
use nodes::CanonicalChain;
use resources::AccountId;
use tokio::time::Instant;

use crate::cache::CacheLookup;
use crate::failure::Failure;
use crate::provenance::{Answer, Origin};
use crate::query_plan::{NodeQuery, QueryPlan, Subject};
use crate::shared::SharedAnswer;
use crate::unanswered::{HandedBack, Repetition, Unanswered};

use asking::Asking;
pub use block_retries::AwaitedBlock;
use blocks::BlockAnswers;
pub(super) use execute::start_executing;
pub(super) use executed_chain::ExecutedView;
pub use executed_chain::{ExecutedChain, ExecutionState};
use fetched::{Fetched, at_head};
use flight_key::FlightKey;
pub(super) use follow::start_following;
pub use follow_settings::FollowMode;
pub(super) use follow_thread::FollowThread;
pub use followed_chain::{FollowState, FollowedChain};
pub use node_changes::change_nodes;
use partner::is_for_another;
pub use pool_source::PoolSource;
pub use started_pool::StartedPool;
use state::ChainRules;

/// Whether the genesis file that a configuration names can be used.
pub fn check_genesis(network: &Network) -> Result<(), String> {
    ChainRules::open(network).map(|_| ())
}

/// A call that needs nodes: who asks, and in which view.
#[derive(Clone, Copy)]
pub(super) struct NodeCall<'a> {
    pub(super) account: AccountId,
    pub(super) chain: &'a Arc<CanonicalChain>,
    pub(super) method: &'static Method,
    /// Whether a partner may be asked when nobody else can answer.
    pub(super) may_fail_over: bool,
    pub(super) repetition: Repetition,
}

impl PoolSource {
    /// Asks nodes for an answer that is not cached.
    pub(super) async fn answer(
        &self,
        call: NodeCall<'_>,
        query: Query<BlockRef>,
    ) -> Result<Answer, Unanswered> {
        let NodeCall { account, chain, method, may_fail_over, repetition } = call;
        let deadline = match repetition {
            Repetition::Never { deadline: Some(deadline) } => deadline,
            Repetition::Once | Repetition::Never { deadline: None } => Instant::now() + self.time(method),
        };
        let key = FlightKey::of(account, chain, &query);
        let pays = key.paying_account();
        let mut has_asked = false;
        let outcome = {
            let fetch = || {
                has_asked = true;
                let asking = Asking { account: pays, caller: account, chain, deadline, only: None };
                self.fetch(asking, chain, method, &query)
            };
            let fetched =
                pin!(self.with_outage_timeout(may_fail_over, self.flights.share(key, deadline, fetch)));
            match repetition {
                Repetition::Once => self.unless_reorganised(chain, &query, deadline, fetched).await,
                Repetition::Never { .. } => Some(fetched.await),
            }
        };
        let Some(mut outcome) = outcome else { return Err(handed_back(query, deadline)) };
        // A call that only waited for an equal one until its deadline fails as if it had asked by itself.
        if !has_asked {
            outcome = outcome.map_err(|failure| self.failure_at(deadline, &query, failure));
        }
        // With every node down no other block can be reported, so a partner is asked at once.
        if matches!(outcome, Err(Failure::Unavailable)) && !self.pool.all_down() {
            Box::pin(self.blocks.correct_numbers(account, chain, &query, deadline)).await;
            if repetition == Repetition::Once && Instant::now() < deadline {
                return Err(handed_back(query, deadline));
            }
        }
        Ok(self.conclude(call, query, outcome).await?)
    }

    /// The answer after the last try. Where no node could give one, it is one that was confirmed before, or that of a partner.
    async fn conclude(
        &self,
        call: NodeCall<'_>,
        query: Query<BlockRef>,
        outcome: Result<SharedAnswer, Failure>,
    ) -> Result<Answer, Failure> {
        let NodeCall { account, chain, method, may_fail_over, .. } = call;
        let failure = match outcome {
            Ok(answer) => return answer.lend(self.blocks.workers.memory.of(account)),
            Err(failure) => failure,
        };
        if !is_for_another(&failure) {
            return Err(failure);
        }
        if let Some(expired) = self.known.expired(account, chain, method, &query) {
            return expired;
        }
        let failure = match may_fail_over {
            true => match Box::pin(self.fail_over(account, chain, method, &query)).await {
                Err(failure) => failure,
                answered => return answered,
            },
            false => failure,
        };
        match failure {
            Failure::Unavailable | Failure::Lacking => Err(self.not_served(chain, method, &query)),
            failure => Err(failure),
        }
    }

    /// The failure of a call, which took too long if nobody has answered it by its deadline.
    fn failure_at(&self, deadline: Instant, query: &Query<BlockRef>, failure: Failure) -> Failure {
        if failure != Failure::Unavailable || Instant::now() < deadline {
            return failure;
        }
        match QueryPlan::of(query).subject {
            Subject::Logs(_) => Failure::QueryTimeout,
            Subject::Node(query) if query.is_simulation() => Failure::CallTimeout(self.limits.call_timeout),
            Subject::Node(_) | Subject::Gateway(_) => failure,
        }
    }

    /// Asks nodes. What a partner has said is not cached.
    async fn fetch(
        &self,
        asking: Asking<'_>,
        chain: &Arc<CanonicalChain>,
        method: &Method,
        query: &Query<BlockRef>,
    ) -> Result<SharedAnswer, Failure> {
        let asked = self.pool.trust_mark();
        let lookup = CacheLookup { query, head: at_head(chain, method) };
        let subject = QueryPlan::of(query).subject;
        let (origin, fetched) = match subject {
            Subject::Gateway(_) => return Err(Failure::Unavailable),
            // Boxed, as all futures below that are large and that most calls do not need: a call would copy them.
            Subject::Logs(logs) => Box::pin(self.logs.find(asking, logs)).await?,
            Subject::Node(query) => self.fetch_answer(asking, method, query, lookup).await?,
        };
        if asking.partner_quota(&self.pool).is_some() {
            return Ok(self.shared(Origin::Partner, fetched.block, fetched.verified, fetched.result));
        }
        self.known.insert(asking, method, subject, lookup, &fetched, asked).await;
        Ok(self.shared(origin, fetched.block, fetched.verified, fetched.result))
    }

    /// The answer that proven blocks give; `None` for queries that are not about block data.
    async fn answer_from_blocks(
        &self,
        asking: Asking<'_>,
        query: NodeQuery<'_>,
    ) -> Option<Result<Fetched, Failure>> {
        if !self.blocks.are_proven() {
            return None;
        }
        let answers = BlockAnswers { blocks: &self.blocks, asking };
        match query {
            NodeQuery::Block(query) => Some(Box::pin(answers.of_block(query)).await),
            NodeQuery::Transaction(query) => Some(Box::pin(answers.of_transaction(query)).await),
            NodeQuery::Fees(query) => Box::pin(self.fees.answer(asking, query)).await,
            NodeQuery::State(_) | NodeQuery::Simulation(_) | NodeQuery::RawTransactions(_) => None,
        }
    }

    async fn fetch_answer(
        &self,
        asking: Asking<'_>,
        method: &Method,
        query: NodeQuery<'_>,
        lookup: CacheLookup<'_>,
    ) -> Result<(Origin, Fetched), Failure> {
        let may_confirm = asking.only.is_none();
        let mut answered = self.answer_from_blocks(asking, query).await;
        // The first blocks of some test nodes are like that. A quorum is asked, as on chains without provable blocks.
        let is_odd = may_confirm && matches!(answered, Some(Err(Failure::OddHeader)));
        if is_odd {
            answered = None;
        }
        if let Some(fetched) = answered.transpose()? {
            return Ok((self.blocks.stored.origin_of(fetched.block), fetched));
        }
        let mut answered = self.state.answer_proven(asking, query).await;
        if answered.is_none() && may_confirm {
            let with_blocks = is_odd || self.state.confirms_blocks();
            answered = self.state.answer_confirmed(asking, method, query, with_blocks, lookup).await;
        }
        let fetched = match answered {
            Some(answered) => answered?,
            None => self.state.forward(asking, method, query).await?,
        };
        Ok((Origin::Node, fetched))
    }
}

fn handed_back(query: Query<BlockRef>, deadline: Instant) -> Unanswered {
    Unanswered::HandedBack(HandedBack { query: Box::new(query), deadline })
}

#[cfg(test)]
mod tests {
    use std::future::pending;
    use std::time::Duration;

    use futures_util::FutureExt;
    use methods::{BlockParam, BlockPart, BlockQuery, LogBlocks, LogsQuery, MethodId};
    use tokio::time::timeout;

    use super::*;
    use block_ids::block_ref;
    use test_blocks::chain_of_head;
    use test_source::TestSource;

    /// While all nodes were out, a call about an old block asked them once more which block has its number, for as long as
    /// the call may take, before a partner was asked.
    #[tokio::test]
    async fn numbers_are_not_looked_up_again_while_all_nodes_are_out() {
        let test = TestSource::new(1);
        let chain = Arc::new(chain_of_head(1_000));
        let far = Instant::now() + Duration::from_secs(3_600);
        let (account, number) = (AccountId::unique(), BlockParam::Number(5));
        let key = (account, chain.epoch(), number);
        let mut look_up = pin!(test.source.blocks.lookups.share(key, far, pending));
        assert!((&mut look_up).now_or_never().is_none());
        let block = BlockRef { number: 5, hash: Default::default() };
        let query = Query::Block(BlockQuery { block, part: BlockPart::TransactionCount });
        let method = MethodId::named("eth_getBlockTransactionCountByNumber").unwrap().row();
        let repetition = Repetition::Never { deadline: Some(far) };
        let call = NodeCall { account, chain: &chain, method, may_fail_over: false, repetition };
        let answer = timeout(Duration::from_secs(60), test.source.answer(call, query)).await;
        assert!(matches!(answer, Ok(Err(Unanswered::Failed(Failure::NotServed { .. })))));
    }

    /// A call that waited for an equal one until its own deadline was told that nobody can answer it, and a partner was asked.
    #[tokio::test]
    async fn a_call_that_waits_for_an_equal_one_until_its_deadline_has_taken_too_long() {
        let test = TestSource::new(1);
        let chain = Arc::new(chain_of_head(1_000));
        let account = AccountId::unique();
        let blocks = LogBlocks::One(block_ref(chain.head()));
        let query = Query::Logs(LogsQuery { filter: Arc::default(), blocks });
        let key = FlightKey::of(account, &chain, &query);
        let far = Instant::now() + Duration::from_secs(3_600);
        let mut first = pin!(test.source.flights.share(key, far, pending));
        assert!((&mut first).now_or_never().is_none());
        let method = MethodId::named("eth_getLogs").unwrap().row();
        let repetition = Repetition::Never { deadline: Some(Instant::now()) };
        let call = NodeCall { account, chain: &chain, method, may_fail_over: true, repetition };
        let answer = test.source.answer(call, query).await;
        assert!(matches!(answer, Err(Unanswered::Failed(Failure::QueryTimeout))));
    }
}
