//! A header and its hash.

use alloy_consensus::Header;
use alloy_eips::eip4895::Withdrawal;
use alloy_primitives::{Address, B64, B256, Bloom, Bytes, U256};
use serde::Deserialize;
use serde_json::value::RawValue;

use super::hex::Hex;
use super::{Facts, Family, Lie, Verdict};
use crate::BlockId;
use crate::proven::has_gap;

/// How many blocks before the block that names it an uncle may be.
const UNCLE_AGE_MAX: u64 = 6;

/// A block or an uncle as a node writes it. What a family does without is optional here, and asked for later.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct RawBlock<'a> {
    pub(super) hash: Hex<B256>,
    pub(super) number: Hex<u64>,
    pub(super) parent_hash: Hex<B256>,
    pub(super) timestamp: Hex<u64>,
    pub(super) receipts_root: Option<Hex<B256>>,
    sha3_uncles: Option<Hex<B256>>,
    miner: Option<Hex<Address>>,
    state_root: Option<Hex<B256>>,
    transactions_root: Option<Hex<B256>>,
    logs_bloom: Option<Hex<Bloom>>,
    difficulty: Option<Hex<U256>>,
    gas_limit: Option<Hex<u64>>,
    gas_used: Option<Hex<u64>>,
    extra_data: Option<Hex<Bytes>>,
    mix_hash: Option<Hex<B256>>,
    nonce: Option<Hex<B64>>,
    base_fee_per_gas: Option<Hex<u64>>,
    withdrawals_root: Option<Hex<B256>>,
    blob_gas_used: Option<Hex<u64>>,
    excess_blob_gas: Option<Hex<u64>>,
    parent_beacon_block_root: Option<Hex<B256>>,
    requests_hash: Option<Hex<B256>>,
    block_access_list_hash: Option<Hex<B256>>,
    slot_number: Option<Hex<u64>>,
    #[serde(borrow)]
    pub(crate) transactions: Option<&'a RawValue>,
    pub(super) uncles: Option<Vec<Hex<B256>>>,
    pub(crate) withdrawals: Option<Vec<RawWithdrawal>>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct RawWithdrawal {
    index: Hex<u64>,
    validator_index: Hex<u64>,
    address: Hex<Address>,
    amount: Hex<u64>,
}

impl RawWithdrawal {
    pub(crate) fn decode(&self) -> Withdrawal {
        Withdrawal {
            index: self.index.0,
            validator_index: self.validator_index.0,
            address: self.address.0,
            amount: self.amount.0,
        }
    }
}

impl RawBlock<'_> {
    pub(super) fn id(&self) -> BlockId {
        BlockId { number: self.number.0, hash: self.hash.0 }
    }

    /// The header, once its hash is found to be the one it came with.
    pub(super) fn proven_header(&self) -> Result<Header, Lie> {
        let header = self.header().ok_or(Lie::Shape)?;
        if header.hash_slow() == self.hash.0 { Ok(header) } else { Err(Lie::HeaderHash) }
    }

    /// The header that its members make, whatever hash it came with.
    pub(crate) fn header(&self) -> Option<Header> {
        let header = Header {
            parent_hash: self.parent_hash.0,
            ommers_hash: value(&self.sha3_uncles)?,
            beneficiary: value(&self.miner)?,
            state_root: value(&self.state_root)?,
            transactions_root: value(&self.transactions_root)?,
            receipts_root: value(&self.receipts_root)?,
            logs_bloom: value(&self.logs_bloom)?,
            difficulty: value(&self.difficulty)?,
            number: self.number.0,
            gas_limit: value(&self.gas_limit)?,
            gas_used: value(&self.gas_used)?,
            timestamp: self.timestamp.0,
            extra_data: value(&self.extra_data)?,
            mix_hash: value(&self.mix_hash)?,
            nonce: value(&self.nonce)?,
            base_fee_per_gas: value(&self.base_fee_per_gas),
            withdrawals_root: value(&self.withdrawals_root),
            blob_gas_used: value(&self.blob_gas_used),
            excess_blob_gas: value(&self.excess_blob_gas),
            parent_beacon_block_root: value(&self.parent_beacon_block_root),
            requests_hash: value(&self.requests_hash),
            block_access_list_hash: value(&self.block_access_list_hash),
            slot_number: value(&self.slot_number),
        };
        (!has_gap(&header)).then_some(header)
    }
}

fn value<T: Clone>(member: &Option<Hex<T>>) -> Option<T> {
    member.as_ref().map(|hex| hex.0.clone())
}

/// An uncle is known by its own hash only if its block is; else by its age.
pub(super) fn check_uncle(result: &[u8], block: BlockId, hash: Option<B256>, family: Family) -> Verdict {
    // Parsers do not look into strings that nobody asks them for.
    let text = std::str::from_utf8(result).ok();
    let Some(raw) = text.and_then(|text| serde_json::from_str::<RawBlock<'_>>(text).ok()) else {
        return Verdict::Wrong(Lie::Shape);
    };
    match judge_uncle(&raw, block, family) {
        Err(lie) => Verdict::Wrong(lie),
        Ok(_) if hash.is_some_and(|hash| hash != raw.hash.0) => Verdict::Contradicted,
        Ok(facts) => Verdict::Sound(facts),
    }
}

fn judge_uncle(raw: &RawBlock<'_>, block: BlockId, family: Family) -> Result<Facts, Lie> {
    let age = block.number.checked_sub(raw.number.0);
    if !age.is_some_and(|age| (1..=UNCLE_AGE_MAX).contains(&age)) {
        return Err(Lie::OtherBlock);
    }
    let proven = family == Family::Ethereum;
    if proven {
        raw.proven_header()?;
    }
    Ok(Facts { block: Some(block), count: 1, proven, ..Facts::default() })
}
