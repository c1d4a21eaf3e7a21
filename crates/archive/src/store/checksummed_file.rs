//! The storage below redb, which stores a checksum for every sector and checks it on every read.
//!
//! redb has checksums of its own, but compares them only when it checks a whole file. A bit that flipped on the disk
//! would be an answer. Here it is an error, before redb sees the page: no wrong answer, and no panic on a page whose
//! lengths make no sense. redb's page cache is above, so what is read often is compared once.
//!
//! A checksum is salted with the number of its sector, so a sector in the wrong place is found as well, and so is one
//! that was never written or lost what was: redb reads nothing that it has not written. What is not found is a write
//! that the disk confirmed and dropped as a whole, so that an older sector with its older checksum is still there.
//!
//! # What a crash leaves behind
//!
//! A sector and its checksum are two writes, and a crash can come between them, or tear either. That is harmless where
//! redb, after the crash, does not read the sector. redb never writes into a page that a commit on the disk refers to:
//! it copies a page to change it, and gives out a freed one only when the commit that freed it is on the disk. Its
//! allocator's state stands in such pages too. A commit first writes all of its pages and their checksums, waits for
//! the disk (`sync_data`), and only then names them in the header. So all sectors that a header on the disk leads to
//! were written in full before, with their checksums, and later writes are to other sectors.
//!
//! A checksum shares its sector of the disk with others, and those are rewritten with the bytes that they had. Disks
//! write their sectors as a whole, so this changes nothing; one that destroys the sector in which its power fails
//! makes errors, not wrong answers.
//!
//! The one thing that is rewritten in place is the header; see [`file_header`].

mod file_header; // magic, version and redb's header, stored twice

use self::file_header::{FILE_HEADER_BYTES, FileHeader, REDB_HEADER_BYTES};
use super::layout::{
    CHECKSUM_BYTES, FILE_HEADERS_AT, SECTOR_BYTES, SectorRange, file_length, sector_ranges, storage_length,
};
use redb::StorageBackend;
use std::{
    io,
    sync::{
        Arc, Mutex, PoisonError, RwLock,
        atomic::{AtomicBool, Ordering},
    },
};
use twox_hash::XxHash3_64;

/// A file with checksums.
#[derive(Debug)]
pub(super) struct ChecksummedFile {
    file: Arc<dyn StorageBackend>,
    health: Arc<FileHealth>,
    /// The format version that the file must have.
    version: u32,
    /// Whether the file may be empty, to be filled.
    new: bool,
    /// Held while the header is read or written, because both take several steps.
    file_header: Mutex<()>,
}

/// Whether reading and writing works.
#[derive(Debug, Default)]
pub(super) struct FileHealth {
    failed: AtomicBool,
    retired: RwLock<bool>,
}

impl FileHealth {
    pub(super) fn has_failed(&self) -> bool {
        self.failed.load(Ordering::Acquire)
    }

    /// Waits for running accesses and refuses further ones, because the file now belongs to another database.
    pub(super) fn retire(&self) {
        *self.retired.write().unwrap_or_else(PoisonError::into_inner) = true;
    }

    fn watch<T>(&self, access: impl FnOnce() -> io::Result<T>) -> io::Result<T> {
        let retired = self.retired.read().unwrap_or_else(PoisonError::into_inner);
        if *retired {
            return Err(io::Error::other("the file was opened anew"));
        }
        access().inspect_err(|_| self.failed.store(true, Ordering::Release))
    }
}

/// Why the file cannot be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(super) enum FileFault {
    #[error("the file is not one of this program")]
    Foreign,
    #[error("the file has format version {0}")]
    Format(u32),
    #[error("both copies of the file header are damaged")]
    FileHeader,
    #[error("the file has an unexpected length")]
    Length,
    #[error("sector {0} of the file is not what was written")]
    Sector(u64),
}

impl FileFault {
    /// Returns the fault that caused an error of redb.
    pub(super) fn from_io(cause: &io::Error) -> Option<Self> {
        cause.get_ref()?.downcast_ref().copied()
    }
}

impl From<FileFault> for io::Error {
    fn from(fault: FileFault) -> Self {
        Self::new(io::ErrorKind::InvalidData, fault)
    }
}

pub(super) fn checksum(sector: u64, bytes: &[u8]) -> [u8; CHECKSUM_BYTES] {
    XxHash3_64::oneshot_with_seed(sector, bytes).to_be_bytes()
}

impl ChecksummedFile {
    /// Opens a file that exists.
    pub(super) fn open(file: Arc<dyn StorageBackend>, version: u32) -> Self {
        Self { file, health: Arc::default(), version, new: false, file_header: Mutex::new(()) }
    }

    /// Opens a file that is still empty.
    pub(super) fn create(file: Arc<dyn StorageBackend>, version: u32) -> Self {
        Self { new: true, ..Self::open(file, version) }
    }

