//! A receipt and its logs.

use alloy_consensus::{Eip658Value, Receipt, ReceiptEnvelope, ReceiptWithBloom};
use alloy_primitives::{B256, Bloom, Bytes};

use super::bloom::Accrued;
use super::cursor::Cursor;
use super::hex::{self, FromDigits};
use super::log::{LogReader, RawLog, same_digits};
use super::{Facts, Family, Lie};
use crate::BlockId;

/// Values of a lone receipt's logs that are hashed to compare its bloom. Most receipts have fewer, and in those with many
/// hashing would cost more than all other checks together; what is hashed must then be in the bloom.
const LONE_HASHES_MAX: usize = 12;

/// A receipt as a node writes it.
#[derive(Debug)]
pub(crate) struct RawReceipt<'a> {
    pub(super) transaction_hash: B256,
    pub(super) transaction_index: u64,
    pub(super) block: BlockId,
    pub(super) cumulative_gas_used: u64,
    pub(super) gas_used: u64,
    logs_bloom: Option<Bloom>,
    status: Option<u64>,
    /// Before Byzantium, the state after the transaction. Some nodes write `0x` ever since.
    root: Option<Bytes>,
    kind: Option<u64>,
    pub(super) logs: Vec<RawLog<'a>>,
}

impl<'a> RawReceipt<'a> {
    /// Reads a lone receipt. `None` if it is none.
    pub(crate) fn of(json: &'a [u8]) -> Option<Self> {
        let mut cursor = Cursor::new(json);
        let receipt = Self::read(&mut cursor, &mut LogReader::new())?;
        cursor.end().map(|()| receipt)
    }

    /// Consumes a receipt. `None` if it is none.
    pub(super) fn read(cursor: &mut Cursor<'a>, reader: &mut LogReader<'a>) -> Option<Self> {
        cursor.expect(b'{')?;
        let mut members = Members::default();
        loop {
            members.read(cursor, reader)?;
            if !cursor.take(b',') {
                cursor.expect(b'}')?;
                return members.receipt();
            }
        }
    }

    /// Whether the logs carry the receipt's ids, are numbered on from `first` (or from anywhere), and fit the bloom, as
    /// far as that can be told by so many hashes.
    pub(super) fn judge_logs(
        &self,
        first: Option<u64>,
        hashes_max: usize,
        family: Family,
    ) -> Result<(), Lie> {
        let mut numbering = Numbering { last: None, first, family };
        let mut previous = None;
        for log in &self.logs {
            self.judge_ids(log, previous)?;
            numbering.judge(log.index)?;
            previous = Some(log);
        }
        self.judge_bloom(hashes_max, family)
    }

    fn judge_ids(&self, log: &RawLog<'_>, previous: Option<&RawLog<'_>>) -> Result<(), Lie> {
        let same = |digits: &[u8; 64], judged: Option<&[u8; 64]>, hash: &B256| {
            let known = judged.is_some_and(|judged| same_digits(judged, digits));
            known || hex::fixed::<32>(digits).is_some_and(|said| said == hash.0)
        };
        let ours = same(log.block_hash, previous.map(|log| log.block_hash), &self.block.hash)
            && same(log.transaction_hash, previous.map(|log| log.transaction_hash), &self.transaction_hash)
            && log.block_number == self.block.number
            && log.transaction_index == self.transaction_index;
        match (ours, log.removed) {
            (_, true) => Err(Lie::Removed),
            (false, _) => Err(Lie::Torn),
            (true, false) => Ok(()),
        }
    }

    fn judge_bloom(&self, hashes_max: usize, family: Family) -> Result<(), Lie> {
        let said = self.logs_bloom.as_ref().filter(|_| family == Family::Ethereum);
        let Some(said) = said else { return Ok(()) };
        let fits = Accrued::of(&self.logs, hashes_max).ok_or(Lie::Shape)?.fits(said);
        if fits { Ok(()) } else { Err(Lie::Bloom) }
    }

    /// What the receipts root is made of, once the logs were judged. `None` if it is of a type that we do not know.
    pub(super) fn envelope(&self) -> Result<Option<ReceiptEnvelope>, Lie> {
        let receipt = self.receipt()?;
        Ok(Some(match self.kind.unwrap_or(0) {
            0 => ReceiptEnvelope::Legacy(receipt),
            1 => ReceiptEnvelope::Eip2930(receipt),
            2 => ReceiptEnvelope::Eip1559(receipt),
            3 => ReceiptEnvelope::Eip4844(receipt),
            4 => ReceiptEnvelope::Eip7702(receipt),
            _ => return Ok(None),
        }))
    }

    /// What the receipts root is made of but for the type. The bloom is the one that the receipt came with, if any.
    pub(crate) fn receipt(&self) -> Result<ReceiptWithBloom, Lie> {
        let logs_bloom = match self.logs_bloom {
            Some(judged) => judged,
            None => Accrued::of(&self.logs, usize::MAX).ok_or(Lie::Shape)?.bloom,
        };
        let logs = self.logs.iter().map(RawLog::decode).collect::<Option<_>>().ok_or(Lie::Shape)?;
        let receipt =
            Receipt { status: self.outcome()?, cumulative_gas_used: self.cumulative_gas_used, logs };
        Ok(ReceiptWithBloom { receipt, logs_bloom })
    }

