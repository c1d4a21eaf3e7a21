//! Precompiled contracts that keep to the deadline.
//!
//! A running precompile cannot be stopped, so its time is estimated before it runs: from its input where the gas price
//! says little about the time ([`work`]), and from its gas otherwise. Every precompile computes its price first.

mod work;

use super::{host::Host, limits::StopReason};
use crate::state::StateSource;
use alloy_primitives::{Address, map::AddressSet};
use revm::{
    context::{Cfg, ContextTr, JournalTr, LocalContextTr},
    handler::{PrecompileProvider, precompile_output_to_interpreter_result},
    interpreter::{CallInputs, InterpreterResult},
    precompile::{Precompile, PrecompileOutput, PrecompileSpecId, PrecompileStatus, Precompiles},
    primitives::hardfork::SpecId,
};
use work::PrecompileSpeed;

/// The precompiles of a fork.
#[derive(Debug)]
pub(super) struct LimitedPrecompiles {
    usual: &'static Precompiles,
    spec: SpecId,
}

impl LimitedPrecompiles {
    pub(super) fn new(spec: SpecId) -> Self {
        Self { usual: Precompiles::new(PrecompileSpecId::from_spec_id(spec)), spec }
    }
}

impl<'a, 'l, S: StateSource> PrecompileProvider<Host<'a, 'l, S>> for LimitedPrecompiles {
    type Output = InterpreterResult;

    fn set_spec(&mut self, spec: <<Host<'a, 'l, S> as ContextTr>::Cfg as Cfg>::Spec) -> bool {
        *self = Self::new(spec);
        false
    }

    fn run(
        &mut self,
        host: &mut Host<'a, 'l, S>,
        inputs: &CallInputs,
    ) -> Result<Option<InterpreterResult>, String> {
        let address = host.db().overlay.precompile(inputs.bytecode_address);
        let Some(precompile) = address.and_then(|address| self.usual.get(&address)) else {
            return Ok(None);
        };
        let output = run_in_time(precompile, self.spec, host, inputs)?;
        record_halt(host, &output);
        Ok(Some(precompile_output_to_interpreter_result(output, inputs.gas_limit)))
    }

    fn warm_addresses(&self) -> &AddressSet {
        self.usual.addresses_set()
    }

    fn contains(&self, address: &Address) -> bool {
        self.usual.contains(address)
    }
}

/// Runs a precompile if it can end in time; otherwise stops the run.
///
/// The text of the error is never shown, because the limit tracker holds the reason.
fn run_in_time<S: StateSource>(
    precompile: &Precompile,
    spec: SpecId,
    host: &mut Host<'_, '_, S>,
    inputs: &CallInputs,
) -> Result<PrecompileOutput, String> {
    let text = |stop: StopReason| stop.to_string();
    let time = host.db_mut().limits.precompile_time().map_err(text)?;
    let strict = host.db().limits.is_strict();
    let speed = if strict { PrecompileSpeed::CAUTIOUS } else { PrecompileSpeed::MEASURED };
    let gas_in_time = {
        let input = inputs.input.as_bytes(host);
        speed.gas_in_time(precompile.id(), spec, &input, inputs.gas_limit, time)
    };
    let gas = gas_in_time.min(inputs.gas_limit);
    let output = precompile.execute(&inputs.input.as_bytes(host), gas, inputs.reservoir);
    let output = output.map_err(|fatal| fatal.to_string())?;
    let out_of_gas = matches!(&output.status, PrecompileStatus::Halt(reason) if reason.is_oog());
    if out_of_gas && gas < inputs.gas_limit {
        return Err(text(host.db_mut().limits.stop_precompile()));
    }
    Ok(output)
}

/// Records the error of a precompile that the message calls directly, because it becomes the error of the call.
fn record_halt<S: StateSource>(host: &mut Host<'_, '_, S>, output: &PrecompileOutput) {
    if let PrecompileStatus::Halt(reason) = &output.status
        && !reason.is_oog()
        && host.journal().depth() == 1
    {
        host.local_mut().set_precompile_error_context(reason.to_string());
    }
}
