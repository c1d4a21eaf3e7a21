//! Partners: asked when nobody of our own can answer. What they deliver of blocks is proven like that of nodes.

use std::sync::Arc;

use bytes::Bytes;
use methods::{BlockRef, Method, Query};
use nodes::{CanonicalChain, Supplier};
use resources::AccountId;
use tokio::time::Instant;

use super::asking::Asking;
use super::block_ids::block_ref;
use super::encode;
use super::failovers::FailoverReason;
use super::fetched::{Fetched, answer};
use super::flight_key::FlightKey;
use super::partner_view::PartnerView;
use super::pool_source::PoolSource;
use super::state::PassedOn;
use crate::failure::Failure;
use crate::provenance::{Answer, Origin, Provenance, Verification};
use crate::query_plan::{NodeQuery, QueryPlan, Subject};
use crate::shared::SharedAnswer;
use crate::view::ChainView;

impl PartnerView {
    /// Why the partner is asked.
    fn reason(&self) -> FailoverReason {
        if self.own().is_some() { FailoverReason::Block } else { FailoverReason::Head }
    }
}

/// A call on its way to partners.
struct PartnerCall<'a> {
    account: AccountId,
    caller: AccountId,
    /// The chain that the call is about.
    chain: &'a Arc<CanonicalChain>,
    /// The chain of our own nodes, if they have shown one.
    own: Option<&'a CanonicalChain>,
    reason: FailoverReason,
    method: &'static Method,
    query: &'a Query<BlockRef>,
    deadline: Instant,
}

impl PoolSource {
    /// Asks a partner about blocks that the nodes have named.
    pub(super) async fn fail_over(
        &self,
        account: AccountId,
        chain: &Arc<CanonicalChain>,
        method: &'static Method,
        query: &Query<BlockRef>,
    ) -> Result<Answer, Failure> {
        let (reason, deadline) = (FailoverReason::Answer, Instant::now() + self.time(method));
        let own: Option<&CanonicalChain> = Some(chain);
        let call = PartnerCall { account, caller: account, chain, own, reason, method, query, deadline };
        self.share_partner_call(call).await
    }

    /// Asks a partner about blocks that it has named itself.
    pub(crate) async fn answer_in_partner_view(
        &self,
        account: AccountId,
        view: &PartnerView,
        method: &'static Method,
        query: &Query<BlockRef>,
        deadline: Instant,
    ) -> Result<Answer, Failure> {
        if let Some(result) = self.known(view.head(), QueryPlan::of(query).subject) {
            self.failovers.count(view.reason(), method);
            return Ok(answer(Origin::Partner, Some(view.head()), Verification::None, result));
        }
        let own = view.own().map(|own| &**own);
        let (chain, reason) = (view.canonical_chain(), view.reason());
        let call = PartnerCall { account, caller: account, chain, own, reason, method, query, deadline };
        self.share_partner_call(call).await
    }

    /// Records that a partner has answered by saying that a block does not exist.
    pub(crate) fn absent_at_partner(&self, view: &PartnerView, method: &Method) -> Provenance {
        self.failovers.count(view.reason(), method);
        Provenance { origin: Origin::Partner, block: None, verified: Verification::None }
    }

    async fn share_partner_call(&self, call: PartnerCall<'_>) -> Result<Answer, Failure> {
        let key = FlightKey::of(call.account, call.chain, call.query);
        let (asker, pays) = (call.account, key.paying_account());
        let ask = || self.ask_partner(PartnerCall { account: pays, ..call });
        self.partner_flights.share(key, call.deadline, ask).await?.lend(self.memory.of(asker))
    }

    /// Block data is proven like that of nodes, and so is state where it is proven at all. What is left is a partner's word.
    async fn ask_partner(&self, call: PartnerCall<'_>) -> Result<SharedAnswer, Failure> {
        let PartnerCall { account, caller, chain, query, deadline, .. } = call;
        let supplier = Supplier::Partners { method: call.method.name };
        let asking = Asking { account, caller, chain, deadline, supplier };
        let fetched = match QueryPlan::of(query).subject {
            // The gateway has answered what it knows, and partners are not asked which chain this is.
            Subject::Gateway(_) => return Err(Failure::Unavailable),
            Subject::Logs(query) => self.partner_logs(asking, chain, query).await?,
            Subject::Node(query) => {
                let mut answered = self.answer_from_blocks(asking, query).await;
                if answered.is_none() {
                    answered = self.answer_proven_state(asking, query).await;
                }
                match answered {
                    Some(answered) => answered?,
                    None => self.pass_on_from_partner(&call, query).await?,
                }
            }
        };
        self.failovers.count(call.reason, call.method);
        // Of a block that only the partner has named it is proven what is in it, and not that it is the one that is meant.
        let of_ours = |block: BlockRef| {
            let own = call.own.filter(|own| own.by_number(block.number).map(block_ref) == Some(block))?;
            Some(self.place_verified(own, Some(block)))
        };
        let named = fetched.block.and_then(of_ours).unwrap_or(Verification::None);
        let verified = fetched.verified.min(named);
        Ok(self.shared(Origin::Partner, fetched.block, verified, fetched.result))
    }

    /// The answer of a partner that nothing proves.
    async fn pass_on_from_partner(
        &self,
        call: &PartnerCall<'_>,
        query: NodeQuery<'_>,
    ) -> Result<Fetched, Failure> {
        let asked =
            encode::call(call.method, query, Some(self.simulation_gas(call.chain))).for_account(call.caller);
        let passed_on = PassedOn::new(self, call.account, Some(call.chain), query);
        let judge = |_: usize, result: &Bytes| passed_on.judge(result);
        let outcome = self.pool.ask_partner(call.method.name, &asked, &judge, call.deadline).await;
        passed_on.settle(outcome.answer).await
    }
}
