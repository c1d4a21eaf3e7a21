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

#[test]
fn each_kind_of_damage_has_its_sentence() {
    let one = rlp_file([1]).len();
    let era1 = era1_blocks([1]).len();
    let body_at = 8 + record(0x03, &packed(&alloy_rlp::encode(&block(1).header))).len();
    let header =
        || with(era1::VERSION_RECORD.to_vec(), &record(0x03, &packed(&alloy_rlp::encode(&block(1).header))));
    let rows: Vec<(&str, Vec<u8>, Vec<u64>, String)> = vec![
        ("empty", vec![], vec![], "the file is empty; fetch or export it again".into()),
        ("gzip", vec![0x1f, 0x8b, 8, 0], vec![], "the file is packed with gzip; unpack it first, for example with gunzip".into()),
        ("text", b"{\"genesis\":1}".to_vec(), vec![], "neither RLP blocks nor an era1 file: it begins with 0x7b2267656e657369; export the blocks as RLP".into()),
        ("cut in the second block", cut(rlp_file([1, 2]), 10), vec![1],
            format!("the file ends at byte {}, in the middle of the block that begins at byte {one}, after block 1; fetch it again", 2 * one - 10)),
        ("cut in the first length", vec![0xf9, 1], vec![],
            "the file ends at byte 2, in the middle of the block that begins at byte 0, before any block; fetch it again".into()),
        ("a line end after the blocks", with(rlp_file([1, 2]), b"\n"), vec![1, 2],
            format!("1 bytes at byte {}, after block 2, are not part of any block; cut them off or fetch the file again", 2 * one)),
        ("an endless block", with(rlp_file([1]), &[0xff; 9]), vec![1],
            format!("the block at byte {one}, after block 1, claims to have 18446744073709551615 bytes; at most 67108864 bytes are accepted, so the file is likely damaged: fetch it again")),
        ("a list that is no block", with(rlp_file([1]), &[0xc1, 0xc0]), vec![1],
            format!("the block at byte {one}, after block 1, cannot be decoded: input too short; the file is likely damaged, fetch it again")),
        ("only the version", era1::VERSION_RECORD.to_vec(), vec![],
            "the file ends at byte 8, in the middle of the record that begins at byte 8, before any block; fetch it again".into()),
        ("no index", era1_blocks([1]), vec![1],
            format!("the file ends at byte {era1}, in the middle of the record that begins at byte {era1}, after block 1; fetch it again")),
        ("another index", with(era1_blocks([1]), &index(1, 2)), vec![1],
            format!("the record at byte {era1}, after block 1, cannot be decoded: the block index speaks of 2 blocks from 1, but the file has 1 from 1; the file is likely damaged, fetch it again")),
        ("a short index", with(era1_blocks([1]), &record(0x3266, &[0; 15])), vec![1],
            format!("the record at byte {era1}, after block 1, cannot be decoded: a block index of 15 bytes; the file is likely damaged, fetch it again")),
        ("bytes after the index", with(era1_file(1, 1), &[0; 3]), vec![1],
            format!("3 bytes at byte {}, after block 1, are not part of any block; cut them off or fetch the file again", era1_file(1, 1).len())),
        ("a beacon block", with(era1::VERSION_RECORD.to_vec(), &record(0x01, &[0; 9])), vec![],
            "an era file of the beacon chain; export the execution blocks as RLP, or use era1 files".into()),
        ("an unknown record", with(era1::VERSION_RECORD.to_vec(), &record(0x99, &[0; 9])), vec![],
            "the record at byte 8, before any block, cannot be decoded: unknown record type 0x0099; the file is likely damaged, fetch it again".into()),
        ("a body alone", with(era1::VERSION_RECORD.to_vec(), &record(0x04, &[0; 9])), vec![],
            "the record at byte 8, before any block, cannot be decoded: a body without a header before it; the file is likely damaged, fetch it again".into()),
        ("a header alone", with(header(), &index(1, 1)), vec![],
            format!("the record at byte {body_at}, before any block, cannot be decoded: a header without a body after it; the file is likely damaged, fetch it again")),
        ("reserved bytes", with(era1::VERSION_RECORD.to_vec(), &[3, 0, 0, 0, 0, 0, 1, 0]), vec![],
            "the record at byte 8, before any block, cannot be decoded: its reserved bytes are not 0; the file is likely damaged, fetch it again".into()),
        ("a body of too many bytes", with(header(), &record(0x04, &packed(&[0xc2, 0xc0, 0xc0, 0xc0]))), vec![],
            format!("the record at byte {body_at}, before any block, cannot be decoded: 1 bytes too many; the file is likely damaged, fetch it again")),
    ];
    for (name, bytes, numbers, text) in rows {
        assert_eq!(read(bytes), (numbers, Some(text)), "{name}");
    }
}

#[test]
fn a_payload_that_unpacks_to_more_than_a_block_is_refused() {
    let bomb = packed(&vec![0; BLOCK_BYTES_MAX as usize + 1]);
    assert!(bomb.len() < 4 * 1024 * 1024);
    let (numbers, text) = read(with(era1::VERSION_RECORD.to_vec(), &record(0x03, &bomb)));
    assert!(numbers.is_empty());
    assert_eq!(
        text.unwrap(),
        "the record at byte 8, before any block, claims to have more when unpacked; at most 67108864 bytes are \
         accepted, so the file is likely damaged: fetch it again"
    );
}

#[test]
fn a_file_that_shrinks_while_it_is_read_is_an_error() {
    let mut file = BlockFile::new("f".into(), Cursor::new(rlp_file([1])), 10_000).unwrap();
    assert!(file.next().unwrap().is_ok());
    let text = file.next().unwrap().unwrap_err().to_string();
    assert_eq!(text, "f: cannot be read: unexpected end of file");
}

/// A damaged file never gives a block that the whole file does not have, unless the damage is in the block itself.
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
        prop_assert_eq!(text.is_some(), keep % one != 0);
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
