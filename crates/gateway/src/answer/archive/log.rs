//! Logs. Queries of ten thousand of them are common, so what repeats within a block is written once.

use super::json::Json;
use archive::{InBlock, LogRef};

/// Writes logs, one after another.
#[derive(Debug, Default)]
pub(super) struct LogWriter {
    block: Option<u64>,
    /// `","blockNumber":"0x…","transactionHash":"0x`
    before_transaction: Vec<u8>,
    /// `,"blockHash":"0x…","blockTimestamp":"0x…","logIndex":`
    before_index: Vec<u8>,
}

impl LogWriter {
    pub(super) fn write(&mut self, log: &LogRef<'_>, block: &InBlock, json: &mut Json<'_>) {
        if self.block != Some(block.number) {
            self.enter(block);
        }
        json.raw(b"{\"address\":\"0x").hex(log.address()).raw(b"\",\"topics\":[");
        let mut separator: &[u8] = b"\"0x";
        for topic in log.topics() {
            json.raw(separator).hex(topic);
            separator = b"\",\"0x";
        }
        json.raw(if log.topics().is_empty() { b"],\"data\":\"0x" } else { b"\"],\"data\":\"0x" });
        json.hex(log.data()).raw(&self.before_transaction).hex(log.transaction_hash());
        json.raw(b"\",\"transactionIndex\":").quantity(u64::from(log.transaction_index()));
        json.raw(&self.before_index).quantity(u64::from(log.log_index()));
        json.raw(b",\"removed\":false}");
    }

    fn enter(&mut self, block: &InBlock) {
        self.block = Some(block.number);
        self.before_transaction.clear();
        let mut json = Json(&mut self.before_transaction);
        json.raw(b"\",\"blockNumber\":").quantity(block.number);
        json.raw(b",\"transactionHash\":\"0x");
        self.before_index.clear();
        let mut json = Json(&mut self.before_index);
        json.raw(b",\"blockHash\":").data(block.hash.as_slice());
        json.raw(b",\"blockTimestamp\":").quantity(block.timestamp);
        json.raw(b",\"logIndex\":");
    }
}
