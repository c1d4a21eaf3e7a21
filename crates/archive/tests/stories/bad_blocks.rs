//! Every kind of bad block stops the import at that block and nowhere else: the error names the block and what is
//! wrong with it, nothing of it is stored, what came before it stays, and the good block in its place is welcome.

use super::setup::{Fresh, SMALL, archive_of, blocks, small_chain};
use alloy_consensus::{
    SignableTransaction, TxEip1559, TxLegacy, Typed2718,
    proofs::{calculate_ommers_root, calculate_transaction_root},
};
use alloy_eips::{eip4844::DATA_GAS_PER_BLOB, eip4895::Withdrawal};
use alloy_primitives::{B64, B256, Bytes, Signature, U256};
use archive::{Block, ImportError};
use testkit::{
    chain::{Era, signer},
    truth::Truth,
};

/// A way to spoil a block.
struct Fault {
    /// The error of the import.
    says: &'static str,
    /// The forks whose blocks can be spoilt so.
    eras: std::ops::RangeInclusive<Era>,
    spoil: fn(&mut Block, &Truth),
}

#[test]
fn a_bad_block_after_good_ones_leaves_the_good_ones() {
    let truth = small_chain();
    for fault in faults() {
        let number = victim(&truth, &fault);
        let archive = archive_of(&truth);
        let mut group = blocks(&truth, 1..=number + 1);
        let good = group[number as usize - 1].clone();
        (fault.spoil)(&mut group[number as usize - 1], &truth);
        let spoilt = &group[number as usize - 1];
        assert_ne!(*spoilt, good, "{}", fault.says);

        assert_names_the_block(archive.import(group.clone()).unwrap_err(), spoilt, fault.says);
        assert_holds_only_good(&archive, &truth, number - 1, spoilt);
    }
}

#[test]
fn a_bad_block_alone_leaves_nothing_and_the_good_one_is_welcome() {
    let truth = small_chain();
    for fault in faults() {
        let number = victim(&truth, &fault);
        let archive = archive_of(&truth);
        archive.import(blocks(&truth, 1..number)).unwrap();
        let mut bad = truth.model.block(number).unwrap().block.clone();
        (fault.spoil)(&mut bad, &truth);

        assert_names_the_block(archive.import([bad.clone()]).unwrap_err(), &bad, fault.says);
        assert_holds_only_good(&archive, &truth, number - 1, &bad);
        archive.import(blocks(&truth, number..=truth.model.head())).unwrap();
        archive.assert_true(&truth, [number]);
        assert_eq!(archive.head(), truth.model.head());
    }
}

fn assert_names_the_block(error: ImportError, bad: &Block, says: &str) {
    let text = error.to_string();
    let ImportError::BadBlock { number, hash, fault } = error else { panic!("{says}: {text}") };
    assert_eq!((number, hash), (bad.header.number, bad.header.hash_slow()), "{says}");
    let begins = format!("block {number} ({hash}) is not valid: ");
    assert!(text.starts_with(&begins), "{text}");
    assert!(fault.to_string().starts_with(says), "expected {says:?} in {text:?}");
    if says.contains("expected") {
        assert!(text.contains("found"), "{text}");
    }
}

fn assert_holds_only_good(archive: &Fresh, truth: &Truth, head: u64, bad: &Block) {
    let snapshot = archive.archive.snapshot();
    assert_eq!(snapshot.head(), head);
    assert_eq!(snapshot.number_of(bad.header.hash_slow()).unwrap(), None);
    archive.assert_true(truth, [head / 2]);
}

/// The first block that can be spoilt: not one of the very first, so that good ones come before it.
fn victim(truth: &Truth, fault: &Fault) -> u64 {
    let suits = |number: &u64| {
        let block = &truth.model.block(*number).unwrap().block;
        let has_logs = !block.header.logs_bloom.is_zero();
        fault.eras.contains(&Era::of(*number, SMALL.blocks_per_fork)) && has_logs
    };
    (4..truth.model.head()).find(suits).unwrap()
}

fn faults() -> Vec<Fault> {
    [header_faults(), execution_faults(), body_faults(), fork_faults()].into_iter().flatten().collect()
}

fn header_faults() -> Vec<Fault> {
    vec![
        any("number: expected", |block, _| block.header.number += 1),
        any("parent hash: expected", |block, _| block.header.parent_hash = B256::repeat_byte(1)),
        any("timestamp: expected more than the parent's", |block, truth| {
            block.header.timestamp = parent(block, truth).timestamp;
        }),
        any("gas limit: expected between", |block, _| block.header.gas_limit *= 2),
        any("gas used: expected at most", |block, _| block.header.gas_used = block.header.gas_limit + 1),
        any("extra data bytes: expected at most 32", |block, _| block.header.extra_data = vec![0; 33].into()),
    ]
}

fn execution_faults() -> Vec<Fault> {
    vec![
        any("state root: expected", |block, _| block.header.state_root = B256::repeat_byte(1)),
        any("receipts root: expected", |block, _| block.header.receipts_root = B256::repeat_byte(1)),
        any("gas used: expected", |block, _| block.header.gas_used += 1),
        any("logs bloom: expected", |block, _| block.header.logs_bloom.0[7] ^= 1),
        since(Era::Prague, "requests hash: expected", |block, _| {
            block.header.requests_hash = Some(B256::repeat_byte(1));
        }),
        // The same transaction again: its nonce has been used.
        any("transaction ", |block, _| {
            let last = block.body.transactions.last().unwrap().clone();
            block.body.transactions.push(last);
            seal_transactions(block);
        }),
    ]
}

