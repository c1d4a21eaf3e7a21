//! A transaction.

mod envelope; // what is signed, from what a node writes

use alloy_eips::eip2930::AccessList;
use alloy_eips::eip7702::SignedAuthorization;
use alloy_primitives::{Address, B256, Bytes, U64, U256};
use serde::Deserialize;

use super::hex::Hex;

/// A transaction as a node writes it. Types that chains have added lack most members.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct RawTransaction {
    #[serde(rename = "type")]
    kind: Option<Hex<u64>>,
    chain_id: Option<Hex<U64>>,
    nonce: Option<Hex<U64>>,
    gas: Option<Hex<U64>>,
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
}
