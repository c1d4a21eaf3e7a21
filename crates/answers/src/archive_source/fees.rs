//! Fee suggestions and fee histories of the embedded chain.

use alloy_consensus::Header;
use archive::{Snapshot, StoreError};
use methods::{BlockRef, FeeQuery, NextBlockFee, Percentile};
use sources::{
    BlockFees, Failure, FeeHistory, HISTORY_BLOCKS_MAX, Json, Reward, SUGGESTION_BLOCKS, rewards_at,
    suggested_priority_fee,
};

use super::ArchiveReader;

impl ArchiveReader<'_> {
    pub(super) fn fees(&self, query: &FeeQuery<BlockRef>, json: &mut Json<'_>) -> Result<BlockRef, Failure> {
        match query {
            FeeQuery::NextBlock(fee) => {
                json.quantity_u128(self.next_block_fee(*fee)?);
                Ok(self.head())
            }
            FeeQuery::History { blocks, newest, percentiles } => {
                self.fee_history(*blocks, newest.number, percentiles, json)?;
                Ok(*newest)
            }
        }
    }

    fn next_block_fee(&self, fee: NextBlockFee) -> Result<u128, Failure> {
        match fee {
            NextBlockFee::GasPrice => {
                let priority_fee = self.suggested_priority_fee()?;
                Ok(next_base_fee(self.snapshot)?.saturating_add(priority_fee))
            }
            NextBlockFee::PriorityFee => self.suggested_priority_fee(),
        }
    }

    /// The priority fee that is suggested at the head. An inline try ends where it is not known yet.
    fn suggested_priority_fee(&self) -> Result<u128, Failure> {
        let (snapshot, known) = (self.snapshot, self.priority_fee);
        let head = snapshot.head_hash();
        if let Some(fee) = known.at(head) {
            return Ok(fee);
        }
        if self.budget.is_brief() {
            return Err(Failure::QueryTimeout);
        }
        let head_number = snapshot.head();
        let mut paid = Vec::new();
        for number in head_number.saturating_sub(SUGGESTION_BLOCKS - 1)..=head_number {
            paid.extend(rewards(snapshot, number)?.into_iter().map(|(reward, _)| reward));
        }
        let fee = suggested_priority_fee(paid);
        known.remember(head, fee);
        Ok(fee)
    }

    /// Writes the fees of the blocks up to `newest`, and of the one after it.
    fn fee_history(
        &self,
        blocks: u64,
        newest: u64,
        percentiles: &[Percentile],
        json: &mut Json<'_>,
    ) -> Result<(), Failure> {
        let (snapshot, budget) = (self.snapshot, self.budget);
        // Many rows are read between two checks of the deadline, which is too long for an inline try.
        if budget.is_brief() {
            return Err(Failure::QueryTimeout);
        }
        let blocks = blocks.min(HISTORY_BLOCKS_MAX).min(newest + 1);
        let oldest = newest + 1 - blocks;
        let headers =
            (oldest..=newest).map(|number| header(snapshot, number)).collect::<Result<Vec<_>, _>>()?;
        let chain = snapshot.chain();
        let next = headers.last().map_or((0, 0), |last| {
            (chain.next_base_fee(last).unwrap_or(0), chain.next_blob_fee(last).unwrap_or(0))
        });
        let rewards = (oldest..=newest).map(|number| match budget.stopped() {
            true => Err(Failure::QueryTimeout),
            false => Ok(rewards_at(rewards(snapshot, number)?, percentiles)),
        });
        let rewards = if percentiles.is_empty() { None } else { Some(rewards.collect::<Result<_, _>>()?) };
        let fees = |header: &Header| BlockFees::of(&header.into(), chain.blob_params_at(header.timestamp));
        let blocks = headers.iter().map(fees).collect();
        FeeHistory { oldest, blocks, next, rewards }.write(json);
        Ok(())
    }
}

/// The base fee of the block after the head.
fn next_base_fee(snapshot: &Snapshot) -> Result<u128, Failure> {
    Ok(match snapshot.header(snapshot.head())? {
        Some(head) => u128::from(snapshot.chain().next_base_fee(&head).unwrap_or(0)),
        None => 0,
    })
}

fn rewards(snapshot: &Snapshot, number: u64) -> Result<Vec<Reward>, StoreError> {
    let receipts = snapshot.receipts(number)?.unwrap_or_default();
    let paid = receipts.iter().map(|receipt| {
        let base_fee = u128::from(receipt.block.base_fee.unwrap_or(0));
        (receipt.row.effective_gas_price.saturating_sub(base_fee), receipt.row.gas_used)
    });
    Ok(paid.collect())
}

fn header(snapshot: &Snapshot, number: u64) -> Result<Header, Failure> {
    snapshot.header(number)?.ok_or(Failure::Unavailable)
}