fn body_faults() -> Vec<Fault> {
    vec![
        any("transactions root: expected", |block, _| block.header.transactions_root = B256::repeat_byte(1)),
        any("transactions root: expected", |block, _| drop(block.body.transactions.pop())),
        any("transaction 0 has an invalid signature", |block, _| {
            let unsigned = TxLegacy { gas_limit: 21_000, ..TxLegacy::default() };
            let signed = unsigned.into_signed(Signature::new(U256::ZERO, U256::ZERO, false));
            block.body.transactions.insert(0, signed.into());
        }),
        before(
            Era::Byzantium,
            "transaction 0: type: expected at most 1 before London, found 2",
            |block, _| {
                let young = signer(0).sign(TxEip1559 { chain_id: 1337, ..TxEip1559::default() });
                assert_eq!(young.ty(), 2);
                block.body.transactions.insert(0, young.into_inner());
                seal_transactions(block);
            },
        ),
        since(Era::SpuriousDragon, "transaction 0: chain id: expected 1337, found 5", |block, _| {
            let foreign = signer(0).sign(TxLegacy { chain_id: Some(5), ..TxLegacy::default() });
            block.body.transactions.insert(0, foreign.into_inner());
            seal_transactions(block);
        }),
        since(Era::Shanghai, "withdrawals root: expected", |block, _| {
            block.body.withdrawals.as_mut().unwrap().push(Withdrawal { amount: 1, ..Withdrawal::default() });
        }),
        any("uncles hash: expected", |block, _| block.header.ommers_hash = B256::repeat_byte(1)),
        before(Era::Paris, "uncle 0: expected a block beside the chain", |block, truth| {
            let ancestor = parent(block, truth);
            set_uncles(block, vec![ancestor]);
        }),
        before(Era::Paris, "uncle 1: expected an uncle that was not included before", |block, truth| {
            let uncle = uncle(block, truth, 77);
            set_uncles(block, vec![uncle.clone(), uncle]);
        }),
        before(Era::Paris, "uncle 0: parent hash: expected a block from 2 to 7", |block, truth| {
            let mut uncle = uncle(block, truth, 77);
            uncle.parent_hash = B256::repeat_byte(1);
            set_uncles(block, vec![uncle]);
        }),
        before(Era::Paris, "uncles: expected at most 2, found 3", |block, truth| {
            let uncles = [77, 78, 79].map(|salt| uncle(block, truth, salt));
            set_uncles(block, uncles.to_vec());
        }),
        since(Era::Paris, "uncles: expected at most 0, found 1", |block, truth| {
            let uncle = uncle(block, truth, 77);
            set_uncles(block, vec![uncle]);
        }),
    ]
}

fn fork_faults() -> Vec<Fault> {
    vec![
        before(Era::London, "base fee: expected none before London", |block, _| {
            block.header.base_fee_per_gas = Some(7);
        }),
        since(Era::London, "base fee: expected", |block, _| {
            block.header.base_fee_per_gas = block.header.base_fee_per_gas.map(|fee| fee + 1);
        }),
        before(Era::Paris, "difficulty: expected above 0", |block, _| block.header.difficulty = U256::ZERO),
        since(Era::Paris, "difficulty: expected 0", |block, _| block.header.difficulty = U256::ONE),
        since(Era::Paris, "nonce: expected", |block, _| block.header.nonce = B64::repeat_byte(1)),
        since(Era::Cancun, "excess blob gas: expected", |block, _| {
            block.header.excess_blob_gas = block.header.excess_blob_gas.map(|gas| gas + DATA_GAS_PER_BLOB);
        }),
        since(Era::Cancun, "blob gas used: expected", |block, _| {
            let other = if block.header.blob_gas_used == Some(0) { DATA_GAS_PER_BLOB } else { 0 };
            block.header.blob_gas_used = Some(other);
        }),
        since(Era::Cancun, "parent beacon block root: expected since Cancun", |block, _| {
            block.header.parent_beacon_block_root = None;
        }),
    ]
}

fn any(says: &'static str, spoil: fn(&mut Block, &Truth)) -> Fault {
    Fault { says, eras: Era::Frontier..=Era::Bpo2, spoil }
}

fn since(first: Era, says: &'static str, spoil: fn(&mut Block, &Truth)) -> Fault {
    Fault { says, eras: first..=Era::Bpo2, spoil }
}

fn before(end: Era, says: &'static str, spoil: fn(&mut Block, &Truth)) -> Fault {
    let last = Era::ALL[end as usize - 1];
    Fault { says, eras: Era::Frontier..=last, spoil }
}

fn parent(block: &Block, truth: &Truth) -> alloy_consensus::Header {
    truth.model.header(block.header.number - 1).unwrap().clone_inner()
}

/// An uncle that the block could have, with whatever makes it differ from others.
fn uncle(block: &Block, truth: &Truth, salt: u64) -> alloy_consensus::Header {
    truth.model.builder().uncle_of(block.header.number - 2, salt).unwrap()
}

fn set_uncles(block: &mut Block, uncles: Vec<alloy_consensus::Header>) {
    block.header.ommers_hash = calculate_ommers_root(&uncles);
    block.header.extra_data = Bytes::from_static(b"spoilt");
    block.body.ommers = uncles;
}

fn seal_transactions(block: &mut Block) {
    block.header.transactions_root = calculate_transaction_root(&block.body.transactions);
}
