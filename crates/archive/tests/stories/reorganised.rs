//! Chains that are reorganised: after every step the archive answers as one that never had another chain.

use super::{
    memory_disk::{Fault, MemoryDisk},
    setup::blocks,
};
use alloy_primitives::U256;
use archive::{ARCHIVE_FILE, Archive, Block, ImportError, REPLACEABLE_BLOCKS_MIN, StateSource};
use rand::{Rng, SeedableRng, rngs::StdRng};
use std::{path::Path, sync::Arc};
use tempfile::TempDir;
use testkit::{
    chain::{RandomChain, Size},
    truth::Truth,
};

const SMALL: Size = Size { blocks_per_fork: 2, transactions_per_block: 5 };

const DEPTH_MAX: u64 = 7;

const EIO: i32 = 5;

/// More steps, and every access to the disk, for whoever has the time: `CHAINGATE_REORGANISATIONS=1000`.
fn steps() -> u64 {
    std::env::var("CHAINGATE_REORGANISATIONS").map_or(60, |steps| steps.parse().unwrap())
}

/// A chain as it was after each of its blocks, so that others can branch off anywhere.
struct Branches(Vec<RandomChain>);

impl Branches {
    fn new(seed: u64) -> Self {
        Self(vec![RandomChain::new(seed, SMALL)])
    }

    fn grow(&mut self, blocks: u64) {
        for _ in 0..blocks {
            let mut next = self.0[self.0.len() - 1].clone();
            next.grow();
            self.0.push(next);
        }
    }

    /// Another chain after the block `ancestor`.
    fn branch(&mut self, ancestor: u64, blocks: u64, seed: u64) {
        self.0.truncate(ancestor as usize + 1);
        let last = self.0.len() - 1;
        self.0[last] = self.0[last].branch(seed);
        self.grow(blocks);
    }

    fn head(&self) -> u64 {
        self.0.len() as u64 - 1
    }

    fn truth(&self) -> Truth {
        Truth::new(self.0[self.0.len() - 1].model().clone())
    }

    fn blocks_after(&self, number: u64) -> Vec<Block> {
        let model = self.0[self.0.len() - 1].model();
        (number + 1..=self.head()).map(|number| model.block(number).unwrap().block.clone()).collect()
    }
}

struct Place {
    directory: TempDir,
    archive: Archive,
}

fn new_archive(branches: &Branches) -> Place {
    let directory = tempfile::tempdir().unwrap();
    let archive = Archive::open_or_create(directory.path(), &branches.0[0].model().genesis_json()).unwrap();
    Place { directory, archive }
}

impl Place {
    /// The file as a kill of the process would leave it: the file as it is, while it is open.
    fn killed(&self) -> Self {
        let directory = tempfile::tempdir().unwrap();
        copy_file(self.directory.path(), directory.path());
        let archive = Archive::open(directory.path()).unwrap();
        Self { directory, archive }
    }
}

fn copy_file(from: &Path, to: &Path) {
    std::fs::copy(from.join(ARCHIVE_FILE), to.join(ARCHIVE_FILE)).unwrap();
}

#[test]
fn after_every_reorganisation_all_reads_are_those_of_the_new_chain() {
    let mut rng = StdRng::seed_from_u64(7);
    let mut branches = Branches::new(1);
    let mut place = new_archive(&branches);
    for step in 0..steps() {
        let (held, before) = (place.archive.snapshot(), branches.truth());
        let head = branches.head();
        if head < DEPTH_MAX || rng.random_bool(0.4) {
            branches.grow(rng.random_range(1..=3));
            place.archive.follow_blocks(branches.blocks_after(head), &mut archive::NoProgress).unwrap();
        } else {
            let depth = rng.random_range(1..=DEPTH_MAX);
            // No new blocks: the chain goes back.
            branches.branch(head - depth, rng.random_range(0..=depth + 2), step + 100);
            place.archive.reorganise(head - depth, branches.blocks_after(head - depth)).unwrap();
        }
        // The old chain is read first, and must not leave anything behind for the new one.
        before.check_sample(&held, head.saturating_sub(DEPTH_MAX)..=head).unwrap();
        let (snapshot, truth) = (place.archive.snapshot(), branches.truth());
        assert_eq!(snapshot.head(), branches.head());
        let new = snapshot.head().saturating_sub(DEPTH_MAX + 2)..=snapshot.head();
        truth.check_sample(&snapshot, new).unwrap_or_else(|found| panic!("step {step}: {found:?}"));
        if step % 10 == 9 {
            place = place.killed();
            truth.check(&place.archive.snapshot()).unwrap();
        }
    }
    drop(place.archive);
    Archive::verify(place.directory.path()).unwrap();
}

