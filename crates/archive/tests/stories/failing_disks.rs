//! Disks that fail, fill up or lose their power in the middle of an import: an error, no panic, and afterwards an
//! archive that ends with a whole block and answers rightly.
//!
//! Every access of an import is tried, one after the other. `CHAINGATE_FAULTS_SEED` draws other power cuts.

use super::{
    memory_disk::{Fault, MemoryDisk},
    setup::{Fresh, archive_of, blocks},
};
use archive::{ARCHIVE_FILE, Archive};
use rand::{SeedableRng, rngs::StdRng};
use std::sync::Arc;
use testkit::{
    chain::{Size, random_chain},
    truth::Truth,
};

/// Blocks that are imported while the disk fails, each with a commit of its own.
const BLOCKS_LEFT: u64 = 3;

const EIO: i32 = 5;
const ENOSPC: i32 = 28;

#[test]
fn every_access_of_an_import_may_fail() {
    let (truth, file) = chain();
    let accesses = accesses_of_an_import(&truth, &file);
    eprintln!("{accesses} accesses");
    for at in 1..=accesses {
        let code = if at % 2 == 0 { EIO } else { ENOSPC };
        let once = at % 3 == 0;
        let disk = MemoryDisk::new(file.clone(), Some(Fault { at, once, code }));
        let failed = import_on(&disk, &truth).is_err();
        let what = format!("error {code} at access {at}, once: {once}");
        // After the last commit only the tidying up can fail, and nobody is there to hear of it.
        assert!(failed || head_of(&disk) == truth.model.head(), "{what} went unnoticed");
        disk.repair();
        go_on(&disk, &truth, &what);
    }
}

/// Data that was not yet asked to be on the disk is there or not, or in part, in any order.
#[test]
fn the_power_may_fail_at_every_access_of_an_import() {
    let (truth, file) = chain();
    let accesses = accesses_of_an_import(&truth, &file);
    let seed = std::env::var("CHAINGATE_FAULTS_SEED").map_or(1, |seed| seed.parse().unwrap());
    let mut rng = StdRng::seed_from_u64(seed);
    for at in 1..=accesses {
        let disk = MemoryDisk::new(file.clone(), Some(Fault { at, once: false, code: EIO }));
        let _ = import_on(&disk, &truth);
        let disk = MemoryDisk::new(disk.after_a_power_cut(&mut rng), None);
        go_on(&disk, &truth, &format!("the power failed at access {at}, CHAINGATE_FAULTS_SEED={seed}"));
    }
}

/// A disk that fails once has not failed for good: those who come later are answered.
#[test]
fn an_archive_outlives_a_disk_that_fails_once() {
    let (truth, file) = chain();
    let opening = {
        let disk = MemoryDisk::new(file.clone(), None);
        let _open = Archive::open_on(disk.clone()).unwrap();
        disk.accesses()
    };
    for at in opening + 1.. {
        let disk = MemoryDisk::new(file.clone(), Some(Fault { at, once: true, code: EIO }));
        let archive = Archive::open_on(disk.clone()).unwrap();
        let failed = truth.check_sample(&archive.snapshot(), []).is_err();
        assert_eq!(failed, disk.accesses() >= at, "access {at}");
        if !failed {
            break;
        }
        truth.check_sample(&archive.snapshot(), []).unwrap();
        let left = blocks(&truth, archive.snapshot().head() + 1..=truth.model.head());
        archive.import_blocks(left, &mut archive::NoProgress).unwrap();
        assert_eq!(archive.snapshot().head(), truth.model.head());
    }
}

/// A chain, and an archive that has all of it but some blocks.
fn chain() -> (Truth, Vec<u8>) {
    let truth = Truth::new(random_chain(3, Size { blocks_per_fork: 2, transactions_per_block: 2 }));
    let Fresh { directory, archive } = archive_of(&truth);
    archive
        .import_blocks(blocks(&truth, 1..=truth.model.head() - BLOCKS_LEFT), &mut archive::NoProgress)
        .unwrap();
    drop(archive);
    let file = std::fs::read(directory.path().join(ARCHIVE_FILE)).unwrap();
    (truth, file)
}

fn accesses_of_an_import(truth: &Truth, file: &[u8]) -> u64 {
    let disk = MemoryDisk::new(file.to_vec(), None);
    import_on(&disk, truth).unwrap();
    disk.accesses()
}

/// Opens, imports what is missing, block by block, and closes.
fn import_on(disk: &Arc<MemoryDisk>, truth: &Truth) -> Result<(), String> {
    let archive = Archive::open_on(disk.clone()).map_err(|cause| cause.to_string())?;
    for number in archive.snapshot().head() + 1..=truth.model.head() {
        archive
            .import_blocks(blocks(truth, [number]), &mut archive::NoProgress)
            .map_err(|cause| cause.to_string())?;
    }
    Ok(())
}

fn head_of(disk: &Arc<MemoryDisk>) -> u64 {
    disk.repair();
    Archive::open_on(disk.clone()).unwrap().snapshot().head()
}

/// After the failure everything is as it should be, and the import goes on where it was.
fn go_on(disk: &Arc<MemoryDisk>, truth: &Truth, what: &str) {
    let archive = Archive::open_on(disk.clone()).unwrap_or_else(|cause| panic!("{what}: {cause}"));
    let head = archive.snapshot().head();
    assert!(head >= truth.model.head() - BLOCKS_LEFT, "{what}: the head is {head}");
    truth.check_sample(&archive.snapshot(), []).unwrap_or_else(|found| panic!("{what}: {found:?}"));
    let left = blocks(truth, head + 1..=truth.model.head());
    archive.import_blocks(left, &mut archive::NoProgress).unwrap_or_else(|cause| panic!("{what}: {cause}"));
    assert_eq!(archive.snapshot().head(), truth.model.head(), "{what}");
}
