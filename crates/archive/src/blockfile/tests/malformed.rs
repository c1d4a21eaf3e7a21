//! Blocks that cannot be decoded although their file is as it was written. The error used to blame the whole block
//! and to advise fetching an intact file again.

use super::*;
use alloy_primitives::{B256, keccak256};
use alloy_trie::root::ordered_trie_root_with_encoder;

/// A transaction of a type that nobody knows, as it stands in the trie.
const UNKNOWN_TRANSACTION: [u8; 2] = [0x7f, 0xc0];

fn list(items: &[Vec<u8>]) -> Vec<u8> {
    let payload = items.concat();
    let mut out = Vec::new();
    alloy_rlp::Header { list: true, payload_length: payload.len() }.encode(&mut out);
    [out, payload].concat()
}

/// The transactions of a body whose second one is unknown, and their root.
fn transactions() -> (Vec<u8>, B256) {
    let good = alloy_rlp::encode(&block(2).body.transactions[0]);
    let leaves = [good.clone(), UNKNOWN_TRANSACTION.to_vec()];
    let root = ordered_trie_root_with_encoder(&leaves, |leaf, out| out.extend_from_slice(leaf));
    (list(&[good, alloy_rlp::encode(&UNKNOWN_TRANSACTION[..])]), root)
}

fn rlp_block(header: &Header, transactions: Vec<u8>, uncles: Vec<u8>) -> Vec<u8> {
    [rlp_file([1]), list(&[alloy_rlp::encode(header), transactions, uncles])].concat()
}

fn error_of(file: Vec<u8>) -> String {
    let (numbers, text) = read(file);
    assert_eq!(numbers, [1]);
    text.unwrap()
}

#[test]
fn a_transaction_that_the_header_commits_to_is_named() {
    let (transactions, transactions_root) = transactions();
    let header = Header { number: 2, transactions_root, ..Header::default() };
    let error = error_of(rlp_block(&header, transactions, vec![0xc0]));
    assert!(error.contains(", after block 1: transaction 1 cannot be decoded: "), "{error}");
    assert!(error.contains("; the file is intact, but the block does not follow the rules"), "{error}");
    assert!(!error.contains("fetch"), "{error}");
}

#[test]
fn a_transaction_that_the_header_does_not_commit_to_is_damaged() {
    let (transactions, _) = transactions();
    let error = error_of(rlp_block(&block(2).header, transactions, vec![0xc0]));
    assert!(error.contains("cannot be decoded: transaction 1: "), "{error}");
    assert!(error.ends_with("; the file is likely damaged, fetch it again"), "{error}");
}

#[test]
fn an_uncle_that_cannot_be_decoded_is_named() {
    let uncles = list(&[alloy_rlp::encode(Header::default()), vec![0xc0]]);
    let header = Header { number: 2, ommers_hash: keccak256(&uncles), ..Header::default() };
    let error = error_of(rlp_block(&header, vec![0xc0], uncles));
    assert!(error.contains("uncle 1 cannot be decoded: ") && error.contains("the file is intact"), "{error}");
}

/// The frames of an era1 file have checksums.
#[test]
fn a_transaction_of_an_era1_file_is_named() {
    let (transactions, _) = transactions();
    let body = list(&[transactions, vec![0xc0]]);
    let mut file = era1_blocks([1]);
    file.extend(record(0x03, &packed(&alloy_rlp::encode(&block(2).header))));
    file.extend(record(0x04, &packed(&body)));
    let error = error_of(file);
    assert!(
        error.contains("transaction 1 cannot be decoded: ") && error.contains("the file is intact"),
        "{error}"
    );
}
