//! Copies of archives and stored blocks that are in use, and what is said about damaged ones.

use super::setup::{Fresh, archive_of, blocks, small_chain};
use alloy_primitives::B256;
use archive::{
    ARCHIVE_FILE, Archive, BLOCKS_FILE, BlockParts, BlocksFile, BlocksFileLimits, EncodedBlock, ReceiveError,
    StoredChainId,
};
use rand::{Rng, SeedableRng, rngs::StdRng};
use std::io::{self, Write};
use testkit::truth::Truth;

/// Keeps what is written, and does something else after the first rows.
struct Interrupted<F> {
    bytes: Vec<u8>,
    meanwhile: Option<F>,
}

impl<F: FnOnce()> Write for Interrupted<F> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.bytes.extend_from_slice(bytes);
        if self.bytes.len() > 100
            && let Some(meanwhile) = self.meanwhile.take()
        {
            meanwhile();
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn sent(fresh: &Fresh) -> Vec<u8> {
    let mut bytes = Vec::new();
    fresh.archive.send_rows(&mut bytes).unwrap();
    bytes
}

#[test]
fn a_copy_has_the_blocks_of_its_begin_and_can_go_on() {
    let truth = small_chain();
    let (head, then) = (truth.model.head(), truth.model.head() / 2);
    let fresh = archive_of(&truth);
    fresh.import(blocks(&truth, 1..=then - 10)).unwrap();
    // These have savepoints, which are not copied.
    fresh.archive.follow_blocks(blocks(&truth, then - 9..=then), &mut archive::NoProgress).unwrap();
    let import_the_rest = || {
        fresh.import(blocks(&truth, then + 1..=head)).unwrap();
    };
    let mut out = Interrupted { bytes: Vec::new(), meanwhile: Some(import_the_rest) };
    fresh.archive.send_rows(&mut out).unwrap();
    assert_eq!(fresh.head(), head, "the import did not wait");

    let directory = tempfile::tempdir().unwrap();
    let mut last = Default::default();
    Archive::receive_rows(&out.bytes[..], directory.path(), &mut |progress| last = progress).unwrap();
    assert!(last.rows > 0 && last.rows_total - last.rows <= 1, "all but the savepoints: {last:?}");
    let copy = Fresh { archive: Archive::open(directory.path()).unwrap(), directory };
    assert_eq!(copy.head(), then);
    assert!(!copy.archive.can_go_back_to(then - 1).unwrap(), "its blocks are final");
    copy.assert_true(&truth, [3]);
    copy.import(blocks(&truth, then + 1..=head)).unwrap();
    copy.assert_true(&truth, [then]);
    let Fresh { archive, directory } = copy;
    drop(archive);
    assert_eq!(Archive::verify(directory.path()).unwrap(), head);
}

#[test]
fn a_stream_that_is_cut_or_changed_makes_no_copy_without_an_error_and_never_a_panic() {
    let truth = small_chain();
    let fresh = archive_of(&truth);
    fresh.import(blocks(&truth, 1..=5)).unwrap();
    let (bytes, mut rng) = (sent(&fresh), StdRng::seed_from_u64(1));
    let received = |bytes: &[u8]| {
        let directory = tempfile::tempdir().unwrap();
        Archive::receive_rows(bytes, directory.path(), &mut |_| ())
    };
    for _ in 0..40 {
        let cut = rng.random_range(0..bytes.len());
        assert!(matches!(received(&bytes[..cut]), Err(ReceiveError::Stream(_))), "{cut}");
        let mut changed = bytes.clone();
        changed[rng.random_range(0..bytes.len())] ^= 1 << rng.random_range(0..8);
        // A row with another value is a row; the stream does not leave the machine.
        let _either = received(&changed);
    }
    let mut other = bytes;
    other[3] += 1;
    assert!(matches!(received(&other), Err(ReceiveError::OtherVersion { .. })));
}

/// A damaged archive made an import of everything necessary to know what was lost.
#[test]
fn the_blocks_that_cannot_be_read_are_named() {
    let truth = small_chain();
    let Fresh { directory, archive } = archive_of(&truth);
    archive.import_blocks(blocks(&truth, 1..=truth.model.head()), &mut archive::NoProgress).unwrap();
    drop(archive);
    let path = directory.path().join(ARCHIVE_FILE);
    let intact = std::fs::read(&path).unwrap();
    assert_eq!(Archive::find_damage(directory.path(), &mut |_| ()).unwrap(), []);
    let (mut rng, mut named) = (StdRng::seed_from_u64(1), 0);
    let sectors = intact.len() / 4096;
    for _ in 0..60 {
        let mut damaged = intact.clone();
        damaged[rng.random_range(3..sectors) * 4096 + 9] ^= 1;
        std::fs::write(&path, damaged).unwrap();
        // Where the root of a table is damaged, not even the number of its rows can be read.
        let Ok(found) = Archive::find_damage(directory.path(), &mut |_| ()) else { continue };
        let Ok(archive) = Archive::open(directory.path()) else { continue };
        for range in found.iter().filter(|range| range.table == "blocks") {
            let number = |key: &[u8]| u64::from_le_bytes(key.try_into().unwrap());
            let first = range.after.as_deref().map_or(0, |key| number(key) + 1);
            let last = range.before.as_deref().map_or(truth.model.head(), |key| number(key) - 1);
            for number in 0..truth.model.head() {
                let read = archive.snapshot().summary(number);
                assert_eq!(read.is_err(), (first..=last).contains(&number), "{number}: {range:?}");
            }
            let effect = range.effect_on_archive(Some(&archive));
            assert!(effect.starts_with(&format!("blocks {first} ")), "{effect}");
            named += 1;
        }
        for range in &found {
            let effect = range.effect_on_archive(Some(&archive));
            assert!(!effect.contains("unknown") && !effect.contains("everything"), "{effect}: {range:?}");
        }
        if found.is_empty() {
            // Only a page of the store itself, which no answer needs, can be damaged.
            truth.check_sample(&archive.snapshot(), [7]).unwrap();
        }
    }
    assert!(named > 0, "no flip was in a block");
}

fn encoded(truth: &Truth, number: u64) -> EncodedBlock {
    let built = truth.model.block(number).unwrap();
    EncodedBlock::new(&BlockParts {
        hash: built.hash,
        header: &built.block.header,
        transactions: &built.block.body.transactions,
        uncles: &built.block.body.ommers,
        withdrawals: built.block.body.withdrawals.as_ref(),
        receipts: &built.receipts,
    })
}

#[test]
fn damaged_stored_blocks_are_removed_and_the_others_stay() {
    let truth = small_chain();
    let directory = tempfile::tempdir().unwrap();
    let open = || BlocksFile::open_or_create(directory.path(), BlocksFileLimits::default()).unwrap();
    let file = open();
    file.set_chain(StoredChainId { chain_id: 7, genesis: Some(B256::repeat_byte(1)) }).unwrap();
    let all: Vec<_> = (1..=truth.model.head()).map(|number| encoded(&truth, number)).collect();
    file.put_blocks(&all).unwrap();
    drop(file);
    let path = directory.path().join(BLOCKS_FILE);
    let intact = std::fs::read(&path).unwrap();
    let (mut rng, mut removed) = (StdRng::seed_from_u64(2), 0);
    for _ in 0..20 {
        let mut damaged = intact.clone();
        damaged[rng.random_range(3..intact.len() / 4096) * 4096 + 9] ^= 1;
        std::fs::write(&path, damaged).unwrap();
        let Ok(found) = BlocksFile::find_damage(directory.path(), &mut |_| ()) else { continue };
        if found.is_empty()
            || found.iter().any(|range| range.effect_on_stored_blocks().contains("everything"))
        {
            continue;
        }
        let Ok(left) = BlocksFile::remove_damage(directory.path(), &mut |_| ()) else { continue };
        assert_eq!(left.kept + left.removed, all.len() as u64);
        removed += left.removed;
        BlocksFile::verify(directory.path()).unwrap();
        let repaired = open();
        let snapshot = repaired.snapshot();
        assert_eq!(snapshot.chain().unwrap().chain_id, 7);
        assert_eq!(snapshot.block_count(), left.kept);
        for number in snapshot.ranges().flatten() {
            let built = truth.model.block(number).unwrap();
            assert_eq!(snapshot.body(number).unwrap().unwrap().decode().unwrap(), built.block);
            assert_eq!(snapshot.number_of(&built.hash).unwrap(), Some(number));
        }
    }
    assert!(removed > 0, "no flip was in a block");
}
