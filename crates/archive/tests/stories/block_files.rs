//! Block files as they come: cut off, with something behind the last block, from another fork, with blocks that
//! the archive has already.

use super::setup::{Fresh, archive_of, blocks, other_chain, small_chain};
use archive::{Block, BlockFileFault, ImportError};
use testkit::truth::Truth;

#[test]
fn a_file_that_ends_too_early_gives_the_blocks_before() {
    let truth = small_chain();
    let file = truth.model.rlp();
    let third = file_of(&truth, 1..=3).len();
    for end in [third - 1, third + 1, third + 2, third + 300] {
        let archive = archive_of(&truth);
        let whole = if end < third { 2 } else { 3 };
        let fault = source_fault(archive.import_file(&file[..end]));
        assert!(
            matches!(fault, BlockFileFault::Truncated { last: Some(last), .. } if last == whole),
            "{fault}"
        );
        assert_goes_on(&archive, &truth, whole);
    }
}

#[test]
fn something_else_behind_the_blocks_is_refused_after_them() {
    let truth = small_chain();
    for garbage in [&[0_u8; 100][..], b"\n", &[0xc1, 0x80], &[0xff; 9]] {
        let archive = archive_of(&truth);
        let file = [&file_of(&truth, 1..=5), garbage].concat();
        source_fault(archive.import_file(&file));
        assert_goes_on(&archive, &truth, 5);
    }
}

#[test]
fn a_file_may_begin_with_the_genesis_block() {
    let truth = small_chain();
    let archive = archive_of(&truth);
    let genesis = Block::uncle(truth.model.header(0).unwrap().clone_inner());
    let file = [alloy_rlp::encode(&genesis), truth.model.rlp()].concat();
    let progress = archive.import_file(&file).unwrap();
    assert_eq!((progress.skipped, progress.blocks), (1, truth.model.head()));
    archive.assert_true(&truth, [0]);
}

#[test]
fn blocks_that_are_there_already_are_passed_over() {
    let truth = small_chain();
    let archive = archive_of(&truth);
    archive.import_file(&file_of(&truth, 1..=20)).unwrap();
    let progress = archive.import_file(&file_of(&truth, 10..=30)).unwrap();
    assert_eq!((progress.skipped, progress.blocks, progress.head), (11, 10, 30));
    let again = archive.import_file(&file_of(&truth, 1..=30)).unwrap();
    assert_eq!((again.skipped, again.blocks, again.head), (30, 0, 30));
    archive.assert_true(&truth, [15]);
}

#[test]
fn a_file_that_begins_too_late_is_refused() {
    let truth = small_chain();
    let archive = archive_of(&truth);
    archive.import(blocks(&truth, 1..=5)).unwrap();
    let error = archive.import(blocks(&truth, 7..=9)).unwrap_err().to_string();
    assert_eq!(
        error,
        "the source goes on with block 7, but block 6 is missing; import the files that hold it first"
    );
    assert_goes_on(&archive, &truth, 5);
}

#[test]
fn blocks_of_another_fork_are_told_from_blocks_that_are_there() {
    let (truth, other) = (small_chain(), other_chain());
    let archive = archive_of(&truth);
    archive.import(blocks(&truth, 1..=20)).unwrap();
    let error = archive.import(blocks(&other, 1..=20)).unwrap_err();
    let ImportError::OtherChain { number, stored, found } = error else { panic!("{error}") };
    let hashes = [&truth, &other].map(|truth| truth.model.header(1).unwrap().hash());
    assert_eq!((number, [stored, found]), (1, hashes));
    assert_goes_on(&archive, &truth, 20);
}

#[test]
fn blocks_of_another_fork_do_not_follow_the_head() {
    let (truth, other) = (small_chain(), other_chain());
    let archive = archive_of(&truth);
    archive.import(blocks(&truth, 1..=20)).unwrap();
    let error = archive.import(blocks(&other, 21..=22)).unwrap_err().to_string();
    assert!(error.contains("block 21 (") && error.contains("parent hash: expected"), "{error}");
    assert_goes_on(&archive, &truth, 20);
}

fn file_of(truth: &Truth, numbers: impl IntoIterator<Item = u64>) -> Vec<u8> {
    blocks(truth, numbers).iter().flat_map(alloy_rlp::encode).collect()
}

fn source_fault<T: std::fmt::Debug>(imported: Result<T, ImportError>) -> BlockFileFault {
    match imported.unwrap_err() {
        ImportError::Source(error) => error.fault,
        other => panic!("{other}"),
    }
}

/// The archive holds the chain up to this block, and takes the rest.
fn assert_goes_on(archive: &Fresh, truth: &Truth, head: u64) {
    assert_eq!(archive.head(), head);
    archive.assert_true(truth, []);
    archive.import(blocks(truth, 1..=truth.model.head())).unwrap();
    archive.assert_true(truth, [head, head + 1]);
    assert_eq!(archive.head(), truth.model.head());
}
