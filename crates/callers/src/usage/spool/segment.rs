//! One file of entries.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::{private_file, remove_file};
use crate::usage::entry::{EntryHead, HEAD_BYTES};
use store::UsageRow;

/// The extension of the files. Another format gets another one.
const EXTENSION: &str = "usage1";

/// The numbers of the files in a folder, the oldest first.
pub(super) fn numbers(folder: &Path) -> io::Result<Vec<u64>> {
    let mut numbers = Vec::new();
    for entry in fs::read_dir(folder)? {
        let path = PathBuf::from(entry?.file_name());
        let number =
            path.file_stem().and_then(|stem| stem.to_str()).and_then(|stem| stem.parse::<u64>().ok());
        numbers.extend(number.filter(|_| path.extension().is_some_and(|end| end == EXTENSION)));
    }
    numbers.sort_unstable();
    Ok(numbers)
}

#[derive(Debug)]
pub(super) struct Segment {
    number: u64,
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
    pub(super) fn create(folder: &Path, number: u64) -> io::Result<Self> {
        let file = Arc::new(private_file(&path(folder, number))?);
        Ok(Self { number, file, written: 0, stored: 0 })
    }

    /// Opens a file that another process has left over. `last_sequence` is that of the entry before, and becomes that of the
    /// last entry in this file.
    pub(super) fn open(folder: &Path, number: u64, seed: u64, last_sequence: &mut u64) -> io::Result<Self> {
        let mut segment = Self::create(folder, number)?;
        let length = segment.file.metadata()?.len();
        while let Some(entry) = read_entry(&segment.file, segment.written..length, seed)?
            && entry.sequence > *last_sequence
        {
            *last_sequence = entry.sequence;
            segment.written = entry.end;
        }
        if segment.written < length {
            let bytes = length - segment.written;
            tracing::warn!(file = %path(folder, number).display(), bytes, "ignoring an unfinished entry of usage");
        }
        Ok(segment)
    }

    pub(super) fn number(&self) -> u64 {
        self.number
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
        remove_file(&path(folder, self.number))
    }
}

fn path(folder: &Path, number: u64) -> PathBuf {
    folder.join(format!("{number:08}.{EXTENSION}"))
}

/// The entry at the start of a range; `None` if there is no whole and undamaged one.
pub(super) fn read_entry(
    file: &File,
    range: std::ops::Range<u64>,
    seed: u64,
) -> io::Result<Option<SegmentEntry>> {
    let Some(head) = read_head(file, range.clone())? else { return Ok(None) };
    let mut rows = vec![0; head.rows_bytes];
    file.read_exact_at(&mut rows, range.start + HEAD_BYTES as u64)?;
    let end = range.start + head.entry_bytes() as u64;
    Ok(head.rows(&rows, seed).map(|rows| SegmentEntry { sequence: head.sequence, rows, end }))
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
