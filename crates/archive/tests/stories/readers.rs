//! Readers while an import goes on: whatever they look at is a whole block, and never an older one than before.

use super::setup::{archive_of, blocks, small_chain};
use archive::{Archive, Snapshot};
use std::{
    sync::atomic::{AtomicBool, AtomicU64, Ordering},
    thread,
};
use testkit::truth::Truth;

/// A commit per import: as many as can be, so that readers meet them.
const BLOCKS_PER_COMMIT: u64 = 2;

/// After each of the first commits, the import waits until both readers have read, so that they see several heads on any machine.
const AWAITED_COMMITS: u64 = 3;

#[test]
fn readers_see_whole_blocks_only_and_never_go_back() {
    let truth = small_chain();
    let archive = archive_of(&truth);
    let done = AtomicBool::new(false);
    let heads_read = [const { AtomicU64::new(0) }; 2];
    let seen = thread::scope(|scope| {
        let (done, served, truth) = (&done, &archive.archive, &truth);
        let reader = |head_read| scope.spawn(move || read_until(done, head_read, served, truth));
        let readers = heads_read.each_ref().map(reader);
        let ending = Ending(done);
        for first in (1..=truth.model.head()).step_by(BLOCKS_PER_COMMIT as usize) {
            let last = (first + BLOCKS_PER_COMMIT - 1).min(truth.model.head());
            archive.import(blocks(truth, first..=last)).unwrap();
            let is_read = || heads_read.iter().all(|head| head.load(Ordering::Relaxed) >= last);
            while last <= AWAITED_COMMITS * BLOCKS_PER_COMMIT
                && !is_read()
                && !readers.iter().any(|reader| reader.is_finished())
            {
                thread::yield_now();
            }
        }
        drop(ending);
        readers.map(|reader| reader.join().unwrap())
    });
    for heads in seen {
        assert!(heads.len() > 2, "the readers saw no more than {heads:?}");
        assert!(heads.is_sorted());
        assert_eq!(heads.last(), Some(&truth.model.head()));
    }
}

#[test]
fn a_snapshot_stays_what_it_was() {
    let truth = small_chain();
    let archive = archive_of(&truth);
    archive.import(blocks(&truth, 1..=10)).unwrap();
    let snapshot = archive.archive.snapshot();
    archive.import(blocks(&truth, 11..=truth.model.head())).unwrap();
    assert_eq!(snapshot.head(), 10);
    truth.check(&snapshot).unwrap();
}

/// Ends the readers, also when the import fails.
struct Ending<'a>(&'a AtomicBool);

impl Drop for Ending<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Release);
    }
}

/// Reads until the import is done, and once more; gives the heads that were seen.
fn read_until(done: &AtomicBool, head_read: &AtomicU64, archive: &Archive, truth: &Truth) -> Vec<u64> {
    let mut heads = Vec::new();
    loop {
        let last = done.load(Ordering::Acquire);
        heads.push(check(&archive.snapshot(), truth));
        head_read.store(heads[heads.len() - 1], Ordering::Relaxed);
        if last {
            heads.dedup();
            return heads;
        }
    }
}

fn check(snapshot: &Snapshot, truth: &Truth) -> u64 {
    truth.check_sample(snapshot, [snapshot.head() / 2]).unwrap();
    snapshot.head()
}
