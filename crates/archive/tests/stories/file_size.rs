//! How large the file becomes, compared with the file of an archive that has imported the same blocks at once.

use archive::{ARCHIVE_FILE, Archive, Block, NoProgress};
use std::{os::unix::fs::MetadataExt, thread, time::Duration};
use tempfile::TempDir;
use testkit::heavy::{HeavyChain, account_heavy, transaction_heavy};

struct Place {
    directory: TempDir,
    archive: Archive,
}

impl Place {
    fn new(chain: &HeavyChain) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let archive = Archive::open_or_create(directory.path(), &chain.genesis_json()).unwrap();
        Self { directory, archive }
    }

    /// KiB on the disk: redb doubles a file that is full, and what it has not written yet takes no space.
    fn kib(&self) -> u64 {
        std::fs::metadata(self.directory.path().join(ARCHIVE_FILE)).unwrap().blocks() / 2
    }

    fn head(&self) -> u64 {
        self.archive.snapshot().head()
    }
}

fn all_blocks(chain: &HeavyChain) -> Vec<Block> {
    chain.blocks.iter().map(|built| built.block.clone()).collect()
}

/// The size of an archive that has imported all blocks at once.
fn kib_at_once(chain: &HeavyChain) -> u64 {
    let place = Place::new(chain);
    place.archive.import_blocks(all_blocks(chain), &mut NoProgress).unwrap();
    place.kib()
}

/// An import held a snapshot of the file as it was before its first block, so that none of its commits could use a page again:
/// 7.5 MB of blocks made a file of 270 MB into one of 2,160 MB.
#[test]
fn pages_are_used_again_during_an_import() {
    const COMMITS: u64 = 10;
    let chain = transaction_heavy(20 + COMMITS, 300);
    let place = Place::new(&chain);
    let mut blocks = all_blocks(&chain).into_iter();
    place.archive.import_blocks(blocks.by_ref().take(20), &mut NoProgress).unwrap();
    // Each block comes after the one before it was committed, so that each has a commit of its own.
    let archive = &place.archive;
    let one_by_one = blocks.inspect(|block| {
        while archive.snapshot().head() + 1 < block.header.number {
            thread::sleep(Duration::from_millis(10));
        }
    });
    archive.import_blocks(one_by_one, &mut NoProgress).unwrap();
    assert_eq!(place.head(), 20 + COMMITS);
    let (kib, at_once) = (place.kib(), kib_at_once(&chain));
    assert!(2 * kib <= 3 * at_once, "{kib} KiB, {at_once} KiB if they are imported at once");
}

/// Each import left the pages behind that it had replaced, so that the file grew by several times its tables.
#[test]
fn pages_are_used_again_by_later_imports() {
    const IMPORTS: u64 = 10;
    let chain = account_heavy(10_000, 5 * IMPORTS, 40);
    let place = Place::new(&chain);
    for blocks in all_blocks(&chain).chunks(5) {
        place.archive.import_blocks(blocks.to_vec(), &mut NoProgress).unwrap();
    }
    assert_eq!(place.head(), 5 * IMPORTS);
    let (kib, at_once) = (place.kib(), kib_at_once(&chain));
    assert!(2 * kib <= 3 * at_once, "{kib} KiB, {at_once} KiB if they are imported at once");
}

/// Followed blocks can be replaced, so the pages that the newest of them replaced stay in the file; redb doubles a file that is
/// full. Beyond that nothing may be added by more blocks, nor by reorganisations.
#[test]
fn the_file_stops_growing_while_blocks_are_followed_and_replaced() {
    const IMPORTED: usize = 100;
    const BLOCKS: usize = IMPORTED + 1_000;
    let chain = transaction_heavy(BLOCKS as u64, 4);
    let (place, blocks) = (Place::new(&chain), all_blocks(&chain));
    for tenth in blocks[..IMPORTED].chunks(IMPORTED / 10) {
        place.archive.import_blocks(tenth.to_vec(), &mut NoProgress).unwrap();
    }
    let mut three_quarters = 0;
    for number in IMPORTED + 1..=BLOCKS {
        place.archive.follow_blocks([blocks[number - 1].clone()], &mut NoProgress).unwrap();
        if number % 50 == 0 {
            let ancestor = number - 7;
            place.archive.reorganise(ancestor as u64, blocks[ancestor..number].to_vec()).unwrap();
        }
        if number == BLOCKS * 3 / 4 {
            three_quarters = place.kib();
        }
    }
    let (kib, at_once) = (place.kib(), kib_at_once(&chain));
    // Now only the blocks themselves are added.
    assert!(
        kib <= three_quarters + at_once,
        "{three_quarters} KiB after three quarters of the blocks, then {kib} KiB"
    );
    assert!(kib <= 6 * at_once, "{kib} KiB, {at_once} KiB if they are imported at once");
}

/// Prints how large the file becomes, by accounts and blocks. `CHAINGATE_ACCOUNTS` is the number of accounts.
#[test]
#[ignore = "a measurement"]
fn how_large_an_archive_becomes() {
    const IMPORTED: usize = 60;
    const FOLLOWED: usize = 140;
    const TRANSACTIONS: u64 = 1_000;
    let accounts = std::env::var("CHAINGATE_ACCOUNTS").map_or(100_000, |text| text.parse().unwrap());
    let chain = account_heavy(accounts, (IMPORTED + FOLLOWED) as u64, TRANSACTIONS);
    let (place, blocks) = (Place::new(&chain), all_blocks(&chain));
    let rlp = |range: std::ops::Range<usize>| {
        let blocks = chain.blocks[range].to_vec();
        HeavyChain { genesis: Default::default(), blocks }.rlp().len() >> 10
    };
    eprintln!("{accounts} accounts, {TRANSACTIONS} transactions in each block");
    eprintln!("genesis: {} KiB, of which {} KiB are its file", place.kib(), chain.genesis_json().len() >> 10);
    for part in blocks[..IMPORTED].chunks(IMPORTED / 10) {
        place.archive.import_blocks(part.to_vec(), &mut NoProgress).unwrap();
    }
    eprintln!("{IMPORTED} blocks ({} KiB) in ten imports: {} KiB", rlp(0..IMPORTED), place.kib());
    for (index, block) in blocks[IMPORTED..].iter().enumerate() {
        place.archive.follow_blocks([block.clone()], &mut NoProgress).unwrap();
        if (index + 1) % 20 == 0 {
            eprintln!("{} blocks followed: {} KiB", index + 1, place.kib());
        }
    }
    eprintln!(
        "blocks followed have {} KiB; all at once: {} KiB",
        rlp(IMPORTED..IMPORTED + FOLLOWED),
        kib_at_once(&chain)
    );
}
