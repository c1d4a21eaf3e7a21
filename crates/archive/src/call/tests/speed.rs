//! How long things take. Run on request: `cargo test --release -p chaingate-archive speed -- --ignored --nocapture`.
#![expect(clippy::print_stderr, reason = "what is measured is to be seen")]

use super::support::*;
use crate::{
    call::{CallLimits, Deadline, Overrides, call},
    state::WorkingState,
};
use alloy_evm::{Evm, EvmFactory, eth::EthEvmFactory};
use alloy_primitives::{Address, U256, hex, keccak256};
use alloy_rpc_types_eth::TransactionRequest;
use revm::{
    context::TxEnv,
    inspector::NoOpInspector,
    precompile::{PrecompileSpecId, Precompiles},
    primitives::{TxKind, hardfork::SpecId},
};
use std::time::{Duration, Instant};

/// `balanceOf` of a token, as a compiler would write it.
const BALANCE_OF: &str = "0x80 0x40 MSTORE CALLVALUE @bad JUMPI 0x04 CALLDATASIZE LT @bad JUMPI \
    0x00 CALLDATALOAD 0xe0 SHR DUP1 0x18160ddd EQ @bad JUMPI DUP1 0x70a08231 EQ @balance JUMPI \
    :bad 0x00 0x00 REVERT \
    :balance 0x04 CALLDATALOAD 0x00 MSTORE 0x00 0x20 MSTORE 0x40 0x00 KECCAK256 SLOAD";

fn time_of(rounds: u32, mut work: impl FnMut()) -> Duration {
    let start = Instant::now();
    for _ in 0..rounds {
        work();
    }
    start.elapsed() / rounds
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
        let ours = time_of(200_000, || {
            let deadline = Some(Deadline::after(Duration::from_secs(5)));
            let limits = CallLimits { deadline, ..limits() };
            let output =
                call(&world, rules, &header, request.clone(), Overrides::default(), &limits).unwrap();
            assert_eq!(U256::from_be_slice(&output), U256::from(12_345));
        });
        let plain = time_of(200_000, || {
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
        let ours = time_of(5, || {
            let deadline = Some(Deadline::after(Duration::from_secs(60)));
            let limits = CallLimits { gas_cap: BLOCK_GAS_LIMIT, deadline, ..limits() };
            assert!(call(&world, rules, &header, to_contract(), Overrides::default(), &limits).is_err());
        });
        let mut env = rules.evm_env(&header);
        env.block_env.basefee = 0;
        let plain = time_of(5, || {
            let mut evm = EthEvmFactory::default().create_evm(WorkingState::new(&world), env.clone());
            evm.transact_raw(transaction(Vec::new(), BLOCK_GAS_LIMIT)).unwrap();
        });
        let inspected = time_of(5, || {
            let state = WorkingState::new(&world);
            let mut evm =
                EthEvmFactory::default().create_evm_with_inspector(state, env.clone(), NoOpInspector);
            evm.transact_raw(transaction(Vec::new(), BLOCK_GAS_LIMIT)).unwrap();
        });
        eprintln!("round {round}: 30 M gas watched {ours:?}, plain {plain:?}, inspected {inspected:?}");
    }
}

/// The slowest inputs of each precompile: what the limit on their gas is made from.
#[test]
#[ignore = "measures"]
fn precompile_gas_per_ms() {
    let forks = [PrecompileSpecId::BYZANTIUM, PrecompileSpecId::BERLIN, PrecompileSpecId::OSAKA];
    let mut slowest = f64::MAX;
    for fork in forks {
        for (name, precompile, input) in inputs() {
            let Some(precompile) = Precompiles::new(fork).get(&Address::with_last_byte(precompile)) else {
                continue;
            };
            let start = Instant::now();
            let output = precompile.execute(&input, 20_000_000, 0).unwrap();
            let elapsed_ms = start.elapsed().as_secs_f64() * 1_000.0;
            if output.halt_reason().is_some() {
                continue;
            }
            let speed = output.gas_used as f64 / elapsed_ms;
            slowest = slowest.min(speed);
            eprintln!("{fork:?} {name}: {} gas, {elapsed_ms:.3} ms, {speed:.0} gas/ms", output.gas_used);
        }
    }
    eprintln!("slowest: {slowest:.0} gas/ms");
}

fn inputs() -> Vec<(String, u8, Vec<u8>)> {
    let mut inputs = Vec::new();
    for (base, exponent, modulus) in MODEXP_SIZES {
        for fill in [0xff_u8, 0x80] {
            for odd in [0_u8, 1] {
                let lengths = [base, exponent, modulus].map(|len| U256::from(len).to_be_bytes::<32>());
                let mut input = lengths.concat();
                input.extend(vec![fill; base + exponent + modulus]);
                *input.last_mut().unwrap() = 0x80 | odd;
                let name = format!("modexp {base}/{exponent}/{modulus} {fill:x} odd={odd}");
                inputs.push((name, 5, input));
            }
        }
    }
    let blake2f = [&1_000_000_u32.to_be_bytes()[..], &[1; 208], &[1]].concat();
    inputs.push(("blake2f".to_owned(), 9, blake2f));
    for (name, precompile) in [("sha256", 2), ("ripemd160", 3), ("identity", 4)] {
        inputs.push((name.to_owned(), precompile, vec![7; 4 << 20]));
    }
    let ecrecover = hex!(
        "18c547e4f7b0f325ad1e56f57e26c745b09a3e503d86e00e5255ff7f715d3d1c"
        "000000000000000000000000000000000000000000000000000000000000001c"
        "73b1693892219d736caba55bdb67216e485557ea6b6af75f37096c9aa6a5a75f"
        "eeb940b1d03b21e36b0e47e79769f095fe2ab855bd91e3a38756b7d75a9c4549"
    );
    inputs.push(("ecrecover".to_owned(), 1, ecrecover.to_vec()));
    let g1 = [U256::from(1).to_be_bytes::<32>(), U256::from(2).to_be_bytes::<32>()].concat();
    inputs.push(("bn254 add".to_owned(), 6, [g1.clone(), g1.clone()].concat()));
    inputs.push(("bn254 mul".to_owned(), 7, [g1.clone(), vec![0xff; 32]].concat()));
    let g2 = hex!(
        "198e9393920d483a7260bfb731fb5d25f1aa493335a9e71297e485b7aef312c2"
        "1800deef121f1e76426a00665e5c4479674322d4f75edadd46debd5cd992f6ed"
        "090689d0585ff075ec9e99ad690c3395bc4b313370b38ef355acdadcd122975b"
        "12c85ea5db8c6deb4aab71808dcb408fe3d1e7690c43d37b4ce6cc0166fa7daa"
    );
    let pair = [g1, g2.to_vec()].concat();
    inputs.push(("bn254 pairing of one".to_owned(), 8, pair.clone()));
    inputs.push(("bn254 pairing of a hundred".to_owned(), 8, pair.repeat(100)));
    inputs
}

const MODEXP_SIZES: [(usize, usize, usize); 14] = [
    (1, 1_000_000, 1),
    (8, 32, 8),
    (8, 100_000, 8),
    (16, 50_000, 16),
    (24, 20_000, 24),
    (32, 32, 32),
    (32, 20_000, 32),
    (64, 8_000, 64),
    (128, 1_024, 128),
    (256, 1_024, 256),
    (512, 512, 512),
    (1_024, 512, 1_024),
    (1_024, 3, 1_024),
    (40_000, 1, 40_000),
];
