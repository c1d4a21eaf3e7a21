//! Precompiled contracts that keep to the deadline.
//!
//! Nothing can stop one once it runs, so each is only given the gas that the time left pays for. All of them
//! compute their price before they start to work.

use super::{machine::Host, watch::Stop};
use crate::state::StateSource;
use alloy_primitives::{Address, map::AddressSet};
use revm::{
    context::{Cfg, ContextTr, JournalTr, LocalContextTr},
    handler::{PrecompileProvider, precompile_output_to_interpreter_result},
    interpreter::{CallInputs, InterpreterResult},
    precompile::{Precompile, PrecompileOutput, PrecompileSpecId, PrecompileStatus, Precompiles},
    primitives::hardfork::SpecId,
};

/// The precompiles of a fork.
#[derive(Debug)]
pub(super) struct WatchedPrecompiles {
    usual: &'static Precompiles,
}

impl WatchedPrecompiles {
    pub(super) fn new(spec: SpecId) -> Self {
        Self { usual: Precompiles::new(PrecompileSpecId::from_spec_id(spec)) }
    }
}

impl<'a, 'l, S: StateSource> PrecompileProvider<Host<'a, 'l, S>> for WatchedPrecompiles {
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
        let output = run_within_time(precompile, host, inputs)?;
        note_halt(host, &output);
        Ok(Some(precompile_output_to_interpreter_result(output, inputs.gas_limit)))
    }

    fn warm_addresses(&self) -> &AddressSet {
        self.usual.addresses_set()
    }

    fn contains(&self, address: &Address) -> bool {
        self.usual.contains(address)
    }
}

/// Runs a precompile with the gas that the time left pays for.
///
/// If it would need more, and has more, the run is over. The text is not seen by anyone: the watch remembers why.
fn run_within_time<S: StateSource>(
    precompile: &Precompile,
    host: &mut Host<'_, '_, S>,
    inputs: &CallInputs,
) -> Result<PrecompileOutput, String> {
    let text = |stop: Stop| stop.to_string();
    let gas = host.db_mut().watch.precompile_gas().map_err(text)?.min(inputs.gas_limit);
    let output = precompile.execute(&inputs.input.as_bytes(host), gas, inputs.reservoir);
    let output = output.map_err(|fatal| fatal.to_string())?;
    let out_of_gas = matches!(&output.status, PrecompileStatus::Halt(reason) if reason.is_oog());
    if out_of_gas && gas < inputs.gas_limit {
        return Err(text(host.db_mut().watch.stop_precompile()));
    }
    Ok(output)
}

/// A message sent straight to a precompile is told what was wrong with its input.
fn note_halt<S: StateSource>(host: &mut Host<'_, '_, S>, output: &PrecompileOutput) {
    if let PrecompileStatus::Halt(reason) = &output.status
        && !reason.is_oog()
        && host.journal().depth() == 1
    {
        host.local_mut().set_precompile_error_context(reason.to_string());
    }
}
