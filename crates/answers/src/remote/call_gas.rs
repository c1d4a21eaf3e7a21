//! The gas that a call to a node names.

use methods::CallMessage;

/// The gas of simulations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SimulationGas {
    /// What a call may name at most. One that names more gets this much.
    pub(super) most: u64,
    /// What is added to a call that names none: as much as a quorum of the nodes grants, so that they answer one question, and no
    /// single node decides how much that is.
    pub(super) added: u64,
}

/// The gas that the caller names.
pub(super) fn named_gas(message: &CallMessage, gas: Option<SimulationGas>) -> Option<u64> {
    let most = gas.map_or(u64::MAX, |gas| gas.most);
    message.request.gas.map(|named| named.min(most))
}
