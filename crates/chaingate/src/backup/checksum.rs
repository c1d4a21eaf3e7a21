//! SHA-256 of files, which operators can compare with `sha256sum`.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use ring::digest::{Context, SHA256};

/// Bytes that are read at once.
const BUFFER_BYTES: usize = 1 << 20;

/// The length of a file, and its checksum in hexadecimal digits.
pub(super) fn of_file(path: &Path, mut report: impl FnMut(u64)) -> io::Result<(u64, String)> {
    read_all(File::open(path)?, |_, done| {
        report(done);
        Ok(())
    })
}

/// Copies a file into a new one that only its owner can read, and brings it to the disk. Returns the length and the checksum of what
/// was copied.
pub(super) fn copy_file(from: &Path, to: &Path, mut report: impl FnMut(u64)) -> io::Result<(u64, String)> {
    let mut copy = create_private(to)?;
    let copied = read_all(File::open(from)?, |bytes, done| {
        report(done);
        copy.write_all(bytes)
    })?;
    copy.sync_all()?;
    Ok(copied)
}

/// Writes a new file that only its owner can read, and brings it to the disk.
pub(super) fn write_file(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut file = create_private(path)?;
    file.write_all(bytes)?;
    file.sync_all()
}

fn create_private(path: &Path) -> io::Result<File> {
    OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)
}

/// The checksum of bytes in memory.
pub(super) fn of_bytes(bytes: &[u8]) -> String {
    let mut context = Context::new(&SHA256);
    context.update(bytes);
    hex(context)
}

fn read_all(mut file: File, mut take: impl FnMut(&[u8], u64) -> io::Result<()>) -> io::Result<(u64, String)> {
    let (mut context, mut buffer, mut done) = (Context::new(&SHA256), vec![0; BUFFER_BYTES], 0);
    loop {
        let count = match file.read(&mut buffer) {
            Err(cause) if cause.kind() == io::ErrorKind::Interrupted => continue,
            read => read?,
        };
        let bytes = buffer.get(..count).unwrap_or_default();
        if bytes.is_empty() {
            return Ok((done, hex(context)));
        }
        context.update(bytes);
        done += count as u64;
        take(bytes, done)?;
    }
}

fn hex(context: Context) -> String {
    context.finish().as_ref().iter().map(|byte| format!("{byte:02x}")).collect()
}
