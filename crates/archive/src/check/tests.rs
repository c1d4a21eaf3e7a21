#![allow(clippy::unwrap_used)]

mod body_rules; // one row per rule of bodies and uncles
mod corpora; // real chains
mod rules; // one row per rule of headers
mod scene; // made-up chains that are right

use super::*;
use crate::chain::fees::{expected_base_fee, expected_excess_blob_gas};
use alloy_consensus::Header;
use alloy_eips::eip7840::BlobParams;
use alloy_primitives::{Bloom, U256};
use scene::{FORKS, Scene};

#[test]
fn a_right_block_passes_at_every_fork() {
    for fork in FORKS {
        let mut scene = Scene::at(fork);
        for _ in 0..10 {
            let checked = check_block(&scene.chain, &scene.ancestry, &scene.block);
            let checked = checked.unwrap_or_else(|fault| panic!("{fork}: {fault}"));
            assert_eq!(checked.hash, scene.block.header.hash_slow());
            assert_eq!(
                checked.total_difficulty,
                scene.ancestry.total_difficulty() + scene.block.header.difficulty
            );
            scene.advance();
        }
    }
}

#[test]
fn proof_of_work_ends_with_the_block_that_reaches_the_terminal_difficulty() {
    // Beyond 64 bits, as mainnet's is.
    let unit = U256::from(1u128 << 80);
    let mut scene = Scene::with("london", |genesis| {
        genesis.difficulty = unit;
        genesis.config.terminal_total_difficulty = Some(unit * U256::from(3));
    });
    let mut kinds = Vec::new();
    for _ in 0..4 {
        scene.block.header.difficulty = unit;
        let work = check_block(&scene.chain, &scene.ancestry, &scene.block);
        scene.block.header.difficulty = U256::ZERO;
        let stake = check_block(&scene.chain, &scene.ancestry, &scene.block);
        kinds.push((work.is_ok(), stake.is_ok()));
        if work.is_ok() {
            scene.block.header.difficulty = unit;
        }
        scene.advance();
    }
    assert_eq!(kinds, [(true, false), (true, false), (false, true), (false, true)]);
}

#[test]
fn the_sides_of_the_dao_fork_are_told_apart_for_ten_blocks() {
    let mut scene = Scene::with("homestead", |genesis| {
        genesis.config.dao_fork_block = Some(2);
        genesis.config.dao_fork_support = true;
    });
    for number in 1..15 {
        let plain = check_block(&scene.chain, &scene.ancestry, &scene.block);
        assert_eq!(plain.is_ok(), !(2..12).contains(&number), "block {number}");
        scene.block.header.extra_data = b"dao-hard-fork".into();
        scene.advance();
    }
}

#[test]
fn an_ancestry_that_starts_six_blocks_back_is_as_good_as_the_whole_chain() {
    let mut scene = Scene::at("istanbul");
    for _ in 0..20 {
        scene.advance();
    }
    let generations: Vec<_> = scene.ancestry.generations().cloned().collect();
    assert_eq!(generations.len(), GENERATIONS);
    let oldest = generations.last().unwrap().clone();
    let total = scene.ancestry.total_difficulty();
    let newer: U256 = generations.iter().rev().skip(1).map(|ancestor| ancestor.header.difficulty).sum();
    let mut resumed = Ancestry::starting_at(oldest.header, oldest.uncle_hashes, total - newer);
    for ancestor in generations.iter().rev().skip(1) {
        resumed.push(ancestor.header.clone(), ancestor.uncle_hashes.clone());
    }
    assert_eq!(resumed.total_difficulty(), total);
    assert_eq!(resumed.generations().count(), GENERATIONS);
    let whole = check_block(&scene.chain, &scene.ancestry, &scene.block);
    assert_eq!(check_block(&scene.chain, &resumed, &scene.block), whole);
}

