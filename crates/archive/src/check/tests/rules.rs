//! One row per rule: a block that is right, how it is spoilt, and the sentence that says so.

use super::scene::{CHAIN_ID, Scene, signed};
use crate::check::check_block;
use alloy_consensus::{Header, TxEip1559, TxEip2930, TxEip4844, TxEip7702, TxLegacy};
use alloy_primitives::{B64, B256, U256};

/// The rule, a right block, how to spoil it, and how the fault begins.
type Row = (&'static str, fn() -> Scene, fn(&mut Scene), &'static str);

fn check_rows(rows: &[Row]) {
    for (rule, scene, spoil, expected) in rows {
        let mut scene = scene();
        scene.check();
        spoil(&mut scene);
        match check_block(&scene.chain, &scene.ancestry, &scene.block) {
            Ok(_) => panic!("{rule}: passed"),
            Err(fault) => {
                let text = fault.to_string();
                assert!(text.starts_with(expected), "{rule}:\n{text}\n{expected}");
            }
        }
    }
}

fn at_london_fork() -> Scene {
    Scene::with("berlin", |genesis| genesis.config.london_block = Some(1))
}

fn at_dao_fork(supported: bool) -> Scene {
    let mut scene = Scene::with("homestead", |genesis| {
        genesis.config.dao_fork_block = Some(1);
        genesis.config.dao_fork_support = supported;
    });
    if supported {
        scene.block.header.extra_data = b"dao-hard-fork".into();
    }
    scene
}

#[test]
fn headers() {
    let rows: &[Row] = &[
        ("number", || Scene::at("frontier"), |s| s.block.header.number = 3, "number: expected 1, found 3"),
        (
            "parent hash",
            || Scene::at("frontier"),
            |s| s.block.header.parent_hash = B256::ZERO,
            "parent hash: expected 0x",
        ),
        (
            "timestamp",
            || Scene::at("frontier"),
            |s| s.block.header.timestamp = 0,
            "timestamp: expected more than the parent's 0, found 0",
        ),
        (
            "timestamp after the merge",
            || Scene::at("paris"),
            |s| s.block.header.timestamp = 0,
            "timestamp: expected more than the parent's 0, found 0",
        ),
        (
            "extra data",
            || Scene::at("paris"),
            |s| s.block.header.extra_data = vec![0; 33].into(),
            "extra data bytes: expected at most 32, found 33",
        ),
        (
            "gas limit too high",
            || Scene::at("frontier"),
            |s| s.block.header.gas_limit += 9_765,
            "gas limit: expected between 9990236 and 10009764, found 10009765",
        ),
        (
            "gas limit too low",
            || Scene::at("frontier"),
            |s| s.block.header.gas_limit -= 9_765,
            "gas limit: expected between 9990236 and 10009764, found 9990235",
        ),
        (
            "least gas limit",
            || Scene::with("frontier", |g| g.gas_limit = 5_000),
            |s| s.block.header.gas_limit = 4_999,
            "gas limit: expected between 5000 and 5003, found 4999",
        ),
        (
            "greatest gas limit",
            || Scene::with("frontier", |g| g.gas_limit = (1 << 63) - 1),
            |s| s.block.header.gas_limit = 1 << 63,
            "gas limit: expected between 9214364837600034817 and 9223372036854775807, found 9223372036854775808",
        ),
        (
            "gas limit of the first London block",
            at_london_fork,
            |s| s.block.header.gas_limit = 10_000_000,
            "gas limit: expected between 19980470 and 20019530, found 10000000",
        ),
        (
            "gas used",
            || Scene::at("frontier"),
            |s| s.block.header.gas_used = 10_000_001,
            "gas used: expected at most 10000000, found 10000001",
        ),
        (
            "base fee before London",
            || Scene::at("berlin"),
            |s| s.block.header.base_fee_per_gas = Some(7),
            "base fee: expected none before London, found one",
        ),
        (
            "no base fee",
            at_london_fork,
            |s| s.block.header.base_fee_per_gas = None,
            "base fee: expected since London, found none",
        ),
        (
            "first base fee",
            at_london_fork,
            |s| s.block.header.base_fee_per_gas = Some(7),
            "base fee: expected 1000000000, found 7",
        ),
        (
            "next base fee",
            || Scene::at("london"),
            |s| s.block.header.base_fee_per_gas = Some(7),
            "base fee: expected 875000000, found 7",
        ),
        (
            "DAO fork",
            || at_dao_fork(true),
            |s| s.block.header.extra_data = b"other".into(),
            "extra data: expected 0x64616f2d686172642d666f726b at the DAO fork and for nine blocks after it, found 0x6f74686572",
        ),
        (
            "DAO fork refused",
            || at_dao_fork(false),
            |s| s.block.header.extra_data = b"dao-hard-fork".into(),
            "extra data: expected anything but 0x64616f2d686172642d666f726b at the DAO fork, which this chain refuses",
        ),
    ];
    check_rows(rows);
}

