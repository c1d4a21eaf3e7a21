//! A receipt and its logs.

use alloy_consensus::{Eip658Value, Receipt, ReceiptEnvelope, ReceiptWithBloom};
use alloy_primitives::{B256, Bloom, BloomInput, Bytes, Log};
use serde::Deserialize;
use serde_json::value::RawValue;

use super::cursor::Cursor;
use super::hex::{self, Hex};
use super::log::{LogReader, RawLog};
use super::{Facts, Family, Lie};
use crate::BlockId;

/// A receipt as a node writes it.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct RawReceipt<'a> {
    pub(super) transaction_hash: Hex<B256>,
    pub(super) transaction_index: Hex<u64>,
    block_hash: Hex<B256>,
    block_number: Hex<u64>,
    pub(super) cumulative_gas_used: Hex<u64>,
    pub(super) gas_used: Hex<u64>,
    logs_bloom: Option<Hex<Bloom>>,
    status: Option<Hex<u64>>,
    /// Before Byzantium, the state after the transaction. Some nodes write `0x` ever since.
    root: Option<Hex<Bytes>>,
    #[serde(rename = "type")]
    kind: Option<Hex<u64>>,
    #[serde(borrow)]
    logs: &'a RawValue,
}

impl RawReceipt<'_> {
    pub(super) fn block(&self) -> BlockId {
        BlockId { number: self.block_number.0, hash: self.block_hash.0 }
    }

    /// The logs, once they carry the receipt's ids, are numbered on from `first` (or from anywhere), and fit the
    /// bloom.
    pub(super) fn judged_logs(&self, first: Option<u64>, family: Family) -> Result<Vec<Log>, Lie> {
        let mut numbering = Numbering { last: None, first, family };
        let mut logs = Vec::new();
        let (mut cursor, mut reader) = (Cursor::new(self.logs.get().as_bytes()), LogReader::new());
        cursor.expect(b'[').ok_or(Lie::Shape)?;
        if cursor.take(b']') {
            return self.judge_bloom(logs, family);
        }
        loop {
            let log = reader.read(&mut cursor).ok_or(Lie::Shape)?;
            self.judge_ids(&log)?;
            numbering.judge(log.index)?;
            logs.push(log.decode().ok_or(Lie::Shape)?);
            if !cursor.take(b',') {
                return self.judge_bloom(logs, family);
            }
        }
    }

    fn judge_ids(&self, log: &RawLog<'_>) -> Result<(), Lie> {
        let same =
            |digits: &[u8; 64], hash: &B256| hex::fixed::<32>(digits).is_some_and(|said| said == hash.0);
        let ours = same(log.block_hash, &self.block_hash.0)
            && same(log.transaction_hash, &self.transaction_hash.0)
            && log.block_number == self.block_number.0
            && log.transaction_index == self.transaction_index.0;
        match (ours, log.removed) {
            (_, true) => Err(Lie::Removed),
            (false, _) => Err(Lie::Torn),
            (true, false) => Ok(()),
        }
    }

    fn judge_bloom(&self, logs: Vec<Log>, family: Family) -> Result<Vec<Log>, Lie> {
        let said = self.logs_bloom.as_ref().filter(|_| family == Family::Ethereum);
        if said.is_some_and(|said| said.0 != bloom(&logs)) { Err(Lie::Bloom) } else { Ok(logs) }
    }

    /// What the receipts root is made of. `None` if it is of a type that we do not know.
    pub(super) fn envelope(&self, logs: Vec<Log>) -> Result<Option<ReceiptEnvelope>, Lie> {
        let logs_bloom = bloom(&logs);
        let receipt =
            Receipt { status: self.outcome()?, cumulative_gas_used: self.cumulative_gas_used.0, logs };
        let receipt = ReceiptWithBloom { receipt, logs_bloom };
        Ok(Some(match self.kind.as_ref().map_or(0, |kind| kind.0) {
            0 => ReceiptEnvelope::Legacy(receipt),
            1 => ReceiptEnvelope::Eip2930(receipt),
            2 => ReceiptEnvelope::Eip1559(receipt),
            3 => ReceiptEnvelope::Eip4844(receipt),
            4 => ReceiptEnvelope::Eip7702(receipt),
            _ => return Ok(None),
        }))
    }

    fn outcome(&self) -> Result<Eip658Value, Lie> {
        match (&self.status, &self.root) {
            (Some(Hex(status @ (0 | 1))), _) => Ok(Eip658Value::Eip658(*status == 1)),
            (None, Some(Hex(root))) if root.len() == 32 => Ok(Eip658Value::PostState(B256::from_slice(root))),
            _ => Err(Lie::Shape),
        }
    }
}

/// The bloom of some logs. Most of what a log is made of stands at the same place in the one before, and is hashed once.
fn bloom(logs: &[Log]) -> Bloom {
    let mut bloom = Bloom::ZERO;
    let mut previous: Option<&Log> = None;
    for log in logs {
        if previous.is_none_or(|previous| previous.address != log.address) {
            bloom.accrue(BloomInput::Raw(log.address.as_slice()));
        }
        let before = previous.map_or(&[][..], |previous| previous.topics());
        for (place, topic) in log.topics().iter().enumerate() {
            if before.get(place) != Some(topic) {
                bloom.accrue(BloomInput::Raw(topic.as_slice()));
            }
        }
        previous = Some(log);
    }
    bloom
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
    let raw: RawReceipt<'_> = serde_json::from_slice(result).map_err(|_| Lie::Shape)?;
    if raw.transaction_hash.0 != transaction {
        return Err(Lie::OtherTransaction);
    }
    // The first receipt of a block begins everything that runs through the block.
    let is_first = raw.transaction_index.0 == 0;
    let logs = raw.judged_logs(is_first.then_some(0), family)?;
    if family == Family::Ethereum {
        raw.outcome()?;
        let (used, total) = (raw.gas_used.0, raw.cumulative_gas_used.0);
        if used > total || (is_first && used != total) {
            return Err(Lie::Gas);
        }
    }
    Ok(Facts { block: Some(raw.block()), count: logs.len(), ..Facts::default() })
}

#[cfg(test)]
mod tests {
    use alloy_primitives::{Address, logs_bloom};

    use super::*;

    #[test]
    fn the_bloom_is_the_one_of_all_logs() {
        let log = |address: u8, topics: &[u8]| {
            let topics = topics.iter().map(|topic| B256::repeat_byte(*topic)).collect();
            Log::new_unchecked(Address::repeat_byte(address), topics, Bytes::new())
        };
        let logs = [log(1, &[1, 2]), log(1, &[1, 3]), log(2, &[1]), log(2, &[]), log(1, &[3, 1, 4, 4])];
        for count in 0..=logs.len() {
            assert_eq!(bloom(&logs[..count]), logs_bloom(&logs[..count]));
        }
    }
}
