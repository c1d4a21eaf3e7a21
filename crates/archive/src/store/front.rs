//! The front of the file: that it is one of ours, of which version, and the header of redb.
//!
//! redb rewrites its header in place, three times per commit, and everything hangs on it. So there are two copies,
//! each within one sector of the oldest disks, with a count of writes and a checksum. Every write goes to the first
//! and then to the second, and both are on the disk when redb asks for it. Whatever ends the program in between leaves
//! at least one copy whole, and that of the higher count is a state which redb expects after a crash: either the new
//! header, or the one before it and nothing that was to come after the new one. A copy that is damaged later has its
//! twin.

use super::{
    checked::{FileFault, checksum},
    layout::SUM,
};
use std::ops::Range;

/// Bytes of a copy: what every disk writes as a whole.
pub(super) const FRONT: usize = 512;

/// Bytes of redb's header that there is room for. It has 320.
pub(super) const HEADER: usize = SUMMED.end - FIELDS.end;

const MAGIC: &[u8; 12] = b"chaingate\r\n\0";
const VERSION: Range<usize> = MAGIC.len()..MAGIC.len() + 4;
const FIELDS: Range<usize> = VERSION.end..VERSION.end + 8;
const SUMMED: Range<usize> = 0..FRONT - SUM;

/// One copy of the front.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Front {
    /// How often the header had been written.
    pub(super) writes: u64,
    /// The header of redb.
    pub(super) header: [u8; HEADER],
}

impl Front {
    /// The front of a file in which nothing is.
    pub(super) const NEW: Self = Self { writes: 0, header: [0; HEADER] };

    pub(super) fn to_bytes(self, version: u32) -> [u8; FRONT] {
        let mut bytes = [0; FRONT];
        bytes[..MAGIC.len()].copy_from_slice(MAGIC);
        bytes[VERSION].copy_from_slice(&version.to_be_bytes());
        bytes[FIELDS].copy_from_slice(&self.writes.to_be_bytes());
        bytes[FIELDS.end..SUMMED.end].copy_from_slice(&self.header);
        let sum = checksum(0, &bytes[SUMMED]);
        bytes[SUMMED.end..].copy_from_slice(&sum);
        bytes
    }

    /// The newer of the copies that are what was written.
    pub(super) fn newest(copies: [[u8; FRONT]; 2], version: u32) -> Result<Self, FileFault> {
        let whole = copies.iter().filter_map(|copy| Self::read(copy, version));
        whole.max_by_key(|front| front.writes).ok_or_else(|| why_none(&copies, version))
    }

    fn read(bytes: &[u8; FRONT], version: u32) -> Option<Self> {
        let (mut writes, mut header) = ([0; 8], [0; HEADER]);
        writes.copy_from_slice(&bytes[FIELDS]);
        header.copy_from_slice(&bytes[FIELDS.end..SUMMED.end]);
        let front = Self { writes: u64::from_be_bytes(writes), header };
        (front.to_bytes(version) == *bytes).then_some(front)
    }
}

/// What a file is whose front does not read.
fn why_none(copies: &[[u8; FRONT]; 2], expected: u32) -> FileFault {
    let Some(ours) = copies.iter().find(|copy| copy.starts_with(MAGIC)) else { return FileFault::Foreign };
    match ours[VERSION].try_into().map(u32::from_be_bytes) {
        Ok(version) if version != expected => FileFault::Format(version),
        _ => FileFault::Front,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const VERSION_HERE: u32 = 5;

    fn newest(copies: [[u8; FRONT]; 2]) -> Result<Front, FileFault> {
        Front::newest(copies, VERSION_HERE)
    }

    fn front(writes: u64) -> Front {
        Front { writes, header: [u8::try_from(writes).unwrap(); HEADER] }
    }

    #[test]
    fn the_newer_copy_counts_and_a_damaged_one_does_not() {
        let (old, new) = (front(4).to_bytes(VERSION_HERE), front(5).to_bytes(VERSION_HERE));
        assert_eq!(newest([old, new]).unwrap(), front(5));
        assert_eq!(newest([new, old]).unwrap(), front(5));
        for byte in 0..FRONT {
            let mut damaged = new;
            damaged[byte] ^= 1;
            assert_eq!(newest([damaged, old]).unwrap(), front(4), "{byte}");
            assert_eq!(newest([damaged, new]).unwrap(), front(5), "{byte}");
            assert!(newest([damaged, damaged]).is_err(), "{byte}");
        }
    }

    #[test]
    fn what_does_not_read_is_named() {
        let mut other_version = front(1).to_bytes(VERSION_HERE);
        other_version[VERSION].copy_from_slice(&77_u32.to_be_bytes());
        assert!(matches!(newest([other_version; 2]), Err(FileFault::Format(77))));
        let mut damaged = front(1).to_bytes(VERSION_HERE);
        damaged[FRONT - 1] ^= 1;
        assert!(matches!(newest([damaged; 2]), Err(FileFault::Front)));
        assert!(matches!(newest([[0; FRONT]; 2]), Err(FileFault::Foreign)));
    }
}
