//! The file header: magic bytes, format version, and the header of redb.
//!
//! redb rewrites its header in place, three times per commit, and everything hangs on it. So there are two copies,
//! each within one sector of the oldest disks, with a count of writes and a checksum. Every write goes to the first
//! and then to the second, and both are on the disk when redb asks for it. Whatever ends the program in between leaves
//! at least one copy whole, and that of the higher count is a state which redb expects after a crash: either the new
//! header, or the one before it and nothing that was to come after the new one. A copy that is damaged later has its
//! twin.

use super::{FileFault, checksum};
use crate::store::layout::CHECKSUM_BYTES;
use std::ops::Range;

/// Bytes of a copy: the largest write that every disk makes atomically.
pub(super) const FILE_HEADER_BYTES: usize = 512;

/// Bytes reserved for redb's header, of which it uses 320.
pub(super) const REDB_HEADER_BYTES: usize = CHECKSUMMED.end - FIELDS.end;

const MAGIC: &[u8; 12] = b"chaingate\r\n\0";
const VERSION: Range<usize> = MAGIC.len()..MAGIC.len() + 4;
const FIELDS: Range<usize> = VERSION.end..VERSION.end + 8;
const CHECKSUMMED: Range<usize> = 0..FILE_HEADER_BYTES - CHECKSUM_BYTES;

/// One copy of the file header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct FileHeader {
    /// How often the header was written.
    pub(super) writes: u64,
    pub(super) redb_header: [u8; REDB_HEADER_BYTES],
}

impl FileHeader {
    /// The header of an empty file.
    pub(super) const NEW: Self = Self { writes: 0, redb_header: [0; REDB_HEADER_BYTES] };

    pub(super) fn to_bytes(self, version: u32) -> [u8; FILE_HEADER_BYTES] {
        let mut bytes = [0; FILE_HEADER_BYTES];
        bytes[..MAGIC.len()].copy_from_slice(MAGIC);
        bytes[VERSION].copy_from_slice(&version.to_be_bytes());
        bytes[FIELDS].copy_from_slice(&self.writes.to_be_bytes());
        bytes[FIELDS.end..CHECKSUMMED.end].copy_from_slice(&self.redb_header);
        let sum = checksum(0, &bytes[CHECKSUMMED]);
        bytes[CHECKSUMMED.end..].copy_from_slice(&sum);
        bytes
    }

    /// Returns the newer of the copies whose checksum is correct.
    pub(super) fn newest(copies: [[u8; FILE_HEADER_BYTES]; 2], version: u32) -> Result<Self, FileFault> {
        let whole = copies.iter().filter_map(|copy| Self::read(copy, version));
        whole.max_by_key(|file_header| file_header.writes).ok_or_else(|| header_fault(&copies, version))
    }

    fn read(bytes: &[u8; FILE_HEADER_BYTES], version: u32) -> Option<Self> {
        let (mut writes, mut redb_header) = ([0; 8], [0; REDB_HEADER_BYTES]);
        writes.copy_from_slice(&bytes[FIELDS]);
        redb_header.copy_from_slice(&bytes[FIELDS.end..CHECKSUMMED.end]);
        let file_header = Self { writes: u64::from_be_bytes(writes), redb_header };
        (file_header.to_bytes(version) == *bytes).then_some(file_header)
    }
}

/// Returns why neither copy can be read.
fn header_fault(copies: &[[u8; FILE_HEADER_BYTES]; 2], expected: u32) -> FileFault {
    let Some(ours) = copies.iter().find(|copy| copy.starts_with(MAGIC)) else { return FileFault::Foreign };
    match ours[VERSION].try_into().map(u32::from_be_bytes) {
        Ok(version) if version != expected => FileFault::Format(version),
        _ => FileFault::FileHeader,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const VERSION_HERE: u32 = 5;

    fn newest(copies: [[u8; FILE_HEADER_BYTES]; 2]) -> Result<FileHeader, FileFault> {
        FileHeader::newest(copies, VERSION_HERE)
    }

    fn file_header(writes: u64) -> FileHeader {
        FileHeader { writes, redb_header: [u8::try_from(writes).unwrap(); REDB_HEADER_BYTES] }
    }

    #[test]
    fn the_newer_copy_counts_and_a_damaged_one_does_not() {
        let (old, new) = (file_header(4).to_bytes(VERSION_HERE), file_header(5).to_bytes(VERSION_HERE));
        assert_eq!(newest([old, new]).unwrap(), file_header(5));
        assert_eq!(newest([new, old]).unwrap(), file_header(5));
        for byte in 0..FILE_HEADER_BYTES {
            let mut damaged = new;
            damaged[byte] ^= 1;
            assert_eq!(newest([damaged, old]).unwrap(), file_header(4), "{byte}");
            assert_eq!(newest([damaged, new]).unwrap(), file_header(5), "{byte}");
            assert!(newest([damaged, damaged]).is_err(), "{byte}");
        }
    }

    #[test]
    fn what_does_not_read_is_named() {
        let mut other_version = file_header(1).to_bytes(VERSION_HERE);
        other_version[VERSION].copy_from_slice(&77_u32.to_be_bytes());
        assert!(matches!(newest([other_version; 2]), Err(FileFault::Format(77))));
        let mut damaged = file_header(1).to_bytes(VERSION_HERE);
        damaged[FILE_HEADER_BYTES - 1] ^= 1;
        assert!(matches!(newest([damaged; 2]), Err(FileFault::FileHeader)));
        assert!(matches!(newest([[0; FILE_HEADER_BYTES]; 2]), Err(FileFault::Foreign)));
    }
}
