//! One file of entries.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::{private_file, remove_file};
use crate::usage::entry::{EntryFormat, EntryHead, HEAD_BYTES};
use store::UsageRow;

/// A file by its number and its format, which its extension tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SegmentName {
    pub(super) number: u64,
    pub(super) format: EntryFormat,
}

impl SegmentName {
    pub(super) fn new(number: u64) -> Self {
        Self { number, format: EntryFormat::Tagged }
    }

    fn parse(path: &Path) -> Option<Self> {
        let format = match path.extension()?.to_str()? {
            "usage1" => EntryFormat::Untagged,
            "usage2" => EntryFormat::Tagged,
            _ => return None,
        };
        Some(Self { number: path.file_stem()?.to_str()?.parse().ok()?, format })
    }

    pub(super) fn path(self, folder: &Path) -> PathBuf {
        let extension = match self.format {
            EntryFormat::Untagged => "usage1",
            EntryFormat::Tagged => "usage2",
        };
        folder.join(format!("{:08}.{extension}", self.number))
    }
}

/// The files in a folder, the oldest first.
pub(super) fn names(folder: &Path) -> io::Result<Vec<SegmentName>> {
    let mut names = Vec::new();
    for entry in fs::read_dir(folder)? {
        names.extend(SegmentName::parse(Path::new(&entry?.file_name())));
    }
    names.sort_unstable_by_key(|name| name.number);
    Ok(names)
}

#[derive(Debug)]
pub(super) struct Segment {
    name: SegmentName,
    file: Arc<File>,
    /// Where the next entry is written. An entry behind it was not written to its end.
    written: u64,
    /// Up to where entries are in the store.
    stored: u64,
}

pub(super) struct SegmentEntry {
    pub(super) sequence: u64,
    pub(super) rows: Vec<UsageRow>,
    /// Where the next entry begins.
    pub(super) end: u64,
}

impl Segment {
    pub(super) fn create(folder: &Path, name: SegmentName) -> io::Result<Self> {
        let file = Arc::new(private_file(&name.path(folder))?);
        Ok(Self { name, file, written: 0, stored: 0 })
    }

    /// Opens a file that another process has left over. `last_sequence` is that of the entry before, and becomes that of the
    /// last entry in this file.
    pub(super) fn open(
        folder: &Path,
        name: SegmentName,
        seed: u64,
        last_sequence: &mut u64,
    ) -> io::Result<Self> {
        let mut segment = Self::create(folder, name)?;
        let length = segment.file.metadata()?.len();
        while let Some(entry) = read_entry(&segment.file, segment.written..length, seed, name.format)?
            && entry.sequence > *last_sequence
        {
            *last_sequence = entry.sequence;
            segment.written = entry.end;
        }
        if segment.written < length {
            let bytes = length - segment.written;
            tracing::warn!(file = %name.path(folder).display(), bytes, "ignoring an unfinished entry of usage");
        }
        Ok(segment)
    }

    pub(super) fn name(&self) -> SegmentName {
        self.name
    }

    pub(super) fn bytes(&self) -> u64 {
        self.written
    }

    pub(super) fn waiting_bytes(&self) -> u64 {
        self.written - self.stored
    }

    pub(super) fn is_stored(&self) -> bool {
        self.stored == self.written
    }

    pub(super) fn append(
        &mut self,
        entry: &[u8],
        write: impl FnOnce(&File, &[u8], u64) -> io::Result<()>,
    ) -> io::Result<()> {
        let written = write(&self.file, entry, self.written);
        if written.is_err() {
            // The next entry overwrites what is left of this one if it cannot be cut off.
            let _uncut = self.file.set_len(self.written);
        }
        written.map(|()| self.written += entry.len() as u64)
    }

    /// The file and the bytes of it that are not stored.
    pub(super) fn unstored(&self) -> (Arc<File>, std::ops::Range<u64>) {
        (Arc::clone(&self.file), self.stored..self.written)
    }

    /// Counts all entries up to this sequence number as stored.
    pub(super) fn store_through(&mut self, sequence: u64) -> io::Result<()> {
        while self.stored < self.written
            && let Some(head) = read_head(&self.file, self.stored..self.written)?
            && head.sequence <= sequence
        {
            self.stored += head.entry_bytes() as u64;
        }
        Ok(())
    }

    /// Gives up entries from `offset` on, which cannot be read any more. Returns how many bytes they have.
    pub(super) fn give_up_from(&mut self, offset: u64) -> u64 {
        let bytes = self.written.saturating_sub(offset);
        self.written = self.written.min(offset);
        bytes
    }

    pub(super) fn remove(&self, folder: &Path) -> io::Result<()> {
        remove_file(&self.name.path(folder))
    }
}

/// The entry at the start of a range; `None` if there is no whole and undamaged one.
pub(super) fn read_entry(
    file: &File,
    range: std::ops::Range<u64>,
    seed: u64,
    format: EntryFormat,
) -> io::Result<Option<SegmentEntry>> {
    let Some(head) = read_head(file, range.clone())? else { return Ok(None) };
    let mut rows = vec![0; head.rows_bytes];
    file.read_exact_at(&mut rows, range.start + HEAD_BYTES as u64)?;
    let end = range.start + head.entry_bytes() as u64;
    Ok(head.rows(&rows, seed, format).map(|rows| SegmentEntry { sequence: head.sequence, rows, end }))
}

/// The head of the entry at the start of a range, if the range has all of the entry.
fn read_head(file: &File, range: std::ops::Range<u64>) -> io::Result<Option<EntryHead>> {
    let bytes = range.end.saturating_sub(range.start);
    if bytes < HEAD_BYTES as u64 {
        return Ok(None);
    }
    let mut head = [0; HEAD_BYTES];
    file.read_exact_at(&mut head, range.start)?;
    Ok(EntryHead::read(&head).filter(|head| head.entry_bytes() as u64 <= bytes))
}
