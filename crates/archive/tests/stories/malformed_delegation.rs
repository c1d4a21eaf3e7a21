//! Code that begins like a delegation and is none. Blocks before London can create it, and a genesis file can hold it.

use alloy_genesis::{ChainConfig, Genesis, GenesisAccount};
use alloy_primitives::{Address, Bytes, address};
use alloy_rpc_types_eth::TransactionRequest;
use archive::{Archive, CallLimits, Overrides};

const CONTRACT: Address = address!("0000000000000000000000000000000000003002");

/// Such code was taken for a damaged row, so that no block that called it could be imported.
#[test]
fn malformed_delegations_are_code_that_fails_at_its_first_byte() {
    let code = Bytes::from_static(&[0xef, 0x01, 0x02]);
    let contract = GenesisAccount { code: Some(code.clone()), ..GenesisAccount::default() };
    let config = ChainConfig { chain_id: 5, ..ChainConfig::default() };
    let genesis = Genesis { config, gas_limit: 8_000_000, ..Genesis::default() };
    let genesis = serde_json::to_string(&genesis.extend_accounts([(CONTRACT, contract)])).unwrap();
    let directory = tempfile::tempdir().unwrap();
    let archive = Archive::open_or_create(directory.path(), &genesis).unwrap();
    let snapshot = archive.snapshot();
    let state = snapshot.state_at(0);
    assert_eq!(state.code_of(CONTRACT).unwrap(), code);
    let header = archive.chain().genesis_header();
    let request = TransactionRequest { to: Some(CONTRACT.into()), ..TransactionRequest::default() };
    let limits = CallLimits { gas_cap: 1_000_000, memory_bytes_max: 1 << 20, deadline: None, cancel: None };
    let rules = archive.chain().rules_at(&header);
    let error = archive::call(state, rules, &header, request, Overrides::default(), &limits).unwrap_err();
    assert_eq!(error.to_string(), "invalid opcode: opcode 0xef not defined");
}
