//! The order in which an answer is looked for: proven blocks, stored or from nodes, proven state, what a quorum confirms, what one node
//! says, what was confirmed before, and at last partners.

use std::pin::pin;
use std::sync::Arc;

use methods::{BlockRef, Method, Query};
use nodes::{CanonicalChain, with_answering_node};
use resources::{AccountId, box_future};
use sources::{Answer, CacheLookup, Failure, Origin, Provenance, SharedAnswer, Verification};
use tokio::time::Instant;

use super::PoolSource;
use super::reorganised::{unless_reorganised, with_outage_timeout};
use crate::blocks::BlockAnswers;
use crate::call_context::CallContext;
use crate::call_key::CallKey;
use crate::chain_query::ChainQuery;
use crate::encode;
use crate::fetched::{Fetched, at_head};
use crate::not_served::not_served;
use crate::partners::is_for_another;
use crate::pinned_call::{HandedBack, PinnedCall, Repetition, Unanswered};

impl PoolSource {
    /// Answers a call whose blocks are verified this far.
    pub async fn answer(
        &self,
        account: AccountId,
        chain: &Arc<CanonicalChain>,
        call: PinnedCall,
        blocks_verified: Verification,
    ) -> Result<Answer, Unanswered> {
        let is_placed_by_answer = call.query.transaction().is_some();
        let answered = match self.known.get(account, chain, call.method, &call.query) {
            Some(answered) => answered?,
            // Boxed: the future is large, and few calls need it.
            None => box_future(|| self.ask(account, chain, call)).await?,
        };
        let place_verified = match is_placed_by_answer {
            true => self.blocks.place_verified(chain, answered.provenance.block),
            false => blocks_verified,
        };
        Ok(answered.verified_at_most(place_verified))
    }

    /// Asks nodes for an answer that is not cached.
    pub async fn ask(
        &self,
        account: AccountId,
        chain: &Arc<CanonicalChain>,
        call: PinnedCall,
    ) -> Result<Answer, Unanswered> {
        let PinnedCall { method, query, may_fail_over, repetition, body: _body } = call;
        let deadline = match repetition {
            Repetition::Never { deadline: Some(deadline) } => deadline,
            Repetition::Once | Repetition::Never { deadline: None } => Instant::now() + self.time(method),
        };
        let key = CallKey::of_call(account, chain, method, &query);
        let pays = key.pays();
        let mut has_asked = false;
        let outcome = {
            let fetch = || {
                has_asked = true;
                let context = CallContext { account: pays, caller: account, chain, deadline, only: None };
                self.fetch(context, chain, method, &query)
            };
            let fetched = pin!(with_outage_timeout(
                self.pool(),
                may_fail_over,
                self.flights.share(key, deadline, fetch)
            ));
            match repetition {
                Repetition::Once => unless_reorganised(self.pool(), chain, &query, deadline, fetched).await,
                Repetition::Never { .. } => Some(fetched.await),
            }
        };
        let Some(mut outcome) = outcome else { return Err(handed_back(query, deadline)) };
        // A call that only waited for an equal one until its deadline fails as if it had asked by itself.
        if !has_asked {
            outcome = outcome.map_err(|failure| self.failure_at(deadline, &query, failure));
        }
        // With every node down no other block can be reported, so a partner is asked at once.
        if matches!(outcome, Err(Failure::Unavailable)) && !self.pool().all_down() {
            Box::pin(self.blocks.correct_numbers(account, chain, &query, deadline)).await;
            if repetition == Repetition::Once && Instant::now() < deadline {
                return Err(handed_back(query, deadline));
            }
        }
        let failure = match outcome {
            Ok(answer) => return Ok(answer.lend(self.blocks.workers.memory.of(account))?),
            Err(failure) => failure,
        };
        Ok(self.answer_after(failure, account, chain, method, &query, may_fail_over).await?)
    }

    /// The answer where no node could give one: one that was confirmed before, or that of a partner.
    async fn answer_after(
        &self,
        failure: Failure,
        account: AccountId,
        chain: &Arc<CanonicalChain>,
        method: &'static Method,
        query: &Query<BlockRef>,
        may_fail_over: bool,
    ) -> Result<Answer, Failure> {
        if !is_for_another(&failure) {
            return Err(failure);
        }
        if let Some(expired) = self.known.expired(account, chain, method, query) {
            return expired;
        }
        let failure = match may_fail_over {
            true => match Box::pin(self.fail_over(account, chain, method, query)).await {
                Err(failure) => failure,
                answered => return answered,
            },
            false => failure,
        };
        match failure {
            Failure::Unavailable | Failure::Lacking => Err(self.not_served(chain, method, query)),
            failure => Err(failure),
        }
    }

    /// Asks partners for the answer that no node of the operator has given.
    async fn fail_over(
        &self,
        caller: AccountId,
        chain: &Arc<CanonicalChain>,
        method: &'static Method,
        query: &Query<BlockRef>,
    ) -> Result<Answer, Failure> {
        let key = CallKey::of_call(caller, chain, method, query);
        let (account, deadline) = (key.pays(), Instant::now() + self.time(method));
        let ask = |partner, deadline| {
            let context = CallContext { account, caller, chain, deadline, only: Some(partner) };
            self.fetch(context, chain, method, query)
        };
        let ask_partners = || self.partners.ask(method, deadline, ask);
        self.partners
            .flights
            .share(key, deadline, ask_partners)
            .await?
            .lend(self.blocks.workers.memory.of(caller))
    }

