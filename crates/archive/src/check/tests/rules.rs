//! One row per rule of headers: a block that is right, how it is spoilt, and the sentence that says so.

use super::scene::Scene;
use crate::check::check_block;
use alloy_consensus::Header;
use alloy_primitives::{B64, B256, U256};

/// The rule, a right block, how to spoil it, and how the fault begins.
pub(super) type Row = (&'static str, fn() -> Scene, fn(&mut Scene), &'static str);

pub(super) fn check_rows(rows: &[Row]) {
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
            "slot number too early",
            || Scene::at("osaka"),
            |s| s.block.header.slot_number = Some(1),
            "slot number: expected none before Amsterdam, found one",
        ),
    ];
    check_rows(rows);
}
