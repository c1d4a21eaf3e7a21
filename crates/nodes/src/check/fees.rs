//! A history of fees: its lists are as long as the range asked for.

use alloy_primitives::U256;
use serde::Deserialize;

use super::hex::Hex;
use super::{Facts, Lie};

/// What was asked about fees.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FeesAsked {
    /// The last block of the range.
    pub newest: u64,
    /// How many blocks at most; nodes give fewer at the start of a chain, or where they have a limit.
    pub count: u64,
    /// How many percentiles of priority fees.
    pub percentiles: usize,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct RawFees {
    oldest_block: Hex<u64>,
    #[serde(default)]
    base_fee_per_gas: Option<Vec<Hex<U256>>>,
    #[serde(default)]
    gas_used_ratio: Option<Vec<f64>>,
    #[serde(default)]
    reward: Option<Vec<Option<Vec<Hex<U256>>>>>,
}

impl RawFees {
    fn blocks(&self) -> usize {
        self.gas_used_ratio.as_ref().map_or(0, Vec::len)
    }

    fn is_of_range(&self, asked: &FeesAsked) -> bool {
        let blocks = self.blocks() as u64;
        let Some(more) = blocks.checked_sub(1) else { return asked.count == 0 };
        blocks <= asked.count && self.oldest_block.0.checked_add(more) == Some(asked.newest)
    }

    /// One base fee more than blocks: that of the block behind the range follows from the last one.
    fn has_base_fees(&self) -> bool {
        self.base_fee_per_gas.as_ref().is_none_or(|fees| fees.is_empty() || fees.len() == self.blocks() + 1)
    }

    fn has_rewards(&self, percentiles: usize) -> bool {
        let rows = self.reward.as_deref().unwrap_or_default();
        let whole = |row: &Option<Vec<_>>| row.as_ref().is_some_and(|row| row.len() == percentiles);
        percentiles == 0 || (rows.len() == self.blocks() && rows.iter().all(whole))
    }
}

pub(super) fn check(result: &[u8], asked: &FeesAsked) -> Result<Facts, Lie> {
    let fees: RawFees = serde_json::from_slice(result).map_err(|_| Lie::Shape)?;
    if !fees.is_of_range(asked) {
        return Err(Lie::OtherRange);
    }
    let whole = fees.has_base_fees() && fees.has_rewards(asked.percentiles);
    if whole { Ok(Facts { count: fees.blocks(), ..Facts::default() }) } else { Err(Lie::Shape) }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ASKED: FeesAsked = FeesAsked { newest: 0x11, count: 2, percentiles: 1 };

    fn judged(oldest: &str, fees: &str, ratios: &str, reward: &str) -> Result<usize, Lie> {
        let json = format!(
            r#"{{"oldestBlock":{oldest},"baseFeePerGas":{fees},"gasUsedRatio":{ratios},"reward":{reward}}}"#
        );
        check(json.as_bytes(), &ASKED).map(|facts| facts.count)
    }

    #[test]
    fn lists_are_as_long_as_the_range() {
        let (fees, ratios, reward) = (r#"["0x1","0x2","0x3"]"#, "[0.5,1]", r#"[["0x0"],["0x1"]]"#);
        assert_eq!(judged(r#""0x10""#, fees, ratios, reward), Ok(2));
        assert_eq!(judged(r#""0x11""#, r#"["0x1","0x2"]"#, "[0.5]", r#"[["0x0"]]"#), Ok(1));
        assert_eq!(judged(r#""0xf""#, fees, ratios, reward), Err(Lie::OtherRange));
        assert_eq!(judged(r#""0x10""#, fees, "[]", reward), Err(Lie::OtherRange));
        assert_eq!(judged(r#""0xffffffffffffffff""#, fees, ratios, reward), Err(Lie::OtherRange));
        assert_eq!(judged(r#""0x10""#, r#"["0x1"]"#, ratios, reward), Err(Lie::Shape));
        assert_eq!(judged(r#""0x10""#, fees, ratios, r#"[["0x0"]]"#), Err(Lie::Shape));
        assert_eq!(judged(r#""0x10""#, fees, ratios, r#"[["0x0"],[]]"#), Err(Lie::Shape));
        assert_eq!(judged("16", fees, ratios, reward), Err(Lie::Shape));
    }
}
