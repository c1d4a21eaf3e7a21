//! The world that a message sees, and the fields that it may leave out.

use super::support::*;
use crate::call::{CallLimits, call};
use alloy_eips::{
    eip2930::{AccessList, AccessListItem},
    eip7702::{Authorization, SignedAuthorization},
};
use alloy_primitives::{Address, B256, Bytes, TxKind, U256};
use alloy_rpc_types_eth::{TransactionInput, TransactionRequest};
use revm::primitives::hardfork::SpecId;

const FORKS: [SpecId; 12] = [
    SpecId::FRONTIER,
    SpecId::HOMESTEAD,
    SpecId::TANGERINE,
    SpecId::SPURIOUS_DRAGON,
    SpecId::BYZANTIUM,
    SpecId::ISTANBUL,
    SpecId::BERLIN,
    SpecId::LONDON,
    SpecId::SHANGHAI,
    SpecId::CANCUN,
    SpecId::PRAGUE,
    SpecId::OSAKA,
];

/// The item on top of the stack after a program, for some request.
fn top(spec: SpecId, program: &str, request: TransactionRequest) -> U256 {
    let code = asm(&format!("{program}{RETURN_TOP}"));
    let world = World::default().with_code(CONTRACT, code).with_balance(ALICE, u64::MAX).with_nonce(ALICE, 3);
    let output = call_at(spec, &world, request, &limits()).unwrap();
    U256::from_be_slice(&output)
}

#[test]
fn a_call_works_at_every_fork() {
    for spec in FORKS {
        assert_eq!(top(spec, "0x02 0x03 ADD", to_contract()), U256::from(5), "{spec}");
    }
}

#[test]
fn the_sender_is_nobody_unless_named() {
    assert_eq!(top(SpecId::PRAGUE, "CALLER", to_contract()), U256::ZERO);
    let request = TransactionRequest { from: Some(ALICE), ..to_contract() };
    assert_eq!(top(SpecId::PRAGUE, "CALLER", request), U256::from_be_slice(ALICE.as_slice()));
}

/// A contract may be named as the sender, and any nonce.
#[test]
fn nobody_signs_a_message() {
    let request = TransactionRequest { from: Some(CONTRACT), nonce: Some(u64::MAX), ..to_contract() };
    assert_eq!(top(SpecId::PRAGUE, "0x01", request), U256::ONE);
}

#[test]
fn gas_is_the_cap_unless_named_and_never_more() {
    let base = 21_000 + 2;
    let cap = limits().gas_cap;
    assert_eq!(top(SpecId::OSAKA, "GAS", to_contract()), U256::from(cap - base));
    let request = TransactionRequest { gas: Some(100_000), ..to_contract() };
    assert_eq!(top(SpecId::OSAKA, "GAS", request), U256::from(100_000 - base));
    let request = TransactionRequest { gas: Some(u64::MAX), ..to_contract() };
    assert_eq!(top(SpecId::OSAKA, "GAS", request), U256::from(cap - base));
}

#[test]
fn the_base_fee_is_seen_only_by_who_pays() {
    let paying = |cap, tip| TransactionRequest {
        from: Some(ALICE),
        max_fee_per_gas: cap,
        max_priority_fee_per_gas: tip,
        ..to_contract()
    };
    let priced = |price| TransactionRequest { from: Some(ALICE), gas_price: Some(price), ..to_contract() };
    let cases = [
        (to_contract(), 0, 0),
        (paying(Some(0), Some(0)), 0, 0),
        (priced(0), 0, 0),
        (priced(9), 7, 9),
        (paying(Some(20), Some(2)), 7, 9),
        (paying(Some(8), Some(2)), 7, 8),
        (paying(Some(20), None), 7, 7),
    ];
    for (request, base_fee, price) in cases {
        assert_eq!(top(SpecId::PRAGUE, "BASEFEE", request.clone()), U256::from(base_fee));
        assert_eq!(top(SpecId::PRAGUE, "GASPRICE", request), U256::from(price));
    }
}

/// Fees of a later fork say nothing at an earlier one, and an access list warms nothing.
#[test]
fn fields_of_later_forks_are_ignored() {
    let item = AccessListItem { address: OTHER, storage_keys: vec![B256::ZERO] };
    let request = TransactionRequest {
        max_fee_per_gas: Some(1_000),
        access_list: Some(AccessList(vec![item])),
        ..to_contract()
    };
    assert_eq!(top(SpecId::ISTANBUL, "GASPRICE", request), U256::ZERO);
}