    /// Returns the health of the file, which stays readable after redb has taken the file.
    pub(super) fn health(&self) -> Arc<FileHealth> {
        Arc::clone(&self.health)
    }

    fn newest_header(&self) -> io::Result<FileHeader> {
        let mut copies = [[0; FILE_HEADER_BYTES]; 2];
        for (copy, at) in copies.iter_mut().zip(FILE_HEADERS_AT) {
            self.file.read(at, copy)?;
        }
        if self.new && copies == [[0; FILE_HEADER_BYTES]; 2] {
            return Ok(FileHeader::NEW);
        }
        Ok(FileHeader::newest(copies, self.version)?)
    }

    fn read_header(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        let _held = self.file_header.lock().unwrap_or_else(PoisonError::into_inner);
        let file_header = self.newest_header()?;
        out.copy_from_slice(
            file_header.redb_header.get(header_range(offset, out.len())).ok_or_else(not_whole)?,
        );
        Ok(())
    }

    fn write_header(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        let _held = self.file_header.lock().unwrap_or_else(PoisonError::into_inner);
        let mut file_header = self.newest_header()?;
        file_header.writes += 1;
        let place =
            file_header.redb_header.get_mut(header_range(offset, data.len())).ok_or_else(not_whole)?;
        place.copy_from_slice(data);
        let bytes = file_header.to_bytes(self.version);
        FILE_HEADERS_AT.iter().try_for_each(|at| self.file.write(*at, &bytes))
    }

    fn read_range(&self, range: SectorRange, out: &mut [u8]) -> io::Result<()> {
        self.file.read(range.at(), out)?;
        let mut sums = vec![0; out.len() / SECTOR_BYTES as usize * CHECKSUM_BYTES];
        self.file.read(range.checksums_at(), &mut sums)?;
        let sectors = out.chunks_exact(SECTOR_BYTES as usize).zip(sums.chunks_exact(CHECKSUM_BYTES));
        for (number, (sector, sum)) in (range.first..).zip(sectors) {
            if checksum(number, sector) != sum {
                return Err(FileFault::Sector(number).into());
            }
        }
        Ok(())
    }

    fn write_range(&self, range: SectorRange, data: &[u8]) -> io::Result<()> {
        let sectors = (range.first..).zip(data.chunks_exact(SECTOR_BYTES as usize));
        let sums: Vec<u8> = sectors.flat_map(|(number, sector)| checksum(number, sector)).collect();
        self.file.write(range.at(), data)?;
        self.file.write(range.checksums_at(), &sums)
    }

    /// Returns why a file of an impossible length cannot be read.
    fn length_error(&self, length: u64) -> io::Error {
        if length < FILE_HEADERS_AT[1] + FILE_HEADER_BYTES as u64 {
            return FileFault::Foreign.into();
        }
        self.newest_header().map_or_else(|cause| cause, |_| FileFault::Length.into())
    }

    fn storage_length(&self) -> io::Result<u64> {
        let length = self.file.len()?;
        match storage_length(length) {
            Some(0) if !self.new => Err(FileFault::Foreign.into()),
            Some(storage) => Ok(storage),
            None => Err(self.length_error(length)),
        }
    }

    fn read_sectors(&self, offset: u64, mut out: &mut [u8]) -> io::Result<()> {
        for range in sector_ranges(offset, out.len()).ok_or_else(not_whole)? {
            let (part, rest) = out.split_at_mut(range.bytes());
            self.read_range(range, part)?;
            out = rest;
        }
        Ok(())
    }

    fn write_sectors(&self, offset: u64, mut data: &[u8]) -> io::Result<()> {
        for range in sector_ranges(offset, data.len()).ok_or_else(not_whole)? {
            let (part, rest) = data.split_at(range.bytes());
            self.write_range(range, part)?;
            data = rest;
        }
        Ok(())
    }
}

/// The bytes of redb's header at an offset.
fn header_range(offset: u64, length: usize) -> std::ops::Range<usize> {
    let start = usize::try_from(offset).unwrap_or(REDB_HEADER_BYTES);
    start..start + length
}

fn not_whole() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, "not whole sectors")
}

impl StorageBackend for ChecksummedFile {
    fn len(&self) -> io::Result<u64> {
        self.health.watch(|| self.storage_length())
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        self.health.watch(|| match offset {
            ..SECTOR_BYTES => self.read_header(offset, out),
            _ => self.read_sectors(offset, out),
        })
    }

    fn set_len(&self, storage: u64) -> io::Result<()> {
        self.health.watch(|| self.file.set_len(file_length(storage)))
    }

    fn sync_data(&self) -> io::Result<()> {
        self.health.watch(|| self.file.sync_data())
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        self.health.watch(|| match offset {
            ..SECTOR_BYTES => self.write_header(offset, data),
            _ => self.write_sectors(offset, data),
        })
    }
}
