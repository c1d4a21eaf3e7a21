//! `SSTORE` as Constantinople priced it (EIP-1283). Petersburg withdrew that before mainnet used it, so revm has no
//! such rules, but there are chains with blocks in between.

use revm::{
    bytecode::opcode::SSTORE,
    context_interface::context::SStoreResult,
    handler::instructions::EthInstructions,
    interpreter::{
        Host, Instruction, InstructionContext, InstructionExecResult, InstructionResult, InterpreterTypes,
        interpreter_types::{InputsTr, RuntimeFlag, StackTr},
    },
};

/// A write that changes nothing, or a slot that the transaction has changed already.
const DIRTY_GAS: u64 = 200;
/// The first write to a slot that was zero.
const SET_GAS: u64 = 20_000;
/// The first write to a slot that was not zero.
const RESET_GAS: u64 = 5_000;
/// The refund for a slot that is set to zero.
const CLEAR_REFUND: i64 = 15_000;
/// The refund for a slot that is set back to zero, its value before the transaction.
const SET_AGAIN_REFUND: i64 = 19_800;
/// The refund for a slot that is set back to its value before the transaction, which was not zero.
const RESET_AGAIN_REFUND: i64 = 4_800;

/// Makes an EVM with the rules of Petersburg one with those of Constantinople.
pub(crate) fn install<I: InterpreterTypes, H: Host>(instructions: &mut EthInstructions<I, H>) {
    instructions.insert_instruction(SSTORE, Instruction::new(sstore), 0);
}

fn sstore<I: InterpreterTypes, H: Host + ?Sized>(
    context: InstructionContext<'_, H, I>,
) -> InstructionExecResult {
    let interpreter = context.interpreter;
    if interpreter.runtime_flag.is_static() {
        return Err(InstructionResult::StateChangeDuringStaticCall);
    }
    let Some([slot, value]) = interpreter.stack.popn() else { return Err(InstructionResult::StackUnderflow) };
    let written = context.host.sstore(interpreter.input.target_address(), slot, value);
    let written = written.ok_or(InstructionResult::FatalExternalError)?;
    let (gas, refund) = price(&written.data);
    if !interpreter.gas.record_regular_cost(gas) {
        return Err(InstructionResult::OutOfGas);
    }
    interpreter.gas.record_refund(refund);
    Ok(())
}

/// The gas of a write, and what it adds to the refund.
fn price(write: &SStoreResult) -> (u64, i64) {
    if write.is_new_eq_present() {
        return (DIRTY_GAS, 0);
    }
    if write.is_original_eq_present() {
        return match (write.is_original_zero(), write.is_new_zero()) {
            (true, _) => (SET_GAS, 0),
            (false, true) => (RESET_GAS, CLEAR_REFUND),
            (false, false) => (RESET_GAS, 0),
        };
    }
    let mut refund = 0;
    if !write.is_original_zero() && write.is_present_zero() {
        refund -= CLEAR_REFUND;
    } else if !write.is_original_zero() && write.is_new_zero() {
        refund += CLEAR_REFUND;
    }
    if write.is_original_eq_new() {
        refund += if write.is_original_zero() { SET_AGAIN_REFUND } else { RESET_AGAIN_REFUND };
    }
    (DIRTY_GAS, refund)
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloy_primitives::U256;

    /// The table of the EIP, without the gas of its pushes.
    #[test]
    fn writes_cost_what_the_table_of_the_eip_says() {
        let rows: [(u64, &[u64], u64, i64); 17] = [
            (0, &[0, 0], 400, 0),
            (0, &[0, 1], 20_200, 0),
            (0, &[1, 0], 20_200, 19_800),
            (0, &[1, 2], 20_200, 0),
            (0, &[1, 1], 20_200, 0),
            (1, &[0, 0], 5_200, 15_000),
            (1, &[0, 1], 5_200, 4_800),
            (1, &[0, 2], 5_200, 0),
            (1, &[2, 0], 5_200, 15_000),
            (1, &[2, 3], 5_200, 0),
            (1, &[2, 1], 5_200, 4_800),
            (1, &[2, 2], 5_200, 0),
            (1, &[1, 0], 5_200, 15_000),
            (1, &[1, 2], 5_200, 0),
            (1, &[1, 1], 400, 0),
            (0, &[1, 0, 1], 40_200, 19_800),
            (1, &[0, 1, 0], 10_200, 19_800),
        ];
        for (original, writes, gas, refund) in rows {
            let (mut present, mut total) = (original, (0, 0));
            for new in writes {
                let [original_value, present_value, new_value] = [original, present, *new].map(U256::from);
                let (gas, refund) = price(&SStoreResult { original_value, present_value, new_value });
                total = (total.0 + gas, total.1 + refund);
                present = *new;
            }
            assert_eq!(total, (gas, refund), "{original} {writes:?}");
        }
    }
}
