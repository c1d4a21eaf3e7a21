//! Disks that fail, fill up or lose their power in the middle of an import: an error, no panic, and afterwards an
//! archive that ends with a whole block and answers rightly.
//!
//! Every access of an import is tried, one after the other. `CHAINGATE_FAULTS_SEED` draws other power cuts.

use super::setup::{Fresh, archive_of, blocks};
use archive::{ARCHIVE_FILE, Archive};
use rand::{Rng, SeedableRng, rngs::StdRng};
use redb::StorageBackend;
use std::{
    io,
    sync::{Arc, Mutex, MutexGuard},
};
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
        let disk = Memory::new(file.clone(), Some(Fault { at, once, code }));
        let failed = import_on(&disk, &truth).is_err();
        let what = format!("error {code} at access {at}, once: {once}");
        // What fails after the last commit is the tidying up, and nobody is there to hear of it.
        assert!(failed || disk.head(&truth) == truth.model.head(), "{what} went unnoticed");
        disk.lock().fault = None;
        go_on(&disk, &truth, &what);
    }
}

/// What was not yet asked to be on the disk is there or not, or in part, in any order.
#[test]
fn the_power_may_fail_at_every_access_of_an_import() {
    let (truth, file) = chain();
    let accesses = accesses_of_an_import(&truth, &file);
    let seed = std::env::var("CHAINGATE_FAULTS_SEED").map_or(1, |seed| seed.parse().unwrap());
    let mut rng = StdRng::seed_from_u64(seed);
    for at in 1..=accesses {
        let disk = Memory::new(file.clone(), Some(Fault { at, once: false, code: EIO }));
        let _ = import_on(&disk, &truth);
        let disk = Memory::new(disk.lock().after_a_power_cut(&mut rng), None);
        go_on(&disk, &truth, &format!("the power failed at access {at}, CHAINGATE_FAULTS_SEED={seed}"));
    }
}

/// A disk that fails once has not failed for good: those who come later are answered.
#[test]
fn an_archive_outlives_a_disk_that_fails_once() {
    let (truth, file) = chain();
    let opening = {
        let disk = Memory::new(file.clone(), None);
        let _open = Archive::open_on(disk.clone()).unwrap();
        disk.lock().accesses
    };
    for at in opening + 1..opening + 60 {
        let disk = Memory::new(file.clone(), Some(Fault { at, once: true, code: EIO }));
        let archive = Archive::open_on(disk.clone()).unwrap();
        let failed = truth.check_sample(&archive.snapshot(), [5]).is_err();
        assert_eq!(failed, disk.lock().accesses >= at);
        truth.check_sample(&archive.snapshot(), [5]).unwrap();
        archive.import_blocks(blocks(&truth, 1..=truth.model.head()), &mut ()).unwrap();
        truth.check_sample(&archive.snapshot(), [5]).unwrap();
    }
}

/// A chain, and an archive that has all of it but some blocks.
fn chain() -> (Truth, Vec<u8>) {
    let truth = Truth::new(random_chain(3, Size { blocks_per_fork: 2, transactions_per_block: 2 }));
    let Fresh { directory, archive } = archive_of(&truth);
    archive.import_blocks(blocks(&truth, 1..=truth.model.head() - BLOCKS_LEFT), &mut ()).unwrap();
    drop(archive);
    let file = std::fs::read(directory.path().join(ARCHIVE_FILE)).unwrap();
    (truth, file)
}

fn accesses_of_an_import(truth: &Truth, file: &[u8]) -> u64 {
    let disk = Memory::new(file.to_vec(), None);
    import_on(&disk, truth).unwrap();
    disk.lock().accesses
}

/// Opens, imports what is missing, block by block, and closes.
fn import_on(disk: &Arc<Memory>, truth: &Truth) -> Result<(), String> {
    let archive = Archive::open_on(disk.clone()).map_err(|cause| cause.to_string())?;
    for number in archive.snapshot().head() + 1..=truth.model.head() {
        archive.import_blocks(blocks(truth, [number]), &mut ()).map_err(|cause| cause.to_string())?;
    }
    Ok(())
}