#[test]
fn an_access_list_warms_what_it_names() {
    let program = "GAS 0x00 SLOAD POP GAS SWAP1 SUB";
    let item = AccessListItem { address: CONTRACT, storage_keys: vec![B256::ZERO] };
    let warm = TransactionRequest { access_list: Some(AccessList(vec![item])), ..to_contract() };
    assert_eq!(top(SpecId::PRAGUE, program, to_contract()), U256::from(2_107));
    assert_eq!(top(SpecId::PRAGUE, program, warm), U256::from(107));
}

#[test]
fn input_wins_over_data() {
    let both = |input: Option<u8>, data: Option<u8>| {
        let bytes = |byte: u8| Bytes::from(vec![byte; 32]);
        let input = TransactionInput { input: input.map(bytes), data: data.map(bytes) };
        TransactionRequest { input, ..to_contract() }
    };
    let first_byte = "0x00 CALLDATALOAD 0xf8 SHR";
    assert_eq!(top(SpecId::PRAGUE, first_byte, both(Some(1), Some(2))), U256::from(1));
    assert_eq!(top(SpecId::PRAGUE, first_byte, both(None, Some(2))), U256::from(2));
    assert_eq!(top(SpecId::PRAGUE, first_byte, both(Some(1), None)), U256::from(1));
    assert_eq!(top(SpecId::PRAGUE, first_byte, both(None, None)), U256::ZERO);
}

#[test]
fn without_a_recipient_a_contract_is_created() {
    // Leaves behind the code 0x6001.
    let code = asm("0x6001 0x00 MSTORE 0x02 0x1e RETURN");
    let output = call_at(SpecId::PRAGUE, &World::default(), creation(code), &limits()).unwrap();
    assert_eq!(output, Bytes::from_static(&[0x60, 0x01]));
}

#[test]
fn value_is_moved_within_the_call() {
    let request = TransactionRequest { from: Some(ALICE), value: Some(U256::from(42)), ..to_contract() };
    assert_eq!(top(SpecId::PRAGUE, "SELFBALANCE CALLVALUE ADD", request), U256::from(84));
}

#[test]
fn a_call_to_nothing_returns_nothing() {
    let request = TransactionRequest { to: Some(TxKind::Call(OTHER)), ..TransactionRequest::default() };
    let output = call_at(SpecId::PRAGUE, &World::default(), request, &limits()).unwrap();
    assert!(output.is_empty());
}

#[test]
fn blobs_are_seen() {
    let hash = B256::repeat_byte(1);
    let request = TransactionRequest { blob_versioned_hashes: Some(vec![hash]), ..to_contract() };
    assert_eq!(top(SpecId::CANCUN, "0x00 BLOBHASH", request), U256::from_be_bytes(hash.0));
}

/// An authorization that nobody signed is skipped, as it is in a block.
#[test]
fn invalid_authorizations_are_skipped() {
    let inner = Authorization { chain_id: U256::from(CHAIN_ID), address: OTHER, nonce: 0 };
    let signed = SignedAuthorization::new_unchecked(inner, 0, U256::ONE, U256::MAX);
    let request = TransactionRequest { authorization_list: Some(vec![signed]), ..to_contract() };
    assert_eq!(top(SpecId::PRAGUE, "0x01", request), U256::ONE);
}

#[test]
fn earlier_blocks_can_be_asked_for() {
    let expected = U256::from_be_bytes(alloy_primitives::keccak256(99_u64.to_be_bytes()).0);
    assert_eq!(top(SpecId::PRAGUE, "0x63 BLOCKHASH", to_contract()), expected);
    assert_eq!(top(SpecId::PRAGUE, "0x64 BLOCKHASH", to_contract()), U256::ZERO);
}

/// The output of a frame is still there after a call that failed to start.
#[test]
fn return_data_is_that_of_the_last_call() {
    let returns = asm("0x20 0x00 RETURN");
    let other = alloy_primitives::hex::encode(OTHER);
    let program = format!(
        "0x00 0x00 0x00 0x00 0x{other} GAS STATICCALL POP RETURNDATASIZE \
         0x00 0x00 0x00 0x00 0xee GAS STATICCALL POP RETURNDATASIZE ADD{RETURN_TOP}"
    );
    let world = World::default().with_code(CONTRACT, asm(&program)).with_code(OTHER, returns);
    let output = call_at(SpecId::PRAGUE, &world, to_contract(), &limits()).unwrap();
    assert_eq!(U256::from_be_slice(&output), U256::from(32));
}

#[test]
fn a_source_can_be_owned_or_borrowed() {
    let (chain, header) = (chain(SpecId::PRAGUE), header(SpecId::PRAGUE));
    let limits = CallLimits { gas_cap: 100_000, ..limits() };
    let run = |world: World| {
        call(world, chain.rules_at(&header), &header, to_contract(), Default::default(), &limits)
    };
    assert!(run(World::default().with_balance(Address::ZERO, 1)).unwrap().is_empty());
}
