//! The offsets of redb's sectors and of their checksums in the file.
//!
//! ```text
//! | file header | copy | checksums of 512 sectors | 512 sectors | checksums of 512 sectors | 512 sectors | …
//! ```
//!
//! Everything has the size of a sector, so that what redb writes in whole pages stays in whole pages of the disk.
//! redb's first sector holds its header and nothing else; it is stored in the file header and its copy. The others follow,
//! each group of them behind one sector with their checksums.

/// Bytes of a sector, which is a page of redb.
pub(super) const SECTOR_BYTES: u64 = 4096;

pub(super) const CHECKSUM_BYTES: usize = 8;

/// Sectors whose checksums fill a sector.
const GROUP_SECTORS: u64 = SECTOR_BYTES / CHECKSUM_BYTES as u64;

/// Offsets of the two copies of the file header.
pub(super) const FILE_HEADERS_AT: [u64; 2] = [0, SECTOR_BYTES];

/// Offset of the first group.
const GROUPS_AT: u64 = 2 * SECTOR_BYTES;

/// Sectors of one group, which are consecutive both in redb's storage and in the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct SectorRange {
    /// The first sector, counted as redb does: its header is sector 0.
    pub(super) first: u64,
    pub(super) sectors: u64,
}

impl SectorRange {
    /// Offset of its sectors in the file.
    pub(super) const fn at(self) -> u64 {
        self.group() + SECTOR_BYTES + self.place() * SECTOR_BYTES
    }

    /// Offset of its checksums in the file.
    pub(super) const fn checksums_at(self) -> u64 {
        self.group() + self.place() * CHECKSUM_BYTES as u64
    }

    pub(super) const fn bytes(self) -> usize {
        (self.sectors * SECTOR_BYTES) as usize
    }

    const fn group(self) -> u64 {
        GROUPS_AT + (self.first - 1) / GROUP_SECTORS * (GROUP_SECTORS + 1) * SECTOR_BYTES
    }

    const fn place(self) -> u64 {
        (self.first - 1) % GROUP_SECTORS
    }
}

/// The sector ranges that make up some bytes of the storage, or none if these are not whole sectors after the first.
pub(super) fn sector_ranges(offset: u64, length: usize) -> Option<impl Iterator<Item = SectorRange>> {
    let length = length as u64;
    let whole =
        offset >= SECTOR_BYTES && offset.is_multiple_of(SECTOR_BYTES) && length.is_multiple_of(SECTOR_BYTES);
    whole.then(|| {
        let (mut first, end) = (offset / SECTOR_BYTES, (offset + length) / SECTOR_BYTES);
        std::iter::from_fn(move || {
            let left_in_group = GROUP_SECTORS - (first - 1) % GROUP_SECTORS;
            let range = SectorRange { first, sectors: left_in_group.min(end - first) };
            first += range.sectors;
            (range.sectors > 0).then_some(range)
        })
    })
}

/// The length of a file whose storage has this length.
pub(super) const fn file_length(storage: u64) -> u64 {
    if storage == 0 {
        return 0;
    }
    let sectors = storage.div_ceil(SECTOR_BYTES) - 1;
    GROUPS_AT + (sectors + sectors.div_ceil(GROUP_SECTORS)) * SECTOR_BYTES
}

/// The length of the storage in a file of this length, or none if no storage makes such a file.
pub(super) fn storage_length(file: u64) -> Option<u64> {
    if file == 0 {
        return Some(0);
    }
    let in_groups = file.checked_sub(GROUPS_AT)? / SECTOR_BYTES;
    let (groups, rest) = (in_groups / (GROUP_SECTORS + 1), in_groups % (GROUP_SECTORS + 1));
    let storage = (1 + groups * GROUP_SECTORS + rest.saturating_sub(1)) * SECTOR_BYTES;
    (file_length(storage) == file).then_some(storage)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every sector and every checksum has a place of its own, and none is in the file header.
    #[test]
    fn no_two_things_stand_in_one_place() {
        let sectors = 3 * GROUP_SECTORS + 7;
        let mut taken = Vec::new();
        for first in 1..=sectors {
            let range = SectorRange { first, sectors: 1 };
            taken.push((range.at(), SECTOR_BYTES));
            taken.push((range.checksums_at(), CHECKSUM_BYTES as u64));
        }
        taken.sort_unstable();
        assert_eq!(taken[0].0, GROUPS_AT);
        assert!(taken.windows(2).all(|pair| pair[0].0 + pair[0].1 <= pair[1].0));
        let (last, length) = *taken.last().unwrap();
        assert_eq!(last + length, file_length((sectors + 1) * SECTOR_BYTES));
    }

    #[test]
    fn lengths_are_those_of_whole_sectors() {
        for sectors in 0..3 * GROUP_SECTORS {
            let storage = sectors * SECTOR_BYTES;
            assert_eq!(storage_length(file_length(storage)), Some(storage));
        }
        for file in [
            1,
            SECTOR_BYTES,
            2 * SECTOR_BYTES - 1,
            2 * SECTOR_BYTES + 1,
            3 * SECTOR_BYTES,
            file_length(10 * SECTOR_BYTES) - 8,
        ] {
            assert_eq!(storage_length(file), None, "{file}");
        }
    }

    #[test]
    fn runs_end_with_their_group() {
        let found: Vec<SectorRange> =
            sector_ranges(SECTOR_BYTES * (GROUP_SECTORS - 1), (SECTOR_BYTES * (GROUP_SECTORS + 4)) as usize)
                .unwrap()
                .collect();
        let expected =
            [(GROUP_SECTORS - 1, 2), (GROUP_SECTORS + 1, GROUP_SECTORS), (2 * GROUP_SECTORS + 1, 2)];
        assert_eq!(found, expected.map(|(first, sectors)| SectorRange { first, sectors }));
        assert_eq!(sector_ranges(SECTOR_BYTES, 0).unwrap().count(), 0);
        assert!(sector_ranges(0, SECTOR_BYTES as usize).is_none());
        assert!(sector_ranges(SECTOR_BYTES + 1, SECTOR_BYTES as usize).is_none());
        assert!(sector_ranges(SECTOR_BYTES, 17).is_none());
    }
}
