//! Calls about the pending block. A node is asked for them as they are, because only nodes know pending transactions: a
//! wallet that is told the count at the newest block uses a nonce twice. Their answers are neither cached nor shared.

use bytes::Bytes;
use methods::Method;
use nodes::{CanonicalChain, NodeId};
use resources::AccountId;
use sources::{Answer, Failure, Origin, Provenance, Verification};
use tokio::time::Instant;

use super::PoolSource;
use super::reorganised::with_outage_timeout;
use crate::call_context::CallContext;
use crate::chain_query::ChainQuery;
use crate::encode;
use crate::fetched::Fetched;
use crate::pinned_call::PinnedCall;
use crate::simulation_gas::SimulationGas;
use crate::state::UnverifiedAnswer;

impl PoolSource {
    /// The call is pinned to the newest block, which determines who may be asked. `chain` is the chain of the nodes, if they
    /// have shown one.
    pub async fn answer_pending(
        &self,
        account: AccountId,
        chain: Option<&CanonicalChain>,
        call: &PinnedCall,
    ) -> Result<Answer, Failure> {
        let PinnedCall { method, query, may_fail_over, .. } = call;
        let may_fail_over = *may_fail_over;
        let chain_query = ChainQuery::of(query).ok_or_else(not_at_pending)?;
        let Some(chain) = chain else { return Err(Failure::no_chain()) };
        let deadline = Instant::now() + self.time(method);
        let context = CallContext { account, caller: account, chain, deadline, only: None };
        let asked = self.ask_pending(context, method, chain_query);
        let answered = match with_outage_timeout(self.pool(), may_fail_over, asked).await {
            Err(Failure::Unavailable) if may_fail_over => {
                let ask = |partner, deadline| {
                    self.ask_pending(
                        CallContext { deadline, only: Some(partner), ..context },
                        method,
                        chain_query,
                    )
                };
                self.partners.ask(method, Instant::now() + self.time(method), ask).await
            }
            answered => answered,
        };
        match answered {
            Err(Failure::Unavailable) => Err(self.not_served(chain, method, query)),
            answered => answered,
        }
    }

    async fn ask_pending(
        &self,
        context: CallContext<'_>,
        method: &Method,
        query: ChainQuery<'_>,
    ) -> Result<Answer, Failure> {
        let ask = |gas| self.ask_pending_with_gas(context, method, query, gas);
        self.state.gas.with_granted(context.chain, query, context.deadline, ask).await
    }

    async fn ask_pending_with_gas(
        &self,
        context: CallContext<'_>,
        method: &Method,
        query: ChainQuery<'_>,
        gas: SimulationGas,
    ) -> Result<Answer, Failure> {
        let CallContext { account, chain, deadline, only, .. } = context;
        let call = encode::pending_call(method, query, gas).ok_or_else(not_at_pending)?;
        let unverified = UnverifiedAnswer::new(&self.state, account, Some(chain), query);
        let judge = |node: NodeId, result: &Bytes| unverified.judge(node, result);
        let call = call.for_account(account);
        let asked = self.pool().ask(only, &call, &judge, deadline).await;
        let node = asked.answer.as_ref().ok().map(|answer| answer.node.id());
        let Fetched { result, .. } = unverified.settle(asked.answer).await?;
        let is_of_partner = context.partner_quota(self.pool()).is_some();
        let origin = if is_of_partner { Origin::Partner } else { Origin::Node };
        let provenance = Provenance { origin, block: None, verified: Verification::None, node };
        let result = self.blocks.workers.memory.of(account).hold(self.pool().memory().hand_over(result))?;
        Ok(Answer { provenance, shared: Some(result) })
    }
}

fn not_at_pending() -> Failure {
    Failure::Broken("a query that no node is asked at pending".to_owned())
}
