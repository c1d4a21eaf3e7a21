//! One row per rule of bodies and uncles, as in [`rules`](super::rules).

use super::{
    rules::{Row, check_rows},
    scene::{CHAIN_ID, Scene, signed},
};
use alloy_consensus::{Header, TxEip1559, TxEip2930, TxEip4844, TxEip7702, TxLegacy};
use alloy_primitives::{B256, U256};

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
            "transaction 1: type: expected at most 0 before Berlin, found 1",
        ),
        (
            "priority fee transaction",
            || Scene::at("berlin"),
            |s| s.set_transactions(vec![signed(TxEip1559::default())]),
            "transaction 0: type: expected at most 1 before London, found 2",
        ),
        (
            "blob transaction",
            || Scene::at("shanghai"),
            |s| s.set_transactions(vec![signed(TxEip4844::default())]),
            "transaction 0: type: expected at most 2 before Cancun, found 3",
        ),
        (
            "set code transaction",
            || Scene::at("cancun"),
            |s| s.set_transactions(vec![signed(TxEip7702::default())]),
            "transaction 0: type: expected at most 3 before Prague, found 4",
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
                })]);
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