#[test]
fn the_base_fee_follows_eip_1559() {
    let scene = Scene::at("london");
    let rows = [
        // gas limit, gas used, base fee, next base fee
        (20_000_000, 10_000_000, 1_000_000_000, 1_000_000_000),
        (20_000_000, 9_000_000, 1_000_000_000, 987_500_000),
        (20_000_000, 11_000_000, 1_000_000_000, 1_012_500_000),
        (20_000_000, 20_000_000, 7, 8),
        (20_000_000, 0, 7, 7),
        (20_000_000, 20_000_000, u64::MAX, u64::MAX),
        (1, 1, 5, 5),
    ];
    for (gas_limit, gas_used, base_fee, expected) in rows {
        let parent =
            Header { number: 9, gas_limit, gas_used, base_fee_per_gas: Some(base_fee), ..Header::default() };
        let rules = scene.chain.rules_at(&parent);
        assert_eq!(expected_base_fee(rules, &parent), Some(expected), "{base_fee} {gas_used}/{gas_limit}");
    }
}

#[test]
fn the_reserve_price_of_blobs_holds_from_osaka_on() {
    let blob = 131_072;
    let parent = Header {
        base_fee_per_gas: Some(1_000_000_000),
        excess_blob_gas: Some(0),
        blob_gas_used: Some(9 * blob),
        ..Header::default()
    };
    let prague = Scene::at("prague").chain;
    assert_eq!(expected_excess_blob_gas(&prague, &parent, 100), Some(3 * blob));
    // Blobs are cheaper than the execution gas around them, so the target does not reduce the excess.
    let osaka = Scene::at("osaka").chain;
    assert_eq!(expected_excess_blob_gas(&osaka, &parent, 100), Some(3 * blob));
    let few = Header { blob_gas_used: Some(6 * blob), ..parent };
    assert_eq!(expected_excess_blob_gas(&prague, &few, 100), Some(0));
    assert_eq!(expected_excess_blob_gas(&osaka, &few, 100), Some(2 * blob));
    // The same where the genesis states the parameters itself.
    let stated = Scene::with("osaka", |genesis| {
        genesis.config.blob_schedule.insert("osaka".into(), BlobParams::prague());
    });
    assert_eq!(expected_excess_blob_gas(&stated.chain, &few, 100), Some(2 * blob));
}

#[test]
fn execution_has_to_give_what_the_header_says() {
    let header = Scene::at("osaka").block.header;
    let good = ExecutionSummary {
        gas_used: header.gas_used,
        receipts_root: header.receipts_root,
        logs_bloom: header.logs_bloom,
        blob_gas_used: 0,
        requests_hash: header.requests_hash,
        state_root: header.state_root,
    };
    assert_eq!(check_execution(&header, &good), Ok(()));
    let text = |spoil: fn(&mut ExecutionSummary)| {
        let mut outcome = good.clone();
        spoil(&mut outcome);
        check_execution(&header, &outcome).unwrap_err().to_string()
    };
    let empty = header.receipts_root;
    let one = B256::with_last_byte(1);
    assert_eq!(text(|o| o.gas_used = 5), "gas used: expected 0, found 5");
    assert_eq!(text(|o| o.blob_gas_used = 5), "blob gas used: expected 0, found 5");
    assert_eq!(
        text(|o| o.receipts_root = B256::with_last_byte(1)),
        format!("receipts root: expected {empty}, found {one}")
    );
    assert_eq!(
        text(|o| o.logs_bloom = Bloom::with_last_byte(3)),
        "logs bloom: expected 0 bits set, found 2, and 2 differ"
    );
    assert_eq!(text(|o| o.requests_hash = None), "requests hash: expected since Prague, found none");
    assert!(text(|o| o.requests_hash = Some(B256::ZERO)).starts_with("requests hash: expected 0xe3b0c442"));
    assert_eq!(
        text(|o| o.state_root = B256::with_last_byte(1)),
        format!("state root: expected {}, found {one}", header.state_root)
    );
}