/// After the failure everything is as it should be, and the import goes on where it was.
fn go_on(disk: &Arc<Memory>, truth: &Truth, what: &str) {
    let archive = Archive::open_on(disk.clone()).unwrap_or_else(|cause| panic!("{what}: {cause}"));
    let head = archive.snapshot().head();
    assert!(head >= truth.model.head() - BLOCKS_LEFT, "{what}: the head is {head}");
    truth.check_sample(&archive.snapshot(), []).unwrap_or_else(|found| panic!("{what}: {found:?}"));
    let left = blocks(truth, head + 1..=truth.model.head());
    archive.import_blocks(left, &mut ()).unwrap_or_else(|cause| panic!("{what}: {cause}"));
    assert_eq!(archive.snapshot().head(), truth.model.head(), "{what}");
}

/// A disk in memory.
#[derive(Debug)]
struct Memory(Mutex<State>);

#[derive(Debug)]
struct State {
    bytes: Vec<u8>,
    /// What would be left without power.
    durable: Vec<u8>,
    /// Writes that were not yet asked to be durable.
    pending: Vec<(usize, Vec<u8>)>,
    accesses: u64,
    fault: Option<Fault>,
}

/// Which access fails, or from which one on all do.
#[derive(Debug, Clone, Copy)]
struct Fault {
    at: u64,
    once: bool,
    code: i32,
}

impl Memory {
    fn new(bytes: Vec<u8>, fault: Option<Fault>) -> Arc<Self> {
        let (durable, pending) = (bytes.clone(), Vec::new());
        Arc::new(Self(Mutex::new(State { bytes, durable, pending, accesses: 0, fault })))
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap()
    }

    fn head(self: &Arc<Self>, truth: &Truth) -> u64 {
        self.lock().fault = None;
        let archive = Archive::open_on(self.clone()).unwrap();
        truth.check_sample(&archive.snapshot(), []).unwrap();
        archive.snapshot().head()
    }
}

impl State {
    fn access(&mut self) -> io::Result<()> {
        self.accesses += 1;
        match self.fault {
            Some(Fault { at, once, code }) if self.accesses == at || !once && self.accesses > at => {
                Err(io::Error::from_raw_os_error(code))
            }
            _ => Ok(()),
        }
    }

    fn write(&mut self, at: usize, data: &[u8]) {
        self.bytes[at..][..data.len()].copy_from_slice(data);
        self.pending.push((at, data.to_vec()));
    }

    /// Disks write sectors of 512 bytes as a whole or not at all.
    fn after_a_power_cut(&mut self, rng: &mut StdRng) -> Vec<u8> {
        const SECTOR: usize = 512;
        let mut bytes = self.durable.clone();
        for (at, data) in &self.pending {
            let (mut from, keeps) = (0, rng.random_range(0..=2));
            while from < data.len() {
                let to = data.len().min(((at + from) / SECTOR + 1) * SECTOR - at);
                if keeps == 2 || keeps == 1 && rng.random() {
                    bytes[at + from..at + to].copy_from_slice(&data[from..to]);
                }
                from = to;
            }
        }
        bytes
    }
}

impl StorageBackend for Memory {
    fn len(&self) -> io::Result<u64> {
        let mut state = self.lock();
        state.access()?;
        Ok(state.bytes.len() as u64)
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        let mut state = self.lock();
        state.access()?;
        let bytes = state.bytes.get(offset as usize..).and_then(|rest| rest.get(..out.len()));
        out.copy_from_slice(bytes.ok_or(io::ErrorKind::UnexpectedEof)?);
        Ok(())
    }

    /// The length of a file is kept by a file system with a journal.
    fn set_len(&self, len: u64) -> io::Result<()> {
        let mut state = self.lock();
        state.access()?;
        let len = len as usize;
        state.bytes.resize(len, 0);
        state.durable.resize(len, 0);
        state.pending.retain(|(at, data)| at + data.len() <= len);
        Ok(())
    }

    fn sync_data(&self) -> io::Result<()> {
        let mut state = self.lock();
        state.access()?;
        let State { durable, pending, .. } = &mut *state;
        for (at, data) in pending.drain(..) {
            durable[at..][..data.len()].copy_from_slice(&data);
        }
        Ok(())
    }

    /// A write that fails may have been done in part.
    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        let mut state = self.lock();
        let failed = state.access();
        let done = if failed.is_ok() { data.len() } else { data.len() / 2 };
        state.write(offset as usize, &data[..done]);
        failed
    }
}
