//! A block and its roots.

use std::collections::HashSet;
use std::sync::Arc;

use alloy_consensus::constants::{EMPTY_OMMER_ROOT_HASH, EMPTY_ROOT_HASH};
use alloy_consensus::{Header, proofs};
use alloy_primitives::B256;

use super::header::{RawBlock, RawWithdrawal};
use super::hex::Hex;
use super::transaction::RawTransaction;
use super::{BlockFacts, Facts, Family, Lie};

/// A block names at most two uncles.
const UNCLES_MAX: usize = 2;

pub(super) fn check(
    result: &[u8],
    hash: Option<B256>,
    number: Option<u64>,
    full: bool,
    family: Family,
) -> Result<Facts, Lie> {
    let raw: RawBlock<'_> = serde_json::from_slice(result).map_err(|_| Lie::Shape)?;
    let other_hash = hash.is_some_and(|hash| hash != raw.hash.0);
    if other_hash || number.is_some_and(|number| number != raw.number.0) {
        return Err(Lie::OtherBlock);
    }
    let header = match family {
        Family::Ethereum => Some(raw.proven_header()?),
        Family::Zksync => None,
    };
    let body = if full { whole(&raw, family)? } else { hashes(&raw)? };
    if let Some(header) = &header {
        judge_body(&raw, header, &body)?;
    }
    judge_unique(&body.hashes)?;
    Ok(facts(&raw, body, header.is_some()))
}

/// What a block says of its transactions.
struct Body {
    hashes: Vec<B256>,
    /// Their root, if all of them are there and of a type that we know.
    root: Option<B256>,
    /// Whether there are transactions of a type that Ethereum does not have.
    foreign: bool,
}

fn hashes(raw: &RawBlock<'_>) -> Result<Body, Lie> {
    let transactions = raw.transactions.ok_or(Lie::Shape)?;
    let hashes: Vec<Hex<B256>> = serde_json::from_str(transactions.get()).map_err(|_| Lie::Shape)?;
    Ok(Body { hashes: hashes.into_iter().map(|hash| hash.0).collect(), root: None, foreign: false })
}

fn whole(raw: &RawBlock<'_>, family: Family) -> Result<Body, Lie> {
    let transactions = raw.transactions.ok_or(Lie::Shape)?;
    let transactions: Vec<RawTransaction> =
        serde_json::from_str(transactions.get()).map_err(|_| Lie::Shape)?;
    for (index, transaction) in transactions.iter().enumerate() {
        transaction.judge_place(raw.id(), index as u64)?;
    }
    let hashes = transactions.iter().map(|transaction| transaction.hash.0).collect();
    if family == Family::Zksync {
        return Ok(Body { hashes, root: None, foreign: true });
    }
    let envelopes: Vec<_> = transactions.iter().map(RawTransaction::proven).collect::<Result<_, _>>()?;
    let known: Option<Vec<_>> = envelopes.into_iter().collect();
    let root = known.map(|known| proofs::calculate_transaction_root(&known));
    Ok(Body { hashes, root, foreign: root.is_none() })
}

fn judge_body(raw: &RawBlock<'_>, header: &Header, body: &Body) -> Result<(), Lie> {
    let none = header.transactions_root == EMPTY_ROOT_HASH;
    // A chain with other types may keep some of its transactions out of the root.
    let fits = body.foreign || body.hashes.is_empty() == none;
    if !fits || body.root.is_some_and(|root| root != header.transactions_root) {
        return Err(Lie::TransactionsRoot);
    }
    judge_uncles(raw.uncles.as_deref().unwrap_or_default(), header)?;
    // Such a chain uses the withdrawals root for something else, too.
    if body.foreign { Ok(()) } else { judge_withdrawals(raw.withdrawals.as_deref(), header) }
}

/// The header has the hash of the uncles' headers, and only their hashes are here: all that can be said is whether
/// there are any.
fn judge_uncles(uncles: &[Hex<B256>], header: &Header) -> Result<(), Lie> {
    let none = header.ommers_hash == EMPTY_OMMER_ROOT_HASH;
    let twice = uncles.len() > 1 && uncles[0] == uncles[1];
    let sensible = uncles.is_empty() == none && uncles.len() <= UNCLES_MAX && !twice;
    if sensible { Ok(()) } else { Err(Lie::Uncles) }
}

fn judge_withdrawals(withdrawals: Option<&[RawWithdrawal]>, header: &Header) -> Result<(), Lie> {
    let fits = match (header.withdrawals_root, withdrawals) {
        (Some(root), Some(withdrawals)) => {
            let withdrawals: Vec<_> = withdrawals.iter().map(RawWithdrawal::decode).collect();
            proofs::calculate_withdrawals_root(&withdrawals) == root
        }
        (Some(_), None) => false,
        // Before Shanghai, some nodes write an empty list.
        (None, withdrawals) => withdrawals.is_none_or(<[_]>::is_empty),
    };
    if fits { Ok(()) } else { Err(Lie::WithdrawalsRoot) }
}

fn judge_unique(hashes: &[B256]) -> Result<(), Lie> {
    let distinct: HashSet<_> = hashes.iter().collect();
    if distinct.len() == hashes.len() { Ok(()) } else { Err(Lie::TransactionsRoot) }
}

fn facts(raw: &RawBlock<'_>, body: Body, header_proven: bool) -> Facts {
    let count = body.hashes.len();
    let proven = header_proven && (count == 0 || body.root.is_some());
    let uncles = raw.uncles.as_deref().unwrap_or_default();
    let header = BlockFacts {
        id: raw.id(),
        parent: raw.parent_hash.0,
        timestamp: raw.timestamp.0,
        receipts_root: raw.receipts_root.as_ref().map(|root| root.0).unwrap_or_default(),
        transactions: Some(body.hashes),
        uncles: uncles.iter().map(|hash| hash.0).collect(),
    };
    Facts { block: Some(raw.id()), count, proven, header: Some(Arc::new(header)), ..Facts::default() }
}
