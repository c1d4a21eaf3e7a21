//! The block and the state as the caller wants them to be.

use super::support::*;
use crate::call::overrides::OverrideError;
use crate::call::{CallError, Overrides};
use alloy_primitives::{Address, B256, Bytes, U256};
use alloy_rpc_types_eth::{
    BlockOverrides, TransactionRequest,
    state::{AccountOverride, StateOverride},
};
use revm::primitives::hardfork::SpecId;

fn account(address: Address, account: AccountOverride) -> Overrides {
    accounts([(address, account)])
}

fn accounts<const N: usize>(accounts: [(Address, AccountOverride); N]) -> Overrides {
    Overrides { state: Some(StateOverride::from_iter(accounts)), block: None }
}

fn block(block: BlockOverrides) -> Overrides {
    Overrides { state: None, block: Some(block) }
}

fn word(value: u64) -> B256 {
    U256::from(value).into()
}

/// A contract with one and two in its first slots.
fn world(program: &str) -> World {
    let code = asm(&format!("{program}{RETURN_TOP}"));
    World::default().with_code(CONTRACT, code).with_slot(CONTRACT, 0, 1).with_slot(CONTRACT, 1, 2)
}

fn top(program: &str, overrides: Overrides) -> U256 {
    let output = call_with(SpecId::PRAGUE, &world(program), to_contract(), overrides, &limits()).unwrap();
    U256::from_be_slice(&output)
}

fn error(overrides: Overrides) -> OverrideError {
    match call_with(SpecId::PRAGUE, &world("0x00"), to_contract(), overrides, &limits()) {
        Err(CallError::Overrides(error)) => error,
        other => panic!("{other:?}"),
    }
}

#[test]
fn storage_is_replaced_or_changed() {
    let slots = [(B256::ZERO, word(10))];
    let both_slots = "0x00 SLOAD 0x01 SLOAD 0x100 MUL ADD";
    assert_eq!(top(both_slots, Overrides::default()), U256::from(0x201));
    let diff = AccountOverride::default().with_state_diff(slots);
    assert_eq!(top(both_slots, account(CONTRACT, diff)), U256::from(0x20a));
    let all = AccountOverride::default().with_state(slots);
    assert_eq!(top(both_slots, account(CONTRACT, all)), U256::from(0x00a));
    let none = AccountOverride::default().with_state([]);
    assert_eq!(top(both_slots, account(CONTRACT, none)), U256::ZERO);
}

#[test]
fn code_balance_and_nonce_are_replaced() {
    let code = AccountOverride::default().with_code(asm(&format!("0x2a{RETURN_TOP}")));
    assert_eq!(top("0x01", account(CONTRACT, code)), U256::from(42));
    let balance = AccountOverride::default().with_balance(U256::from(99));
    assert_eq!(top("SELFBALANCE", account(CONTRACT, balance)), U256::from(99));
    // The address of what is created follows from the nonce.
    let nonce = AccountOverride::default().with_nonce(77);
    let created = CONTRACT.create(77);
    let create = "0x00 0x00 0x00 CREATE";
    assert_eq!(top(create, account(CONTRACT, nonce)), U256::from_be_slice(created.as_slice()));
}

/// Any bytes can be code; what looks like a delegation but is none fails when it runs.
#[test]
fn any_bytes_can_be_code() {
    for code in [vec![0xef], vec![0xef, 0x01, 0x00], vec![0xef, 0x01, 0x00, 0x55]] {
        let code = AccountOverride::default().with_code(code);
        let overrides = account(CONTRACT, code);
        let result = call_with(SpecId::PRAGUE, &world("0x00"), to_contract(), overrides, &limits());
        assert_eq!(result.unwrap_err().to_string(), "invalid opcode: opcode 0xef not defined");
    }
    let empty = account(CONTRACT, AccountOverride::default().with_code(Bytes::new()));
    let output = call_with(SpecId::PRAGUE, &world("0x00"), to_contract(), empty, &limits()).unwrap();
    assert!(output.is_empty());
}

#[test]
fn a_sender_can_be_given_money() {
    let rich = AccountOverride::default().with_balance(U256::from(1_000));
    let request = TransactionRequest { from: Some(ALICE), value: Some(U256::from(1_000)), ..to_contract() };
    let overrides = account(ALICE, rich);
    let output = call_with(SpecId::PRAGUE, &world("CALLVALUE"), request, overrides, &limits()).unwrap();
    assert_eq!(U256::from_be_slice(&output), U256::from(1_000));
}

#[test]
fn storage_cannot_be_both_replaced_and_changed() {
    let both = AccountOverride::default().with_state([]).with_state_diff([]);
    let error = error(account(CONTRACT, both));
    assert_eq!(error.to_string(), format!("account {CONTRACT} has both 'state' and 'stateDiff'"));
}

