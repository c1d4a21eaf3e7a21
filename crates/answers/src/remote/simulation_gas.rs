//! How much gas simulations have that nodes run.
//!
//! A call that names no gas gets some, so that all nodes of a quorum answer the same question. Nodes limit the gas of a call in
//! different ways, and say so only when they refuse one.

use nodes::CanonicalChain;
use nodes::dialect::Execution;
use tokio::time::Instant;

use super::call_gas::{SimulationGas, named_gas};
use super::node_failures;
use super::pool_source::PoolSource;
use crate::failure::Failure;
use crate::query_plan::NodeQuery;

impl PoolSource {
    /// The gas of simulations that nodes run.
    pub(super) fn simulation_gas(&self, chain: &CanonicalChain) -> SimulationGas {
        let most = self.gas_cap(chain);
        let caps = self.pool.nodes().iter().map(|node| node.capabilities().gas_cap().unwrap_or(most));
        let mut caps: Vec<_> = caps.collect();
        caps.sort_unstable_by_key(|cap| std::cmp::Reverse(*cap));
        let of_quorum = caps.get(self.pool.quorum() - 1).copied();
        SimulationGas { most, added: of_quorum.map_or(most, |cap| cap.min(most)) }
    }

    /// Asks again, at once, while a node refuses the gas that was added to a call: it is known then how much it grants.
    pub(super) async fn with_granted_gas<T, F: Future<Output = Result<T, Failure>>>(
        &self,
        chain: &CanonicalChain,
        query: NodeQuery<'_>,
        deadline: Instant,
        mut ask: impl FnMut(SimulationGas) -> F,
    ) -> Result<T, Failure> {
        let mut gas = self.simulation_gas(chain);
        self.refuse_gas_of_no_node(query, gas)?;
        loop {
            let answer = ask(gas).await;
            let granted = self.simulation_gas(chain);
            let is_lower = query.is_simulation() && granted.added < gas.added;
            if answer.is_ok() || !is_lower || Instant::now() >= deadline {
                return answer;
            }
            gas = granted;
        }
    }

    /// The refusal of a call that names more gas than any node grants.
    fn refuse_gas_of_no_node(&self, query: NodeQuery<'_>, gas: SimulationGas) -> Result<(), Failure> {
        let NodeQuery::Simulation(simulation) = query else { return Ok(()) };
        let Some(named) = named_gas(&simulation.message, Some(gas)) else { return Ok(()) };
        let caps = self.pool.nodes().iter().map(|node| node.capabilities().gas_cap().unwrap_or(u64::MAX));
        match caps.max() {
            Some(most) if most < named => {
                let refused = Execution::GasAboveLimit { most: Some(most) };
                Err(node_failures::of_execution(refused, &self.limits))
            }
            _ => Ok(()),
        }
    }
}
