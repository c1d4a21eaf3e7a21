//! Estimates that hold when they are used, and no more than they must be.

use super::*;
use crate::call::{Deadline, tests::support::*};
use alloy_primitives::{Address, Bytes, hex};
use std::time::Duration;

const SPEC: SpecId = SpecId::PRAGUE;

/// How much too high an estimate may be.
const TOLERANCE: f64 = 0.015;

fn estimate_of(world: &World, request: &TransactionRequest) -> u64 {
    estimate_at(SPEC, world, request.clone(), &limits()).unwrap()
}

fn error_of(world: &World, request: TransactionRequest) -> String {
    estimate_at(SPEC, world, request, &limits()).unwrap_err().to_string()
}

fn succeeds_with(world: &World, request: &TransactionRequest, gas: u64) -> bool {
    let request = TransactionRequest { gas: Some(gas), ..request.clone() };
    call_at(SPEC, world, request, &limits()).is_ok()
}

/// Estimates; checks that the estimate is enough, and that what is below by more than the tolerance is not.
fn checked_estimate(world: &World, request: &TransactionRequest) -> u64 {
    let gas = estimate_of(world, request);
    assert!(succeeds_with(world, request, gas), "{gas} is not enough");
    let below = (gas as f64 * (1.0 - TOLERANCE)) as u64 - 1;
    assert!(!succeeds_with(world, request, below), "{gas} is too much, {below} does");
    gas
}

fn contract(program: &str) -> World {
    World::default().with_code(CONTRACT, asm(program)).with_balance(ALICE, 1_000_000_000)
}

#[test]
fn a_transfer_costs_what_it_always_costs() {
    let to = Some(TxKind::Call(OTHER));
    let request = TransactionRequest {
        from: Some(ALICE),
        to,
        value: Some(U256::from(5)),
        ..TransactionRequest::default()
    };
    let world = contract("STOP");
    assert_eq!(estimate_of(&world, &request), 21_000);
    // The shortcut needs one run: sender, recipient, and what the EVM loads besides.
    assert!(world.reads.get() < 6, "{} reads", world.reads.get());
    let data = TransactionRequest { input: vec![1; 10].into(), ..request };
    assert!(checked_estimate(&world, &data) >= 21_400);
}

#[test]
fn estimates_hold_when_they_are_used() {
    let other = hex::encode(OTHER);
    let cases = [
        ("STOP".to_owned(), 21_000, "nothing"),
        ("0x01 0x00 SSTORE".to_owned(), 43_106, "a slot that is set"),
        // Slot 7 holds something; clearing it gives back 4,800 at the end, but it must be at hand before.
        ("0x00 0x07 SSTORE".to_owned(), 26_006, "a refund"),
        ("0x00 0x00 0x00 0x00 0x09 0x00 0xbb GAS CALL STOP".to_owned(), 0, "a call with value"),
        (
            format!("0x00 0x00 0x00 0x00 0x00 0x{other} GAS CALL @ok JUMPI 0x00 0x00 REVERT :ok STOP"),
            0,
            "a call",
        ),
        ("GAS 0x30000 GT @poor JUMPI STOP :poor INVALID".to_owned(), 0, "a look at the gas"),
    ];
    for (program, least, name) in cases {
        let inner = asm("0x01 0x00 SSTORE 0x01 0x01 SSTORE 0x01 0x02 SSTORE 0x01 0x03 SSTORE");
        let world = contract(&program)
            .with_code(OTHER, inner)
            .with_slot(CONTRACT, 7, 1)
            .with_balance(CONTRACT, 1_000);
        let gas = checked_estimate(&world, &to_contract());
        assert!(gas >= least, "{name}: {gas} < {least}");
        assert!(least == 0 || gas <= least + least / 50 + 1, "{name}: {gas} > {least}");
    }
}

/// Each call keeps a 64th part back, so that what is used is not enough to give.
#[test]
fn deep_calls_get_the_part_that_is_kept_back() {
    let work = "0x00 :again 0x01 ADD DUP1 0x1388 GT @again JUMPI";
    let nested = "CALLDATASIZE 0x10 SUB @deeper JUMPI";
    // Calls itself with one byte more each time, and works at the bottom; any failure is passed on.
    let program = format!(
        "{nested} {work} STOP :deeper \
         0x00 0x00 0x01 CALLDATASIZE ADD 0x00 0x00 ADDRESS GAS CALL @ok JUMPI 0x00 0x00 REVERT :ok STOP"
    );
    let world = contract(&program);
    let gas = checked_estimate(&world, &to_contract());
    let used = {
        let (chain, header) = (chain(SPEC), header(SPEC));
        let limits = limits();
        let mut trial = PreparedCall::new(
            &world,
            chain.rules_at(&header),
            &header,
            to_contract(),
            Overrides::default(),
            &limits,
        )
        .unwrap();
        let CallResult::Returned { gas, .. } = trial.run(BLOCK_GAS_LIMIT).unwrap() else { panic!("failed") };
        gas.tx_gas_used()
    };
    assert!(!succeeds_with(&world, &to_contract(), used), "what is used should not be enough");
    assert!(gas > used + used / 20, "{gas} for {used}");
}

#[test]
fn creations_are_estimated() {
    let code = asm("0x600a 0x00 MSTORE 0x100 0x00 RETURN");
    let gas = checked_estimate(&World::default(), &creation(code));
    assert!(gas > 53_000 + 200 * 256, "{gas}");
}

