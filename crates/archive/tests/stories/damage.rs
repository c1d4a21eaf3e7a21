//! Bits that flip on the disk, behind the back of the program.
//!
//! redb keeps a checksum for every page. It compares them when it is asked to check the whole file, or repairs one
//! that was not committed with quick repair. The archive always is, so neither opening it (after a clean end or
//! after a crash) nor reading it compares anything. What is noticed without the check is what breaks the form of a
//! row, and any node of a trie, because its parent names its hash: an import onto a damaged state stops.
//!
//! What happens to a flipped bit among the bytes in use, roughly: nine of ten change no answer, because they are in
//! pages that nobody reads any more or in what was not asked for; of the rest half are errors, the other half wrong
//! answers, and one in a hundred makes redb panic on a page whose lengths make no sense. So this is what is
//! promised and tested: right answers, or damage that the check of the whole file finds; and no panic of our own.
//!
//! `CHAINGATE_FLIPS` says how many bits are tried; 300 by default.

use super::setup::{Fresh, archive_of, blocks, write};
use archive::{ARCHIVE_FILE, Archive};
use rand::{Rng, SeedableRng, rngs::StdRng};
use redb::Database;
use std::{cell::RefCell, collections::BTreeMap, panic, path::Path};
use testkit::{
    chain::{Size, random_chain},
    truth::{Finding, Truth},
};

/// Blocks that are left for an import after the damage.
const BLOCKS_LEFT: u64 = 3;

#[test]
fn a_flipped_bit_changes_nothing_or_is_found_by_the_check_of_the_file() {
    let truth = Truth::new(random_chain(3, Size { blocks_per_fork: 2, transactions_per_block: 4 }));
    let mut rng = StdRng::seed_from_u64(rand::rng().random());
    note_where_panics_happen();
    for intact in [file_after_a_clean_end(&truth), file_after_a_crash(&truth)] {
        assert_eq!(fate(&intact, &truth), Fate::Right);
        let in_use: Vec<usize> = (0..intact.len()).filter(|at| intact[*at] != 0).collect();
        let mut fates = BTreeMap::<Fate, u32>::new();
        for _ in 0..flips() / 2 {
            let mut damaged = intact.clone();
            let (at, bit) = (in_use[rng.random_range(0..in_use.len())], rng.random_range(0..8));
            damaged[at] ^= 1 << bit;
            let fate = fate(&damaged, &truth);
            let harmless = fate == Fate::Right;
            assert!(harmless || is_found(&damaged), "bit {bit} of byte {at} is not found: {fate:?}");
            *fates.entry(fate).or_default() += 1;
        }
        eprintln!("{fates:?}");
    }
}

fn flips() -> u32 {
    std::env::var("CHAINGATE_FLIPS").map_or(300, |flips| flips.parse().unwrap())
}

/// What came of a damaged file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Fate {
    Right,
    NotOpened,
    NotRead,
    NotImported,
    Wrong,
    /// Inside redb. A panic of our own fails the test.
    Panic,
}

fn fate(file: &[u8], truth: &Truth) -> Fate {
    let directory = tempfile::tempdir().unwrap();
    write(directory.path(), ARCHIVE_FILE, file);
    panic::catch_unwind(|| read_and_import(directory.path(), truth)).unwrap_or_else(|_| {
        let place = PANIC.take();
        assert!(place.contains("/redb-"), "a panic of our own: {place}");
        Fate::Panic
    })
}

fn read_and_import(directory: &Path, truth: &Truth) -> Fate {
    let Ok(archive) = Archive::open(directory) else { return Fate::NotOpened };
    match truth.check_sample(&archive.snapshot(), [5, 30]) {
        Ok(()) => {}
        Err(Finding::Error(_)) => return Fate::NotRead,
        Err(Finding::Wrong(_)) => return Fate::Wrong,
    }
    let left = blocks(truth, archive.snapshot().head() + 1..=truth.model.head());
    if archive.import_blocks(left, &mut ()).is_err() {
        return Fate::NotImported;
    }
    match truth.check_sample(&archive.snapshot(), []) {
        Ok(()) => Fate::Right,
        Err(Finding::Error(_)) => Fate::NotRead,
        Err(Finding::Wrong(_)) => Fate::Wrong,
    }
}

/// Whether redb, asked to check the whole file, says that it is damaged.
fn is_found(file: &[u8]) -> bool {
    let directory = tempfile::tempdir().unwrap();
    let path = write(directory.path(), ARCHIVE_FILE, file);
    let checked = panic::catch_unwind(|| Database::open(path)?.check_integrity());
    !matches!(checked, Ok(Ok(true)))
}

fn file_after_a_clean_end(truth: &Truth) -> Vec<u8> {
    let Fresh { directory, archive } = imported(truth);
    drop(archive);
    std::fs::read(directory.path().join(ARCHIVE_FILE)).unwrap()
}

/// While it is open, the file is what a kill would leave.
fn file_after_a_crash(truth: &Truth) -> Vec<u8> {
    let Fresh { directory, archive: _open } = imported(truth);
    std::fs::read(directory.path().join(ARCHIVE_FILE)).unwrap()
}

fn imported(truth: &Truth) -> Fresh {
    let fresh = archive_of(truth);
    fresh.import(blocks(truth, 1..=truth.model.head() - BLOCKS_LEFT)).unwrap();
    fresh
}

thread_local! {
    static PANIC: RefCell<String> = const { RefCell::new(String::new()) };
}

fn note_where_panics_happen() {
    let usual = panic::take_hook();
    panic::set_hook(Box::new(move |panic| {
        let place = panic.location().map(ToString::to_string).unwrap_or_default();
        if !place.contains("/redb-") {
            usual(panic);
        }
        PANIC.set(place);
    }));
}