/// An account is remembered by the number of a block, and after a reorganisation that is another block.
#[test]
fn an_account_of_the_old_branch_is_not_read_on_the_new_one() {
    let mut branches = Branches::new(2);
    branches.grow(8);
    let place = new_archive(&branches);
    place.archive.follow_blocks(branches.blocks_after(0), &mut archive::NoProgress).unwrap();
    let old = (place.archive.snapshot(), branches.truth());
    branches.branch(4, 5, 9);
    place.archive.reorganise(4, branches.blocks_after(4)).unwrap();
    let new = (place.archive.snapshot(), branches.truth());
    let mut differences = 0;
    for address in old.1.model.addresses() {
        for number in 4..=8 {
            for (snapshot, truth) in [&old, &new, &old] {
                let account = snapshot.state_at(number).account(address).unwrap();
                assert_eq!(account, truth.model.account_at(address, number), "{address} at {number}");
            }
            let balance = |truth: &Truth| truth.model.account_at(address, number).map(|found| found.balance);
            differences += u32::from(balance(&old.1) != balance(&new.1));
        }
    }
    assert!(differences > 0, "the branches do not differ");
}

#[test]
fn a_branch_with_a_bad_block_changes_nothing() {
    let mut branches = Branches::new(3);
    branches.grow(10);
    let place = new_archive(&branches);
    place.archive.follow_blocks(branches.blocks_after(0), &mut archive::NoProgress).unwrap();
    let truth = branches.truth();
    branches.branch(6, 6, 9);
    let mut branch = branches.blocks_after(6);
    branch[3].header.state_root.0[0] ^= 1;
    let refused = place.archive.reorganise(6, branch).unwrap_err();
    assert!(matches!(refused, ImportError::BadBlock { number: 10, .. }), "{refused}");
    truth.check(&place.archive.snapshot()).unwrap();
    truth.check(&place.killed().archive.snapshot()).unwrap();
    place.archive.reorganise(6, branches.blocks_after(6)).unwrap();
    branches.truth().check(&place.archive.snapshot()).unwrap();
}

/// Blocks that came in one commit have one savepoint before all of them: those that stay are executed again.
#[test]
fn a_chain_that_came_at_once_can_be_reorganised_anywhere() {
    let mut branches = Branches::new(4);
    branches.grow(12);
    let place = new_archive(&branches);
    place.archive.follow_blocks(branches.blocks_after(0), &mut archive::NoProgress).unwrap();
    for (ancestor, seed) in [(11, 1), (3, 2), (9, 3), (0, 4)] {
        branches.branch(ancestor, 13 - ancestor, seed);
        place.archive.reorganise(ancestor, branches.blocks_after(ancestor)).unwrap();
        branches.truth().check(&place.archive.snapshot()).unwrap();
    }
}

#[test]
fn the_newest_blocks_can_be_replaced_and_older_ones_cannot() {
    let mut branches = Branches::new(5);
    branches.grow(REPLACEABLE_BLOCKS_MIN + 10);
    let place = new_archive(&branches);
    for block in branches.blocks_after(0) {
        place.archive.follow_blocks([block], &mut archive::NoProgress).unwrap();
    }
    let truth = branches.truth();
    let lowest = branches.head() - REPLACEABLE_BLOCKS_MIN;
    let refused = place.archive.reorganise(lowest - 1, blocks(&truth, [lowest])).unwrap_err();
    assert_eq!(
        refused.to_string(),
        format!(
            "the chain was reorganised down to block {}, but the archive can only be taken back to block {lowest}, because older \
             and imported blocks are taken for final; make a new one with `chaingate import`",
            lowest - 1
        )
    );
    truth.check_sample(&place.archive.snapshot(), [lowest]).unwrap();
    branches.branch(lowest, REPLACEABLE_BLOCKS_MIN + 1, 9);
    place.archive.reorganise(lowest, branches.blocks_after(lowest)).unwrap();
    branches.truth().check_sample(&place.archive.snapshot(), [lowest, lowest + 1]).unwrap();
}

