//! Calls about the pending block. A node is asked for them as they are, because only nodes know pending transactions: a
//! wallet that is told the count at the newest block uses a nonce twice. Their answers are neither cached nor shared.

use bytes::Bytes;
use methods::{BlockRef, Method, Query};
use nodes::{CanonicalChain, NodeId};
use resources::AccountId;
use tokio::time::Instant;

use super::asking::Asking;
use super::encode;
use super::fetched::Fetched;
use super::pool_source::PoolSource;
use super::simulation_gas::SimulationGas;
use super::state::UnverifiedAnswer;
use crate::failure::Failure;
use crate::provenance::{Answer, Origin, Provenance, Verification};
use crate::query_plan::{NodeQuery, QueryPlan, Subject};

impl PoolSource {
    /// `query` is pinned to the newest block, which determines who may be asked. `chain` is the chain of the nodes, if they
    /// have shown one.
    pub(crate) async fn answer_pending(
        &self,
        account: AccountId,
        chain: Option<&CanonicalChain>,
        method: &Method,
        query: &Query<BlockRef>,
        may_fail_over: bool,
    ) -> Result<Answer, Failure> {
        let node_query = match QueryPlan::of(query).subject {
            Subject::Node(node_query) => node_query,
            Subject::Gateway(_) | Subject::Logs(_) => return Err(not_at_pending()),
        };
        let Some(chain) = chain else { return Err(Failure::no_chain()) };
        let deadline = Instant::now() + self.time(method);
        let asking = Asking { account, caller: account, chain, deadline, only: None };
        let asked = self.ask_pending(asking, method, node_query);
        let answered = match self.with_outage_timeout(may_fail_over, asked).await {
            Err(Failure::Unavailable) if may_fail_over => {
                let ask = |partner, deadline| {
                    self.ask_pending(Asking { deadline, only: Some(partner), ..asking }, method, node_query)
                };
                self.ask_partners(method, Instant::now() + self.time(method), ask).await
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
        asking: Asking<'_>,
        method: &Method,
        query: NodeQuery<'_>,
    ) -> Result<Answer, Failure> {
        let ask = |gas| self.ask_pending_with_gas(asking, method, query, gas);
        self.state.gas.with_granted(asking.chain, query, asking.deadline, ask).await
    }

    async fn ask_pending_with_gas(
        &self,
        asking: Asking<'_>,
        method: &Method,
        query: NodeQuery<'_>,
        gas: SimulationGas,
    ) -> Result<Answer, Failure> {
        let Asking { account, chain, deadline, only, .. } = asking;
        let call = encode::pending_call(method, query, gas).ok_or_else(not_at_pending)?;
        let unverified = UnverifiedAnswer::new(&self.state, account, Some(chain), query);
        let judge = |node: NodeId, result: &Bytes| unverified.judge(node, result);
        let asked = self.pool.ask(only, &call.for_account(account), &judge, deadline).await;
        let Fetched { result, .. } = unverified.settle(asked.answer).await?;
        let is_of_partner = asking.partner_quota(&self.pool).is_some();
        let origin = if is_of_partner { Origin::Partner } else { Origin::Node };
        let provenance = Provenance { origin, block: None, verified: Verification::None };
        let result = self.blocks.workers.memory.of(account).hold(self.pool.memory().hand_over(result))?;
        Ok(Answer { provenance, shared: Some(result) })
    }
}

fn not_at_pending() -> Failure {
    Failure::Broken("a query that no node is asked at pending".to_owned())
}
