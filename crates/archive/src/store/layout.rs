//! Where the sectors of redb's storage stand in the file, and where their checksums.
//!
//! ```text
//! | front | copy | checksums of 512 sectors | 512 sectors | checksums of 512 sectors | 512 sectors | …
//! ```
//!
//! Everything has the size of a sector, so that what redb writes in whole pages stays in whole pages of the disk.
//! redb's first sector holds its header and nothing else; it is kept in the front and its copy. The others follow,
//! each group of them behind one sector with their checksums.

/// Bytes of a sector, which is a page of redb.
pub(super) const SECTOR: u64 = 4096;

/// Bytes of a checksum.
pub(super) const SUM: usize = 8;

/// Sectors whose checksums fill a sector.
const GROUP: u64 = SECTOR / SUM as u64;

/// Where the two copies of the front are.
pub(super) const FRONTS: [u64; 2] = [0, SECTOR];

/// Where the first group begins.
const GROUPS: u64 = 2 * SECTOR;

/// Sectors that follow each other in storage and file alike: part of one group.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Run {
    /// The first sector, counted as redb does: its header is sector 0.
    pub(super) first: u64,
    /// How many.
    pub(super) sectors: u64,
}

impl Run {
    /// Where its sectors are in the file.
    pub(super) const fn at(self) -> u64 {
        self.group() + SECTOR + self.place() * SECTOR
    }

    /// Where its checksums are in the file.
    pub(super) const fn sums_at(self) -> u64 {
        self.group() + self.place() * SUM as u64
    }

    pub(super) const fn bytes(self) -> usize {
        (self.sectors * SECTOR) as usize
    }

    const fn group(self) -> u64 {
        GROUPS + (self.first - 1) / GROUP * (GROUP + 1) * SECTOR
    }

    const fn place(self) -> u64 {
        (self.first - 1) % GROUP
    }
}

/// The runs that make up some bytes of the storage, or none if these are not whole sectors after the first.
pub(super) fn runs(offset: u64, length: usize) -> Option<impl Iterator<Item = Run>> {
    let length = length as u64;
    let whole = offset >= SECTOR && offset.is_multiple_of(SECTOR) && length.is_multiple_of(SECTOR);
    whole.then(|| {
        let (mut first, end) = (offset / SECTOR, (offset + length) / SECTOR);
        std::iter::from_fn(move || {
            let left_in_group = GROUP - (first - 1) % GROUP;
            let run = Run { first, sectors: left_in_group.min(end - first) };
            first += run.sectors;
            (run.sectors > 0).then_some(run)
        })
    })
}

/// The length of a file whose storage has this length.
pub(super) const fn file_length(storage: u64) -> u64 {
    if storage == 0 {
        return 0;
    }
    let sectors = storage.div_ceil(SECTOR) - 1;
    GROUPS + (sectors + sectors.div_ceil(GROUP)) * SECTOR
}

/// The length of the storage in a file of this length, or none if no storage makes such a file.
pub(super) fn storage_length(file: u64) -> Option<u64> {
    if file == 0 {
        return Some(0);
    }
    let in_groups = file.checked_sub(GROUPS)? / SECTOR;
    let (groups, rest) = (in_groups / (GROUP + 1), in_groups % (GROUP + 1));
    let storage = (1 + groups * GROUP + rest.saturating_sub(1)) * SECTOR;
    (file_length(storage) == file).then_some(storage)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every sector and every checksum has a place of its own, and none is in the front.
    #[test]
    fn no_two_things_stand_in_one_place() {
        let sectors = 3 * GROUP + 7;
        let mut taken = Vec::new();
        for first in 1..=sectors {
            let run = Run { first, sectors: 1 };
            taken.push((run.at(), SECTOR));
            taken.push((run.sums_at(), SUM as u64));
        }
        taken.sort_unstable();
        assert_eq!(taken[0].0, GROUPS);
        assert!(taken.windows(2).all(|pair| pair[0].0 + pair[0].1 <= pair[1].0));
        let (last, length) = *taken.last().unwrap();
        assert_eq!(last + length, file_length((sectors + 1) * SECTOR));
    }

    #[test]
    fn lengths_are_those_of_whole_sectors() {
        for sectors in 0..3 * GROUP {
            let storage = sectors * SECTOR;
            assert_eq!(storage_length(file_length(storage)), Some(storage));
        }
        for file in [1, SECTOR, 2 * SECTOR - 1, 2 * SECTOR + 1, 3 * SECTOR, file_length(10 * SECTOR) - 8] {
            assert_eq!(storage_length(file), None, "{file}");
        }
    }

    #[test]
    fn runs_end_with_their_group() {
        let found: Vec<Run> = runs(SECTOR * (GROUP - 1), (SECTOR * (GROUP + 4)) as usize).unwrap().collect();
        let expected = [(GROUP - 1, 2), (GROUP + 1, GROUP), (2 * GROUP + 1, 2)];
        assert_eq!(found, expected.map(|(first, sectors)| Run { first, sectors }));
        assert_eq!(runs(SECTOR, 0).unwrap().count(), 0);
        assert!(runs(0, SECTOR as usize).is_none());
        assert!(runs(SECTOR + 1, SECTOR as usize).is_none());
        assert!(runs(SECTOR, 17).is_none());
    }
}
