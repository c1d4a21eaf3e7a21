//! The spool against a model: whatever fails and whenever the process ends, every entry that was written is stored once.

use std::collections::HashMap;
use std::io::Write;

use proptest::prelude::*;
use tempfile::TempDir;

use super::batch::SpoolBatch;
use super::*;
use store::{UsageCounts, UsageGroup};

const UNLIMITED: u64 = u64::MAX;

fn row(minute: u64, calls: u64) -> UsageRow {
    let text = |text: &str| text.into();
    let group = UsageGroup {
        starts_at: minute * 60,
        network: text("demo"),
        account: text("a"),
        key: text("static:k"),
        method: text("eth_chainId"),
        outcome: text("ok"),
        tag: text(""),
    };
    UsageRow { group, counts: UsageCounts { calls, credits: 5 * calls, ..UsageCounts::default() } }
}

/// A store that counts each sequence number once, as the real one does.
#[derive(Default)]
struct ModelStore {
    through: HashMap<SpoolId, u64>,
    calls: u64,
}

/// A fault while a batch is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum StoreFault {
    None,
    /// The transaction is not committed.
    NotCommitted,
    /// The transaction is committed, and nobody is told.
    ReplyLost,
}

impl ModelStore {
    /// Returns up to where entries are stored, as far as the client learns it.
    fn store(&mut self, batch: &SpoolBatch, fault: StoreFault) -> Option<u64> {
        if fault == StoreFault::NotCommitted {
            return None;
        }
        let through = self.through.entry(batch.id).or_default();
        if *through <= batch.after {
            *through = batch.through;
            self.calls += batch.rows.iter().map(|row| row.counts.calls).sum::<u64>();
        }
        (fault == StoreFault::None).then_some(*through)
    }
}

#[derive(Clone, Debug)]
enum Step {
    /// Writes an entry.
    Append {
        calls: u64,
    },
    /// Writes only some bytes of an entry before the disk is full.
    FailedAppend {
        bytes: proptest::sample::Index,
    },
    Flush(StoreFault),
    /// The process ends at once; `torn` bytes of an unfinished entry are behind the last one.
    Kill {
        torn: Vec<u8>,
    },
    /// Another process flushes what is left over.
    FlushLeftOver(StoreFault),
}

fn any_step() -> impl Strategy<Value = Step> {
    let fault =
        || prop_oneof![Just(StoreFault::None), Just(StoreFault::NotCommitted), Just(StoreFault::ReplyLost)];
    prop_oneof![
        6 => (1..9_u64).prop_map(|calls| Step::Append { calls }),
        2 => any::<proptest::sample::Index>().prop_map(|bytes| Step::FailedAppend { bytes }),
        3 => fault().prop_map(Step::Flush),
        1 => proptest::collection::vec(any::<u8>(), 0..200).prop_map(|torn| Step::Kill { torn }),
        2 => fault().prop_map(Step::FlushLeftOver),
    ]
}

/// The spools of one data directory and what was written to them.
struct Scene {
    directory: TempDir,
    spool: Spool,
    store: ModelStore,
    starts: u64,
    written_calls: u64,
}

impl Scene {
    fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let spool = Spool::create(directory.path(), id(1)).unwrap();
        Self { directory, spool, store: ModelStore::default(), starts: 1, written_calls: 0 }
    }

    fn run(&mut self, step: Step) {
        match step {
            Step::Append { calls } => {
                self.spool.append(&[row(calls, calls)], UNLIMITED).unwrap();
                self.written_calls += calls;
            }
            Step::FailedAppend { bytes } => {
                let partly = |file: &File, entry: &[u8], offset| {
                    file.write_all_at(&entry[..bytes.index(entry.len())], offset)?;
                    Err(io::ErrorKind::StorageFull.into())
                };
                self.spool.append_with(&[row(1, 1_000)], UNLIMITED, partly).unwrap_err();
            }
            Step::Flush(fault) => flush(&self.spool, &mut self.store, fault),
            Step::Kill { torn } => self.restart(&torn),
            Step::FlushLeftOver(fault) => self.flush_left_over(fault),
        }
    }

    fn restart(&mut self, torn: &[u8]) {
        self.starts += 1;
        let folder = self.spool.folder.clone();
        self.spool = Spool::create(self.directory.path(), id(self.starts)).unwrap();
        if let Some(last) = segment::names(&folder).unwrap().last() {
            let path = last.path(&folder);
            OpenOptions::new().append(true).open(path).unwrap().write_all(torn).unwrap();
        }
    }

    fn flush_left_over(&mut self, fault: StoreFault) {
        for spool in left_over(self.directory.path()) {
            flush(&spool, &mut self.store, fault);
            spool.remove_if_stored().unwrap();
        }
    }
}

fn left_over(usage_dir: &Path) -> Vec<Spool> {
    Spool::left_over(usage_dir, |folder, error| panic!("{}: {error}", folder.display()))
}

