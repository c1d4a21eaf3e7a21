//! How much gas simulations have that nodes run.
//!
//! A call that names no gas gets some, so that all nodes of a quorum answer the same question. Nodes limit the gas of a call in
//! different ways, and say so only when they refuse one.

use std::sync::Arc;

use methods::CallMessage;
use nodes::dialect::Execution;
use nodes::{CanonicalChain, Pool};
use sources::{CurrentLimits, Failure};
use tokio::time::Instant;

use crate::chain_query::ChainQuery;

/// The gas of simulations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SimulationGas {
    /// The most that a call may name. One that names more gets this much.
    pub(super) most: u64,
    /// The gas that is added to a call that names none: as much as a quorum of the nodes grants, so that they answer one question, and no
    /// single node decides how much that is.
    pub(super) added: u64,
}

/// The gas that the caller names.
pub(super) fn named_gas(message: &CallMessage, gas: Option<SimulationGas>) -> Option<u64> {
    let most = gas.map_or(u64::MAX, |gas| gas.most);
    message.request.gas.map(|named| named.min(most))
}

/// How much gas the nodes and the configuration grant.
pub(super) struct GasLimits {
    pool: Arc<Pool>,
    limits: CurrentLimits,
}

impl GasLimits {
    pub(super) fn new(pool: Arc<Pool>, limits: impl Into<CurrentLimits>) -> Self {
        Self { pool, limits: limits.into() }
    }

    /// The gas that the configuration grants.
    pub(super) fn cap(&self, chain: &CanonicalChain) -> u64 {
        let gas_limit = chain.head_block().map_or(0, |block| block.gas_limit);
        gas_limit.saturating_mul(self.limits.now().call_gas_multiple)
    }

    /// The gas of simulations that nodes run.
    pub(super) fn at(&self, chain: &CanonicalChain) -> SimulationGas {
        let most = self.cap(chain);
        let nodes = self.pool.nodes();
        let caps = nodes.iter().map(|node| node.capabilities().gas_cap());
        SimulationGas { most, added: granted_by_quorum(caps, self.pool.quorum(), most) }
    }

    /// Asks again, at once, while a node refuses the gas that was added to a call: it is known then how much it grants.
    pub(super) async fn with_granted<T, F: Future<Output = Result<T, Failure>>>(
        &self,
        chain: &CanonicalChain,
        query: ChainQuery<'_>,
        deadline: Instant,
        mut ask: impl FnMut(SimulationGas) -> F,
    ) -> Result<T, Failure> {
        let mut gas = self.at(chain);
        self.refuse_gas_of_no_node(query, gas)?;
        loop {
            let answer = ask(gas).await;
            let granted = self.at(chain);
            let is_lower = query.is_simulation() && granted.added < gas.added;
            if answer.is_ok() || !is_lower || Instant::now() >= deadline {
                return answer;
            }
            gas = granted;
        }
    }

    /// The refusal of a call that names more gas than any node grants.
    fn refuse_gas_of_no_node(&self, query: ChainQuery<'_>, gas: SimulationGas) -> Result<(), Failure> {
        let ChainQuery::Simulation(simulation) = query else { return Ok(()) };
        let Some(named) = named_gas(&simulation.message, Some(gas)) else { return Ok(()) };
        let nodes = self.pool.nodes();
        let caps = nodes.iter().map(|node| node.capabilities().gas_cap().unwrap_or(u64::MAX));
        match caps.max() {
            Some(most) if most < named => {
                let refused = Execution::GasAboveLimit { most: Some(most) };
                Err(Failure::Refused(refused.to_string()))
            }
            _ => Ok(()),
        }
    }
}

/// The most gas that as many nodes as a quorum has grant. `caps` has the cap of each node that has refused a call for its gas.
fn granted_by_quorum(caps: impl Iterator<Item = Option<u64>>, quorum: usize, most: u64) -> u64 {
    let mut caps: Vec<_> = caps.map(|cap| cap.map_or(most, |cap| cap.min(most))).collect();
    caps.sort_unstable_by_key(|cap| std::cmp::Reverse(*cap));
    caps.get(quorum - 1).copied().unwrap_or(most)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_without_gas_get_as_much_as_a_quorum_grants() {
        for (caps, quorum, granted) in [
            (&[None, None, None][..], 2, 600),
            (&[Some(16), None, None], 2, 600),
            (&[Some(16), Some(50), None], 2, 50),
            (&[Some(16), Some(50), Some(20)], 2, 20),
            (&[Some(16), Some(50), Some(20)], 3, 16),
            (&[Some(16)], 1, 16),
            // A node grants more than the gateway lets calls have.
            (&[Some(900), Some(16)], 1, 600),
            // More nodes were removed than a quorum leaves.
            (&[Some(16)], 2, 600),
        ] {
            assert_eq!(granted_by_quorum(caps.iter().copied(), quorum, 600), granted, "{caps:?} {quorum}");
        }
    }
}
