//! Every failure in the words that clients know.

use super::support::*;
use crate::call::CallError;
use alloy_primitives::{Address, Bytes, TxKind, U256};
use alloy_rpc_types_eth::TransactionRequest;
use revm::primitives::hardfork::SpecId;

const ONE_ETHER: u128 = 1_000_000_000_000_000_000;

/// Runs a program and gives the text of its failure.
fn text_of(spec: SpecId, program: &str) -> String {
    let world = World::default().with_code(CONTRACT, asm(program));
    let request = TransactionRequest { gas: Some(1_000_000), ..to_contract() };
    call_at(spec, &world, request, &limits()).unwrap_err().to_string()
}

#[test]
fn programs_fail_in_the_usual_words() {
    let full = "0x00 ".repeat(1_025);
    let cases = [
        (":again @again JUMP", "out of gas"),
        ("INVALID", "invalid opcode: INVALID"),
        ("raw:ef", "invalid opcode: opcode 0xef not defined"),
        ("raw:0c", "invalid opcode: opcode 0xc not defined"),
        ("ADD", "stack underflow (0 <=> 2)"),
        ("0x01 ADD", "stack underflow (1 <=> 2)"),
        ("0x01 DUP5", "stack underflow (1 <=> 5)"),
        ("0x01 SWAP1", "stack underflow (1 <=> 2)"),
        (full.as_str(), "stack limit reached 1024 (1023)"),
        ("0x05 JUMP", "invalid jump destination"),
        ("0x00 JUMP", "invalid jump destination"),
        ("0x20 0x00 0x00 RETURNDATACOPY", "return data out of bounds"),
        ("0x00 0x00 NOT MSTORE", "gas uint64 overflow"),
        ("0x00 0x00 REVERT", "execution reverted"),
    ];
    for (program, text) in cases {
        assert_eq!(text_of(SpecId::PRAGUE, program), text, "{program}");
    }
}

#[test]
fn an_instruction_of_a_later_fork_is_named() {
    assert_eq!(text_of(SpecId::MERGE, "PUSH0"), "invalid opcode: PUSH0");
    assert_eq!(text_of(SpecId::FRONTIER, "0x00 0x00 REVERT"), "invalid opcode: REVERT");
    assert_eq!(text_of(SpecId::BYZANTIUM, "0x01 0x01 SHL"), "invalid opcode: SHL");
}

#[test]
fn the_text_is_about_the_outermost_frame() {
    let inner = asm("0x01 ADD");
    let outer = asm(&format!("0x00 0x00 0x00 0x00 0x{} GAS STATICCALL INVALID", hex(OTHER)));
    let world = World::default().with_code(CONTRACT, outer).with_code(OTHER, inner);
    let error = call_at(SpecId::PRAGUE, &world, to_contract(), &limits()).unwrap_err();
    assert_eq!(error.to_string(), "invalid opcode: INVALID");
}

#[test]
fn a_write_where_only_reads_are_allowed_fails_its_frame() {
    let inner = asm("0x01 0x01 SSTORE");
    let outer = asm(&format!("0x00 0x00 0x00 0x00 0x{} GAS STATICCALL{RETURN_TOP}", hex(OTHER)));
    let world = World::default().with_code(CONTRACT, outer).with_code(OTHER, inner);
    let output = call_at(SpecId::PRAGUE, &world, to_contract(), &limits()).unwrap();
    assert_eq!(U256::from_be_slice(&output), U256::ZERO);
}

fn hex(address: Address) -> String {
    alloy_primitives::hex::encode(address)
}

#[test]
fn reverts_keep_their_data() {
    let cases = [Bytes::from_static(&[0xde, 0xad, 0xbe, 0xef, 1]), Bytes::from(vec![7; 1_000]), Bytes::new()];
    // Reverts with whatever it was called with.
    let code = asm("CALLDATASIZE 0x00 0x00 CALLDATACOPY CALLDATASIZE 0x00 REVERT");
    let world = World::default().with_code(CONTRACT, code);
    for sent in cases {
        let request = TransactionRequest { input: sent.clone().into(), ..to_contract() };
        let error = call_at(SpecId::PRAGUE, &world, request, &limits()).unwrap_err();
        assert_eq!(error.to_string(), "execution reverted");
        let CallError::Reverted { data } = error else { panic!("{error:?}") };
        assert_eq!(data, sent);
    }
}

#[test]
fn creations_fail_in_the_usual_words() {
    let cases = [
        ("0xef 0x00 MSTORE8 0x01 0x00 RETURN", "invalid code: must not begin with 0xef"),
        ("0x6001 0x00 RETURN", "max code size exceeded"),
        ("0x05 JUMP", "invalid jump destination"),
    ];
    for (program, text) in cases {
        let error =
            call_at(SpecId::PRAGUE, &World::default(), creation(asm(program)), &limits()).unwrap_err();
        assert_eq!(error.to_string(), text, "{program}");
    }
    let error = call_at(SpecId::PRAGUE, &World::default(), creation(vec![0; 49_153]), &limits()).unwrap_err();
    assert_eq!(error.to_string(), "max initcode size exceeded: code size 49153 limit 49152");
}

#[test]
fn a_precompile_says_what_it_does_not_like() {
    let to = Some(TxKind::Call(Address::with_last_byte(9)));
    let request = TransactionRequest { to, ..TransactionRequest::default() };
    let error = call_at(SpecId::PRAGUE, &World::default(), request, &limits()).unwrap_err();
    assert!(error.to_string().contains("length"), "{error}");
}