/// Many blocks at once: only the last ones are replaceable, so that the others do not make the file grow.
#[test]
fn only_the_last_of_many_blocks_can_be_replaced() {
    let mut branches = Branches::new(11);
    branches.grow(REPLACEABLE_BLOCKS_MIN + 40);
    let place = new_archive(&branches);
    place.archive.follow_blocks(branches.blocks_after(0), &mut archive::NoProgress).unwrap();
    let lowest = branches.head() - REPLACEABLE_BLOCKS_MIN;
    let truth = branches.truth();
    let refused = place.archive.reorganise(lowest - 1, blocks(&truth, [lowest])).unwrap_err();
    let expected = ImportError::TooDeep { ancestor: lowest - 1, lowest: Some(lowest) };
    assert_eq!(refused.to_string(), expected.to_string());
    branches.branch(lowest, 3, 9);
    place.archive.reorganise(lowest, branches.blocks_after(lowest)).unwrap();
    branches.truth().check_sample(&place.archive.snapshot(), [lowest, lowest + 1]).unwrap();
}

/// A reorganisation below the last 64 blocks could not be followed, although nothing was finalized.
#[test]
fn blocks_that_are_not_finalized_can_be_replaced() {
    const FINALIZED: u64 = 20;
    let mut branches = Branches::new(13);
    branches.grow(FINALIZED + REPLACEABLE_BLOCKS_MIN + 20);
    let place = new_archive(&branches);
    place.archive.set_finalized(Some(FINALIZED));
    // Many at once, and then one by one.
    let mut blocks_after = branches.blocks_after(0);
    let newest = blocks_after.split_off(blocks_after.len() - 10);
    place.archive.follow_blocks(blocks_after, &mut archive::NoProgress).unwrap();
    newest
        .into_iter()
        .for_each(|block| _ = place.archive.follow_blocks([block], &mut archive::NoProgress).unwrap());
    let truth = branches.truth();
    let refused = place.archive.reorganise(FINALIZED - 1, blocks(&truth, [FINALIZED])).unwrap_err();
    let expected = ImportError::TooDeep { ancestor: FINALIZED - 1, lowest: Some(FINALIZED) };
    assert_eq!(refused.to_string(), expected.to_string());
    branches.branch(FINALIZED + 1, 3, 9);
    place.archive.reorganise(FINALIZED + 1, branches.blocks_after(FINALIZED + 1)).unwrap();
    branches.truth().check_sample(&place.archive.snapshot(), [FINALIZED, FINALIZED + 2]).unwrap();
    // Savepoints of finalized blocks go.
    place.archive.set_finalized(Some(branches.head()));
    branches.grow(REPLACEABLE_BLOCKS_MIN);
    let head = branches.head();
    place
        .archive
        .follow_blocks(branches.blocks_after(head - REPLACEABLE_BLOCKS_MIN), &mut archive::NoProgress)
        .unwrap();
    let truth = branches.truth();
    let lowest = head - REPLACEABLE_BLOCKS_MIN;
    let refused = place.archive.reorganise(lowest - 1, blocks(&truth, [lowest])).unwrap_err();
    assert!(matches!(refused, ImportError::TooDeep { lowest: Some(_), .. }), "{refused}");
}

/// Imported blocks are final, and those that are followed after them are not.
#[test]
fn imported_blocks_cannot_be_replaced() {
    let mut branches = Branches::new(12);
    branches.grow(5);
    let place = new_archive(&branches);
    place.archive.follow_blocks(branches.blocks_after(0), &mut archive::NoProgress).unwrap();
    branches.grow(5);
    place.archive.import_blocks(branches.blocks_after(5), &mut archive::NoProgress).unwrap();
    let refused = place.archive.reorganise(9, branches.blocks_after(9)).unwrap_err();
    assert!(matches!(refused, ImportError::TooDeep { ancestor: 9, lowest: None }), "{refused}");
    branches.grow(2);
    place.archive.follow_blocks(branches.blocks_after(10), &mut archive::NoProgress).unwrap();
    branches.branch(10, 3, 7);
    place.archive.reorganise(10, branches.blocks_after(10)).unwrap();
    branches.truth().check(&place.archive.snapshot()).unwrap();
}

