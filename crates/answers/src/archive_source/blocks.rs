//! Blocks of the embedded chain, their transactions and receipts.

use std::ops::ControlFlow;

use alloy_primitives::B256;
use archive::{BlockSummary, ReceiptData};
use methods::{BlockPart, BlockQuery, BlockRef, TransactionPart, TransactionQuery};
use sources::{
    BlockFields, Failure, Json, LOG_BYTES_TYPICAL, LogWriter, write_block, write_block_header, write_receipt,
    write_transaction, write_uncle,
};

use super::{ArchiveReader, brief};

/// Logs of a receipt that room is made for at once. A row that is damaged may claim any number of them.
const RESERVED_LOGS_MAX: u32 = 1_024;

impl ArchiveReader<'_> {
    pub(super) fn about_block(
        &self,
        query: BlockQuery<BlockRef>,
        json: &mut Json<'_>,
    ) -> Result<BlockRef, Failure> {
        let BlockQuery { block, part } = query;
        match part {
            BlockPart::Whole { full } => self.block(block, full, json),
            BlockPart::Header => {
                let header = self.snapshot.header(block.number)?.ok_or(Failure::Unavailable)?;
                write_block_header(&header, block.hash, json);
                Ok(block)
            }
            BlockPart::TransactionCount => {
                let summary = self.snapshot.summary(block.number)?.ok_or(Failure::Unavailable)?;
                json.quantity(u64::from(summary.transactions));
                Ok(block)
            }
            BlockPart::Receipts => self.receipts(block, json),
            BlockPart::UncleCount => {
                let data = self.snapshot.block(block.number)?.ok_or(Failure::Unavailable)?;
                json.quantity(data.uncles.len() as u64);
                Ok(block)
            }
            BlockPart::Uncle { index } => self.uncle(block, index, json),
            BlockPart::Transaction { index } => self.transaction_at(block, index, json),
        }
    }

    pub(super) fn about_transaction(
        &self,
        query: TransactionQuery,
        json: &mut Json<'_>,
    ) -> Result<Option<BlockRef>, Failure> {
        match query.part {
            TransactionPart::Transaction => self.transaction_by_hash(query.hash, json),
            TransactionPart::Receipt => self.receipt(query.hash, json),
        }
    }

    fn block(&self, at: BlockRef, full: bool, json: &mut Json<'_>) -> Result<BlockRef, Failure> {
        let data = self.snapshot.block(at.number)?.ok_or(Failure::Unavailable)?;
        let inline_max = if full { brief::TRANSACTIONS_MAX } else { brief::HASHES_MAX };
        self.end_try_if(data.summary.transactions > inline_max)?;
        let block = BlockFields {
            header: &data.header,
            hash: data.summary.hash,
            total_difficulty: Some(data.summary.total_difficulty),
            size: u64::from(data.summary.size),
            uncles: &data.uncles,
            withdrawals: data.withdrawals.as_ref(),
        };
        write_block(&block, json, |json| match full {
            true => self.transactions(at.number, json),
            false => self.transaction_hashes(&data.summary, json),
        })?;
        Ok(at)
    }

    fn transactions(&self, block: u64, json: &mut Json<'_>) -> Result<(), Failure> {
        let transactions = self.snapshot.transactions(block)?;
        let mut outcome = Ok(());
        json.list(&transactions, |json, data| {
            if outcome.is_ok() {
                write_transaction(&data.into(), json);
                outcome = self.budget.proceed(json.0.capacity());
            }
        });
        outcome
    }

    fn transaction_hashes(&self, summary: &BlockSummary, json: &mut Json<'_>) -> Result<(), Failure> {
        let hashes = self.snapshot.transaction_hashes(summary)?;
        json.list(&hashes, |json, hash| json.data(hash.as_slice()));
        Ok(())
    }

    fn uncle(&self, at: BlockRef, index: u64, json: &mut Json<'_>) -> Result<BlockRef, Failure> {
        let index = usize::try_from(index).unwrap_or(usize::MAX);
        match self.snapshot.uncle(at.number, index)? {
            Some(uncle) => write_uncle(&uncle, json),
            None => {
                json.raw(b"null");
            }
        }
        Ok(at)
    }

    fn transaction_at(&self, at: BlockRef, index: u64, json: &mut Json<'_>) -> Result<BlockRef, Failure> {
        match self.snapshot.transaction_at(at.number, index)? {
            Some(data) => write_transaction(&(&data).into(), json),
            None => {
                json.raw(b"null");
            }
        }
        Ok(at)
    }

    fn transaction_by_hash(&self, hash: B256, json: &mut Json<'_>) -> Result<Option<BlockRef>, Failure> {
        let Some(data) = self.snapshot.transaction(hash)? else { return Ok(write_null(json)) };
        write_transaction(&(&data).into(), json);
        Ok(Some(BlockRef { number: data.block.number, hash: data.block.hash }))
    }

    fn receipt(&self, hash: B256, json: &mut Json<'_>) -> Result<Option<BlockRef>, Failure> {
        let Some(data) = self.snapshot.receipt(hash)? else { return Ok(write_null(json)) };
        self.end_try_if(u64::from(data.row.logs) > brief::LOGS_MAX)?;
        self.write_receipt(&data, &mut LogWriter::default(), json)?;
        self.budget.charge_reply(json.0.capacity())?;
        Ok(Some(BlockRef { number: data.block.number, hash: data.block.hash }))
    }

    fn receipts(&self, at: BlockRef, json: &mut Json<'_>) -> Result<BlockRef, Failure> {
        let summary = self.snapshot.summary(at.number)?.ok_or(Failure::Unavailable)?;
        self.end_try_if(summary.transactions > brief::TRANSACTIONS_MAX)?;
        let receipts = self.snapshot.receipts(at.number)?.ok_or(Failure::Unavailable)?;
        let logs: u64 = receipts.iter().map(|receipt| u64::from(receipt.row.logs)).sum();
        self.end_try_if(logs > brief::LOGS_MAX)?;
        let (mut logs, mut outcome) = (LogWriter::default(), Ok(()));
        json.list(&receipts, |json, data| {
            if outcome.is_ok() {
                outcome = self
                    .write_receipt(data, &mut logs, json)
                    .and_then(|()| self.budget.proceed(json.0.capacity()));
            }
        });
        outcome.map(|()| at)
    }

    fn write_receipt(
        &self,
        data: &ReceiptData,
        logs: &mut LogWriter,
        json: &mut Json<'_>,
    ) -> Result<(), Failure> {
        write_receipt(data, json, |json| {
            let mut separator: &[u8] = b"";
            json.0.reserve(data.row.logs.min(RESERVED_LOGS_MAX) as usize * LOG_BYTES_TYPICAL);
            json.raw(b"[");
            if data.row.logs > 0 {
                let _ = self.snapshot.logs_by_ordinal(data.log_ordinals()).read(|log| {
                    json.raw(separator);
                    separator = b",";
                    logs.write(&log.into(), json);
                    ControlFlow::<()>::Continue(())
                })?;
            }
            json.raw(b"]");
            Ok(())
        })
    }

    pub(super) fn raw_records(&self, at: BlockRef, json: &mut Json<'_>) -> Result<BlockRef, Failure> {
        let records = self.snapshot.raw_records(at.number)?.unwrap_or_else(|| b"[]".to_vec());
        self.end_try_if(records.len() > brief::JSON_BYTES_MAX)?;
        self.budget.charge_reply(json.0.len() + records.len())?;
        json.raw(&records);
        Ok(at)
    }
}

/// Writes that there is nothing, which is true at no block in particular.
fn write_null(json: &mut Json<'_>) -> Option<BlockRef> {
    json.raw(b"null");
    None
}
