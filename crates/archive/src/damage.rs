//! The consequences of damaged rows for callers.

use crate::{archive::Archive, logs::PACK_LOGS, rows::BlockSummary, verify::DamagedRange};
use alloy_primitives::hex;

/// Rows of the table `logs` with this bit in their keys have the data of one log.
const LOG_DATA: u64 = 1 << 63;

impl DamagedRange {
    /// The damage of an archive. `archive` finds the blocks of transactions and logs, as far as it can be opened.
    pub fn effect_on_archive(&self, archive: Option<&Archive>) -> String {
        let blocks_of = |rows: (u64, Option<u64>), place: fn(&BlockSummary) -> u64| {
            let block = |ordinal| block_with(archive?, ordinal, place);
            let first = block(rows.0).map_or("unknown".to_owned(), |number| number.to_string());
            let last = rows.1.map_or(Some("the head".to_owned()), |last| Some(block(last)?.to_string()));
            format!("of blocks {first} to {}", last.as_deref().unwrap_or("unknown"))
        };
        match self.table.as_str() {
            "blocks" => format!("blocks {}", self.numbers_text()),
            "raw_records" => format!("raw records of blocks {}", self.numbers_text()),
            "transactions" => {
                format!("transactions {}", blocks_of(self.numbers(), |block| block.first_transaction))
            }
            "receipts" => format!("receipts {}", blocks_of(self.numbers(), |block| block.first_transaction)),
            "logs" => format!("logs {}", blocks_of(self.logs(), |block| block.first_log)),
            "block_numbers" => format!("blocks by hashes {}", self.bytes_text(32)),
            "transaction_ordinals" => format!("transactions and receipts by hashes {}", self.bytes_text(32)),
            "log_index" => format!("log queries with addresses or topics {}", self.bytes_text(33)),
            "accounts" => format!("state of accounts {}", self.bytes_text(20)),
            "storage" => format!("storage of accounts {}", self.bytes_text(20)),
            "code" => format!("code with hashes {}", self.bytes_text(32)),
            "trie_nodes" => "no answers, but no block can be added".to_owned(),
            _ => "everything: the archive cannot be opened".to_owned(),
        }
    }

    /// The damage of a file of stored blocks.
    pub fn effect_on_stored_blocks(&self) -> String {
        match self.table.as_str() {
            "headers" => format!("headers of blocks {}", self.numbers_text()),
            "bodies" => format!("blocks {}", self.numbers_text()),
            "receipts" => format!("receipts of blocks {}", self.numbers_text()),
            "block_numbers" => format!("blocks by hashes {}", self.bytes_text(32)),
            "transaction_places" => format!("transactions by hashes {}", self.bytes_text(32)),
            _ => "everything: it is not known which blocks are stored".to_owned(),
        }
    }

    /// The first number that cannot be read, and the last one; `None` if the range ends with the table.
    fn numbers(&self) -> (u64, Option<u64>) {
        let number = |key: &Vec<u8>| key.as_slice().try_into().map_or(0, u64::from_le_bytes);
        let first = self.after.as_ref().map_or(0, |key| number(key).saturating_add(1));
        (first, self.before.as_ref().map(|key| number(key).saturating_sub(1)))
    }

    /// The same in logs instead of packs of logs.
    fn logs(&self) -> (u64, Option<u64>) {
        let (first, last) = self.numbers();
        let log = |key: u64, place: u64| match key & LOG_DATA {
            0 => key.saturating_mul(PACK_LOGS).saturating_add(place),
            _ => key & !LOG_DATA,
        };
        (
            log(first, 0),
            last.filter(|last| last & LOG_DATA == first & LOG_DATA).map(|last| log(last, PACK_LOGS - 1)),
        )
    }

    fn numbers_text(&self) -> String {
        match self.numbers() {
            (first, Some(last)) => format!("{first} to {last}"),
            (first, None) => format!("{first} and above"),
        }
    }

    /// The first bytes of the keys at both ends.
    fn bytes_text(&self, length: usize) -> String {
        let text = |key: &Option<Vec<u8>>, open: &str| match key {
            Some(key) => hex::encode_prefixed(&key[..key.len().min(length)]),
            None => open.to_owned(),
        };
        format!("from {} to {}", text(&self.after, "the lowest"), text(&self.before, "the highest"))
    }
}

/// The number of the block that has an ordinal.
fn block_with(archive: &Archive, ordinal: u64, place: fn(&BlockSummary) -> u64) -> Option<u64> {
    let snapshot = archive.snapshot();
    let (mut low, mut high) = (0, snapshot.head());
    while low < high {
        let middle = low + (high - low).div_ceil(2);
        match place(&snapshot.summary(middle).ok()??) <= ordinal {
            true => low = middle,
            false => high = middle - 1,
        }
    }
    Some(low)
}
