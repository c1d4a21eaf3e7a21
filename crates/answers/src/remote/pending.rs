//! Calls about the pending block. A node is asked for them as they are, because only nodes know pending transactions: a
//! wallet that is told the count at the newest block uses a nonce twice. Their answers are neither cached nor shared.

use bytes::Bytes;
use methods::{BlockRef, Method, Query};
use nodes::CanonicalChain;
use resources::AccountId;
use tokio::time::Instant;

use super::call_gas::SimulationGas;
use super::encode;
use super::fetched::Fetched;
use super::pool_source::PoolSource;
use super::state::PassedOn;
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
        let query = match QueryPlan::of(query).subject {
            Subject::Node(query) => query,
            Subject::Gateway(_) | Subject::Logs(_) => return Err(not_at_pending()),
        };
        let by_nodes = match chain {
            Some(_) => {
                let asked = self.ask_pending(account, chain, method, query, Origin::Node);
                self.with_outage_timeout(may_fail_over, asked).await
            }
            None => Err(Failure::Unavailable),
        };
        match by_nodes {
            Err(Failure::Unavailable) if may_fail_over => {
                self.ask_pending(account, chain, method, query, Origin::Partner).await
            }
            answered => answered,
        }
    }

    async fn ask_pending(
        &self,
        account: AccountId,
        chain: Option<&CanonicalChain>,
        method: &Method,
        query: NodeQuery<'_>,
        origin: Origin,
    ) -> Result<Answer, Failure> {
        let Some(shown) = chain else {
            return self.ask_pending_with_gas(account, chain, method, query, origin, None).await;
        };
        let deadline = Instant::now() + self.time(method);
        let ask = |gas| self.ask_pending_with_gas(account, chain, method, query, origin, Some(gas));
        self.with_granted_gas(shown, query, deadline, ask).await
    }

    async fn ask_pending_with_gas(
        &self,
        account: AccountId,
        chain: Option<&CanonicalChain>,
        method: &Method,
        query: NodeQuery<'_>,
        origin: Origin,
        gas: Option<SimulationGas>,
    ) -> Result<Answer, Failure> {
        let call = encode::pending_call(method, query, gas).ok_or_else(not_at_pending)?.for_account(account);
        let passed_on = PassedOn::new(self, account, chain, query);
        let judge = |_: usize, result: &Bytes| passed_on.judge(result);
        let deadline = Instant::now() + self.time(method);
        let asked = match origin {
            Origin::Partner => self.pool.ask_partner(method.name, &call, &judge, deadline).await,
            Origin::Node | Origin::Cache | Origin::Archive => self.pool.ask(&call, &judge, deadline).await,
        };
        let Fetched { result, .. } = passed_on.settle(asked.answer).await?;
        let provenance = Provenance { origin, block: None, verified: Verification::None };
        let result = self.memory.of(account).hold(self.pool.memory().hand_over(result))?;
        Ok(Answer { provenance, shared: Some(result) })
    }
}

fn not_at_pending() -> Failure {
    Failure::Broken("a query that no node is asked at pending".to_owned())
}
