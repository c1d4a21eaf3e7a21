//! The contracts of EIP-7002 and EIP-7251 must be there, and the protocol's calls to them must end well within
//! 30,000,000 gas. Those of EIP-2935 and EIP-4788 may be missing.

use super::{
    TestWriter,
    writer::{contract, funded_sender},
};
use crate::asm::{Asm, op};
use alloy_eips::{
    eip7002::WITHDRAWAL_REQUEST_PREDEPLOY_ADDRESS, eip7251::CONSOLIDATION_REQUEST_PREDEPLOY_ADDRESS,
};
use alloy_primitives::{Address, Bytes};
use chain_builder::{BlockPlan, system_contracts};
use serde_json::{Map, Value};

const WITHDRAWALS: Address = WITHDRAWAL_REQUEST_PREDEPLOY_ADDRESS;
const CONSOLIDATIONS: Address = CONSOLIDATION_REQUEST_PREDEPLOY_ADDRESS;

const SYSTEM_CALL_GAS: u64 = 30_000_000;

const MISSING: &str = "BlockException.SYSTEM_CONTRACT_EMPTY";
const FAILS: &str = "BlockException.SYSTEM_CONTRACT_CALL_FAILED";

pub(super) fn tests() -> Map<String, Value> {
    let stop = || Bytes::from_static(&[op::STOP]);
    let reverts = Asm::new().push(0).push(0).ops(&[op::REVERT]).finish();
    let halts = Bytes::from_static(&[op::INVALID]);
    let burns_one_more = gas_burner(SYSTEM_CALL_GAS + 1);
    let refused = |name, comment, contracts: &[(Address, Bytes)], exception| {
        let accounts = contracts.iter().map(|(address, code)| contract(*address, code.clone()));
        let mut test = TestWriter::new("Prague", accounts.chain([funded_sender()]));
        let block = test.idle_block();
        test.refuse(&block, exception);
        test.finish(name, comment)
    };
    let mut tests = Map::from_iter([
        refused(
            "no_withdrawal_request_contract",
            "Without the contract of EIP-7002 no block of Prague is valid.",
            &[(CONSOLIDATIONS, stop())],
            MISSING,
        ),
        refused(
            "no_consolidation_request_contract",
            "Without the contract of EIP-7251 no block of Prague is valid.",
            &[(WITHDRAWALS, stop())],
            MISSING,
        ),
        accepted_without_history(),
        accepted_with_all_gas(),
    ]);
    let failing = [
        (
            "withdrawal_request_contract_uses_too_much_gas",
            "A system call has 30,000,000 gas.",
            burns_one_more,
        ),
        (
            "withdrawal_request_contract_reverts",
            "A system call that reverts makes the block invalid.",
            reverts,
        ),
        ("withdrawal_request_contract_halts", "A system call that halts makes the block invalid.", halts),
    ];
    for (name, comment, code) in failing {
        let contracts = [(WITHDRAWALS, code), (CONSOLIDATIONS, stop())];
        tests.extend([refused(name, comment, &contracts, FAILS)]);
    }
    tests
}

/// Nothing happens where the contracts of EIP-2935 and EIP-4788 are not deployed.
fn accepted_without_history() -> (String, Value) {
    let contracts = system_contracts().into_iter();
    let request_contracts = contracts.filter(|(address, _)| [WITHDRAWALS, CONSOLIDATIONS].contains(address));
    let mut test = TestWriter::new("Prague", request_contracts.chain([funded_sender()]));
    test.accept(BlockPlan::default());
    test.accept(BlockPlan::default());
    test.finish(
        "no_history_contract",
        "Blocks are valid without the contracts of EIP-2935 and EIP-4788, which then keep nothing.",
    )
}

fn accepted_with_all_gas() -> (String, Value) {
    let contracts = [
        contract(WITHDRAWALS, gas_burner(SYSTEM_CALL_GAS)),
        contract(CONSOLIDATIONS, Bytes::from_static(&[op::STOP])),
    ];
    let mut test = TestWriter::new("Prague", contracts.into_iter().chain([funded_sender()]));
    test.accept(BlockPlan::default());
    test.finish(
        "withdrawal_request_contract_uses_all_gas",
        "A system call may use all of its 30,000,000 gas.",
    )
}

/// Code that uses exactly this much gas: most of it for memory, the rest for no-ops.
fn gas_burner(gas: u64) -> Bytes {
    const PUSHES_AND_STORE: u64 = 3 * 3;
    let memory_gas = |words: u64| 3 * words + words * words / 512;
    let left = gas - PUSHES_AND_STORE;
    let words = (1..).take_while(|words| memory_gas(*words) <= left).last().expect("gas for a word");
    let no_ops = vec![op::JUMPDEST; (left - memory_gas(words)) as usize];
    Asm::new().ops(&no_ops).push(0).push((words - 1) * 32).ops(&[op::MSTORE, op::STOP]).finish()
}
