//! Whatever a file holds, it gives its good blocks and then one clear sentence, and never panics.

use super::*;
use proptest::prelude::*;

fn with(mut bytes: Vec<u8>, more: &[u8]) -> Vec<u8> {
    bytes.extend(more);
    bytes
}

fn cut(mut bytes: Vec<u8>, by: usize) -> Vec<u8> {
    bytes.truncate(bytes.len() - by);
    bytes
}

/// A name, the bytes, the blocks that they still give, and the sentence after them.
type Row = (&'static str, Vec<u8>, Vec<u64>, String);

fn check_rows(rows: Vec<Row>) {
    for (name, bytes, numbers, text) in rows {
        assert_eq!(read(bytes), (numbers, Some(text)), "{name}");
    }
}

#[test]
fn what_holds_no_blocks_is_told_what_it_is() {
    let unknown = |first: &str| {
        format!("neither RLP blocks nor an era1 file: it begins with {first}; export the blocks as RLP")
    };
    let beacon = with(era1::VERSION_RECORD.to_vec(), &record(0x01, &[0; 9]));
    check_rows(vec![
        ("empty", vec![], vec![], "the file is empty; fetch or export it again".into()),
        (
            "gzip",
            vec![0x1f, 0x8b, 8, 0],
            vec![],
            "the file is packed with gzip; unpack it first, for example with gunzip".into(),
        ),
        ("JSON", b"{\"genesis\":1}".to_vec(), vec![], unknown("0x7b2267656e657369")),
        ("xz", b"\xfd7zXZ\x00\x00\x04".to_vec(), vec![], unknown("0xfd377a585a000004")),
        ("a list", vec![0xc1, 0xc0], vec![], unknown("0xc1c0")),
        ("a list without a header", vec![0xf8, 60, 1, 2], vec![], unknown("0xf83c0102")),
        (
            "the beacon chain",
            beacon,
            vec![],
            "an era file of the beacon chain; export the execution blocks as RLP, or use era1 files".into(),
        ),
    ]);
}

#[test]
fn damaged_rlp_files_give_their_good_blocks_and_a_sentence() {
    let one = rlp_file([1]).len();
    let truncated = |end: usize, at: usize, after: &str| {
        format!(
            "the file ends at byte {end}, in the middle of the block that begins at byte {at}, {after}; fetch it again"
        )
    };
    let damaged = |what: &str| {
        format!("the block at byte {one}, after block 1, {what}; the file is likely damaged, fetch it again")
    };
    check_rows(vec![
        ("cut in its length", vec![0xf9, 1], vec![], truncated(2, 0, "before any block")),
        (
            "cut in the second block",
            cut(rlp_file([1, 2]), 10),
            vec![1],
            truncated(2 * one - 10, one, "after block 1"),
        ),
        (
            "a line end after the blocks",
            with(rlp_file([1, 2]), b"\n"),
            vec![1, 2],
            format!(
                "from byte {}, after block 2, to its end at byte {} the file holds no block; cut that part off or \
                 fetch the file again",
                2 * one,
                2 * one + 1
            ),
        ),
        (
            "an endless block",
            with(rlp_file([1]), &[0xff; 9]),
            vec![1],
            damaged("has at least 18446744073709551615 bytes, and at most 67108864 are accepted"),
        ),
        (
            "a list that is no block",
            with(rlp_file([1]), &[0xc1, 0xc0]),
            vec![1],
            damaged("cannot be decoded: its header: input too short"),
        ),
    ]);
}

#[test]
fn damaged_era1_files_give_their_good_blocks_and_a_sentence() {
    let version = || era1::VERSION_RECORD.to_vec();
    let header = || with(version(), &record(0x03, &packed(&alloy_rlp::encode(&block(1).header))));
    let block_end = era1_blocks([1]).len();
    let damaged = |at: usize, after: &str, reason: &str| {
        format!(
            "the record at byte {at}, {after}, cannot be decoded: {reason}; the file is likely damaged, fetch it again"
        )
    };
    let at_first = |reason: &str| damaged(8, "before any block", reason);
    let at_body = |reason: &str| damaged(header().len(), "before any block", reason);
    let at_index = |reason: &str| damaged(block_end, "after block 1", reason);
    let no_index = |end: usize, after: &str| {
        format!(
            "the file ends at byte {end}, {after}, without the block index with which every era1 file ends; fetch it \
             again"
        )
    };
    let no_header = "a body without a header before it";
    let other_index = "the block index speaks of 2 blocks from 1, but the file has 1 from 1";
    check_rows(vec![
        ("only the version", version(), vec![], no_index(8, "before any block")),
        ("no index", era1_blocks([1]), vec![1], no_index(block_end, "after block 1")),
        ("another index", with(era1_blocks([1]), &index(1, 2)), vec![1], at_index(other_index)),
        (
            "a short index",
            with(era1_blocks([1]), &record(0x3266, &[0; 15])),
            vec![1],
            at_index("a block index of 15 bytes"),
        ),
        (
            "an unknown record",
            with(version(), &record(0x99, &[0])),
            vec![],
            at_first("unknown record type 0x0099"),
        ),
        ("a body alone", with(version(), &record(0x04, &[0])), vec![], at_first(no_header)),
        ("a header alone", with(header(), &index(1, 1)), vec![], at_body("a header without a body after it")),
        (
            "reserved bytes",
            with(version(), &[3, 0, 0, 0, 0, 0, 1, 0]),
            vec![],
            at_first("its reserved bytes are not 0"),
        ),
        (
            "a body that goes on",
            with(header(), &record(0x04, &packed(&[0xc2, 0xc0, 0xc0, 0xc0]))),
            vec![],
            at_body("it goes on after its end"),
        ),
        (
            "bytes after the index",
            with(era1_file(1, 1), &[0; 3]),
            vec![1],
            format!(
                "from byte {}, after block 1, to its end at byte {} the file holds no block; cut that part off or \
                 fetch the file again",
                era1_file(1, 1).len(),
                era1_file(1, 1).len() + 3
            ),
        ),
    ]);
}

#[test]
fn a_payload_that_unpacks_to_more_than_a_block_is_refused() {
    let bomb = packed(&vec![0; BLOCK_BYTES_MAX as usize + 1]);
    assert!(bomb.len() < 4 * 1024 * 1024);
    let (numbers, text) = read(with(era1::VERSION_RECORD.to_vec(), &record(0x03, &bomb)));
    assert!(numbers.is_empty());
    assert_eq!(
        text.unwrap(),
        "the record at byte 8, before any block, has at least 67108865 bytes, and at most 67108864 are accepted; \
         the file is likely damaged, fetch it again"
    );
}

#[test]
fn a_file_that_shrinks_while_it_is_read_is_an_error() {
    let mut file = BlockFile::new("f".into(), Cursor::new(rlp_file([1])), 10_000).unwrap();
    assert!(file.next().unwrap().is_ok());
    let text = file.next().unwrap().unwrap_err().to_string();
    assert_eq!(text, "f: cannot be read: unexpected end of file");
}

/// A damaged file never gives a block that the whole file does not have, unless the damage is in the block
/// itself.
fn prefix_of(numbers: &[u64], whole: u64) -> bool {
    numbers.iter().copied().eq(1..=numbers.len() as u64) && numbers.len() as u64 <= whole
}

proptest! {
    #[test]
    fn random_bytes_never_panic(bytes: Vec<u8>) {
        read(bytes);
    }

    #[test]
    fn random_bytes_after_a_good_start_never_panic(bytes: Vec<u8>, first in 0xc0u8..) {
        read(with(vec![first], &bytes));
        read(with(rlp_file([1]), &bytes));
        read(with(era1::VERSION_RECORD.to_vec(), &bytes));
        read(with(era1_blocks([1]), &bytes));
    }

    #[test]
    fn random_records_never_panic(kind in prop_oneof![0u16..9, Just(0x3266)], payload: Vec<u8>) {
        read(with(era1::VERSION_RECORD.to_vec(), &record(kind, &payload)));
        read(with(era1::VERSION_RECORD.to_vec(), &record(kind, &packed(&payload))));
    }

    #[test]
    fn a_cut_rlp_file_gives_its_whole_blocks(keep in 1usize..1000) {
        let whole = rlp_file([1, 2, 3]);
        let keep = keep % whole.len();
        prop_assume!(keep > 0);
        let (numbers, text) = read(cut(whole.clone(), whole.len() - keep));
        let one = whole.len() / 3;
        prop_assert_eq!(numbers.len(), keep / one);
        prop_assert!(prefix_of(&numbers, 3));
        prop_assert_eq!(text.is_some(), !keep.is_multiple_of(one));
    }

    #[test]
    fn a_cut_era1_file_is_always_noticed(by in 1usize..4000) {
        let whole = era1_file(1, 3);
        let by = 1 + by % (whole.len() - 1);
        let (numbers, text) = read(cut(whole, by));
        prop_assert!(prefix_of(&numbers, 3));
        prop_assert!(text.is_some());
    }

    #[test]
    fn flipped_bits_never_panic(at: prop::sample::Index, bit in 0..8u32) {
        let mut rlp = rlp_file([1, 2, 3]);
        *at.get_mut(&mut rlp) ^= 1u8 << bit;
        read(rlp);
        let mut era1 = era1_file(1, 3);
        *at.get_mut(&mut era1) ^= 1u8 << bit;
        let (numbers, _) = read(era1);
        prop_assert!(prefix_of(&numbers, 3), "the checksums of era1 let no changed block through");
    }
}
