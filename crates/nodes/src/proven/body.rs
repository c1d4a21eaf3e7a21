//! Header, transactions and withdrawals of a block.

use std::sync::OnceLock;

use alloy_consensus::constants::EMPTY_ROOT_HASH;
use alloy_consensus::transaction::SignerRecoverable;
use alloy_consensus::{Header, InMemorySize, proofs};
use alloy_eips::eip4895::{Withdrawal, Withdrawals};
use alloy_primitives::{Address, B256};

use super::{ProofFailure, SignedTransaction, Unproven};
use crate::BlockId;
use crate::check::header::RawBlock;
use crate::check::transaction::RawTransaction;

/// A block without its uncles and receipts, proven by its hash.
#[derive(Debug)]
pub struct ProvenBody {
    hash: B256,
    header: Header,
    transactions: Vec<SignedTransaction>,
    /// Recovered when they are first asked for, because a recovery takes longer than all the rest of a transaction.
    senders: Box<[OnceLock<Option<Address>>]>,
    withdrawals: Option<Withdrawals>,
}

impl ProvenBody {
    /// Proves what a node delivered as the block of this hash, with whole transactions.
    pub fn prove(json: &[u8], hash: B256) -> Result<Self, Unproven> {
        Self::of(json, Some(hash))
    }

    /// Reads what a node delivered as some block, with whole transactions. Its parts fit together under the hash of its header;
    /// whether it is the block that was meant is for the caller to see.
    pub fn read(json: &[u8]) -> Result<Self, Unproven> {
        Self::of(json, None)
    }

    fn of(json: &[u8], expected: Option<B256>) -> Result<Self, Unproven> {
        if json.trim_ascii() == b"null" {
            return Err(Unproven::NotThere);
        }
        let raw: RawBlock<'_> = serde_json::from_slice(json).map_err(|_| ProofFailure::Malformed)?;
        let header = raw.header().ok_or(ProofFailure::Malformed)?;
        let hash = header.hash_slow();
        if expected.is_some_and(|expected| expected != hash) {
            return Err(ProofFailure::HeaderHash.into());
        }
        let transactions = transactions(&raw)?;
        if proofs::calculate_transaction_root(&transactions) != header.transactions_root {
            return Err(ProofFailure::TransactionsRoot.into());
        }
        let withdrawals = withdrawals(&raw, &header)?;
        Ok(Self::restored(hash, header, transactions, withdrawals))
    }

    /// A block that was proven before and kept since.
    pub fn restored(
        hash: B256,
        header: Header,
        transactions: Vec<SignedTransaction>,
        withdrawals: Option<Withdrawals>,
    ) -> Self {
        // Hashed here, where there is time, and remembered in the transaction.
        transactions.iter().for_each(|transaction| _ = transaction.tx_hash());
        let senders = transactions.iter().map(|_| OnceLock::new()).collect();
        Self { hash, header, transactions, senders, withdrawals }
    }

    pub fn hash(&self) -> B256 {
        self.hash
    }

    pub fn id(&self) -> BlockId {
        BlockId { number: self.header.number, hash: self.hash }
    }

    pub fn header(&self) -> &Header {
        &self.header
    }

    pub fn transactions(&self) -> &[SignedTransaction] {
        &self.transactions
    }

    pub fn withdrawals(&self) -> Option<&Withdrawals> {
        self.withdrawals.as_ref()
    }

    /// Where in the block a transaction is.
    pub fn position(&self, transaction: &B256) -> Option<usize> {
        self.transactions.iter().position(|other| other.tx_hash() == transaction)
    }

    /// Who signed a transaction. `None` if there is no such transaction, or nobody can have made its signature.
    pub fn sender(&self, index: usize) -> Option<Address> {
        let (transaction, sender) = (self.transactions.get(index)?, self.senders.get(index)?);
        // Before Homestead, signatures of either half of the curve were good.
        *sender.get_or_init(|| transaction.recover_signer_unchecked().ok())
    }

    /// Whether there is nothing to fetch to know its receipts.
    pub fn has_no_receipts(&self) -> bool {
        self.transactions.is_empty() && self.header.receipts_root == EMPTY_ROOT_HASH
    }

    /// What it takes in memory, about.
    pub fn bytes(&self) -> usize {
        let transactions: usize = self.transactions.iter().map(InMemorySize::size).sum();
        let withdrawals = self.withdrawals.as_ref().map_or(0, |list| list.len());
        size_of::<Self>()
            + transactions
            + self.senders.len() * size_of::<OnceLock<Option<Address>>>()
            + withdrawals * size_of::<Withdrawal>()
            + self.header.extra_data.len()
    }
}

fn transactions(raw: &RawBlock<'_>) -> Result<Vec<SignedTransaction>, Unproven> {
    let text = raw.transactions.ok_or(ProofFailure::Malformed)?;
    let list: Vec<RawTransaction> = serde_json::from_str(text.get()).map_err(|_| ProofFailure::Malformed)?;
    list.iter().map(signed).collect()
}

/// The transaction that was signed, from what a node writes.
pub(super) fn signed(raw: &RawTransaction) -> Result<SignedTransaction, Unproven> {
    let envelope = raw.envelope().map_err(|_| ProofFailure::Malformed)?;
    envelope.ok_or_else(|| Unproven::UnknownType(raw.kind()))
}

fn withdrawals(raw: &RawBlock<'_>, header: &Header) -> Result<Option<Withdrawals>, ProofFailure> {
    // Before Shanghai, some nodes write an empty list.
    let Some(root) = header.withdrawals_root else { return Ok(None) };
    let list = raw.withdrawals.as_deref().ok_or(ProofFailure::WithdrawalsRoot)?;
    let list: Vec<_> = list.iter().map(|withdrawal| withdrawal.decode()).collect();
    if proofs::calculate_withdrawals_root(&list) != root {
        return Err(ProofFailure::WithdrawalsRoot);
    }
    Ok(Some(Withdrawals::new(list)))
}
