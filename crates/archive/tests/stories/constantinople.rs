//! Blocks between Constantinople and Petersburg were executed by the rules of Petersburg.

use alloy_consensus::TxLegacy;
use alloy_genesis::{ChainConfig, Genesis, GenesisAccount};
use alloy_primitives::{Address, Bytes, TxKind, U256, address};
use alloy_rpc_types_eth::{BlockOverrides, TransactionRequest};
use archive::{Archive, CallLimits, Overrides};
use chain_builder::{BlockPlan, ChainBuilder};
use testkit::{
    asm::{Asm, op},
    chain::signer,
};

const WRITER: Address = address!("0000000000000000000000000000000000003001");

/// Writes a slot and takes the write back.
fn write_and_undo() -> Bytes {
    let code = Asm::new().push(1).push(0).ops(&[op::SSTORE]).push(0).push(0).ops(&[op::SSTORE, op::STOP]);
    code.finish()
}

/// Byzantium at block 0, Constantinople at 1 and Petersburg at 2.
fn genesis() -> Genesis {
    let config = ChainConfig {
        chain_id: 5,
        homestead_block: Some(0),
        eip150_block: Some(0),
        eip155_block: Some(0),
        eip158_block: Some(0),
        byzantium_block: Some(0),
        constantinople_block: Some(1),
        petersburg_block: Some(2),
        ..ChainConfig::default()
    };
    let rich = GenesisAccount { balance: U256::from(10).pow(U256::from(20)), ..GenesisAccount::default() };
    let writer = GenesisAccount { code: Some(write_and_undo()), ..GenesisAccount::default() };
    Genesis { config, gas_limit: 8_000_000, difficulty: U256::from(131_072), ..Genesis::default() }
        .extend_accounts([(signer(1).address(), rich), (WRITER, writer)])
}

/// A call used the price of the block that it was at, with all other rules of the block that it named.
#[test]
fn a_call_with_an_overridden_number_pays_what_that_block_charges() {
    let directory = tempfile::tempdir().unwrap();
    let genesis = serde_json::to_string(&genesis()).unwrap();
    let archive = Archive::open_or_create(directory.path(), &genesis).unwrap();
    let (snapshot, header) = (archive.snapshot(), archive.chain().genesis_header());
    let estimate_at = |number: u64| {
        let block = BlockOverrides { number: Some(U256::from(number)), ..BlockOverrides::default() };
        let overrides = Overrides { block: Some(block), state: None };
        let request = TransactionRequest { to: Some(WRITER.into()), ..TransactionRequest::default() };
        let limits =
            CallLimits { gas_cap: 8_000_000, memory_bytes_max: 1 << 20, deadline: None, cancel: None };
        let rules = archive.chain().rules_at(&header);
        archive::estimate(snapshot.state_at(0), rules, &header, request, overrides, &limits).unwrap()
    };
    let constantinople = estimate_at(1);
    for other in [estimate_at(0), estimate_at(2)] {
        assert!(constantinople + 4_000 < other, "{constantinople} {other}");
    }
}

#[test]
fn a_write_that_is_undone_is_cheap_between_constantinople_and_petersburg() {
    let mut chain = ChainBuilder::new(genesis()).unwrap();
    let mut gas_used = |nonce| {
        let to = TxKind::Call(WRITER);
        let call = TxLegacy { nonce, to, gas_limit: 100_000, gas_price: 1, ..TxLegacy::default() };
        let plan = BlockPlan { transactions: vec![signer(1).sign(call)], ..BlockPlan::default() };
        chain.build(plan).unwrap().block.header.gas_used
    };
    const PUSHES: u64 = 4 * 3;
    let constantinople = 21_000 + PUSHES + 20_000 + 200;
    assert_eq!(gas_used(0), constantinople - 19_800);
    let petersburg = 21_000 + PUSHES + 20_000 + 5_000;
    assert_eq!(gas_used(1), petersburg - 15_000);
}