fn id(start: u64) -> SpoolId {
    SpoolId { instance: InstanceId::parse("00000000000000aa").unwrap(), epoch: start }
}

/// Flushes one batch, or all of them if nothing fails.
fn flush(spool: &Spool, store: &mut ModelStore, fault: StoreFault) {
    while let Some(batch) = spool.next_batch().unwrap()
        && let Some(through) = store.store(&batch, fault)
    {
        spool.store_through(through).unwrap();
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn every_written_entry_is_stored_once(steps in proptest::collection::vec(any_step(), 1..40)) {
        let mut scene = Scene::new();
        for step in steps {
            scene.run(step);
            prop_assert!(scene.store.calls <= scene.written_calls);
        }
        scene.restart(&[]);
        scene.flush_left_over(StoreFault::None);
        prop_assert_eq!(scene.store.calls, scene.written_calls);
        prop_assert_eq!(fs::read_dir(scene.directory.path()).unwrap().count(), 1, "only the spool in use is left");
    }

    /// The file ends anywhere in its last entry, as after a power cut.
    #[test]
    fn a_torn_entry_is_cut_and_all_before_it_are_read(cut: proptest::sample::Index, entries in 1..6_u64) {
        let mut scene = Scene::new();
        for calls in 1..entries {
            scene.run(Step::Append { calls });
        }
        let whole = scene.spool.waiting_bytes();
        scene.spool.append(&[row(9, 1_000)], UNLIMITED).unwrap();
        let torn = whole + cut.index((scene.spool.waiting_bytes() - whole) as usize) as u64;
        let path = scene.spool.folder.join("00000001.usage2");
        scene.restart(&[]);
        OpenOptions::new().write(true).open(path).unwrap().set_len(torn).unwrap();
        scene.flush_left_over(StoreFault::None);
        prop_assert_eq!(scene.store.calls, scene.written_calls);
    }
}

#[test]
fn a_spool_in_use_is_not_left_over() {
    let scene = Scene::new();
    scene.spool.append(&[row(1, 1)], UNLIMITED).unwrap();
    assert!(left_over(scene.directory.path()).is_empty());
    assert!(!scene.spool.remove_if_stored().unwrap());
}

#[test]
fn a_full_spool_takes_nothing_until_it_is_stored() {
    let mut scene = Scene::new();
    scene.spool.append(&[row(1, 1)], UNLIMITED).unwrap();
    let bytes_max = scene.spool.waiting_bytes();
    assert!(matches!(scene.spool.append(&[row(1, 1)], bytes_max), Err(AppendError::Full)));
    scene.spool.append(&[row(1, 1)], 2 * bytes_max).unwrap();
    flush(&scene.spool, &mut scene.store, StoreFault::None);
    assert_eq!(scene.store.calls, 2);
}

#[test]
fn files_are_deleted_when_they_are_stored() {
    let mut scene = Scene::new();
    let rows: Vec<_> = (0..entry::ENTRY_ROWS_MAX as u64).map(|minute| row(minute, 1)).collect();
    while scene.spool.state.lock().segments.len() < 3 {
        scene.spool.append(&rows, UNLIMITED).unwrap();
    }
    flush(&scene.spool, &mut scene.store, StoreFault::None);
    assert!(scene.spool.waiting_bytes() == 0);
    assert_eq!(segment::names(&scene.spool.folder).unwrap(), [SegmentName::new(3)]);
    assert!(scene.store.calls > 2 * rows.len() as u64);
}

/// One folder that could not be read kept all others from being found.
#[test]
fn a_folder_that_cannot_be_read_is_reported_and_the_others_are_found() {
    let mut scene = Scene::new();
    scene.spool.append(&[row(1, 1)], UNLIMITED).unwrap();
    scene.restart(&[]);
    let unreadable = scene.directory.path().join(id(7).folder_name());
    fs::write(&unreadable, "not a folder").unwrap();
    let mut reported = Vec::new();
    let found = Spool::left_over(scene.directory.path(), |folder, _| reported.push(folder));
    assert_eq!((found.len(), reported), (1, vec![unreadable]));
}

/// A folder with another file could not be removed, and after that the missing lock was an error for ever.
#[test]
fn a_stored_spool_with_another_file_is_removed_as_far_as_possible() {
    let mut scene = Scene::new();
    scene.spool.append(&[row(1, 1)], UNLIMITED).unwrap();
    let folder = scene.spool.folder.clone();
    scene.restart(&[]);
    fs::write(folder.join("other"), "").unwrap();
    let spool = left_over(scene.directory.path()).remove(0);
    flush(&spool, &mut scene.store, StoreFault::None);
    assert!(spool.remove_if_stored().unwrap());
    assert!(spool.remove_if_stored().unwrap(), "again");
    assert!(left_over(scene.directory.path()).is_empty());
    assert_eq!(fs::read_dir(folder).unwrap().count(), 1);
}