#[test]
fn the_merge_and_the_forks_after_it() {
    let rows: &[Row] = &[
        (
            "stake before its time",
            || Scene::at("london"),
            |s| s.block.header.difficulty = U256::ZERO,
            "difficulty: expected above 0, because the total difficulty before this block is 131072, found 0",
        ),
        (
            "work after its time",
            || Scene::at("paris"),
            |s| s.block.header.difficulty = U256::from(9),
            "difficulty: expected 0, because the total difficulty before this block is 0 and proof of work ends at 0, found 9",
        ),
        (
            "nonce",
            || Scene::at("paris"),
            |s| s.block.header.nonce = B64::with_last_byte(1),
            "nonce: expected 0x0000000000000000 after the merge, found 0x0000000000000001",
        ),
        (
            "uncle after the merge",
            || Scene::at("paris"),
            |s| s.set_uncles(vec![Header::default()]),
            "uncles: expected at most 0, found 1",
        ),
        (
            "Shanghai during proof of work",
            || {
                Scene::with("london", |g| {
                    g.config.shanghai_time = Some(1_000);
                    g.config.terminal_total_difficulty = Some(U256::MAX);
                })
            },
            |s| s.block.header.timestamp = 1_000,
            "difficulty: expected 0 since Shanghai at time 1000, found 131072",
        ),
        (
            "withdrawals root too early",
            || Scene::at("paris"),
            |s| s.block.header.withdrawals_root = Some(B256::ZERO),
            "withdrawals root: expected none before Shanghai, found one",
        ),
        (
            "no withdrawals root",
            || Scene::at("shanghai"),
            |s| s.block.header.withdrawals_root = None,
            "withdrawals root: expected since Shanghai, found none",
        ),
        (
            "blob gas used too early",
            || Scene::at("shanghai"),
            |s| s.block.header.blob_gas_used = Some(0),
            "blob gas used: expected none before Cancun, found one",
        ),
        (
            "no blob gas used",
            || Scene::at("cancun"),
            |s| s.block.header.blob_gas_used = None,
            "blob gas used: expected since Cancun, found none",
        ),
        (
            "no excess blob gas",
            || Scene::at("cancun"),
            |s| s.block.header.excess_blob_gas = None,
            "excess blob gas: expected since Cancun, found none",
        ),
        (
            "no beacon root",
            || Scene::at("cancun"),
            |s| s.block.header.parent_beacon_block_root = None,
            "parent beacon block root: expected since Cancun, found none",
        ),
        (
            "too much blob gas",
            || Scene::at("cancun"),
            |s| s.block.header.blob_gas_used = Some(7 * 131_072),
            "blob gas used: expected at most 786432, found 917504",
        ),
        (
            "part of a blob",
            || Scene::at("cancun"),
            |s| s.block.header.blob_gas_used = Some(5),
            "blob gas used: expected a multiple of 131072, found 5",
        ),
        (
            "excess blob gas",
            || Scene::at("cancun"),
            |s| s.block.header.excess_blob_gas = Some(1),
            "excess blob gas: expected 0, found 1",
        ),
        (
            "requests hash too early",
            || Scene::at("cancun"),
            |s| s.block.header.requests_hash = Some(B256::ZERO),
            "requests hash: expected none before Prague, found one",
        ),
        (
            "no requests hash",
            || Scene::at("prague"),
            |s| s.block.header.requests_hash = None,
            "requests hash: expected since Prague, found none",
        ),
        (
            "access list too early",
            || Scene::at("osaka"),
            |s| s.block.header.block_access_list_hash = Some(B256::ZERO),
            "block access list hash: expected none before Amsterdam, found one",
        ),
        (
            "no access list",
            || Scene::at("amsterdam"),
            |s| s.block.header.block_access_list_hash = None,
            "block access list hash: expected since Amsterdam, found none",
        ),
        (
            "no slot number",
            || Scene::at("amsterdam"),
            |s| s.block.header.slot_number = None,
            "slot number: expected since Amsterdam, found none",
        ),
    ];
    check_rows(rows);
}

