//! Calls that override the number of their block.

use super::setup::{archive_of, blocks, small_chain};
use alloy_primitives::{Address, B256, U256, address};
use alloy_rpc_types_eth::{
    BlockOverrides, TransactionRequest,
    state::{AccountOverride, StateOverride},
};
use archive::{CallLimits, Overrides};
use testkit::asm::{Asm, op};

const CONTRACT: Address = address!("0000000000000000000000000000000000003003");

/// The call at an older block was shown the hash of a later one.
#[test]
fn only_blocks_before_the_block_of_the_call_have_a_hash() {
    let truth = small_chain();
    let archive = archive_of(&truth);
    archive.import(blocks(&truth, 1..=truth.model.head())).unwrap();
    let snapshot = archive.archive.snapshot();
    let header = truth.model.header(10).unwrap();
    let hash_of = |number: u64| {
        let code = Asm::new().push(number).ops(&[op::BLOCKHASH]).push(0).ops(&[op::MSTORE]);
        let code = code.push(32).push(0).ops(&[op::RETURN]).finish();
        let overrides = Overrides {
            block: Some(BlockOverrides { number: Some(U256::from(20)), ..BlockOverrides::default() }),
            state: Some(StateOverride::from_iter([(CONTRACT, AccountOverride::default().with_code(code))])),
        };
        let request = TransactionRequest { to: Some(CONTRACT.into()), ..TransactionRequest::default() };
        let limits =
            CallLimits { gas_cap: 1_000_000, memory_bytes_max: 1 << 20, deadline: None, cancel: None };
        let rules = archive.archive.chain().rules_at(header);
        let state = snapshot.state_at(10);
        let output = archive::call(state, rules, header, request, overrides, &limits).unwrap();
        B256::from_slice(&output)
    };
    assert_eq!(hash_of(9), truth.model.header(9).unwrap().hash());
    assert_eq!([hash_of(10), hash_of(11)], [B256::ZERO; 2]);
}
