//! The block that a node names for a transaction. It is a claim, which that block proves or disproves.

use alloy_consensus::transaction::SignerRecoverable;
use alloy_primitives::{Address, B256};
use serde::Deserialize;

use super::body::signed;
use super::{ProofFailure, SignedTransaction, Unproven};
use crate::BlockId;
use crate::raw::hex::Hex;
use crate::raw::transaction::RawTransaction;

/// The block that a node names for a transaction.
#[derive(Debug)]
pub enum LocationClaim {
    Block(BlockId),
    /// It is pending. The hash proves its content, but not that it is pending.
    Pending(Box<PendingTransaction>),
    /// The node knows of no such transaction.
    Nowhere,
}

/// A transaction that is in no block yet.
#[derive(Debug)]
pub struct PendingTransaction {
    pub transaction: SignedTransaction,
    pub sender: Address,
}

/// The members that name the block.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct RawLocation {
    block_hash: Option<Hex<B256>>,
    block_number: Option<Hex<u64>>,
}

impl LocationClaim {
    /// Reads the answer to a look-up of a transaction by its hash.
    pub fn of_transaction(json: &[u8], hash: B256) -> Result<Self, Unproven> {
        match Self::read(json)? {
            Some(claim) => Ok(claim),
            None => pending(json, hash).map(Box::new).map(Self::Pending),
        }
    }

    /// Reads the answer to a look-up of a receipt by its transaction's hash. A receipt must name a block.
    pub fn of_receipt(json: &[u8]) -> Result<Self, Unproven> {
        Self::read(json)?.ok_or(Unproven::Wrong(ProofFailure::Malformed))
    }

    /// `None` if both members are null.
    fn read(json: &[u8]) -> Result<Option<Self>, ProofFailure> {
        if json.trim_ascii() == b"null" {
            return Ok(Some(Self::Nowhere));
        }
        let raw: RawLocation = serde_json::from_slice(json).map_err(|_| ProofFailure::Malformed)?;
        match (raw.block_hash, raw.block_number) {
            (Some(hash), Some(number)) => Ok(Some(Self::Block(BlockId { number: number.0, hash: hash.0 }))),
            (None, None) => Ok(None),
            _ => Err(ProofFailure::Malformed),
        }
    }
}

fn pending(json: &[u8], hash: B256) -> Result<PendingTransaction, Unproven> {
    let raw: RawTransaction = serde_json::from_slice(json).map_err(|_| ProofFailure::Malformed)?;
    let transaction = signed(&raw)?;
    let sender = transaction.recover_signer_unchecked();
    match sender {
        Ok(sender) if *transaction.tx_hash() == hash => Ok(PendingTransaction { transaction, sender }),
        _ => Err(ProofFailure::Malformed.into()),
    }
}
