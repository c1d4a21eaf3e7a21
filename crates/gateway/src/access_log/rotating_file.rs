//! A log file of bounded size. When it is full, it gets the number 1, the ones before it move up, and the oldest is removed.
//!
//! A file that something else has moved or removed is made again, so that `logrotate` needs to tell nobody.

use std::ffi::OsString;
use std::fs::{self, File, Metadata, OpenOptions};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::Instant;

use resources::RepeatedWarning;
use settings::Section;

/// How much disk the files may use.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct FileLimits {
    bytes_max: u64,
    /// With the one that is written.
    files_max: u64,
}

impl Default for FileLimits {
    fn default() -> Self {
        Self { bytes_max: 100 << 20, files_max: 10 }
    }
}

impl FileLimits {
    pub(super) fn read(section: &mut Section<'_>) -> Self {
        let usual = Self::default();
        Self {
            bytes_max: section.number("file_bytes_max", usual.bytes_max),
            files_max: section.number_up_to("files_max", usual.files_max, FILES_MAX),
        }
    }
}

/// More files than anybody looks through, few enough to be renamed in a moment.
const FILES_MAX: u64 = 1_000;

/// Lines have addresses of callers, so only the user and the group of the gateway may read them.
const MODE: u32 = 0o640;

#[derive(Debug)]
pub(super) struct RotatingFile {
    path: PathBuf,
    limits: FileLimits,
    open: Option<OpenFile>,
    failures: RepeatedWarning,
}

#[derive(Debug)]
struct OpenFile {
    file: File,
    bytes: u64,
    /// Device and inode; `None` for pipes and devices, which are not rotated.
    identity: Option<[u64; 2]>,
}

impl RotatingFile {
    /// A pipe is opened only when there is something to write, because that waits for a reader.
    pub(super) fn open(path: PathBuf, limits: FileLimits) -> io::Result<Self> {
        let mut file = Self { path, limits, open: None, failures: RepeatedWarning::default() };
        if fs::metadata(&file.path).map_or(true, |found| found.is_file()) {
            file.follow_path()?;
        }
        Ok(file)
    }

    /// The file that the path names now.
    fn follow_path(&mut self) -> io::Result<&mut OpenFile> {
        let is_moved = self.open.as_ref().and_then(|open| open.identity).is_some_and(|identity| {
            match fs::metadata(&self.path) {
                Ok(found) => identity_of(&found) != Some(identity),
                Err(error) => error.kind() == ErrorKind::NotFound,
            }
        });
        if is_moved {
            self.open = None;
        }
        match &mut self.open {
            Some(open) => Ok(open),
            closed => Ok(closed.insert(OpenFile::open(&self.path)?)),
        }
    }

    fn write_piece(&mut self, lines: &[u8]) -> io::Result<usize> {
        let bytes_max = self.limits.bytes_max;
        let mut open = self.follow_path()?;
        if open.piece(lines, bytes_max) == 0 {
            self.rotate()?;
            open = self.follow_path()?;
        }
        let piece = open.piece(lines, bytes_max);
        let written = open.file.write(&lines[..piece])?;
        open.bytes += written as u64;
        Ok(written)
    }

    /// Moves all files up. If one cannot be moved, nothing more is written, because the disk would fill up.
    fn rotate(&mut self) -> io::Result<()> {
        self.open = None;
        for number in (0..self.limits.files_max).rev() {
            let file = self.numbered(number);
            let is_oldest = number + 1 == self.limits.files_max;
            let moved =
                if is_oldest { fs::remove_file(file) } else { fs::rename(file, self.numbered(number + 1)) };
            if let Err(error) = moved
                && error.kind() != ErrorKind::NotFound
            {
                return Err(error);
            }
        }
        Ok(())
    }

    /// The path of the file that was full so many files ago.
    fn numbered(&self, number: u64) -> PathBuf {
        if number == 0 {
            return self.path.clone();
        }
        let mut path = OsString::from(&self.path);
        path.push(format!(".{number}"));
        path.into()
    }
}

