//! A transaction, its hash and its sender.

mod envelope; // what is signed, from what a node writes

use alloy_consensus::transaction::SignerRecoverable;
use alloy_eips::eip2930::AccessList;
use alloy_eips::eip7702::SignedAuthorization;
use alloy_primitives::{Address, B256, Bytes, U256};
use serde::Deserialize;

use super::hex::Hex;
use super::{Facts, Family, Lie};
use crate::BlockId;

pub(super) use envelope::Envelope;

/// A transaction as a node writes it. Chains add types that do without most of it.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct RawTransaction {
    pub(super) hash: Hex<B256>,
    from: Hex<Address>,
    block_hash: Option<Hex<B256>>,
    block_number: Option<Hex<u64>>,
    transaction_index: Option<Hex<u64>>,
    #[serde(rename = "type")]
    kind: Option<Hex<u64>>,
    chain_id: Option<Hex<u64>>,
    nonce: Option<Hex<u64>>,
    gas: Option<Hex<u64>>,
    gas_price: Option<Hex<u128>>,
    max_fee_per_gas: Option<Hex<u128>>,
    max_priority_fee_per_gas: Option<Hex<u128>>,
    max_fee_per_blob_gas: Option<Hex<u128>>,
    to: Option<Hex<Address>>,
    value: Option<Hex<U256>>,
    input: Option<Hex<Bytes>>,
    access_list: Option<AccessList>,
    blob_versioned_hashes: Option<Vec<Hex<B256>>>,
    authorization_list: Option<Vec<SignedAuthorization>>,
    v: Option<Hex<u128>>,
    y_parity: Option<Hex<u64>>,
    r: Option<Hex<U256>>,
    s: Option<Hex<U256>>,
}

impl RawTransaction {
    /// Its EIP-2718 type; zero for a legacy one, for which some nodes write none.
    pub(crate) fn kind(&self) -> u64 {
        self.kind.as_ref().map_or(0, |kind| kind.0)
    }

    /// The block it is in; `None` while it is pending.
    fn block(&self) -> Result<Option<BlockId>, Lie> {
        match (&self.block_hash, &self.block_number) {
            (Some(hash), Some(number)) => Ok(Some(BlockId { number: number.0, hash: hash.0 })),
            (None, None) => Ok(None),
            _ => Err(Lie::Shape),
        }
    }

    /// Whether it is in this block, at this place.
    pub(super) fn judge_place(&self, block: BlockId, index: u64) -> Result<(), Lie> {
        if self.block()? != Some(block) {
            return Err(Lie::OtherBlock);
        }
        self.judge_index(index)
    }

    fn judge_index(&self, index: u64) -> Result<(), Lie> {
        if self.transaction_index == Some(Hex(index)) { Ok(()) } else { Err(Lie::OtherIndex) }
    }

    /// What was signed, once its hash and its sender are found to be those it came with. `None` if it is of a type
    /// that we do not know.
    pub(super) fn proven(&self) -> Result<Option<Envelope>, Lie> {
        let Some(envelope) = self.envelope()? else { return Ok(None) };
        if *envelope.tx_hash() != self.hash.0 {
            return Err(Lie::TransactionHash);
        }
        // Before Homestead, signatures of either half of the curve were good.
        match envelope.recover_signer_unchecked() {
            Ok(sender) if sender == self.from.0 => Ok(Some(envelope)),
            _ => Err(Lie::Sender),
        }
    }
}

pub(super) fn check(
    result: &[u8],
    hash: Option<B256>,
    block: Option<BlockId>,
    index: Option<u64>,
    family: Family,
) -> Result<Facts, Lie> {
    let raw: RawTransaction = serde_json::from_slice(result).map_err(|_| Lie::Shape)?;
    if hash.is_some_and(|hash| hash != raw.hash.0) {
        return Err(Lie::OtherTransaction);
    }
    let found = raw.block()?;
    if block.is_some() && found != block {
        return Err(Lie::OtherBlock);
    }
    if let Some(index) = index {
        raw.judge_index(index)?;
    }
    // One that is in a block has a place there.
    if found.is_some() && raw.transaction_index.is_none() {
        return Err(Lie::Shape);
    }
    let proven = family == Family::Ethereum && raw.proven()?.is_some();
    Ok(Facts { block: found, count: 1, proven, ..Facts::default() })
}
