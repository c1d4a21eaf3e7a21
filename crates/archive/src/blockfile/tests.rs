#![allow(clippy::unwrap_used)]

mod corpora; // real files
mod damage; // files that were cut, changed or made up
mod malformed; // files that are intact, with blocks that are not

use super::*;
use alloy_consensus::{BlockBody, Header, SignableTransaction, TxLegacy};
use alloy_primitives::{Bytes, Signature};
use alloy_rlp::Encodable;
use std::io::{Cursor, Write};

/// The result that the rows below compare: the numbers of the blocks that were read, and the error's text after the
/// path.
type Seen = (Vec<u64>, Option<String>);

fn block(number: u64) -> Block {
    let transaction = TxLegacy { nonce: number, input: vec![7; 100].into(), ..TxLegacy::default() };
    let transactions = vec![transaction.into_signed(Signature::test_signature()).into()];
    let header = Header { number, extra_data: Bytes::from_static(b"a block"), ..Header::default() };
    let body = BlockBody { transactions, ommers: vec![Header::default()], withdrawals: None };
    body.into_block(header)
}

fn rlp_file(numbers: impl IntoIterator<Item = u64>) -> Vec<u8> {
    let mut file = Vec::new();
    for number in numbers {
        block(number).encode(&mut file);
    }
    file
}

fn record(kind: u16, payload: &[u8]) -> Vec<u8> {
    let mut record = kind.to_le_bytes().to_vec();
    record.extend(u32::try_from(payload.len()).unwrap().to_le_bytes());
    record.extend([0, 0]);
    record.extend(payload);
    record
}

fn packed(payload: &[u8]) -> Vec<u8> {
    let mut encoder = snap::write::FrameEncoder::new(Vec::new());
    encoder.write_all(payload).unwrap();
    encoder.into_inner().unwrap()
}

fn index(first: u64, count: u64) -> Vec<u8> {
    let mut payload = first.to_le_bytes().to_vec();
    payload.extend((0..count).flat_map(u64::to_le_bytes));
    payload.extend(count.to_le_bytes());
    record(0x3266, &payload)
}

/// A whole era1 file, without its index.
fn era1_blocks(numbers: impl IntoIterator<Item = u64>) -> Vec<u8> {
    let mut file = era1::VERSION_RECORD.to_vec();
    for number in numbers {
        let block = block(number);
        file.extend(record(0x03, &packed(&alloy_rlp::encode(&block.header))));
        file.extend(record(0x04, &packed(&alloy_rlp::encode(&block.body))));
        file.extend(record(0x05, &packed(&[0xc0])));
        file.extend(record(0x06, &[1; 32]));
    }
    file.extend(record(0x07, &[2; 32]));
    file
}

fn era1_file(first: u64, count: u64) -> Vec<u8> {
    let mut file = era1_blocks(first..first + count);
    file.extend(index(first, count));
    file
}

fn open(bytes: Vec<u8>) -> Result<BlockFile<Cursor<Vec<u8>>>, BlockFileError> {
    let bytes_total = bytes.len() as u64;
    BlockFile::new("f".into(), Cursor::new(bytes), bytes_total)
}

fn read(bytes: Vec<u8>) -> Seen {
    let mut file = match open(bytes) {
        Ok(file) => file,
        Err(error) => return (Vec::new(), Some(error.fault.to_string())),
    };
    let mut numbers = Vec::new();
    for next in file.by_ref() {
        match next {
            Ok(at) => numbers.push(at.block.header.number),
            Err(error) => {
                assert!(file.next().is_none(), "nothing comes after an error");
                return (numbers, Some(error.fault.to_string()));
            }
        }
    }
    assert_eq!(file.bytes_read(), file.bytes_total());
    (numbers, None)
}

#[test]
fn both_kinds_give_the_same_blocks() {
    let from_rlp: Vec<Block> = open(rlp_file(0..5)).unwrap().map(|at| at.unwrap().block).collect();
    let from_era1: Vec<Block> = open(era1_file(0, 5)).unwrap().map(|at| at.unwrap().block).collect();
    assert_eq!(from_rlp, (0..5).map(block).collect::<Vec<_>>());
    assert_eq!(from_rlp, from_era1);
}

#[test]
fn progress_is_told_block_by_block() {
    let one = rlp_file([1]).len() as u64;
    let mut file = open(rlp_file([1, 2])).unwrap();
    assert_eq!((file.bytes_read(), file.bytes_total()), (0, 2 * one));
    assert_eq!(file.next().unwrap().unwrap().offset, 0);
    assert_eq!(file.bytes_read(), one);
    assert_eq!(file.next().unwrap().unwrap().offset, one);
    assert_eq!(file.bytes_read(), file.bytes_total());
    assert!(file.next().is_none());
}

#[test]
fn the_kind_is_told_by_content_and_not_by_name() {
    let folder = tempfile::tempdir().unwrap();
    for (name, bytes) in [("a.era1", rlp_file(3..6)), ("b.rlp", era1_file(3, 3))] {
        let path = folder.path().join(name);
        std::fs::write(&path, bytes).unwrap();
        let numbers: Vec<u64> =
            BlockFile::open(&path).unwrap().map(|at| at.unwrap().block.header.number).collect();
        assert_eq!(numbers, [3, 4, 5], "{name}");
    }
}

#[test]
fn what_is_not_a_file_is_refused_with_its_path() {
    let folder = tempfile::tempdir().unwrap();
    let missing = folder.path().join("missing.rlp");
    let error = BlockFile::open(&missing).unwrap_err().to_string();
    assert_eq!(error, format!("{}: there is no such file; check the path", missing.display()));
    let error = BlockFile::open(folder.path()).unwrap_err().to_string();
    assert!(error.ends_with("not a regular file; name the block files one by one"), "{error}");
}
