//! Entries of the spool: rows of usage as checksummed bytes.
//!
//! An entry is its head and its rows. The head has the length of the rows (4 bytes), the checksum of all that follows it (8)
//! and the sequence number (8), in little endian. Numbers of rows have 7 bits to a byte, texts have their length before them.

use std::sync::Arc;

use twox_hash::XxHash3_64;

use store::{UsageCounts, UsageGroup, UsageRow};

/// Bytes before the rows of an entry.
pub(super) const HEAD_BYTES: usize = 20;

/// Rows of one entry at most, so that an entry can be read and stored at once.
pub(super) const ENTRY_ROWS_MAX: usize = 4_096;

/// The longest text in a row. Names of accounts are far shorter.
const TEXT_BYTES_MAX: usize = 1_024;

/// More than the largest entry has. A longer one is damaged, and is not read.
pub(super) const ENTRY_BYTES_MAX: usize = ENTRY_ROWS_MAX * (6 * (TEXT_BYTES_MAX + 2) + 21 * 10);

/// The format of the rows of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum EntryFormat {
    /// That of processes of an earlier version, which may have left files over.
    Untagged,
    /// Rows end with their tag.
    Tagged,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct EntryHead {
    pub(super) rows_bytes: usize,
    checksum: u64,
    pub(super) sequence: u64,
}

impl EntryHead {
    /// Reads the head of an entry; `None` if it cannot be one.
    pub(super) fn read(bytes: &[u8]) -> Option<Self> {
        let (length, rest) = bytes.split_first_chunk()?;
        let (checksum, rest) = rest.split_first_chunk()?;
        let rows_bytes = u32::from_le_bytes(*length) as usize;
        let sequence = u64::from_le_bytes(*rest.first_chunk()?);
        let checksum = u64::from_le_bytes(*checksum);
        (rows_bytes <= ENTRY_BYTES_MAX).then_some(Self { rows_bytes, checksum, sequence })
    }

    pub(super) fn entry_bytes(self) -> usize {
        HEAD_BYTES + self.rows_bytes
    }

    /// The rows, if they are what was written.
    pub(super) fn rows(self, bytes: &[u8], seed: u64, format: EntryFormat) -> Option<Vec<UsageRow>> {
        let rows = bytes.get(..self.rows_bytes)?;
        if checksum(self.sequence, rows, seed) != self.checksum {
            return None;
        }
        let mut reader = RowReader { rest: rows, format };
        let mut read = Vec::new();
        while !reader.rest.is_empty() {
            read.push(reader.row()?);
        }
        Some(read)
    }
}

/// The bytes of one entry. `seed` belongs to one spool, so that bytes of another are never taken for its own.
pub(super) fn encode<'a>(sequence: u64, rows: impl Iterator<Item = &'a UsageRow>, seed: u64) -> Vec<u8> {
    let mut bytes = vec![0; HEAD_BYTES];
    rows.for_each(|row| write_row(&mut bytes, row));
    let (head, rows) = bytes.split_at_mut(HEAD_BYTES);
    // `ENTRY_BYTES_MAX` fits into 32 bits.
    head[..4].copy_from_slice(&(rows.len() as u32).to_le_bytes());
    head[4..12].copy_from_slice(&checksum(sequence, rows, seed).to_le_bytes());
    head[12..].copy_from_slice(&sequence.to_le_bytes());
    bytes
}

fn checksum(sequence: u64, rows: &[u8], seed: u64) -> u64 {
    XxHash3_64::oneshot_with_seed(seed ^ sequence, rows)
}

fn write_row(out: &mut Vec<u8>, row: &UsageRow) {
    let UsageGroup { starts_at, network, account, key, method, outcome, tag } = &row.group;
    write_number(out, *starts_at);
    for text in [network, account, key, method, outcome] {
        write_text(out, text);
    }
    let UsageCounts { calls, credits, bytes_in, bytes_out, latency_ns, latency_buckets } = &row.counts;
    for number in [calls, credits, bytes_in, bytes_out, latency_ns].into_iter().chain(latency_buckets) {
        write_number(out, *number);
    }
    write_text(out, tag);
}

fn write_text(out: &mut Vec<u8>, text: &str) {
    let text = &text[..text.floor_char_boundary(TEXT_BYTES_MAX)];
    write_number(out, text.len() as u64);
    out.extend_from_slice(text.as_bytes());
}