/// Requests that cannot run, and why.
#[test]
fn requests_are_refused_in_the_usual_words() {
    let plain = to_contract;
    let alice = || TransactionRequest { from: Some(ALICE), ..to_contract() };
    let fees = |cap, tip| TransactionRequest {
        max_fee_per_gas: Some(cap),
        max_priority_fee_per_gas: Some(tip),
        ..alice()
    };
    let blobs = |hashes| TransactionRequest { blob_versioned_hashes: Some(hashes), ..alice() };
    let versioned = |version| alloy_primitives::B256::repeat_byte(version);
    let cases = [
        (
            TransactionRequest { gas_price: Some(1), max_fee_per_gas: Some(1), ..plain() },
            "both gasPrice and (maxFeePerGas or maxPriorityFeePerGas) specified".to_owned(),
        ),
        (
            TransactionRequest { chain_id: Some(1), ..plain() },
            "chainId does not match node's (have=1, want=1337)".to_owned(),
        ),
        (
            TransactionRequest { value: Some(U256::from(ONE_ETHER)), ..alice() },
            format!("insufficient funds for gas * price + value: address {ALICE} have 500 want {ONE_ETHER}"),
        ),
        (
            TransactionRequest { gas: Some(50_000), ..fees(10, 0) },
            format!("insufficient funds for gas * price + value: address {ALICE} have 500 want 500000"),
        ),
        (
            TransactionRequest { gas_price: Some(u128::MAX), value: Some(U256::MAX), ..alice() },
            format!(
                "insufficient funds for gas * price + value: address {ALICE} required balance exceeds 256 bits"
            ),
        ),
        (
            TransactionRequest { gas: Some(20_000), ..plain() },
            "intrinsic gas too low: have 20000, want 21000".to_owned(),
        ),
        (
            TransactionRequest { gas: Some(25_000), input: vec![1; 300].into(), ..plain() },
            "intrinsic gas too low: have 25000, want 25800".to_owned(),
        ),
        (
            TransactionRequest { gas: Some(30_000), input: vec![1; 300].into(), ..plain() },
            "insufficient gas for floor data gas cost: have 30000, want 33000".to_owned(),
        ),
        (
            fees(6, 1),
            format!("max fee per gas less than block base fee: address {ALICE}, maxFeePerGas: 6, baseFee: 7"),
        ),
        (
            TransactionRequest { gas_price: Some(1), ..alice() },
            format!("max fee per gas less than block base fee: address {ALICE}, maxFeePerGas: 1, baseFee: 7"),
        ),
        (
            fees(9, 10),
            format!(
                "max priority fee per gas higher than max fee per gas: address {ALICE}, \
                 maxPriorityFeePerGas: 10, maxFeePerGas: 9"
            ),
        ),
        (blobs(vec![]), "blob transaction missing blob hashes".to_owned()),
        (blobs(vec![versioned(1), versioned(2)]), "blob 1 has invalid hash version".to_owned()),
        (
            TransactionRequest { to: None, ..blobs(vec![versioned(1)]) },
            "blob transaction of type create".to_owned(),
        ),
        (blobs(vec![versioned(1); 10]), "blob transaction has too many blobs: have 10, max 9".to_owned()),
        (
            TransactionRequest { authorization_list: Some(vec![]), ..alice() },
            format!("EIP-7702 transaction with empty auth list (sender {ALICE})"),
        ),
        (
            TransactionRequest { authorization_list: Some(vec![]), to: None, ..alice() },
            format!("EIP-7702 transaction cannot be used to create contract (sender {ALICE})"),
        ),
    ];
    let world = World::default().with_code(CONTRACT, asm("STOP")).with_balance(ALICE, 500);
    for (request, text) in cases {
        let error = call_at(SpecId::PRAGUE, &world, request, &limits()).unwrap_err();
        assert_eq!(error.to_string(), text);
        assert!(matches!(error, CallError::Refused(_)));
    }
}

#[test]
fn blob_fees_are_checked_only_where_one_is_offered() {
    let hashes = Some(vec![alloy_primitives::B256::repeat_byte(1)]);
    let free = TransactionRequest { blob_versioned_hashes: hashes.clone(), ..to_contract() };
    let code = asm(&format!("BLOBBASEFEE{RETURN_TOP}"));
    let world = World::default().with_code(CONTRACT, code);
    let output = call_at(SpecId::PRAGUE, &world, free, &limits()).unwrap();
    assert_eq!(U256::from_be_slice(&output), U256::ZERO);

    let early = TransactionRequest { blob_versioned_hashes: hashes, ..to_contract() };
    let error = call_at(SpecId::SHANGHAI, &world, early, &limits()).unwrap_err();
    assert_eq!(error.to_string(), "transaction type not supported");
}

#[test]
fn a_timeout_is_told_in_seconds() {
    use crate::call::{Deadline, StopReason};
    use std::time::Duration;
    let _ = Deadline::after(Duration::from_secs(5));
    let stop = StopReason::Timeout { timeout: Duration::from_secs(5) };
    assert_eq!(CallError::from(stop).to_string(), "execution aborted (timeout = 5s)");
    assert_eq!(
        CallError::GasExceedsAllowance { allowance: 21_000 }.to_string(),
        "gas required exceeds allowance (21000)"
    );
}
