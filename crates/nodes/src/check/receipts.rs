//! The receipts of a block: one after another they tell one story, and their root is the header's.

use std::collections::HashSet;

use alloy_consensus::constants::EMPTY_ROOT_HASH;
use alloy_consensus::{ReceiptEnvelope, proofs};
use alloy_primitives::B256;

use super::cursor::Cursor;
use super::log::LogReader;
use super::receipt::RawReceipt;
use super::{BlockFacts, Facts, Family, Lie, Verdict};
use crate::BlockId;

pub(super) fn check(result: &[u8], block: BlockId, header: Option<&BlockFacts>, family: Family) -> Verdict {
    let Some(receipts) = read(result) else { return Verdict::Wrong(Lie::Shape) };
    if receipts.is_empty() {
        return judge_none(block, header, family);
    }
    match judge(&receipts, block, header, family) {
        Ok(_) if !are_listed(&receipts, header) => Verdict::Contradicted,
        Ok(proven) => {
            Verdict::Sound(Facts { block: Some(block), count: receipts.len(), proven, ..Facts::default() })
        }
        Err(lie) => Verdict::Wrong(lie),
    }
}

pub(crate) fn read(result: &[u8]) -> Option<Vec<RawReceipt<'_>>> {
    let (mut cursor, mut reader) = (Cursor::new(result), LogReader::new());
    let mut receipts = Vec::new();
    cursor.expect(b'[')?;
    if !cursor.take(b']') {
        receipts.push(RawReceipt::read(&mut cursor, &mut reader)?);
        while cursor.take(b',') {
            receipts.push(RawReceipt::read(&mut cursor, &mut reader)?);
        }
        cursor.expect(b']')?;
    }
    cursor.end().map(|()| receipts)
}

/// An empty list is only true if the header says so.
fn judge_none(block: BlockId, header: Option<&BlockFacts>, family: Family) -> Verdict {
    let Some(header) = header else { return Verdict::Empty };
    let sound = |proven| Verdict::Sound(Facts { block: Some(block), proven, ..Facts::default() });
    match (family, &header.transactions) {
        (Family::Ethereum, _) if header.receipts_root == EMPTY_ROOT_HASH => sound(true),
        (Family::Ethereum, _) => Verdict::Wrong(Lie::ReceiptsRoot),
        (Family::Zksync, Some(transactions)) if transactions.is_empty() => sound(false),
        (Family::Zksync, Some(_)) => Verdict::Contradicted,
        (Family::Zksync, None) => Verdict::Empty,
    }
}

/// Whether the header's root proves them, or what is wrong.
fn judge(
    receipts: &[RawReceipt<'_>],
    block: BlockId,
    header: Option<&BlockFacts>,
    family: Family,
) -> Result<bool, Lie> {
    judge_hashes(receipts)?;
    let mut run = Run { next_log: 0, gas: 0, family };
    let mut envelopes = Some(Vec::with_capacity(receipts.len()));
    for (index, receipt) in receipts.iter().enumerate() {
        if receipt.block != block {
            return Err(Lie::OtherBlock);
        }
        if receipt.transaction_index != index as u64 {
            return Err(Lie::OtherIndex);
        }
        run.judge(receipt)?;
        envelopes = add(envelopes, receipt, family)?;
    }
    let root = envelopes.map(|envelopes| proofs::calculate_receipt_root(&envelopes));
    match (root, header) {
        (Some(root), Some(header)) if root != header.receipts_root => Err(Lie::ReceiptsRoot),
        (root, header) => Ok(root.is_some() && header.is_some()),
    }
}

/// One receipt of a type that we do not know, and there is no root any more.
fn add(
    envelopes: Option<Vec<ReceiptEnvelope>>,
    receipt: &RawReceipt<'_>,
    family: Family,
) -> Result<Option<Vec<ReceiptEnvelope>>, Lie> {
    if family == Family::Zksync {
        return Ok(None);
    }
    let Some(envelope) = receipt.envelope()? else { return Ok(None) };
    Ok(envelopes.map(|mut envelopes| {
        envelopes.push(envelope);
        envelopes
    }))
}

fn judge_hashes(receipts: &[RawReceipt<'_>]) -> Result<(), Lie> {
    let distinct: HashSet<B256> = receipts.iter().map(|receipt| receipt.transaction_hash).collect();
    if distinct.len() == receipts.len() { Ok(()) } else { Err(Lie::OtherTransaction) }
}

/// Whether the receipts are of the transactions that the block lists, as far as that is known. The receipts root does not
/// cover these hashes, and nothing proves the list.
fn are_listed(receipts: &[RawReceipt<'_>], header: Option<&BlockFacts>) -> bool {
    let Some(listed) = header.and_then(|header| header.transactions.as_ref()) else { return true };
    listed.iter().eq(receipts.iter().map(|receipt| &receipt.transaction_hash))
}

/// What runs through the receipts of a block.
struct Run {
    next_log: u64,
    gas: u64,
    family: Family,
}

impl Run {
    fn judge(&mut self, receipt: &RawReceipt<'_>) -> Result<(), Lie> {
        let first = (self.family == Family::Ethereum).then_some(self.next_log);
        receipt.judge_logs(first, usize::MAX, self.family)?;
        self.next_log += receipt.logs.len() as u64;
        let total = self.gas.checked_add(receipt.gas_used);
        self.gas = receipt.cumulative_gas_used;
        if total == Some(self.gas) || self.family == Family::Zksync { Ok(()) } else { Err(Lie::Gas) }
    }
}
