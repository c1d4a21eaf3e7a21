//! A disk in memory, which fails when it is told to.

use rand::{Rng, rngs::StdRng};
use redb::StorageBackend;
use std::{
    io,
    sync::{Arc, Mutex, MutexGuard},
};

/// A disk in memory.
#[derive(Debug)]
pub(super) struct MemoryDisk(Mutex<State>);

#[derive(Debug)]
struct State {
    bytes: Vec<u8>,
    /// The content that would be left without power.
    durable: Vec<u8>,
    /// Writes that were not yet asked to be durable.
    pending: Vec<(usize, Vec<u8>)>,
    accesses: u64,
    fault: Option<Fault>,
    /// Whether there is room only where something was written before.
    is_full: bool,
}

/// Which access fails, or from which one on all do.
#[derive(Debug, Clone, Copy)]
pub(super) struct Fault {
    pub(super) at: u64,
    pub(super) once: bool,
    /// The number of the error.
    pub(super) code: i32,
}

impl MemoryDisk {
    pub(super) fn new(bytes: Vec<u8>, fault: Option<Fault>) -> Arc<Self> {
        let (durable, pending) = (bytes.clone(), Vec::new());
        Arc::new(Self(Mutex::new(State { bytes, durable, pending, accesses: 0, fault, is_full: false })))
    }

    /// There is no room for anything more. What is there can be overwritten.
    pub(super) fn fill(&self) {
        self.lock().is_full = true;
    }

    /// How often it was read, written or asked anything.
    pub(super) fn accesses(&self) -> u64 {
        self.lock().accesses
    }

    /// No access fails any more.
    pub(super) fn repair(&self) {
        let mut state = self.lock();
        (state.fault, state.is_full) = (None, false);
    }

    pub(super) fn flip(&self, byte: usize, bit: u8) {
        self.lock().bytes[byte] ^= 1 << bit;
    }

    /// Data that was not yet asked to be durable is there as a whole, in part, or not. Disks write sectors of 512 bytes as a
    /// whole or not at all.
    pub(super) fn after_a_power_cut(&self, rng: &mut StdRng) -> Vec<u8> {
        const SECTOR: usize = 512;
        let state = self.lock();
        let mut bytes = state.durable.clone();
        for (at, data) in &state.pending {
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

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap()
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

    /// A file has no room for what was never written.
    fn access_to_write(&mut self, at: usize, bytes: usize) -> io::Result<()> {
        self.access()?;
        let is_hole = || self.bytes[at..][..bytes].iter().all(|byte| *byte == 0);
        if self.is_full && is_hole() { Err(io::ErrorKind::StorageFull.into()) } else { Ok(()) }
    }

    fn write(&mut self, at: usize, data: &[u8]) {
        self.bytes[at..][..data.len()].copy_from_slice(data);
        self.pending.push((at, data.to_vec()));
    }
}

impl StorageBackend for MemoryDisk {
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

    /// The length of a file is durable at once, as on a file system with a journal.
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
        let failed = state.access_to_write(offset as usize, data.len());
        let done = if failed.is_ok() { data.len() } else { data.len() / 2 };
        state.write(offset as usize, &data[..done]);
        failed
    }
}