    /// The failure of a call that no node answers.
    pub(super) fn not_served(
        &self,
        chain: &CanonicalChain,
        method: &Method,
        query: &Query<BlockRef>,
    ) -> Failure {
        let call = match (query, ChainQuery::of(query)) {
            (Query::Logs(logs), _) => encode::logs(&logs.filter, logs.blocks),
            (_, Some(query)) => encode::call(method, query, Some(self.state.gas.at(chain))),
            (_, None) => return Failure::Unavailable,
        };
        not_served(self.pool(), &call)
    }

    /// The failure of a call, which took too long if nobody has answered it by its deadline.
    fn failure_at(&self, deadline: Instant, query: &Query<BlockRef>, failure: Failure) -> Failure {
        if failure != Failure::Unavailable || Instant::now() < deadline {
            return failure;
        }
        match query {
            Query::Logs(_) => Failure::QueryTimeout,
            Query::Simulation(_) => Failure::CallTimeout(self.limits.now().call_timeout),
            Query::Gateway(_)
            | Query::Fees(_)
            | Query::State(_)
            | Query::Block(_)
            | Query::Transaction(_)
            | Query::RawTransactions(_) => failure,
        }
    }

    /// Asks nodes. What a partner has said is not cached.
    async fn fetch(
        &self,
        context: CallContext<'_>,
        chain: &Arc<CanonicalChain>,
        method: &Method,
        query: &Query<BlockRef>,
    ) -> Result<SharedAnswer, Failure> {
        let asked = self.pool().trust_mark();
        let lookup = CacheLookup { query, head: at_head(chain, method) };
        let (found, node) = with_answering_node(self.fetch_query(context, method, lookup)).await;
        let (mut origin, fetched) = found?;
        if context.partner_quota(self.pool()).is_some() {
            origin = Origin::Partner;
        } else {
            self.known.insert(context, method, lookup, &fetched, asked).await;
        }
        let node = node.filter(|_| origin != Origin::Stored);
        let provenance = Provenance { origin, block: fetched.block, verified: fetched.verified, node };
        Ok(self.shared(provenance, fetched.result))
    }

    async fn fetch_query(
        &self,
        context: CallContext<'_>,
        method: &Method,
        lookup: CacheLookup<'_>,
    ) -> Result<(Origin, Fetched), Failure> {
        match (lookup.query, ChainQuery::of(lookup.query)) {
            // Boxed, as all futures below that are large and that most calls do not need: a call would copy them.
            (Query::Logs(logs), _) => Box::pin(self.logs.find(context, logs)).await,
            (_, Some(query)) => self.fetch_answer(context, method, query, lookup).await,
            (_, None) => Err(Failure::Unavailable),
        }
    }

    /// The answer that proven blocks give; `None` for queries that are not about block data.
    async fn answer_from_blocks(
        &self,
        context: CallContext<'_>,
        query: ChainQuery<'_>,
    ) -> Option<Result<Fetched, Failure>> {
        if !self.blocks.are_proven() {
            return None;
        }
        let answers = BlockAnswers { blocks: &self.blocks, context };
        match query {
            ChainQuery::Block(query) => Some(Box::pin(answers.of_block(query)).await),
            ChainQuery::Transaction(query) => Some(Box::pin(answers.of_transaction(query)).await),
            ChainQuery::Fees(query) => Box::pin(self.fees.answer(context, query)).await,
            ChainQuery::State(_) | ChainQuery::Simulation(_) | ChainQuery::RawTransactions(_) => None,
        }
    }

    async fn fetch_answer(
        &self,
        context: CallContext<'_>,
        method: &Method,
        query: ChainQuery<'_>,
        lookup: CacheLookup<'_>,
    ) -> Result<(Origin, Fetched), Failure> {
        let may_confirm = context.only.is_none();
        let mut answered = self.answer_from_blocks(context, query).await;
        // The first blocks of some test nodes are like that. A quorum is asked, as on chains without provable blocks.
        let is_odd = may_confirm && matches!(answered, Some(Err(Failure::OddHeader)));
        if is_odd {
            answered = None;
        }
        if let Some(fetched) = answered.transpose()? {
            return Ok((self.blocks.stored.origin_of(fetched.block), fetched));
        }
        let mut answered = self.state.answer_proven(context, query).await;
        if answered.is_none() && may_confirm {
            let with_blocks = is_odd || self.state.confirms_blocks();
            answered = self.state.answer_confirmed(context, method, query, with_blocks, lookup).await;
        }
        let fetched = match answered {
            Some(answered) => answered?,
            None => self.state.forward(context, method, query).await?,
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
    use crate::block_ids::block_ref;
    use crate::test_blocks::chain_of_head;
    use crate::test_source::TestSource;

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
        let call = PinnedCall { method, query, may_fail_over: false, repetition, body: None };
        let answer = timeout(Duration::from_secs(60), test.source.ask(account, &chain, call)).await;
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
        let method = MethodId::named("eth_getLogs").unwrap().row();
        let key = CallKey::of_call(account, &chain, method, &query);
        let far = Instant::now() + Duration::from_secs(3_600);
        let mut first = pin!(test.source.flights.share(key, far, pending));
        assert!((&mut first).now_or_never().is_none());
        let repetition = Repetition::Never { deadline: Some(Instant::now()) };
        let call = PinnedCall { method, query, may_fail_over: true, repetition, body: None };
        let answer = test.source.ask(account, &chain, call).await;
        assert!(matches!(answer, Err(Unanswered::Failed(Failure::QueryTimeout))));
    }
}
