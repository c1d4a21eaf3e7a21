//! Fee suggestions and fee histories, computed from headers and transactions of any source.

use alloy_eips::eip7840::BlobParams;
use alloy_primitives::B256;
use methods::Percentile;
use nodes::proven::FeeFields;
use parking_lot::Mutex;

use super::json::Json;

/// Blocks that a suggestion looks back over, as geth does.
pub const SUGGESTION_BLOCKS: u64 = 20;

/// The share of transactions that paid less than what is suggested, as geth does.
const SUGGESTION_PERCENTILE: usize = 60;

/// The suggestion where recent blocks have no transactions: one gwei, which every node accepts.
const PRIORITY_FEE_DEFAULT: u128 = 1_000_000_000;

/// Blocks that one history may span, as geth does.
pub const HISTORY_BLOCKS_MAX: u64 = 1024;

/// The priority fee per gas that a transaction paid, and the gas that it used.
pub type Reward = (u128, u64);

/// A suggestion that is computed once for each head, because it takes the transactions of many blocks.
#[derive(Debug)]
pub struct Suggested<T> {
    /// The hash of a head, and what is suggested there.
    remembered: Mutex<Option<(B256, T)>>,
}

impl<T> Default for Suggested<T> {
    fn default() -> Self {
        Self { remembered: Mutex::new(None) }
    }
}

impl<T: Copy> Suggested<T> {
    pub fn at(&self, head: B256) -> Option<T> {
        self.remembered.lock().filter(|(known, _)| *known == head).map(|(_, suggested)| suggested)
    }

    pub fn remember(&self, head: B256, suggested: T) {
        *self.remembered.lock() = Some((head, suggested));
    }
}

/// A suggested priority fee.
pub type PriorityFee = Suggested<u128>;

/// The suggestion that follows from what the transactions of the newest blocks paid.
pub fn suggested_priority_fee(mut paid: Vec<u128>) -> u128 {
    paid.sort_unstable();
    let at = paid.len().saturating_sub(1) * SUGGESTION_PERCENTILE / 100;
    paid.get(at).copied().unwrap_or(PRIORITY_FEE_DEFAULT)
}

/// The fees of one block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockFees {
    pub base_fee: u64,
    pub gas_used: u64,
    pub gas_limit: u64,
    pub blob_fee: u128,
    pub blob_gas_used: u64,
    pub blob_gas_max: u64,
}

impl BlockFees {
    /// The fees of a block with these blob parameters.
    pub fn of(fields: &FeeFields, blobs: Option<BlobParams>) -> Self {
        let blob_fee = blobs.zip(fields.excess_blob_gas).map(|(params, excess)| params.calc_blob_fee(excess));
        Self {
            base_fee: fields.base_fee.unwrap_or(0),
            gas_used: fields.gas_used,
            gas_limit: fields.gas_limit,
            blob_fee: blob_fee.unwrap_or(0),
            blob_gas_used: fields.blob_gas_used.unwrap_or(0),
            blob_gas_max: blobs.map_or(0, |params| params.max_blob_gas_per_block()),
        }
    }
}

/// The fees of some blocks, and of the one after them.
#[derive(Debug)]
pub struct FeeHistory {
    pub oldest: u64,
    pub blocks: Vec<BlockFees>,
    /// The base fee and the blob fee of the block after them.
    pub next: (u64, u128),
    /// For each block, the rewards at the percentiles that were asked for.
    pub rewards: Option<Vec<Vec<u128>>>,
}

impl FeeHistory {
    pub fn write(self, json: &mut Json<'_>) {
        let mut object = json.object();
        object.member("oldestBlock").quantity(self.oldest);
        if let Some(rewards) = self.rewards {
            object.member("reward").list(rewards, |json, block| {
                json.list(block, |json, reward| json.quantity_u128(reward));
            });
        }
        let (next_base_fee, next_blob_fee) = self.next;
        let base_fees = self.blocks.iter().map(|block| block.base_fee).chain([next_base_fee]);
        object.member("baseFeePerGas").list(base_fees, |json, fee| json.quantity(fee));
        object.member("gasUsedRatio").list(&self.blocks, |json, block| {
            json.raw(ratio(block.gas_used, block.gas_limit).as_bytes());
        });
        let blob_fees = self.blocks.iter().map(|block| block.blob_fee).chain([next_blob_fee]);
        object.member("baseFeePerBlobGas").list(blob_fees, |json, fee| json.quantity_u128(fee));
        object.member("blobGasUsedRatio").list(&self.blocks, |json, block| {
            json.raw(ratio(block.blob_gas_used, block.blob_gas_max).as_bytes());
        });
        object.end();
    }
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
pub fn rewards_at(mut rewards: Vec<Reward>, percentiles: &[Percentile]) -> Vec<u128> {
    rewards.sort_unstable();
    let gas_used: u64 = rewards.iter().map(|(_, gas)| gas).sum();
    percentiles.iter().map(|percentile| reward_at(&rewards, gas_used, *percentile)).collect()
}

fn reward_at(rewards: &[Reward], gas_used: u64, percentile: Percentile) -> u128 {
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