#[test]
fn what_fails_with_any_gas_says_why() {
    let cases = [
        ("0x00 0x00 REVERT", "execution reverted"),
        ("INVALID", "invalid opcode: INVALID"),
        (":again @again JUMP", "gas required exceeds allowance (30000000)"),
        ("0x05 JUMP", "invalid jump destination"),
    ];
    for (program, text) in cases {
        assert_eq!(error_of(&contract(program), to_contract()), text);
    }
}

#[test]
fn a_revert_keeps_its_data() {
    let world = contract("0xabcd 0x00 MSTORE 0x20 0x00 REVERT");
    let error = estimate_at(SPEC, &world, to_contract(), &limits()).unwrap_err();
    let CallError::Reverted { data } = error else { panic!("{error:?}") };
    assert_eq!(data, Bytes::from(U256::from(0xabcd).to_be_bytes_vec()));
}

/// The gas that is named, the block, the cap of the chain, the balance and the gateway all bound the search.
#[test]
fn the_allowance_is_the_least_of_all_bounds() {
    // Each round costs 22,000 gas, so that it is out of gas in no time.
    let endless = contract("0x00 :again 0x01 ADD DUP1 DUP1 SSTORE @again JUMP");
    let alice = TransactionRequest { from: Some(ALICE), ..to_contract() };
    let priced = TransactionRequest { gas_price: Some(1_000), ..alice.clone() };
    let valued = TransactionRequest { value: Some(U256::from(900_000_000)), ..priced.clone() };
    let gas = |gas| TransactionRequest { gas: Some(gas), ..alice.clone() };
    let cases = [
        (SpecId::PRAGUE, alice.clone(), 30_000_000),
        (SpecId::OSAKA, alice.clone(), 1 << 24),
        (SpecId::PRAGUE, gas(100_000), 100_000),
        // Less than any transaction costs is taken as no limit at all.
        (SpecId::PRAGUE, gas(20_999), 30_000_000),
        (SpecId::PRAGUE, gas(40_000_000), 40_000_000),
        (SpecId::PRAGUE, gas(u64::MAX), 300_000_000),
        (SpecId::PRAGUE, priced, 1_000_000),
        (SpecId::PRAGUE, valued, 100_000),
    ];
    for (spec, request, allowance) in cases {
        let error = estimate_at(spec, &endless, request, &limits()).unwrap_err();
        assert_eq!(error.to_string(), format!("gas required exceeds allowance ({allowance})"));
    }
}

#[test]
fn who_cannot_pay_gets_no_estimate() {
    let world = contract("STOP");
    let poor = TransactionRequest { from: Some(OTHER), value: Some(U256::from(7)), ..to_contract() };
    assert_eq!(
        error_of(&world, poor.clone()),
        format!("insufficient funds for gas * price + value: address {OTHER} have 0 want 7")
    );
    let priced = TransactionRequest { gas_price: Some(10), ..poor };
    assert_eq!(error_of(&world, priced), "insufficient funds for transfer");
    let no_gas = TransactionRequest { from: Some(Address::ZERO), gas_price: Some(10), ..to_contract() };
    assert_eq!(error_of(&world, no_gas), "insufficient funds for transfer");
    let little = TransactionRequest { from: Some(ALICE), gas_price: Some(100_000), ..to_contract() };
    assert_eq!(error_of(&world, little.clone()), "gas required exceeds allowance (10000)");
    // A plain transfer was said to want the price of 21,000 gas.
    let transfer = TransactionRequest { to: Some(OTHER.into()), ..little };
    assert_eq!(error_of(&world, transfer), "gas required exceeds allowance (10000)");
}

#[test]
fn an_estimate_with_a_fee_is_the_same() {
    let world = contract("0x01 0x00 SSTORE");
    let free = TransactionRequest { from: Some(ALICE), ..to_contract() };
    let priced = TransactionRequest { max_fee_per_gas: Some(10), ..free.clone() };
    assert_eq!(estimate_of(&world, &free), estimate_of(&world, &priced));
}

/// However many runs it takes, the state is read once.
#[test]
fn the_state_is_read_once() {
    let program =
        "0x00 SLOAD POP 0x01 SLOAD POP 0x63 BLOCKHASH POP GAS 0x40000 GT @poor JUMPI STOP :poor INVALID";
    let world = contract(program);
    checked_estimate(&world, &to_contract());
    world.reads.set(0);
    estimate_of(&world, &to_contract());
    let by_estimate = world.reads.replace(0);
    call_at(SPEC, &world, to_contract(), &limits()).unwrap();
    assert_eq!(by_estimate, world.reads.get());
}

/// Every run of the search together keeps to the one deadline.
#[test]
fn an_estimate_stops_at_the_deadline() {
    let timeout = Duration::from_millis(100);
    let world = contract(":again @again JUMP");
    let request = TransactionRequest { gas: Some(u64::MAX), ..to_contract() };
    let deadline = Some(Deadline::after(timeout));
    let limits = CallLimits { gas_cap: u64::MAX / 4, deadline, ..limits() };
    // All of the gas would take longer than any test.
    let error = estimate_at(SPEC, &world, request, &limits).unwrap_err();
    assert_eq!(error.to_string(), "execution aborted (timeout = 100ms)");
}

#[test]
fn a_panic_becomes_an_error() {
    let world = World { panics: true, ..World::default() };
    assert_eq!(error_of(&world, to_contract()), "evm panicked: the world ends");
}
