//! What gas costs, and has cost.

use crate::answer::results::json::{Json, Object};
use crate::{
    answer::{Budget, Failure},
    params::Percentile,
};
use alloy_consensus::Header;
use alloy_primitives::B256;
use archive::{Snapshot, StoreError};
use parking_lot::Mutex;

/// Blocks that a suggestion looks back over, as geth does.
const SUGGESTION_BLOCKS: u64 = 20;

/// The share of transactions that paid less than what is suggested, as geth does.
const SUGGESTION_PERCENTILE: usize = 60;

/// What is suggested where nobody paid anything lately: one gwei, which every node accepts.
const PRIORITY_FEE_DEFAULT: u128 = 1_000_000_000;

/// Blocks that one history may span, as geth does.
const HISTORY_BLOCKS_MAX: u64 = 1024;

/// The base fee of the block after the head.
pub(super) fn next_base_fee(snapshot: &Snapshot) -> Result<u128, Failure> {
    Ok(match snapshot.header(snapshot.head())? {
        Some(head) => u128::from(snapshot.chain().next_base_fee(&head).unwrap_or(0)),
        None => 0,
    })
}

/// What to pay on top of the base fee. It takes the receipts of many blocks to find out, so it is done once per head.
#[derive(Debug, Default)]
pub(super) struct PriorityFee {
    /// The hash of a head, and what is suggested there.
    remembered: Mutex<Option<(B256, u128)>>,
}

impl PriorityFee {
    /// The suggestion at the head of `snapshot`. An inline try ends where it is not known yet.
    pub(super) fn at_head(&self, snapshot: &Snapshot, budget: &Budget) -> Result<u128, Failure> {
        let head = snapshot.head_hash();
        if let Some((_, fee)) = self.remembered.lock().filter(|(known, _)| *known == head) {
            return Ok(fee);
        }
        if budget.is_brief() {
            return Err(Failure::QueryTimeout);
        }
        let fee = suggested_priority_fee(snapshot)?;
        *self.remembered.lock() = Some((head, fee));
        Ok(fee)
    }
}

fn suggested_priority_fee(snapshot: &Snapshot) -> Result<u128, StoreError> {
    let head = snapshot.head();
    let mut paid = Vec::new();
    for number in head.saturating_sub(SUGGESTION_BLOCKS - 1)..=head {
        paid.extend(rewards(snapshot, number)?.into_iter().map(|(reward, _)| reward));
    }
    paid.sort_unstable();
    let at = paid.len().saturating_sub(1) * SUGGESTION_PERCENTILE / 100;
    Ok(paid.get(at).copied().unwrap_or(PRIORITY_FEE_DEFAULT))
}

/// What each transaction of a block paid per gas on top of the base fee, and the gas that it used.
fn rewards(snapshot: &Snapshot, number: u64) -> Result<Vec<(u128, u64)>, StoreError> {
    let receipts = snapshot.receipts(number)?.unwrap_or_default();
    let paid = receipts.iter().map(|receipt| {
        let base_fee = u128::from(receipt.block.base_fee.unwrap_or(0));
        (receipt.row.effective_gas_price.saturating_sub(base_fee), receipt.row.gas_used)
    });
    Ok(paid.collect())
}

/// Writes the fees of the blocks up to `newest`, and of the one after it.
pub(super) fn history(
    snapshot: &Snapshot,
    budget: &Budget,
    blocks: u64,
    newest: u64,
    percentiles: &[Percentile],
    json: &mut Json<'_>,
) -> Result<(), Failure> {
    // Many rows are read between two checks of the deadline, which is too long for an inline try.
    if budget.is_brief() {
        return Err(Failure::QueryTimeout);
    }
    let blocks = blocks.min(HISTORY_BLOCKS_MAX).min(newest + 1);
    let oldest = newest + 1 - blocks;
    let headers = (oldest..=newest).map(|number| header(snapshot, number)).collect::<Result<Vec<_>, _>>()?;
    let mut object = json.object();
    object.member("oldestBlock").quantity(oldest);
    if !percentiles.is_empty() {
        let rewards = (oldest..=newest)
            .map(|number| match budget.stopped() {
                true => Err(Failure::QueryTimeout),
                false => rewards_at(snapshot, number, percentiles),
            })
            .collect::<Result<Vec<_>, _>>()?;
        object.member("reward").list(rewards, |json, block| {
            json.list(block, |json, reward| json.quantity_u128(reward));
        });
    }
    write_fees(snapshot, &headers, &mut object);
    object.end();
    Ok(())
}

