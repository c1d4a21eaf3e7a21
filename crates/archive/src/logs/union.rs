//! The union of the sets of many terms within one chunk.

use roaring::RoaringBitmap;

/// Sets up to this size are put aside and merged together: to merge each for itself would walk over
/// everything found so far, once per term, and a filter may have thousands of terms.
const SMALL_MAX: u64 = 512;

/// How much is put aside before it is merged: as much as a container holds before it becomes a bitmap, after
/// which a merge is cheap.
const ASIDE_MAX: usize = 4096;

#[derive(Debug, Clone, Default)]
pub(super) struct Union {
    merged: RoaringBitmap,
    aside: Vec<u16>,
}

impl Union {
    /// Adds the low 16 bits of some ordinals.
    pub(super) fn add(&mut self, lows: RoaringBitmap) {
        if self.merged.is_empty() || lows.len() > SMALL_MAX {
            self.merged |= lows;
            return;
        }
        self.aside.extend(lows.iter().map(|low| low as u16));
        if self.aside.len() >= ASIDE_MAX {
            self.merge();
        }
    }

    fn merge(&mut self) {
        self.aside.sort_unstable();
        self.merged |= self.aside.drain(..).map(u32::from).collect::<RoaringBitmap>();
    }

    pub(super) fn finish(mut self) -> RoaringBitmap {
        self.merge();
        self.merged
    }
}