#[test]
fn bodies() {
    let rows: &[Row] = &[
        (
            "uncles hash",
            || Scene::at("frontier"),
            |s| s.block.header.ommers_hash = B256::ZERO,
            "uncles hash: expected 0x0000",
        ),
        (
            "transactions root",
            || Scene::at("frontier"),
            |s| s.block.header.transactions_root = B256::ZERO,
            "transactions root: expected 0x0000",
        ),
        (
            "withdrawals too early",
            || Scene::at("paris"),
            |s| s.block.body.withdrawals = Some(Default::default()),
            "withdrawals: expected none before Shanghai, found one",
        ),
        (
            "no withdrawals",
            || Scene::at("shanghai"),
            |s| s.block.body.withdrawals = None,
            "withdrawals: expected since Shanghai, found none",
        ),
        (
            "withdrawals root",
            || Scene::at("shanghai"),
            |s| s.block.header.withdrawals_root = Some(B256::ZERO),
            "withdrawals root: expected 0x0000",
        ),
        (
            "access list transaction",
            || Scene::at("istanbul"),
            |s| s.set_transactions(vec![signed(TxLegacy::default()), signed(TxEip2930::default())]),
            "transaction 1: type: expected 1 only since Berlin, found 1",
        ),
        (
            "priority fee transaction",
            || Scene::at("berlin"),
            |s| s.set_transactions(vec![signed(TxEip1559::default())]),
            "transaction 0: type: expected 2 only since London, found 2",
        ),
        (
            "blob transaction",
            || Scene::at("shanghai"),
            |s| s.set_transactions(vec![signed(TxEip4844::default())]),
            "transaction 0: type: expected 3 only since Cancun, found 3",
        ),
        (
            "set code transaction",
            || Scene::at("cancun"),
            |s| s.set_transactions(vec![signed(TxEip7702::default())]),
            "transaction 0: type: expected 4 only since Prague, found 4",
        ),
        (
            "chain id",
            || Scene::at("london"),
            |s| s.set_transactions(vec![signed(TxEip1559 { chain_id: 5, ..Default::default() })]),
            "transaction 0: chain id: expected 77, found 5",
        ),
        (
            "chain id of a legacy transaction",
            || Scene::at("eip155"),
            |s| s.set_transactions(vec![signed(TxLegacy { chain_id: Some(5), ..Default::default() })]),
            "transaction 0: chain id: expected 77, found 5",
        ),
        (
            "protection too early",
            || Scene::at("eip150"),
            |s| s.set_transactions(vec![signed(TxLegacy { chain_id: Some(CHAIN_ID), ..Default::default() })]),
            "transaction 0: chain id: expected none before EIP-155, found 77",
        ),
        (
            "sum of blobs",
            || Scene::at("cancun"),
            |s| {
                s.set_transactions(vec![signed(TxEip4844 {
                    chain_id: CHAIN_ID,
                    blob_versioned_hashes: vec![B256::ZERO; 2],
                    ..Default::default()
                })]);
                s.block.header.blob_gas_used = Some(131_072);
            },
            "blob gas used: expected 131072, found 262144",
        ),
        (
            "block size",
            || Scene::at("osaka"),
            |s| {
                s.set_transactions(vec![signed(TxLegacy {
                    input: vec![0; 8 * 1024 * 1024].into(),
                    ..Default::default()
                })])
            },
            "block size in bytes: expected at most 8388608, found 8389",
        ),
    ];
    check_rows(rows);
}

