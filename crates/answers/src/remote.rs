//! The pool as a source: cached answers and stored blocks, then the nodes, then (by plan) a partner.

pub mod settings; // the configuration
mod follow_settings; // which blocks are stored
mod state_mode; // how far nodes are believed about the state
mod block_ids; // blocks of the nodes' chain
mod asking; // what questions to nodes have in common
mod encode; // queries → calls
mod node_failures; // errors of nodes → failures of ours
mod fetched; // answers, and how long they may be cached
mod mined; // proven blocks as JSON

// What is known, in memory or in files:

mod absent; // receipts that are not there yet
mod chain_rules; // by which rules a block runs
mod confirmations; // what became of answers that a quorum must confirm
mod executed_chain; // an archive that follows the nodes
mod failovers; // why partners were asked
mod flight_key; // which calls share an answer while it is fetched
mod integrity; // what answers about blocks are made from
mod recent_blocks; // blocks in memory
mod followed_chain; // blocks that are stored, and how far they are known to be canonical
mod proven_blocks; // proven blocks in memory
mod proven_state; // accounts, slots and code that were proven
mod suggested_fees; // what to pay in the next block
mod touched; // what calls read
mod started_pool; // nodes that are watched
mod pool_source; // all of these, and the nodes
mod call_gas; // the gas that a call to a node names
mod simulation_gas; // how much gas simulations have that nodes run
mod not_served; // why no node answers

// How answers are made from it:

mod sized_work; // work on large answers runs in the pool of threads
mod stored_blocks; // answers from stored blocks
mod side_blocks; // blocks that were reorganised away
mod blocks; // proven blocks, fetched
mod headers; // proven headers below the window
mod partner_view; // the chain as a partner tells it
mod block_lookup; // which blocks are meant, and who can say so
mod located; // which block a transaction is in
mod fees; // fees from proven blocks
mod block_answers; // answers from proven blocks
pub(crate) mod state; // state, and everything else that no block proves
mod logs; // log queries, in chunks that are cached
mod pending; // calls about the pending block
mod partner; // who is asked when nobody of our own can answer

// What runs beside requests:

mod follow_thread; // a thread that follows the chain
mod follow; // blocks that are stored as the chain grows
mod execute; // new blocks are executed

#[cfg(test)]
mod test_source; // a source without nodes that answer

use std::pin::pin;
use std::sync::Arc;

use bytes::Bytes;
use methods::{BlockParam, BlockRef, Cacheable, LogsQuery, Method, Network, Query};
use nodes::{CallFailure, CanonicalChain, GivenBy, Standing, Supplier};
use resources::AccountId;
use tokio::time::Instant;

use crate::cache::{CacheLookup, CachedAnswer};
use crate::failure::Failure;
use crate::provenance::{Answer, Origin, Verification};
use crate::query_plan::{NodeQuery, QueryPlan, Subject};
use crate::shared::SharedAnswer;
use crate::unanswered::{Reorganised, Repetition, Unanswered};

use absent::AbsentReceipt;
use asking::Asking;
use block_ids::{block_ref, head};
pub(crate) use block_lookup::NamedBy;
use call_gas::SimulationGas;
use chain_rules::ChainRules;
pub(super) use execute::start_executing;
pub(super) use executed_chain::ExecutedView;
pub use executed_chain::{ExecutedChain, ExecutionState};
use fetched::{CacheDecision, Fetched, NULL, answer, at_head, cached_answer, holds};
use flight_key::FlightKey;
pub(super) use follow::start_following;
pub use follow_settings::FollowMode;
pub(super) use follow_thread::FollowThread;
pub use followed_chain::{FollowState, FollowedChain};
pub(crate) use partner_view::PartnerView;
pub use pool_source::PoolSource;
use sized_work::COPIED_AT_ONCE_BYTES_MAX;
pub use started_pool::StartedPool;
use state::PassedOn;