fn header(snapshot: &Snapshot, number: u64) -> Result<Header, Failure> {
    snapshot.header(number)?.ok_or(Failure::Unavailable)
}

fn write_fees(snapshot: &Snapshot, headers: &[Header], object: &mut Object<'_>) {
    let chain = snapshot.chain();
    let next = headers.last().map(|head| chain.next_base_fee(head).unwrap_or(0));
    let base_fees = headers.iter().map(|header| header.base_fee_per_gas.unwrap_or(0)).chain(next);
    object.member("baseFeePerGas").list(base_fees, |json, fee| json.quantity(fee));
    let used = headers.iter().map(|header| ratio(header.gas_used, header.gas_limit));
    object.member("gasUsedRatio").list(used, |json, ratio| {
        json.raw(ratio.as_bytes());
    });

    let next = headers.last().map(|head| chain.next_blob_fee(head).unwrap_or(0));
    let blob_fees = headers.iter().map(|header| chain.blob_fee(header).unwrap_or(0)).chain(next);
    object.member("baseFeePerBlobGas").list(blob_fees, |json, fee| json.quantity_u128(fee));
    let used = headers.iter().map(|header| {
        let most = chain.blob_params_at(header.timestamp).map_or(0, |params| params.max_blob_gas_per_block());
        ratio(header.blob_gas_used.unwrap_or(0), most)
    });
    object.member("blobGasUsedRatio").list(used, |json, ratio| {
        json.raw(ratio.as_bytes());
    });
}

/// A JSON number. The shortest that reads back as the same, as geth writes it.
fn ratio(part: u64, whole: u64) -> String {
    if whole == 0 || part == 0 {
        return "0".to_owned();
    }
    let ratio = part as f64 / whole as f64;
    if ratio == 1.0 { "1".to_owned() } else { ratio.to_string() }
}

/// The rewards at these percentiles of the gas that a block used; zeros for a block without transactions.
fn rewards_at(snapshot: &Snapshot, number: u64, percentiles: &[Percentile]) -> Result<Vec<u128>, Failure> {
    let mut rewards = rewards(snapshot, number)?;
    rewards.sort_unstable();
    let gas_used: u64 = rewards.iter().map(|(_, gas)| gas).sum();
    Ok(percentiles.iter().map(|percentile| reward_at(&rewards, gas_used, *percentile)).collect())
}

fn reward_at(rewards: &[(u128, u64)], gas_used: u64, percentile: Percentile) -> u128 {
    let threshold = (gas_used as f64 * percentile.get() / 100.0) as u64;
    let mut sum = 0;
    for (reward, gas) in rewards {
        sum += gas;
        if sum >= threshold {
            return *reward;
        }
    }
    rewards.last().map_or(0, |(reward, _)| *reward)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ratios_are_plain_numbers() {
        for (part, whole, text) in
            [(0, 0, "0"), (0, 5, "0"), (5, 5, "1"), (1, 4, "0.25"), (1, 3, "0.3333333333333333")]
        {
            assert_eq!(ratio(part, whole), text);
        }
    }

    #[test]
    fn rewards_are_weighed_by_gas() {
        let rewards = [(1, 10), (2, 80), (9, 10)];
        for (percentile, reward) in [(0.0, 1), (10.0, 1), (11.0, 2), (90.0, 2), (91.0, 9), (100.0, 9)] {
            let percentile = Percentile::new(percentile).unwrap();
            assert_eq!(reward_at(&rewards, 100, percentile), reward, "at {percentile:?}");
        }
        assert_eq!(reward_at(&[], 0, Percentile::new(50.0).unwrap()), 0);
    }
}