#[test]
fn uncles() {
    fn ten_blocks() -> Scene {
        let mut scene = Scene::at("byzantium");
        scene.advance_to(10);
        scene.set_uncles(vec![scene.uncle(1), scene.uncle(6)]);
        scene
    }
    let rows: &[Row] = &[
        (
            "too many",
            ten_blocks,
            |s| s.set_uncles(vec![s.uncle(1), s.uncle(2), s.uncle(3)]),
            "uncles: expected at most 2, found 3",
        ),
        (
            "twice in a block",
            ten_blocks,
            |s| s.set_uncles(vec![s.uncle(2), s.uncle(2)]),
            "uncle 1: expected an uncle that was not included before, found 0x",
        ),
        (
            "twice in the chain",
            ten_blocks,
            |s| {
                let uncle = s.uncle(1);
                s.set_uncles(vec![uncle.clone()]);
                s.advance();
                s.set_uncles(vec![uncle]);
            },
            "uncle 0: expected an uncle that was not included before, found 0x",
        ),
        (
            "a block of the chain",
            ten_blocks,
            |s| {
                let parent = s.ancestry.parent().inner().clone();
                s.set_uncles(vec![parent]);
            },
            "uncle 0: expected a block beside the chain, found 0x",
        ),
        (
            "a brother of the block",
            ten_blocks,
            |s| {
                s.set_uncles(Vec::new());
                let mut brother = s.block.header.clone();
                brother.extra_data = b"brother".into();
                s.set_uncles(vec![brother]);
            },
            "uncle 0: parent hash: expected a block from 2 to 7 generations back, found 0x",
        ),
        (
            "too old",
            ten_blocks,
            |s| s.set_uncles(vec![s.uncle(7)]),
            "uncle 0: parent hash: expected a block from 2 to 7 generations back, found 0x",
        ),
        (
            "number",
            ten_blocks,
            |s| s.set_uncles(vec![Header { number: 8, ..s.uncle(1) }]),
            "uncle 0: number: expected 9, found 8",
        ),
        (
            "timestamp",
            ten_blocks,
            |s| s.set_uncles(vec![Header { timestamp: 96, ..s.uncle(1) }]),
            "uncle 0: timestamp: expected more than the parent's 96, found 96",
        ),
        (
            "gas limit",
            ten_blocks,
            |s| s.set_uncles(vec![Header { gas_limit: 6_000, ..s.uncle(1) }]),
            "uncle 0: gas limit: expected between 9990236 and 10009764, found 6000",
        ),
        (
            "gas used",
            ten_blocks,
            |s| s.set_uncles(vec![Header { gas_used: 10_000_001, ..s.uncle(1) }]),
            "uncle 0: gas used: expected at most 10000000, found 10000001",
        ),
        (
            "extra data",
            ten_blocks,
            |s| s.set_uncles(vec![Header { extra_data: vec![0; 33].into(), ..s.uncle(1) }]),
            "uncle 0: extra data bytes: expected at most 32, found 33",
        ),
        (
            "base fee",
            ten_blocks,
            |s| s.set_uncles(vec![Header { base_fee_per_gas: Some(7), ..s.uncle(1) }]),
            "uncle 0: base fee: expected none before London, found one",
        ),
        (
            "difficulty",
            ten_blocks,
            |s| s.set_uncles(vec![Header { difficulty: U256::ZERO, ..s.uncle(1) }]),
            "uncle 0: difficulty: expected above 0",
        ),
    ];
    check_rows(rows);
}
