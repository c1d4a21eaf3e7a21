//! Lies about logs, in answers to log queries and in receipts.

use serde_json::{Value, json};

use super::{Forgery, address, hash, set, set_huge};

impl Forgery {
    pub(super) fn forge_logs(self, result: &mut Value) {
        let Some(logs) = result.as_array_mut() else { return };
        match self {
            Self::NoLogs | Self::NoLogsAnywhere => logs.clear(),
            Self::LogDropped if !logs.is_empty() => _ = logs.remove(0),
            Self::LogInvented => {
                let mut last = logs.last().cloned().unwrap_or_else(invented_log);
                set(&mut last, "logIndex", "0x1234");
                logs.push(last);
            }
            Self::LogDroppedWithBloom => _ = logs.pop(),
            Self::LogAddedWithBloom => {
                let mut log = logs.last().cloned().unwrap_or_else(invented_log);
                set(&mut log, "address", &address());
                logs.push(log);
            }
            _ => logs.iter_mut().for_each(|log| self.forge_log(log)),
        }
    }

    pub(super) fn forge_log(self, log: &mut Value) {
        match self {
            Self::LogData => set(log, "data", "0x1234"),
            Self::LogAddress => set(log, "address", &address()),
            Self::LogTopics => log["topics"] = json!([hash()]),
            Self::LogTransaction => set(log, "transactionHash", &hash()),
            Self::LogBlock => {
                set(log, "blockNumber", "0x1");
                set(log, "blockHash", &hash());
            }
            Self::LogTimestamp => set(log, "blockTimestamp", "0x1234"),
            Self::LogIndex => set(log, "logIndex", "0x1234"),
            Self::LogHugeNumbers => {
                set_huge(log, &["blockNumber", "transactionIndex", "logIndex", "blockTimestamp"]);
            }
            Self::LogRemoved => log["removed"] = json!(true),
            Self::ExtraMembers => set(log, "note", "visit example.org"),
            _ => {}
        }
    }
}

pub(super) fn invented_log() -> Value {
    json!({
        "address": address(), "topics": [], "data": "0x", "blockNumber": "0x3", "transactionHash": hash(),
        "transactionIndex": "0x0", "blockHash": hash(), "logIndex": "0x0", "removed": false
    })
}