impl Write for RotatingFile {
    fn write(&mut self, lines: &[u8]) -> io::Result<usize> {
        self.write_piece(lines).inspect_err(|error| {
            let is_over_soon = matches!(error.kind(), ErrorKind::Interrupted | ErrorKind::WouldBlock);
            if !is_over_soon && let Some(times) = self.failures.count(Instant::now()) {
                let file = self.path.display();
                tracing::error!(%file, %error, times, "the access log cannot be written; its lines are dropped");
            }
        })
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl OpenFile {
    fn open(path: &Path) -> io::Result<Self> {
        let file = OpenOptions::new().append(true).create(true).mode(MODE).open(path);
        let file = file.map_err(|error| {
            io::Error::new(error.kind(), format!("cannot open {}: {error}", path.display()))
        })?;
        let found = file.metadata()?;
        Ok(Self { file, bytes: found.len(), identity: identity_of(&found) })
    }

    /// How many of these bytes the file may still have, in whole lines. A line that is larger than a file has one of its own.
    fn piece(&self, lines: &[u8], bytes_max: u64) -> usize {
        let room = bytes_max.saturating_sub(self.bytes);
        if self.identity.is_none() || lines.len() as u64 <= room {
            return lines.len();
        }
        let room = usize::try_from(room).unwrap_or(usize::MAX);
        match memchr::memrchr(b'\n', &lines[..room]) {
            Some(end) => end + 1,
            None if self.bytes == 0 => memchr::memchr(b'\n', lines).map_or(lines.len(), |end| end + 1),
            None => 0,
        }
    }
}

/// Device and inode of a file; `None` for pipes and devices.
fn identity_of(found: &Metadata) -> Option<[u64; 2]> {
    found.is_file().then(|| [found.dev(), found.ino()])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn open(path: &Path, bytes_max: u64, files_max: u64) -> RotatingFile {
        RotatingFile::open(path.into(), FileLimits { bytes_max, files_max }).unwrap()
    }

    fn files(folder: &Path) -> Vec<(String, String)> {
        let entry = |entry: io::Result<fs::DirEntry>| {
            let entry = entry.unwrap();
            (entry.file_name().into_string().unwrap(), fs::read_to_string(entry.path()).unwrap())
        };
        let mut files: Vec<_> = fs::read_dir(folder).unwrap().map(entry).collect();
        files.sort();
        files
    }

    fn named(files: &[(&str, &str)]) -> Vec<(String, String)> {
        files.iter().map(|(name, text)| ((*name).to_owned(), (*text).to_owned())).collect()
    }

    #[test]
    fn full_files_move_up_and_no_line_is_split() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log");
        let mut file = open(&path, 8, 3);
        file.write_all(b"aaa\nbbb\nccc\nddd\n").unwrap();
        assert_eq!(files(folder.path()), named(&[("log", "ccc\nddd\n"), ("log.1", "aaa\nbbb\n")]));
        file.write_all(b"eeeeee\nf\nlonger than a file\ng\n").unwrap();
        assert_eq!(
            files(folder.path()),
            named(&[("log", "g\n"), ("log.1", "longer than a file\n"), ("log.2", "f\n")]),
            "the oldest files are gone"
        );
        // Another process goes on where this one has ended.
        open(&path, 8, 3).write_all(b"h\ni\nj\nk\n").unwrap();
        assert_eq!(files(folder.path())[0..2], named(&[("log", "k\n"), ("log.1", "g\nh\ni\nj\n")]));
    }

    #[test]
    fn a_single_file_begins_anew() {
        let folder = tempfile::tempdir().unwrap();
        let mut file = open(&folder.path().join("log"), 8, 1);
        file.write_all(b"aaa\nbbb\nccc\n").unwrap();
        assert_eq!(files(folder.path()), named(&[("log", "ccc\n")]));
    }

    #[test]
    fn a_file_that_was_moved_or_removed_is_made_again() {
        let folder = tempfile::tempdir().unwrap();
        let (path, moved) = (folder.path().join("log"), folder.path().join("moved"));
        let mut file = open(&path, 100, 3);
        file.write_all(b"first\n").unwrap();
        fs::rename(&path, &moved).unwrap();
        file.write_all(b"second\n").unwrap();
        assert_eq!(files(folder.path()), named(&[("log", "second\n"), ("moved", "first\n")]));
        fs::remove_file(&path).unwrap();
        file.write_all(b"third\n").unwrap();
        assert_eq!(files(folder.path()), named(&[("log", "third\n"), ("moved", "first\n")]));
    }

    #[test]
    fn a_folder_that_goes_is_an_error_until_it_is_back() {
        let folder = tempfile::tempdir().unwrap();
        let inner = folder.path().join("inner");
        assert!(RotatingFile::open(inner.join("log"), FileLimits::default()).is_err(), "there is none yet");
        fs::create_dir(&inner).unwrap();
        let mut file = open(&inner.join("log"), 100, 3);
        file.write_all(b"first\n").unwrap();
        fs::remove_dir_all(&inner).unwrap();
        assert!(file.write_all(b"second\n").is_err());
        fs::create_dir(&inner).unwrap();
        file.write_all(b"third\n").unwrap();
        assert_eq!(files(&inner), named(&[("log", "third\n")]));
    }

    #[test]
    fn devices_are_not_rotated() {
        let mut full = open(Path::new("/dev/full"), 1, 3);
        assert_eq!(full.write_all(b"line\n").unwrap_err().kind(), ErrorKind::StorageFull);
        open(Path::new("/dev/null"), 1, 3).write_all(b"line\nline\n").unwrap();
    }
}
