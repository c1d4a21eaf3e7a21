//! Whatever is wrong, the program says so in a sentence, exits with 1, and keeps what was good before it.

use super::program::Workplace;
use alloy_primitives::B256;
use archive::ARCHIVE_FILE;

#[test]
fn a_bad_block_is_named_with_what_was_expected_and_found() {
    let place = Workplace::small();
    let good = place.write_blocks("good.rlp", 1..=9);
    let mut bad = place.block(10);
    let (stated, right) = (B256::repeat_byte(7), bad.header.state_root);
    bad.header.state_root = stated;
    let hash = bad.header.hash_slow();
    let bad = place.write("bad.rlp", alloy_rlp::encode(&bad));
    let rest = place.write_blocks("rest.rlp", 10..=20);

    let kept = place.block(9).header.hash_slow();
    place.import([&good, &bad, &rest]).assert_failed_with(&[
        &format!("block 10 ({hash}) is not valid: state root: expected {stated}, found {right}"),
        &format!("Everything up to block 9 ({kept}) is in the archive."),
    ]);
    place.assert_holds(9);
    place.import([&rest]).assert_succeeded();
    place.assert_holds(20);
}

#[test]
fn a_bad_block_between_good_ones_of_the_same_file_keeps_those_before() {
    let place = Workplace::small();
    let mut blocks: Vec<_> = (1..=20).map(|number| place.block(number)).collect();
    blocks[11].header.gas_used += 1;
    let (right, stated) = (place.block(12).header.gas_used, blocks[11].header.gas_used);
    let bytes: Vec<u8> = blocks.iter().flat_map(alloy_rlp::encode).collect();
    let file = place.write("spoilt.rlp", bytes);
    place
        .import([&file])
        .assert_failed_with(&["block 12 (", &format!("gas used: expected {stated}, found {right}")]);
    place.assert_holds(11);
}

#[test]
fn files_without_blocks_are_refused_before_anything_is_done() {
    let place = Workplace::small();
    let good = place.write_blocks("good.rlp", 1..=5);
    let cases = [
        (place.path("missing.rlp"), "there is no such file"),
        (place.write("empty.rlp", b""), "the file is empty"),
        (place.write("garbage.rlp", b"garbage"), "neither RLP blocks nor an era1 file"),
        (place.write("packed.rlp", [0x1f, 0x8b, 8, 0]), "packed with gzip"),
        (place.path(""), "not a regular file"),
    ];
    for (file, says) in cases {
        let name = file.file_name().unwrap().to_str().unwrap();
        place.import([&good, &file]).assert_failed_with(&[name, says]);
        assert!(!place.data_dir().exists(), "{says}");
    }
}

#[test]
fn a_file_that_ends_too_early_keeps_the_blocks_before() {
    let place = Workplace::small();
    let mut bytes = std::fs::read(place.write_blocks("whole.rlp", 1..=5)).unwrap();
    bytes.truncate(bytes.len() - 1);
    let cut = place.write("cut.rlp", bytes);
    place.import([&cut]).assert_failed_with(&[
        "cut.rlp: the file ends at byte",
        "after block 4; fetch it again",
        "Everything up to block 4 (",
    ]);
    place.assert_holds(4);
}

#[test]
fn another_genesis_is_refused() {
    let place = Workplace::small();
    let blocks = place.write_blocks("blocks.rlp", 1..=5);
    place.import([&blocks]).assert_succeeded();
    let genesis = place.truth.model.genesis_json().replacen("0xf4240", "0xf4241", 1);
    place.write("genesis.json", genesis);
    place
        .import([&blocks])
        .assert_failed_with(&["holds the chain with genesis", "use another data directory"]);
    place.assert_holds(5);
}

/// The import said "number: expected 1" of a file whose predecessors were missing.
#[test]
fn blocks_that_are_missing_are_named() {
    let place = Workplace::small();
    let [first, third, rest] = [("1.rlp", 1..=5), ("3.rlp", 9..=12), ("2.rlp", 6..=8)]
        .map(|(name, range)| place.write_blocks(name, range));
    place.import([&third]).assert_failed_with(&[
        "the source goes on with block 9, but blocks 1 to 8 are missing; import the files that hold them first",
        "No block is in the archive yet",
    ]);
    place
        .import([&first, &third])
        .assert_failed_with(&["blocks 6 to 8 are missing", "Everything up to block 5 ("]);
    place.import([&rest, &third]).assert_succeeded();
    place.assert_holds(12);
}

/// The import said "parent hash: expected" of block 1, and left an archive behind that refused the right genesis.
#[test]
fn the_genesis_of_another_chain_is_told_and_does_not_stay() {
    let place = Workplace::small();
    let blocks = place.write_blocks("blocks.rlp", 1..=5);
    let right = place.truth.model.genesis_json();
    let hash = place.truth.model.header(0).unwrap().hash();
    place.write("genesis.json", right.replacen("0xf4240", "0xf4241", 1));
    place.import([&blocks]).assert_failed_with(&[
        &format!("the blocks of the source build on the genesis {hash}, but the genesis file makes 0x"),
        "use the genesis file of the chain that the blocks belong to",
        "No block is in the archive yet",
    ]);
    place.write("genesis.json", right);
    place.import([&blocks]).assert_succeeded();
    place.assert_holds(5);
}

#[test]
fn a_genesis_that_cannot_be_read_is_refused() {
    let place = Workplace::small();
    let blocks = place.write_blocks("blocks.rlp", 1..=5);
    place.write("genesis.json", "{");
    place.import([&blocks]).assert_failed_with(&["the genesis file ", "genesis.json: ", "at line 1"]);
    let twice = place.truth.model.genesis_json().replacen('{', "{\n\"nonce\": \"0x0\",\n", 1);
    place.write("genesis.json", twice);
    place.import([&blocks]).assert_failed_with(&["line 3: nonce: duplicate key (first defined on line 2)"]);
    assert!(!place.data_dir().exists());
    std::fs::remove_file(place.path("genesis.json")).unwrap();
    place.import([&blocks]).assert_failed_with(&["cannot read the genesis file", "genesis.json"]);
}

#[test]
fn a_file_that_is_no_archive_is_left_alone() {
    let place = Workplace::small();
    let blocks = place.write_blocks("blocks.rlp", 1..=5);
    std::fs::create_dir(place.data_dir()).unwrap();
    let path = place.data_dir().join(ARCHIVE_FILE);
    for bytes in [&b""[..], b"something else altogether"] {
        std::fs::write(&path, bytes).unwrap();
        place.import([&blocks]).assert_failed_with(&["archive.redb is not an archive of this program"]);
        assert_eq!(std::fs::read(&path).unwrap(), bytes);
    }
}

#[test]
fn a_directory_that_cannot_be_made_is_named() {
    let place = Workplace::small();
    let blocks = place.write_blocks("blocks.rlp", 1..=5);
    std::fs::write(place.data_dir(), b"a file where the directory should be").unwrap();
    place.import([&blocks]).assert_failed_with(&["cannot write", "data-0"]);
}