/// Seven bits to a byte, the lowest first; all bytes but the last have the eighth bit.
fn write_number(out: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

struct RowReader<'a> {
    rest: &'a [u8],
    format: EntryFormat,
}

impl RowReader<'_> {
    fn row(&mut self) -> Option<UsageRow> {
        let mut group = UsageGroup {
            starts_at: self.number()?,
            network: self.text()?,
            account: self.text()?,
            key: self.text()?,
            method: self.text()?,
            outcome: self.text()?,
            tag: "".into(),
        };
        let mut counts = UsageCounts {
            calls: self.number()?,
            credits: self.number()?,
            bytes_in: self.number()?,
            bytes_out: self.number()?,
            latency_ns: self.number()?,
            ..UsageCounts::default()
        };
        for bucket in &mut counts.latency_buckets {
            *bucket = self.number()?;
        }
        if self.format == EntryFormat::Tagged {
            group.tag = self.text()?;
        }
        Some(UsageRow { group, counts })
    }

    fn number(&mut self) -> Option<u64> {
        let mut number = 0;
        for shift in (0..64).step_by(7) {
            let (byte, rest) = self.rest.split_first()?;
            self.rest = rest;
            number |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Some(number);
            }
        }
        None
    }

    fn text(&mut self) -> Option<Arc<str>> {
        let length = usize::try_from(self.number()?).ok()?;
        let (text, rest) = self.rest.split_at_checked(length)?;
        self.rest = rest;
        std::str::from_utf8(text).ok().map(Arc::from)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use resources::BUCKETS;

    use super::*;

    fn any_row() -> impl Strategy<Value = UsageRow> {
        let text = || "\\PC{0,12}".prop_map(Arc::from);
        let group = (any::<u64>(), text(), text(), text(), text(), text(), text()).prop_map(
            |(starts_at, network, account, key, method, outcome, tag)| UsageGroup {
                starts_at,
                network,
                account,
                key,
                method,
                outcome,
                tag,
            },
        );
        (group, any::<[u64; 5]>(), any::<[u64; BUCKETS]>()).prop_map(|(group, numbers, latency_buckets)| {
            let [calls, credits, bytes_in, bytes_out, latency_ns] = numbers;
            let counts = UsageCounts { calls, credits, bytes_in, bytes_out, latency_ns, latency_buckets };
            UsageRow { group, counts }
        })
    }

    proptest! {
        #[test]
        fn rows_are_read_as_they_were_written(
            rows in proptest::collection::vec(any_row(), 0..4),
            sequence: u64,
            seed: u64,
        ) {
            let bytes = encode(sequence, rows.iter(), seed);
            let head = EntryHead::read(&bytes).unwrap();
            prop_assert_eq!((head.sequence, head.entry_bytes()), (sequence, bytes.len()));
            prop_assert_eq!(head.rows(&bytes[HEAD_BYTES..], seed, EntryFormat::Tagged), Some(rows));
        }

        /// A process of an earlier version may have ended before all was stored.
        #[test]
        fn rows_of_an_earlier_version_are_read(row in any_row(), seed: u64) {
            let row = UsageRow { group: UsageGroup { tag: "".into(), ..row.group }, ..row };
            let mut bytes = encode(7, std::iter::once(&row), seed);
            // The length of the tag.
            bytes.pop();
            let (head, rows) = bytes.split_at_mut(HEAD_BYTES);
            head[..4].copy_from_slice(&(rows.len() as u32).to_le_bytes());
            head[4..12].copy_from_slice(&checksum(7, rows, seed).to_le_bytes());
            let read = EntryHead::read(head).unwrap().rows(rows, seed, EntryFormat::Untagged);
            prop_assert_eq!(read, Some(vec![row]));
        }

        #[test]
        fn one_changed_byte_is_noticed(
            rows in proptest::collection::vec(any_row(), 1..3),
            at: proptest::sample::Index,
            change in 1..=u8::MAX,
        ) {
            let mut bytes = encode(7, rows.iter(), 1);
            let at = at.index(bytes.len());
            bytes[at] ^= change;
            let read = EntryHead::read(&bytes).and_then(|head| head.rows(&bytes[HEAD_BYTES..], 1, EntryFormat::Tagged));
            prop_assert_eq!(read, None);
        }
    }
}
