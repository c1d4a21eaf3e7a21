//! How long things take. Run on request: `cargo test --release -p chaingate-archive speed -- --ignored --nocapture`.

use super::support::*;
use crate::{
    call::{CallLimits, Deadline, Overrides, call},
    state::WorkingState,
};
use alloy_evm::{Evm, EvmFactory, eth::EthEvmFactory};
use alloy_primitives::{U256, hex, keccak256};
use alloy_rpc_types_eth::TransactionRequest;
use revm::{
    context::TxEnv,
    inspector::NoOpInspector,
    primitives::{TxKind, hardfork::SpecId},
};
use std::time::{Duration, Instant};

/// Batches of which the best counts.
const BATCHES: u32 = 40;

/// `balanceOf` of a token, as a compiler would write it.
const BALANCE_OF: &str = "0x80 0x40 MSTORE CALLVALUE @bad JUMPI 0x04 CALLDATASIZE LT @bad JUMPI \
    0x00 CALLDATALOAD 0xe0 SHR DUP1 0x18160ddd EQ @bad JUMPI DUP1 0x70a08231 EQ @balance JUMPI \
    :bad 0x00 0x00 REVERT \
    :balance 0x04 CALLDATALOAD 0x00 MSTORE 0x00 0x20 MSTORE 0x40 0x00 KECCAK256 SLOAD";

/// The time of one round, in the best of several batches: other work on the machine only ever adds to it.
fn time_of(rounds: u32, mut work: impl FnMut()) -> Duration {
    let batch = |_| {
        let start = Instant::now();
        for _ in 0..rounds {
            work();
        }
        start.elapsed() / rounds
    };
    (0..BATCHES).map(batch).min().unwrap()
}

#[test]
#[ignore = "measures"]
fn reading_a_balance() {
    let owner = [&[0; 12], ALICE.as_slice()].concat();
    let slot = keccak256([&owner[..], &[0; 32]].concat());
    let mut world = World::default().with_code(CONTRACT, asm(&format!("{BALANCE_OF}{RETURN_TOP}")));
    world.storage.insert((CONTRACT, slot.into()), U256::from(12_345));
    let input: Vec<u8> = [&hex!("70a08231")[..], &owner].concat();
    let request = TransactionRequest { input: input.clone().into(), ..to_contract() };
    let (chain, header) = (chain(SpecId::PRAGUE), header(SpecId::PRAGUE));
    let rules = chain.rules_at(&header);
    for round in 0..3 {
        let ours = time_of(5_000, || {
            let deadline = Some(Deadline::after(Duration::from_secs(5)));
            let limits = CallLimits { deadline, ..limits() };
            let output =
                call(&world, rules, &header, request.clone(), Overrides::default(), &limits).unwrap();
            assert_eq!(U256::from_be_slice(&output), U256::from(12_345));
        });
        let plain = time_of(5_000, || {
            let mut env = rules.evm_env(&header);
            env.cfg_env.disable_nonce_check = true;
            env.block_env.basefee = 0;
            let tx = transaction(input.clone(), BLOCK_GAS_LIMIT);
            let mut evm = EthEvmFactory::default().create_evm(WorkingState::new(&world), env);
            assert!(evm.transact_raw(tx).unwrap().result.is_success());
        });
        eprintln!("round {round}: balanceOf {ours:?}, the same on a plain EVM of alloy-evm {plain:?}");
    }
}

fn transaction(data: Vec<u8>, gas_limit: u64) -> TxEnv {
    TxEnv {
        kind: TxKind::Call(CONTRACT),
        data: data.into(),
        gas_limit,
        chain_id: Some(CHAIN_ID),
        ..TxEnv::default()
    }
}

#[test]
#[ignore = "measures"]
fn a_long_loop() {
    let code = asm("0x00 :again 0x01 ADD DUP1 DUP1 MUL POP @again JUMP");
    let world = World::default().with_code(CONTRACT, code);
    let (chain, header) = (chain(SpecId::PRAGUE), header(SpecId::PRAGUE));
    let rules = chain.rules_at(&header);
    for round in 0..3 {
        let ours = time_of(1, || {
            let deadline = Some(Deadline::after(Duration::from_secs(60)));
            let limits = CallLimits { gas_cap: BLOCK_GAS_LIMIT, deadline, ..limits() };
            assert!(call(&world, rules, &header, to_contract(), Overrides::default(), &limits).is_err());
        });
        let mut env = rules.evm_env(&header);
        env.block_env.basefee = 0;
        let plain = time_of(1, || {
            let mut evm = EthEvmFactory::default().create_evm(WorkingState::new(&world), env.clone());
            evm.transact_raw(transaction(Vec::new(), BLOCK_GAS_LIMIT)).unwrap();
        });
        let inspected = time_of(1, || {
            let state = WorkingState::new(&world);
            let mut evm =
                EthEvmFactory::default().create_evm_with_inspector(state, env.clone(), NoOpInspector);
            evm.transact_raw(transaction(Vec::new(), BLOCK_GAS_LIMIT)).unwrap();
        });
        eprintln!("round {round}: 30 M gas watched {ours:?}, plain {plain:?}, inspected {inspected:?}");
    }
}
