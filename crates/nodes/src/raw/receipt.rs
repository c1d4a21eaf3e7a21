//! A receipt and its logs.

use alloy_consensus::{Eip658Value, Receipt, ReceiptWithBloom};
use alloy_primitives::{B256, Bloom, Bytes, Log, logs_bloom};

use super::cursor::Cursor;
use super::hex::FromDigits;
use super::log::{LogReader, RawLog};
use crate::proof_failure::ProofFailure;

/// A receipt as a node writes it.
#[derive(Debug)]
pub(crate) struct RawReceipt<'a> {
    cumulative_gas_used: u64,
    logs_bloom: Option<Bloom>,
    status: Option<u64>,
    /// The state root after the transaction, before Byzantium. Some nodes write `0x` since then.
    root: Option<Bytes>,
    logs: Vec<RawLog<'a>>,
}

impl<'a> RawReceipt<'a> {
    /// Reads a single receipt. `None` if it is not one.
    pub(crate) fn of(json: &'a [u8]) -> Option<Self> {
        let mut cursor = Cursor::new(json);
        let receipt = Self::read(&mut cursor, &mut LogReader::new())?;
        cursor.end().map(|()| receipt)
    }

    /// Reads the receipts of a block. `None` if they are anything but a list of at most `count_max` receipts: a receipt takes
    /// ten times the memory of its text, so no more are read than a block can have.
    pub(crate) fn list(json: &'a [u8], count_max: usize) -> Option<Vec<Self>> {
        let (mut cursor, mut reader) = (Cursor::new(json), LogReader::new());
        let mut receipts = Vec::new();
        cursor.expect(b'[')?;
        if !cursor.take(b']') {
            receipts.push(Self::read(&mut cursor, &mut reader)?);
            while receipts.len() < count_max && cursor.take(b',') {
                receipts.push(Self::read(&mut cursor, &mut reader)?);
            }
            cursor.expect(b']')?;
        }
        cursor.end().map(|()| receipts)
    }

    /// Consumes a receipt. `None` if it is not one.
    fn read(cursor: &mut Cursor<'a>, reader: &mut LogReader<'a>) -> Option<Self> {
        cursor.expect(b'{')?;
        let mut members = ReceiptMembers::default();
        loop {
            members.read(cursor, reader)?;
            if !cursor.take(b',') {
                cursor.expect(b'}')?;
                return members.receipt();
            }
        }
    }

    /// The receipt as the receipts root contains it, without its type. The bloom is that of the reply, if there is one.
    pub(crate) fn receipt(&self) -> Result<ReceiptWithBloom, ProofFailure> {
        let logs: Option<Vec<Log>> = self.logs.iter().map(RawLog::decode).collect();
        let logs = logs.ok_or(ProofFailure::Malformed)?;
        let logs_bloom = self.logs_bloom.unwrap_or_else(|| logs_bloom(&logs));
        let receipt =
            Receipt { status: self.outcome()?, cumulative_gas_used: self.cumulative_gas_used, logs };
        Ok(ReceiptWithBloom { receipt, logs_bloom })
    }

    fn outcome(&self) -> Result<Eip658Value, ProofFailure> {
        match (&self.status, &self.root) {
            (Some(status @ (0 | 1)), _) => Ok(Eip658Value::Eip658(*status == 1)),
            (None, Some(root)) if root.len() == 32 => Ok(Eip658Value::PostState(B256::from_slice(root))),
            _ => Err(ProofFailure::Malformed),
        }
    }
}

/// The members of a receipt that were read so far. A member that may be null and is null is `Some(None)`.
#[derive(Default)]
struct ReceiptMembers<'a> {
    cumulative_gas_used: Option<u64>,
    logs_bloom: Option<Option<Bloom>>,
    status: Option<Option<u64>>,
    root: Option<Option<Bytes>>,
    logs: Option<Vec<RawLog<'a>>>,
}

impl<'a> ReceiptMembers<'a> {
    /// Consumes a member.
    fn read(&mut self, cursor: &mut Cursor<'a>, reader: &mut LogReader<'a>) -> Option<()> {
        match cursor.name()? {
            b"cumulativeGasUsed" => once(&mut self.cumulative_gas_used, value(cursor)),
            b"logsBloom" => once(&mut self.logs_bloom, value_or_null(cursor)),
            b"status" => once(&mut self.status, value_or_null(cursor)),
            b"root" => once(&mut self.root, value_or_null(cursor)),
            b"logs" => once(&mut self.logs, reader.read_list(cursor)),
            _ => cursor.skip(),
        }
    }

    fn receipt(self) -> Option<RawReceipt<'a>> {
        Some(RawReceipt {
            cumulative_gas_used: self.cumulative_gas_used?,
            logs_bloom: self.logs_bloom.flatten(),
            status: self.status.flatten(),
            root: self.root.flatten(),
            logs: self.logs?,
        })
    }
}

/// A member that occurs twice is refused, because it is ambiguous.
fn once<T>(place: &mut Option<T>, value: Option<T>) -> Option<()> {
    place.replace(value?).is_none().then_some(())
}

fn value<T: FromDigits>(cursor: &mut Cursor<'_>) -> Option<T> {
    T::from_digits(cursor.data()?)
}

fn value_or_null<T: FromDigits>(cursor: &mut Cursor<'_>) -> Option<Option<T>> {
    if cursor.null() { Some(None) } else { value(cursor).map(Some) }
}