#[test]
fn precompiles_move() {
    let identity = Address::with_last_byte(4);
    let moved = AccountOverride { move_precompile_to: Some(OTHER), ..AccountOverride::default() };
    // Copies a word through an address and gives what comes back.
    let through = |address: Address| {
        let address = alloy_primitives::hex::encode(address);
        format!("0x2a 0x00 MSTORE 0x20 0x20 0x20 0x00 0x{address} GAS STATICCALL POP 0x20 MLOAD")
    };
    let there = account(identity, moved.clone());
    assert_eq!(top(&through(identity), Overrides::default()), U256::from(42));
    assert_eq!(top(&through(OTHER), Overrides::default()), U256::ZERO);
    assert_eq!(top(&through(identity), there.clone()), U256::ZERO);
    assert_eq!(top(&through(OTHER), there), U256::from(42));

    let replaced = AccountOverride::default().with_code(asm(&format!("0x07{RETURN_TOP}")));
    assert_eq!(top(&through(identity), account(identity, replaced.clone())), U256::from(7));

    assert_eq!(error(account(CONTRACT, moved.clone())), OverrideError::NotAPrecompile(CONTRACT));
    let taken = accounts([(identity, moved), (OTHER, replaced)]);
    assert_eq!(error(taken), OverrideError::AlreadyOverridden(OTHER));
}

#[test]
fn the_block_is_what_the_caller_wants() {
    let wanted = BlockOverrides {
        number: Some(U256::from(7_777)),
        difficulty: None,
        time: Some(5_555),
        gas_limit: Some(123_456),
        coinbase: Some(ALICE),
        random: Some(word(9)),
        base_fee: Some(U256::from(3)),
        blob_base_fee: Some(U256::from(11)),
        beacon_root: None,
        block_hash: Some([(7_776, word(13))].into()),
    };
    let cases = [
        ("NUMBER", U256::from(7_777)),
        ("TIMESTAMP", U256::from(5_555)),
        ("GASLIMIT", U256::from(123_456)),
        ("COINBASE", U256::from_be_slice(ALICE.as_slice())),
        ("DIFFICULTY", U256::from(9)),
        ("BLOBBASEFEE", U256::from(11)),
        ("0x1e60 BLOCKHASH", U256::from(13)),
        ("BASEFEE", U256::ZERO),
    ];
    for (program, value) in cases {
        assert_eq!(top(program, block(wanted.clone())), value, "{program}");
    }
    let paying =
        TransactionRequest { gas_price: Some(3), from: Some(ALICE), gas: Some(100_000), ..to_contract() };
    let world = world("BASEFEE").with_balance(ALICE, u64::MAX);
    let output = call_with(SpecId::PRAGUE, &world, paying, block(wanted), &limits()).unwrap();
    assert_eq!(U256::from_be_slice(&output), U256::from(3));
}

#[test]
fn a_number_beyond_all_blocks_is_kept() {
    let wanted = BlockOverrides { number: Some(U256::MAX), ..BlockOverrides::default() };
    assert_eq!(top("NUMBER", block(wanted)), U256::MAX);
}

#[test]
fn a_beacon_root_is_refused() {
    let wanted = BlockOverrides { beacon_root: Some(B256::ZERO), ..BlockOverrides::default() };
    assert_eq!(error(block(wanted)), OverrideError::BeaconRoot);
}

/// A block of proof of work has no randomness of its own to show.
#[test]
fn a_block_can_be_put_behind_the_merge() {
    use crate::{call::call, chain::ChainSpec};
    let mut genesis = chain(SpecId::LONDON).genesis().clone();
    genesis.config.terminal_total_difficulty = Some(U256::MAX);
    genesis.config.shanghai_time = Some(2_000);
    let (chain, header) = (ChainSpec::from_genesis(genesis).unwrap(), header(SpecId::LONDON));
    let overrides = block(BlockOverrides { time: Some(2_000), ..BlockOverrides::default() });
    let world = world("DIFFICULTY");
    let output = call(&world, chain.rules_at(&header), &header, to_contract(), overrides, &limits()).unwrap();
    assert_eq!(U256::from_be_slice(&output), U256::ZERO);
}

/// The chain is at Cancun from its time on; a call can go there before the chain does.
#[test]
fn the_fork_follows_the_overridden_time() {
    use crate::{call::call, chain::ChainSpec};
    let mut genesis = chain(SpecId::SHANGHAI).genesis().clone();
    genesis.config.cancun_time = Some(2_000);
    let (chain, header) = (ChainSpec::from_genesis(genesis).unwrap(), header(SpecId::SHANGHAI));
    let at = |time: Option<u64>| {
        let overrides = block(BlockOverrides { time, ..BlockOverrides::default() });
        let world = world("BLOBBASEFEE");
        call(&world, chain.rules_at(&header), &header, to_contract(), overrides, &limits())
    };
    assert_eq!(at(None).unwrap_err().to_string(), "invalid opcode: BLOBBASEFEE");
    assert_eq!(U256::from_be_slice(&at(Some(2_000)).unwrap()), U256::ONE);
}