/// How often a call is tried whose block stays canonical although no node could answer: nodes that change to another branch
/// lack some blocks for a moment.
const TRIES_MAX: u32 = 2;

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
    /// The answer to a query whose blocks are pinned to `chain`, if nobody has to be asked for it.
    pub(super) fn cached_answer(
        &self,
        account: AccountId,
        chain: &CanonicalChain,
        method: &Method,
        query: &Query<BlockRef>,
    ) -> Option<Result<Answer, Failure>> {
        let subject = QueryPlan::of(query).subject;
        if let Some(result) = self.known(head(chain), subject) {
            return Some(Ok(answer(Origin::Cache, Some(head(chain)), self.by_quorum(), result)));
        }
        let asked = CacheLookup { query, head: at_head(chain, method) };
        let Some(cached) = self.cache.get(&asked).filter(|cached| self.is_good(chain, cached)) else {
            let absent = self.absent_receipt(chain, subject)?;
            return (self.pool.standing(absent.given_by) == Standing::Good)
                .then(|| Ok(absent_answer(absent)));
        };
        Some(self.lend(account, &cached))
    }

    fn lend(&self, account: AccountId, cached: &CachedAnswer) -> Result<Answer, Failure> {
        let result = self.memory.of(account).lend(&cached.result, &cached.readers)?;
        Ok(answer(Origin::Cache, cached.block, cached.verified, result))
    }

    /// Whether a cached answer is still valid: the block it depends on is canonical, and what only nodes have said need not be
    /// asked again.
    fn is_good(&self, chain: &CanonicalChain, cached: &CachedAnswer) -> bool {
        holds(chain, cached)
            && cached.given_by.is_none_or(|given_by| self.pool.standing(given_by) == Standing::Good)
            && cached.block.is_none_or(|block| self.is_good_number(chain, block.number))
    }

    /// The entry for a receipt that is not there at this head.
    fn absent_receipt(&self, chain: &CanonicalChain, subject: Subject<'_>) -> Option<AbsentReceipt> {
        self.absent.get(head(chain), &subject.receipt()?)
    }

    /// An answer that was confirmed before and has to be confirmed again, for which too few nodes answer. It is served for a
    /// few seconds before they are asked once more.
    fn expired_answer(
        &self,
        account: AccountId,
        chain: &CanonicalChain,
        method: &Method,
        query: &Query<BlockRef>,
    ) -> Option<Result<Answer, Failure>> {
        let is_expired = |given_by: &GivenBy| self.pool.standing(*given_by) != Standing::Void;
        let subject = QueryPlan::of(query).subject;
        if let Some(absent) =
            self.absent_receipt(chain, subject).filter(|absent| is_expired(&absent.given_by))
        {
            let given_by = self.pool.prolonged(absent.given_by);
            let prolonged = AbsentReceipt { given_by, ..absent };
            self.absent.add(chain.epoch(), head(chain), subject.receipt()?, prolonged);
            return Some(Ok(absent_answer(absent)));
        }
        let asked = CacheLookup { query, head: at_head(chain, method) };
        let cached = self.cache.get(&asked).filter(|cached| holds(chain, cached))?;
        if cached.given_by.is_none() {
            // It is proven, and which block it is about may have been kept meanwhile.
            return self.is_good(chain, &cached).then(|| self.lend(account, &cached));
        }
        let given_by = self.pool.prolonged(cached.given_by.filter(is_expired)?);
        let lent = self.lend(account, &cached);
        self.cache.insert(asked.key(), CachedAnswer { given_by: Some(given_by), ..cached });
        Some(lent)
    }

    /// Asks nodes for an answer that is not cached.
    pub(super) async fn answer(
        &self,
        call: NodeCall<'_>,
        query: Query<BlockRef>,
    ) -> Result<Answer, Unanswered> {
        let NodeCall { account, chain, method, may_fail_over, repetition } = call;
        let deadline = match repetition {
            Repetition::Yes { deadline: Some(deadline) } => deadline,
            _ => Instant::now() + self.time(method),
        };
        let key = FlightKey::of(account, chain, &query);
        let pays = key.paying_account();
        let (mut tries, mut has_asked) = (0, false);
        let outcome = loop {
            let fetch = || {
                has_asked = true;
                self.fetch(account, pays, chain, method, &query, deadline)
            };
            let fetched = pin!(
                self.with_outage_timeout(may_fail_over, self.flights.share(key.clone(), deadline, fetch))
            );
            let outcome = match repetition {
                Repetition::No => break Some(fetched.await),
                Repetition::Yes { .. } => {
                    self.unless_reorganised(account, chain, &query, deadline, fetched).await
                }
            };
            tries += 1;
            let is_failed = matches!(outcome, Some(Err(Failure::Unavailable))) && !self.pool.is_out();
            if !is_failed || tries >= TRIES_MAX || Instant::now() >= deadline {
                break outcome;
            }
        };
        // A call that only waited for an equal one until its deadline fails as if it had asked by itself.
        let outcome = match has_asked {
            true => outcome,
            false => {
                outcome.map(|outcome| outcome.map_err(|failure| self.failure_at(deadline, &query, failure)))
            }
        };
        let outcome = match outcome {
            // While all nodes are out, nobody would tell another block, and a partner is waiting to be asked.
            Some(Err(Failure::Unavailable))
                if !self.pool.is_out()
                    && Box::pin(self.correct_numbers(account, chain, &query, deadline)).await
                    && repetition != Repetition::No =>
            {
                None
            }
            outcome => outcome,
        };
        self.conclude(call, query, deadline, outcome).await
    }

    /// The answer after the last try. Where no node could give one, it is one that was confirmed before, or that of a partner.
    async fn conclude(
        &self,
        call: NodeCall<'_>,
        query: Query<BlockRef>,
        deadline: Instant,
        outcome: Option<Result<SharedAnswer, Failure>>,
    ) -> Result<Answer, Unanswered> {
        let NodeCall { account, chain, method, may_fail_over, .. } = call;
        let expired = match &outcome {
            Some(Err(Failure::Unavailable | Failure::AbsenceUnknown | Failure::Lacking)) => {
                self.expired_answer(account, chain, method, &query)
            }
            _ => None,
        };
        if let Some(expired) = expired {
            return Ok(expired?);
        }
        match outcome {
            None => Err(Unanswered::Reorganised(Reorganised { query: Box::new(query), deadline })),
            Some(Err(Failure::Unavailable | Failure::AbsenceUnknown | Failure::Lacking)) if may_fail_over => {
                match Box::pin(self.fail_over(account, chain, method, &query)).await {
                    Err(Failure::Unavailable | Failure::Lacking) => {
                        Err(self.not_served(chain, method, &query).into())
                    }
                    answered => Ok(answered?),
                }
            }
            Some(Err(Failure::Unavailable | Failure::Lacking)) => {
                Err(self.not_served(chain, method, &query).into())
            }
            Some(outcome) => Ok(outcome?.lend(self.memory.of(account))?),
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

    async fn fetch(
        &self,
        caller: AccountId,
        account: AccountId,
        chain: &Arc<CanonicalChain>,
        method: &Method,
        query: &Query<BlockRef>,
        deadline: Instant,
    ) -> Result<SharedAnswer, Failure> {
        let asking = Asking { account, caller, chain, deadline, supplier: Supplier::Nodes };
        match QueryPlan::of(query).subject {
            Subject::Gateway(_) => Err(Failure::Unavailable),
            // Boxed, as all futures below that are large and that most calls do not need: a call would copy them.
            Subject::Logs(logs) => Box::pin(self.fetch_logs(asking, chain, query, logs)).await,
            Subject::Node(node_query) => self.fetch_answer(asking, method, query, node_query).await,
        }
    }

    async fn fetch_logs(
        &self,
        asking: Asking<'_>,
        chain: &Arc<CanonicalChain>,
        query: &Query<BlockRef>,
        logs: &LogsQuery<BlockRef>,
    ) -> Result<SharedAnswer, Failure> {
        let found = self.logs(asking.account, chain, logs, asking.deadline).await?;
        // A whole answer is cached when all its pieces were cached already, or when it is confirmed or proven.
        if found.origin == Origin::Cache || found.verified > Verification::None {
            let cached =
                cached_answer(chain, &found.result, Some(found.block), found.verified, found.given_by);
            self.cache_answer(asking.account, CacheLookup { query, head: None }, cached).await;
        }
        Ok(self.shared(found.origin, Some(found.block), found.verified, found.result))
    }

    async fn fetch_answer(
        &self,
        asking: Asking<'_>,
        method: &Method,
        query: &Query<BlockRef>,
        node_query: NodeQuery<'_>,
    ) -> Result<SharedAnswer, Failure> {
        let (chain, mut asked) = (asking.chain, self.pool.before_asking());
        let mut answered = self.answer_from_blocks(asking, node_query).await;
        // The first blocks of some test nodes are like that. A quorum is asked, as on chains without provable blocks.
        let is_odd = matches!(answered, Some(Err(Failure::OddHeader)));
        if is_odd {
            answered = None;
        }
        let from_blocks = answered.is_some();
        if answered.is_none() {
            answered = self.answer_proven_state(asking, node_query).await;
        }
        if answered.is_none() {
            let with_blocks = is_odd || self.confirms_blocks();
            let before = self.cache.get(&CacheLookup { query, head: at_head(chain, method) });
            answered = self.answer_confirmed(asking, method, node_query, with_blocks, before).await;
        }
        let fetched = match answered {
            Some(answered) => answered?,
            None => self.ask(asking, method, node_query).await?,
        };
        // Nobody had this receipt at the same head. Nodes that may lack what is old contradict nothing.
        if fetched.block.is_some()
            && let Some(absent) = self.absent_receipt(chain, Subject::Node(node_query))
            && absent.verified == self.by_quorum()
        {
            self.pool.record_retractions(&mut asked, absent.given_by, 0..self.pool.nodes().len());
        }
        let origin = if from_blocks { self.origin_of(fetched.block) } else { Origin::Node };
        match fetched.cache {
            CacheDecision::On(block) if method.rules.cacheable != Cacheable::Never => {
                let cached = cached_answer(chain, &fetched.result, block, fetched.verified, fetched.given_by);
                // An answer about a side block would never count as canonical.
                if holds(chain, &cached) {
                    self.cache_answer(
                        asking.account,
                        CacheLookup { query, head: at_head(chain, method) },
                        cached,
                    )
                    .await;
                }
            }
            CacheDecision::Absent if self.cache.is_on() => {
                if let Some(hash) = Subject::Node(node_query).receipt() {
                    let absent =
                        AbsentReceipt { verified: fetched.verified, given_by: asked.given_by_anyone() };
                    self.absent.add(chain.epoch(), head(chain), hash, absent);
                }
            }
            CacheDecision::On(_) | CacheDecision::Absent | CacheDecision::No => {}
        }
        Ok(self.shared(origin, fetched.block, fetched.verified, fetched.result))
    }

    /// Caches a copy: a result is a slice of all that came with it, whose memory is wanted for the next reply.
    async fn cache_answer(&self, account: AccountId, asked: CacheLookup<'_>, cached: CachedAnswer) {
        if self.cache.is_on() && self.may_cache(cached.verified) {
            let (key, bytes, cache) = (asked.key(), cached.result.len(), Arc::clone(&self.cache));
            let copy = move || {
                let result = Bytes::copy_from_slice(&cached.result);
                cache.insert(key, CachedAnswer { result, ..cached });
            };
            // A caller whose account has used up its share of the pool gets the answer, but it is not cached.
            let _refused = self.run_sized(account, bytes, COPIED_AT_ONCE_BYTES_MAX, copy).await;
        }
    }

    /// Asks nodes until one gives an answer that can be passed on.
    async fn ask(
        &self,
        asking: Asking<'_>,
        method: &Method,
        query: NodeQuery<'_>,
    ) -> Result<Fetched, Failure> {
        let ask = |gas| self.ask_with_gas(asking, method, query, gas);
        self.with_granted_gas(asking.chain, query, asking.deadline, ask).await
    }

    async fn ask_with_gas(
        &self,
        asking: Asking<'_>,
        method: &Method,
        query: NodeQuery<'_>,
        gas: SimulationGas,
    ) -> Result<Fetched, Failure> {
        let Asking { account, chain, deadline, .. } = asking;
        let call = encode::call(method, query, Some(gas)).for_account(asking.caller);
        let passed_on = PassedOn::new(self, account, Some(chain), query);
        let judge = |_: usize, result: &Bytes| passed_on.judge(result);
        // An answer that names a deep block of which nothing is known makes it known: who named another one is found out the
        // next time. Each node may have named another one.
        for _ in 0..=self.pool.nodes().len() {
            let asked = self.pool.before_asking();
            let answered = self.pool.ask(&call, &judge, deadline).await.answer;
            if matches!(answered, Err(CallFailure::Lacking)) && self.pool.all_lack(&call) {
                return Err(Failure::Lacking);
            }
            let node = answered.as_ref().ok().map(|answered| self.pool.position(&answered.node));
            let fetched = passed_on.settle(answered).await?;
            if self.is_canonical(asking.caller, chain, fetched.block, deadline).await? {
                let given_by = node.map(|node| asked.given_by([node]));
                return Ok(Fetched { given_by, ..fetched });
            }
        }
        Err(Failure::Unavailable)
    }

    /// Whether the block that an answer hangs on is on the chain, or was and was named by its hash. Those below the window are
    /// asked for, once.
    async fn is_canonical(
        &self,
        account: AccountId,
        chain: &CanonicalChain,
        block: Option<BlockRef>,
        deadline: Instant,
    ) -> Result<bool, Failure> {
        let may_be_another =
            |block: &BlockRef| block.number < chain.lowest() && chain.side_block(&block.hash).is_none();
        let Some(deep) = block.filter(may_be_another) else { return Ok(true) };
        Box::pin(self.learn(account, chain, BlockParam::Number(deep.number), deadline)).await?;
        Ok(chain.by_number(deep.number).map(block_ref) == Some(deep))
    }
}

fn absent_answer(absent: AbsentReceipt) -> Answer {
    answer(Origin::Cache, None, absent.verified, NULL)
}

#[cfg(test)]
mod tests {
    use std::future::pending;
    use std::time::Duration;

    use futures_util::FutureExt;
    use methods::{BlockPart, BlockQuery, LogBlocks, LogsQuery, MethodId};
    use tokio::time::timeout;

    use super::*;
    use test_source::{TestSource, chain_of_head};

    /// While all nodes were out, a call about an old block asked them once more which block has its number, for as long as
    /// the call may take, before a partner was asked.
    #[tokio::test]
    async fn numbers_are_not_looked_up_again_while_all_nodes_are_out() {
        let test = TestSource::new(1);
        let chain = Arc::new(chain_of_head(1_000));
        let far = Instant::now() + Duration::from_secs(3_600);
        let (account, number) = (AccountId::unique(), BlockParam::Number(5));
        let key = (account, chain.epoch(), number);
        let mut look_up = pin!(test.source.lookups.share(key, far, pending));
        assert!((&mut look_up).now_or_never().is_none());
        let block = BlockRef { number: 5, hash: Default::default() };
        let query = Query::Block(BlockQuery { block, part: BlockPart::TransactionCount });
        let method = MethodId::named("eth_getBlockTransactionCountByNumber").unwrap().row();
        let repetition = Repetition::Yes { deadline: Some(far) };
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
        let repetition = Repetition::Yes { deadline: Some(Instant::now()) };
        let call = NodeCall { account, chain: &chain, method, may_fail_over: true, repetition };
        let answer = test.source.answer(call, query).await;
        assert!(matches!(answer, Err(Unanswered::Failed(Failure::QueryTimeout))));
    }
}
