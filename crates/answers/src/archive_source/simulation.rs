//! Simulations on the state of the embedded chain.

use archive::{CallError, CallLimits, Deadline};
use methods::{BlockRef, CallMessage, SimulationKind, SimulationQuery};
use sources::{CALL_MEMORY_BYTES_MAX, Failure, Json, call_failure, overrides};

use super::{ArchiveReader, brief};

impl ArchiveReader<'_> {
    pub(super) fn simulate(
        &self,
        query: &SimulationQuery<BlockRef>,
        json: &mut Json<'_>,
    ) -> Result<BlockRef, Failure> {
        let (message, at) = (&*query.message, query.at);
        let (header, limits) = self.simulation(message, at)?;
        let rules = self.snapshot.chain().rules_at(&header);
        let state = self.snapshot.state_at(at.number);
        let (request, overrides) = (message.request.clone(), overrides(message));
        let failed = |cause| self.call_failure(cause);
        match query.kind {
            SimulationKind::Call => {
                let output = archive::call(state, rules, &header, request, overrides, &limits);
                json.data(&output.map_err(failed)?);
            }
            SimulationKind::Estimate => {
                let gas = archive::estimate(state, rules, &header, request, overrides, &limits);
                json.quantity(gas.map_err(failed)?);
            }
        }
        Ok(at)
    }

    /// The block that a simulation runs at, and what it may use.
    fn simulation(
        &self,
        message: &CallMessage,
        at: BlockRef,
    ) -> Result<(alloy_consensus::Header, CallLimits), Failure> {
        let timeout = self.limits.call_timeout;
        let brief = self.budget.is_brief();
        if brief && !is_plain(message) {
            return Err(Failure::CallTimeout(timeout));
        }
        let header = self.snapshot.header(at.number)?.ok_or(Failure::Unavailable)?;
        let head_gas_limit = self.snapshot.head_gas_limit();
        let deadline = if brief { Deadline::strict } else { Deadline::at };
        let limits = CallLimits {
            gas_cap: head_gas_limit.saturating_mul(self.limits.call_gas_multiple),
            memory_bytes_max: if brief { brief::MEMORY_BYTES_MAX } else { CALL_MEMORY_BYTES_MAX },
            deadline: self.budget.deadline().map(|at| deadline(at, timeout)),
            cancel: self.budget.abandoned().cloned(),
        };
        Ok((header, limits))
    }

    fn call_failure(&self, cause: CallError) -> Failure {
        call_failure(cause, self.limits.call_timeout, self.budget.is_brief())
    }
}

/// Whether nothing has to be done for a message before it runs but to fill in what it leaves out.
fn is_plain(message: &CallMessage) -> bool {
    let (request, overrides) = (&message.request, &message.overrides);
    overrides.state.is_none()
        && overrides.block.is_none()
        && request.access_list.is_none()
        && request.authorization_list.is_none()
        && request.blob_versioned_hashes.is_none()
        && request.input.input().is_none_or(|input| input.len() <= brief::INPUT_BYTES_MAX)
}