/// Whichever access to the disk fails or is the last before the power goes: the archive has the old chain or the new one.
#[test]
fn a_disk_may_fail_at_every_access_of_a_reorganisation() {
    let mut branches = Branches::new(6);
    branches.grow(9);
    let place = new_archive(&branches);
    for block in branches.blocks_after(0) {
        place.archive.follow_blocks([block], &mut archive::NoProgress).unwrap();
    }
    drop(place.archive);
    let file = std::fs::read(place.directory.path().join(ARCHIVE_FILE)).unwrap();
    let old = branches.truth();
    branches.branch(6, 4, 9);
    let (new, branch) = (branches.truth(), branches.blocks_after(6));
    let reorganise = |disk: &Arc<MemoryDisk>| -> Result<(), String> {
        let archive = Archive::open_on(disk.clone()).map_err(|cause| cause.to_string())?;
        archive.reorganise(6, branch.clone()).map(drop).map_err(|cause| cause.to_string())
    };
    let sound = MemoryDisk::new(file.clone(), None);
    reorganise(&sound).unwrap();
    let mut rng = StdRng::seed_from_u64(1);
    let (mut kept, mut replaced) = (0, 0);
    // The step shares no factor with what the number decides below.
    let step = if std::env::var_os("CHAINGATE_REORGANISATIONS").is_some() { 1 } else { 5 };
    for at in (1..=sound.accesses()).step_by(step) {
        let disk = MemoryDisk::new(file.clone(), Some(Fault { at, once: at % 3 == 0, code: EIO }));
        let _failed = reorganise(&disk);
        let left = match at % 2 {
            0 => MemoryDisk::new(disk.after_a_power_cut(&mut rng), None),
            _ => disk,
        };
        left.repair();
        let archive = Archive::open_on(left).unwrap_or_else(|cause| panic!("access {at}: {cause}"));
        if archive.snapshot().head() == old.model.head() {
            old.check_sample(&archive.snapshot(), [7, 8]).unwrap();
            archive.reorganise(6, branch.clone()).unwrap_or_else(|cause| panic!("access {at}: {cause}"));
            kept += 1;
        } else {
            replaced += 1;
        }
        new.check_sample(&archive.snapshot(), [7, 8]).unwrap();
    }
    assert!(kept > 0 && replaced > 0, "{kept} failures left the old chain, {replaced} the new one");
}

/// A branch may be shorter than what it replaces.
#[test]
fn the_head_may_go_down() {
    let mut branches = Branches::new(8);
    branches.grow(9);
    let place = new_archive(&branches);
    place.archive.follow_blocks(branches.blocks_after(0), &mut archive::NoProgress).unwrap();
    branches.branch(5, 1, 9);
    place.archive.reorganise(5, branches.blocks_after(5)).unwrap();
    let snapshot = place.archive.snapshot();
    branches.truth().check(&snapshot).unwrap();
    assert_eq!(
        snapshot.state_at(6).storage(alloy_primitives::Address::ZERO, U256::ZERO).unwrap(),
        U256::ZERO
    );
}

/// The cost of it that the newest blocks can be replaced, beside blocks that are final.
#[test]
#[ignore = "a measurement"]
fn what_replaceable_blocks_cost() {
    use std::{os::unix::fs::MetadataExt, time::Instant};
    const BLOCKS: u64 = 400;
    let chain = testkit::heavy::transaction_heavy(BLOCKS, 50);
    let all = || chain.blocks.iter().map(|built| built.block.clone());
    let ways = [
        ("final, at once", BLOCKS as usize, false),
        ("replaceable, at once", BLOCKS as usize, true),
        ("final, one by one", 1, false),
        ("replaceable, one by one", 1, true),
    ];
    for (name, together, is_replaceable) in ways {
        let folder = tempfile::tempdir().unwrap();
        let archive = Archive::open_or_create(folder.path(), &chain.genesis_json()).unwrap();
        let size = || std::fs::metadata(folder.path().join(ARCHIVE_FILE)).unwrap().blocks() / 2;
        let (begun, mut sizes) = (Instant::now(), Vec::new());
        for (index, blocks) in all().collect::<Vec<_>>().chunks(together).enumerate() {
            match is_replaceable {
                true => archive.follow_blocks(blocks.to_vec(), &mut archive::NoProgress).unwrap(),
                false => archive.import_blocks(blocks.to_vec(), &mut archive::NoProgress).unwrap(),
            };
            if (index + 1) * together % 100 == 0 {
                sizes.push(size());
            }
        }
        eprintln!("{name}: {:?}, KiB after each 100 commits {sizes:?}", begun.elapsed());
    }
}