    fn outcome(&self) -> Result<Eip658Value, Lie> {
        match (&self.status, &self.root) {
            (Some(status @ (0 | 1)), _) => Ok(Eip658Value::Eip658(*status == 1)),
            (None, Some(root)) if root.len() == 32 => Ok(Eip658Value::PostState(B256::from_slice(root))),
            _ => Err(Lie::Shape),
        }
    }
}

/// The members of a receipt that have been read so far. Those that may be null are `Some(None)` then.
#[derive(Default)]
struct Members<'a> {
    transaction_hash: Option<B256>,
    transaction_index: Option<u64>,
    block_hash: Option<B256>,
    block_number: Option<u64>,
    cumulative_gas_used: Option<u64>,
    gas_used: Option<u64>,
    logs_bloom: Option<Option<Bloom>>,
    status: Option<Option<u64>>,
    root: Option<Option<Bytes>>,
    kind: Option<Option<u64>>,
    logs: Option<Vec<RawLog<'a>>>,
}

impl<'a> Members<'a> {
    /// Consumes a member.
    fn read(&mut self, cursor: &mut Cursor<'a>, reader: &mut LogReader<'a>) -> Option<()> {
        match cursor.name()? {
            b"transactionHash" => once(&mut self.transaction_hash, value(cursor)),
            b"transactionIndex" => once(&mut self.transaction_index, value(cursor)),
            b"blockHash" => once(&mut self.block_hash, value(cursor)),
            b"blockNumber" => once(&mut self.block_number, value(cursor)),
            b"cumulativeGasUsed" => once(&mut self.cumulative_gas_used, value(cursor)),
            b"gasUsed" => once(&mut self.gas_used, value(cursor)),
            b"logsBloom" => once(&mut self.logs_bloom, value_or_null(cursor)),
            b"status" => once(&mut self.status, value_or_null(cursor)),
            b"root" => once(&mut self.root, value_or_null(cursor)),
            b"type" => once(&mut self.kind, value_or_null(cursor)),
            b"logs" => once(&mut self.logs, reader.read_list(cursor)),
            _ => cursor.skip(),
        }
    }

    fn receipt(self) -> Option<RawReceipt<'a>> {
        Some(RawReceipt {
            transaction_hash: self.transaction_hash?,
            transaction_index: self.transaction_index?,
            block: BlockId { number: self.block_number?, hash: self.block_hash? },
            cumulative_gas_used: self.cumulative_gas_used?,
            gas_used: self.gas_used?,
            logs_bloom: self.logs_bloom.flatten(),
            status: self.status.flatten(),
            root: self.root.flatten(),
            kind: self.kind.flatten(),
            logs: self.logs?,
        })
    }
}

/// A member that occurs twice is a trap: we might judge the one and the caller read the other.
fn once<T>(place: &mut Option<T>, value: Option<T>) -> Option<()> {
    place.replace(value?).is_none().then_some(())
}

fn value<T: FromDigits>(cursor: &mut Cursor<'_>) -> Option<T> {
    T::from_digits(cursor.data()?)
}

fn value_or_null<T: FromDigits>(cursor: &mut Cursor<'_>) -> Option<Option<T>> {
    if cursor.null() { Some(None) } else { value(cursor).map(Some) }
}

/// Logs of a receipt are numbered one after another; zkSync leaves gaps where the system logged.
struct Numbering {
    last: Option<u64>,
    first: Option<u64>,
    family: Family,
}

impl Numbering {
    fn judge(&mut self, index: u64) -> Result<(), Lie> {
        let next = match self.last {
            Some(last) => last.checked_add(1),
            None => Some(self.first.unwrap_or(index)),
        };
        let fits = match self.family {
            Family::Ethereum => next == Some(index),
            Family::Zksync => next.is_some_and(|next| index >= next),
        };
        self.last = Some(index);
        if fits { Ok(()) } else { Err(Lie::Order) }
    }
}

pub(super) fn check(result: &[u8], transaction: B256, family: Family) -> Result<Facts, Lie> {
    let raw = RawReceipt::of(result).ok_or(Lie::Shape)?;
    if raw.transaction_hash != transaction {
        return Err(Lie::OtherTransaction);
    }
    // The first receipt of a block begins everything that runs through the block.
    let is_first = raw.transaction_index == 0;
    raw.judge_logs(is_first.then_some(0), LONE_HASHES_MAX, family)?;
    if family == Family::Ethereum {
        raw.outcome()?;
        let (used, total) = (raw.gas_used, raw.cumulative_gas_used);
        if used > total || (is_first && used != total) {
            return Err(Lie::Gas);
        }
    }
    Ok(Facts { block: Some(raw.block), count: raw.logs.len(), ..Facts::default() })
}
