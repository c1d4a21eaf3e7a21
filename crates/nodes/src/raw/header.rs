//! A block and its header.

use alloy_consensus::Header;
use alloy_eips::eip4895::Withdrawal;
use alloy_primitives::{Address, B64, B256, Bloom, Bytes, U64, U256};
use alloy_rlp::Decodable;
use serde::Deserialize;
use serde_json::value::RawValue;

use super::hex::Hex;
use crate::proof_failure::{ProofFailure, Unproven};

/// A block or an uncle as a node writes it. Members that forks have added are optional here, and checked later.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct RawBlock<'a> {
    number: Hex<u64>,
    parent_hash: Hex<B256>,
    timestamp: Hex<u64>,
    receipts_root: Option<Hex<B256>>,
    sha3_uncles: Option<Hex<B256>>,
    miner: Option<Hex<Address>>,
    state_root: Option<Hex<B256>>,
    transactions_root: Option<Hex<B256>>,
    logs_bloom: Option<Hex<Bloom>>,
    difficulty: Option<Hex<U256>>,
    /// Any number: nodes without a limit write the greatest one.
    gas_limit: Option<Hex<U64>>,
    gas_used: Option<Hex<u64>>,
    extra_data: Option<Hex<Bytes>>,
    mix_hash: Option<Hex<B256>>,
    nonce: Option<Hex<B64>>,
    base_fee_per_gas: Option<Hex<U64>>,
    withdrawals_root: Option<Hex<B256>>,
    blob_gas_used: Option<Hex<u64>>,
    excess_blob_gas: Option<Hex<u64>>,
    parent_beacon_block_root: Option<Hex<B256>>,
    requests_hash: Option<Hex<B256>>,
    block_access_list_hash: Option<Hex<B256>>,
    slot_number: Option<Hex<u64>>,
    #[serde(borrow)]
    pub(crate) transactions: Option<&'a RawValue>,
    pub(crate) withdrawals: Option<Vec<RawWithdrawal>>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct RawWithdrawal {
    index: Hex<u64>,
    validator_index: Hex<u64>,
    address: Hex<Address>,
    amount: Hex<U64>,
}

impl RawWithdrawal {
    pub(crate) fn decode(&self) -> Withdrawal {
        Withdrawal {
            index: self.index.0,
            validator_index: self.validator_index.0,
            address: self.address.0,
            amount: self.amount.0.to(),
        }
    }
}

impl RawBlock<'_> {
    /// The header of these members, whatever the hash in the reply. Its names are those that its hash covers.
    pub(crate) fn header(&self) -> Result<Header, Unproven> {
        let header = self.header_as_named()?;
        if has_gap(&header) { Err(Unproven::OddHeader) } else { Ok(header) }
    }

    /// The same, with the names as the node says them. They are certain up to the nonce, and only without a gap for the rest.
    pub(crate) fn header_as_named(&self) -> Result<Header, ProofFailure> {
        let header = self.members().map_err(|_| ProofFailure::Malformed)?;
        // The values are those of a usual header, so the node has written them under other names.
        let is_renamed = || Header::decode(&mut &alloy_rlp::encode(&header)[..]).is_ok();
        if has_gap(&header) && is_renamed() { Err(ProofFailure::Malformed) } else { Ok(header) }
    }

    /// The first member of every header that is missing.
    pub(crate) fn missing_member(&self) -> Option<&'static str> {
        self.members().err()
    }

    /// The header of the members as they are named, or the name of one that is missing.
    fn members(&self) -> Result<Header, &'static str> {
        Ok(Header {
            parent_hash: self.parent_hash.0,
            ommers_hash: value(&self.sha3_uncles).ok_or("sha3Uncles")?,
            beneficiary: value(&self.miner).ok_or("miner")?,
            state_root: value(&self.state_root).ok_or("stateRoot")?,
            transactions_root: value(&self.transactions_root).ok_or("transactionsRoot")?,
            receipts_root: value(&self.receipts_root).ok_or("receiptsRoot")?,
            logs_bloom: value(&self.logs_bloom).ok_or("logsBloom")?,
            difficulty: value(&self.difficulty).ok_or("difficulty")?,
            number: self.number.0,
            gas_limit: value(&self.gas_limit).ok_or("gasLimit")?.to(),
            gas_used: value(&self.gas_used).ok_or("gasUsed")?,
            timestamp: self.timestamp.0,
            extra_data: value(&self.extra_data).ok_or("extraData")?,
            mix_hash: value(&self.mix_hash).ok_or("mixHash")?,
            nonce: value(&self.nonce).ok_or("nonce")?,
            base_fee_per_gas: value(&self.base_fee_per_gas).map(|fee| fee.to()),
            withdrawals_root: value(&self.withdrawals_root),
            blob_gas_used: value(&self.blob_gas_used),
            excess_blob_gas: value(&self.excess_blob_gas),
            parent_beacon_block_root: value(&self.parent_beacon_block_root),
            requests_hash: value(&self.requests_hash),
            block_access_list_hash: value(&self.block_access_list_hash),
            slot_number: value(&self.slot_number),
        })
    }
}

fn value<T: Clone>(member: &Option<Hex<T>>) -> Option<T> {
    member.as_ref().map(|hex| hex.0.clone())
}

/// Whether a member is missing before one that is present. The hash of a header covers the values of its members and not their names,
/// so a value that is moved to a later member does not change the hash. The first blocks of some test nodes are really like that.
pub(crate) fn has_gap(header: &Header) -> bool {
    let members = [
        header.base_fee_per_gas.is_some(),
        header.withdrawals_root.is_some(),
        header.blob_gas_used.is_some(),
        header.excess_blob_gas.is_some(),
        header.parent_beacon_block_root.is_some(),
        header.requests_hash.is_some(),
        header.block_access_list_hash.is_some(),
        header.slot_number.is_some(),
    ];
    members.windows(2).any(|pair| pair == [false, true])
}
