//! Bits that flip on the disk, behind the back of the program.
//!
//! Every sector that is read is compared with its checksum, and redb's header is there twice. So what is promised and
//! tested is this: right answers or errors. No wrong answer, no panic. And what is an error once is found by the check
//! of the whole file as well.
//!
//! `CHAINGATE_FLIPS` says how many bits are tried, `CHAINGATE_FLIPS_SEED` which; 300 and always the same by default.

use super::{
    memory_disk::MemoryDisk,
    setup::{Fresh, archive_of, blocks, write},
};
use archive::{ARCHIVE_FILE, Archive};
use rand::{Rng, SeedableRng, rngs::StdRng};
use std::{
    collections::BTreeMap,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
};
use testkit::{
    chain::{Size, random_chain},
    truth::{Finding, Truth},
};

/// How many flips share one check of the whole file, which takes its time.
const CHECKED_ONE_OF: u32 = 8;

/// Blocks that are left for an import after the damage.
const BLOCKS_LEFT: u64 = 3;

#[test]
fn a_flipped_bit_makes_no_wrong_answer() {
    let truth = truth();
    let mut rng = rng();
    for intact in [file_after_a_clean_end(&truth), file_after_a_crash(&truth)] {
        assert_eq!(fate(&intact, &truth), Fate::Right);
        let places = Places::of(&intact);
        let mut fates = BTreeMap::<Fate, u32>::new();
        for number in 0..flips() / 2 {
            let flip = places.flip(&mut rng);
            let mut damaged = intact.clone();
            damaged[flip.byte] ^= 1 << flip.bit;
            let fate = fate(&damaged, &truth);
            assert!(!matches!(fate, Fate::Wrong | Fate::Panic), "{fate:?} after {flip:?}");
            if fate != Fate::Right && number % CHECKED_ONE_OF == 0 {
                assert!(is_found(&damaged), "{fate:?} after {flip:?}, and no check finds it");
            }
            *fates.entry(fate).or_default() += 1;
        }
        eprintln!("{fates:?}");
        assert!(fates.len() > 1, "no flip was noticed at all");
    }
}

/// The disk is read while the program runs, too. Only those who need the damaged sector notice, and when it is whole
/// again, nobody does: a disk may fail for a moment.
#[test]
fn a_bit_that_flips_in_an_open_archive_costs_the_calls_that_need_it() {
    let truth = truth();
    let intact = file_after_a_clean_end(&truth);
    let places = Places::of(&intact);
    let mut rng = rng();
    let mut fates = BTreeMap::<Fate, u32>::new();
    for _ in 0..flips() / 4 {
        let disk = MemoryDisk::new(intact.clone(), None);
        let archive = Archive::open_on(disk.clone()).unwrap();
        let flip = places.flip(&mut rng);
        disk.flip(flip.byte, flip.bit);
        let fate = fate_of(|| read(&archive, &truth, [5]));
        assert!(matches!(fate, Fate::Right | Fate::NotRead), "{fate:?} after {flip:?} in an open archive");
        assert_eq!(archive.snapshot().head(), truth.model.head() - BLOCKS_LEFT);
        disk.flip(flip.byte, flip.bit);
        let after = fate_of(|| read(&archive, &truth, [5]));
        assert_eq!(after, Fate::Right, "when {flip:?} was undone");
        *fates.entry(fate).or_default() += 1;
    }
    eprintln!("{fates:?}");
    assert!(fates.contains_key(&Fate::NotRead), "no flip was noticed at all");
}

/// The sectors that an operating system gives after it lost writes that it had promised, or a disk that forgot a part of itself.
#[test]
fn sectors_that_are_lost_or_misplaced_make_no_wrong_answer() {
    let truth = truth();
    let intact = file_after_a_clean_end(&truth);
    let sectors = intact.len() / SECTOR;
    let mut rng = rng();
    for _ in 0..flips() / 8 {
        let (here, there) = (rng.random_range(2..sectors), rng.random_range(2..sectors));
        let mut lost = intact.clone();
        lost[here * SECTOR..][..SECTOR].fill(0);
        let mut misplaced = intact.clone();
        misplaced.copy_within(there * SECTOR..(there + 1) * SECTOR, here * SECTOR);
        for (damaged, what) in [(lost, "lost"), (misplaced, "misplaced")] {
            let fate = fate(&damaged, &truth);
            assert!(
                !matches!(fate, Fate::Wrong | Fate::Panic),
                "{fate:?}: sector {here} is {what} ({there})"
            );
        }
    }
}

const SECTOR: usize = 4096;

/// The sectors of the file header and of its copy.
const FRONT_BYTES: usize = 2 * SECTOR;

fn truth() -> Truth {
    Truth::new(random_chain(3, Size { blocks_per_fork: 2, transactions_per_block: 4 }))
}

fn flips() -> u32 {
    std::env::var("CHAINGATE_FLIPS").map_or(300, |flips| flips.parse().unwrap())
}

fn rng() -> StdRng {
    let seed = std::env::var("CHAINGATE_FLIPS_SEED").map_or(1, |seed| seed.parse().unwrap());
    eprintln!("CHAINGATE_FLIPS_SEED={seed}");
    StdRng::seed_from_u64(seed)
}

/// A bit of a file.
#[derive(Debug, Clone, Copy)]
struct Flip {
    byte: usize,
    bit: u8,
}

/// Where bits are flipped: most of them among bytes that say something, some anywhere.
struct Places {
    in_use: Vec<usize>,
    length: usize,
}

impl Places {
    fn of(file: &[u8]) -> Self {
        Self { in_use: (0..file.len()).filter(|at| file[*at] != 0).collect(), length: file.len() }
    }

    fn flip(&self, rng: &mut StdRng) -> Flip {
        let byte = match rng.random_range(0..10) {
            0 => rng.random_range(0..self.length),
            1 => rng.random_range(0..FRONT_BYTES),
            _ => self.in_use[rng.random_range(0..self.in_use.len())],
        };
        Flip { byte, bit: rng.random_range(0..8) }
    }
}

/// The outcome of opening a damaged file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Fate {
    Right,
    NotOpened,
    NotRead,
    NotImported,
    Wrong,
    Panic,
}

fn fate(file: &[u8], truth: &Truth) -> Fate {
    fate_of(|| read_and_import(MemoryDisk::new(file.to_vec(), None), truth))
}

fn fate_of(run: impl FnOnce() -> Fate) -> Fate {
    catch_unwind(AssertUnwindSafe(run)).unwrap_or(Fate::Panic)
}

fn read_and_import(disk: Arc<MemoryDisk>, truth: &Truth) -> Fate {
    let Ok(archive) = Archive::open_on(disk) else { return Fate::NotOpened };
    let fate = read(&archive, truth, [5]);
    if fate != Fate::Right {
        return fate;
    }
    let left = blocks(truth, archive.snapshot().head() + 1..=truth.model.head());
    if archive.import_blocks(left, &mut archive::NoProgress).is_err() {
        return Fate::NotImported;
    }
    read(&archive, truth, [])
}

fn read(archive: &Archive, truth: &Truth, more: impl IntoIterator<Item = u64>) -> Fate {
    match truth.check_sample(&archive.snapshot(), more) {
        Ok(()) => Fate::Right,
        Err(Finding::Error(_)) => Fate::NotRead,
        Err(Finding::Wrong(_)) => Fate::Wrong,
    }
}

/// Whether the check of the whole file says that it is damaged.
fn is_found(file: &[u8]) -> bool {
    let directory = tempfile::tempdir().unwrap();
    write(directory.path(), ARCHIVE_FILE, file);
    Archive::verify(directory.path()).is_err()
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
