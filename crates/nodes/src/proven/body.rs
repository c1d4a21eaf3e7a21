//! Header, transactions and withdrawals of a block.

use std::fmt;
use std::sync::OnceLock;

use alloy_consensus::constants::{EMPTY_ROOT_HASH, KECCAK_EMPTY};
use alloy_consensus::transaction::SignerRecoverable;
use alloy_consensus::{Header, InMemorySize, proofs};
use alloy_eips::eip4895::{Withdrawal, Withdrawals};
use alloy_primitives::{Address, B256};
use serde::de::{Error, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};

use super::{ProofFailure, SignedTransaction, Unproven};
use crate::BlockId;
use crate::raw::header::RawBlock;
use crate::raw::transaction::RawTransaction;

/// The most transactions of one block: many times what any chain puts into a block.
pub(crate) const TRANSACTIONS_MAX: usize = 65_536;

/// A block without its uncles and receipts, proven by its hash.
#[derive(Debug)]
pub struct ProvenBody {
    hash: B256,
    header: Header,
    transactions: Vec<SignedTransaction>,
    /// Recovered on first use, because a recovery takes longer than everything else about a transaction.
    senders: Box<[OnceLock<Option<Address>>]>,
    withdrawals: Option<Withdrawals>,
}

impl ProvenBody {
    /// Proves a delivered block with full transactions against its hash.
    pub fn prove(json: &[u8], hash: B256) -> Result<Self, Unproven> {
        Self::of(json, Some(hash))
    }

    /// Reads a delivered block of this number, with full transactions. Its parts are proven by the hash of its header; the caller must
    /// check that it is the right block.
    pub fn read_of_number(json: &[u8], number: u64) -> Result<Self, Unproven> {
        let body = Self::of(json, None)?;
        if body.header.number == number { Ok(body) } else { Err(ProofFailure::OtherNumber.into()) }
    }

    fn of(json: &[u8], expected: Option<B256>) -> Result<Self, Unproven> {
        if json.trim_ascii() == b"null" {
            return Err(Unproven::NotThere);
        }
        let raw: RawBlock<'_> = serde_json::from_slice(json).map_err(|_| ProofFailure::Malformed)?;
        let hash = raw.header_as_named()?.hash_slow();
        if expected.is_some_and(|expected| expected != hash) {
            return Err(ProofFailure::HeaderHash.into());
        }
        let header = raw.header()?;
        let transactions = transactions(&raw)?;
        let is_empty = transactions.is_empty() && is_root_of_nothing(&header.transactions_root);
        if !is_empty && proofs::calculate_transaction_root(&transactions) != header.transactions_root {
            return Err(ProofFailure::TransactionsRoot.into());
        }
        let withdrawals = withdrawals(&raw, &header)?;
        Ok(Self::restored(hash, header, transactions, withdrawals))
    }

    /// A block that was proven before it was stored.
    pub fn restored(
        hash: B256,
        header: Header,
        transactions: Vec<SignedTransaction>,
        withdrawals: Option<Withdrawals>,
    ) -> Self {
        // Hashed now, and cached in the transaction.
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

    /// The position of a transaction in the block.
    pub fn position(&self, transaction: &B256) -> Option<usize> {
        self.transactions.iter().position(|other| other.tx_hash() == transaction)
    }

    /// The signer of a transaction. `None` if there is no such transaction, or its signature is invalid.
    pub fn sender(&self, index: usize) -> Option<Address> {
        let (transaction, sender) = (self.transactions.get(index)?, self.senders.get(index)?);
        // Before Homestead, signatures of either half of the curve were valid.
        *sender.get_or_init(|| transaction.recover_signer_unchecked().ok())
    }

    /// Whether the block has no receipts.
    pub(crate) fn has_no_receipts(&self) -> bool {
        self.transactions.is_empty() && is_root_of_nothing(&self.header.receipts_root)
    }

    /// Its approximate size in memory.
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

/// Whether a header commits to an empty list by this root. Some test nodes hash nothing at all in their first block, instead of an
/// empty list, and no other list has that root.
pub(crate) fn is_root_of_nothing(root: &B256) -> bool {
    *root == EMPTY_ROOT_HASH || *root == KECCAK_EMPTY
}

fn transactions(raw: &RawBlock<'_>) -> Result<Vec<SignedTransaction>, Unproven> {
    let text = raw.transactions.ok_or(ProofFailure::Malformed)?;
    let list: TransactionList = serde_json::from_str(text.get()).map_err(|_| ProofFailure::Malformed)?;
    list.0.iter().map(signed).collect()
}

/// The transactions of a block as a node writes them. A list that is too long is refused before it is parsed.
struct TransactionList(Vec<RawTransaction>);

impl<'de> Deserialize<'de> for TransactionList {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_seq(TransactionListVisitor)
    }
}

struct TransactionListVisitor;

impl<'de> Visitor<'de> for TransactionListVisitor {
    type Value = TransactionList;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "at most {TRANSACTIONS_MAX} transactions")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut sequence: A) -> Result<Self::Value, A::Error> {
        let mut list = Vec::new();
        while let Some(transaction) = sequence.next_element()? {
            if list.len() == TRANSACTIONS_MAX {
                return Err(Error::invalid_length(list.len() + 1, &self));
            }
            list.push(transaction);
        }
        Ok(TransactionList(list))
    }
}

/// The signed transaction of what a node writes.
pub(super) fn signed(raw: &RawTransaction) -> Result<SignedTransaction, Unproven> {
    let envelope = raw.envelope()?;
    envelope.ok_or_else(|| Unproven::UnknownType(raw.kind()))
}

fn withdrawals(raw: &RawBlock<'_>, header: &Header) -> Result<Option<Withdrawals>, ProofFailure> {
    // Before Shanghai, some nodes write an empty list.
    let Some(root) = header.withdrawals_root else { return Ok(None) };
    let list = raw.withdrawals.as_deref().ok_or(ProofFailure::WithdrawalsRoot)?;
    let list: Vec<_> = list.iter().map(|withdrawal| withdrawal.decode()).collect();
    let is_empty = list.is_empty() && is_root_of_nothing(&root);
    if !is_empty && proofs::calculate_withdrawals_root(&list) != root {
        return Err(ProofFailure::WithdrawalsRoot);
    }
    Ok(Some(Withdrawals::new(list)))
}
