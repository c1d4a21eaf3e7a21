//! Receipts of a block.

use alloy_consensus::{Eip658Value, InMemorySize, ReceiptEnvelope, TxReceipt, proofs};
use alloy_primitives::{Bloom, Log};

use super::{ProofFailure, ProvenBody, SignedTransaction, Unproven};
use crate::raw::receipt::RawReceipt;

/// The receipts of all transactions of a block, proven by its header.
#[derive(Debug)]
pub struct ProvenReceipts {
    receipts: Vec<ReceiptEnvelope>,
    /// The number of logs in the block before each receipt.
    first_logs: Vec<u32>,
}

/// One receipt, with what follows from its position in the block.
#[derive(Clone, Copy, Debug)]
pub struct TransactionReceipt<'a> {
    pub outcome: Eip658Value,
    pub cumulative_gas_used: u64,
    pub gas_used: u64,
    pub bloom: &'a Bloom,
    pub logs: &'a [Log],
    /// The position of its first log in the block.
    pub first_log: u32,
}

impl ProvenReceipts {
    /// The receipts of a block that has none; `None` if it has some.
    pub fn none(body: &ProvenBody) -> Option<Self> {
        body.has_no_receipts().then(|| Self { receipts: Vec::new(), first_logs: Vec::new() })
    }

    /// Proves the delivered receipts of a block.
    pub fn prove(json: &[u8], body: &ProvenBody) -> Result<Self, Unproven> {
        if json.trim_ascii() == b"null" {
            return Err(Unproven::NotThere);
        }
        let count = body.transactions().len();
        let raw = RawReceipt::list(json.trim_ascii(), count).ok_or(ProofFailure::Malformed)?;
        // Some nodes return an empty list for receipts that they have dropped.
        if raw.is_empty() && count > 0 {
            return Err(Unproven::NotThere);
        }
        Self::of(&raw, body)
    }

    /// Proves the receipts of a block that one node delivered one by one.
    pub fn prove_single<'a>(
        deliveries: impl IntoIterator<Item = &'a [u8]>,
        body: &ProvenBody,
    ) -> Result<Self, Unproven> {
        let mut raw = Vec::with_capacity(body.transactions().len());
        for delivery in deliveries {
            if delivery.trim_ascii() == b"null" {
                return Err(Unproven::NotThere);
            }
            raw.push(RawReceipt::of(delivery.trim_ascii()).ok_or(ProofFailure::Malformed)?);
        }
        Self::of(&raw, body)
    }

    fn of(raw: &[RawReceipt<'_>], body: &ProvenBody) -> Result<Self, Unproven> {
        let transactions = body.transactions();
        if raw.len() != transactions.len() {
            return Err(ProofFailure::ReceiptsRoot.into());
        }
        let receipts: Vec<_> =
            raw.iter().zip(transactions).map(|(raw, of)| envelope(raw, of)).collect::<Result<_, _>>()?;
        if proofs::calculate_receipt_root(&receipts) != body.header().receipts_root {
            return Err(ProofFailure::ReceiptsRoot.into());
        }
        prove_sums(&receipts, body)?;
        Ok(Self::restored(receipts))
    }

    /// Receipts that were proven before they were stored.
    pub fn restored(receipts: Vec<ReceiptEnvelope>) -> Self {
        let first_logs = receipts.iter().scan(0_u32, |next, receipt| {
            let first = *next;
            *next = next.saturating_add(u32::try_from(receipt.logs().len()).unwrap_or(u32::MAX));
            Some(first)
        });
        let first_logs = first_logs.collect();
        Self { receipts, first_logs }
    }

    pub fn get(&self, index: usize) -> Option<TransactionReceipt<'_>> {
        let receipt = self.receipts.get(index)?;
        let before = index.checked_sub(1).and_then(|before| self.receipts.get(before));
        let gas_before = before.map_or(0, TxReceipt::cumulative_gas_used);
        let cumulative_gas_used = receipt.cumulative_gas_used();
        Some(TransactionReceipt {
            outcome: receipt.status_or_post_state(),
            cumulative_gas_used,
            gas_used: cumulative_gas_used.saturating_sub(gas_before),
            bloom: receipt.logs_bloom(),
            logs: receipt.logs(),
            first_log: *self.first_logs.get(index)?,
        })
    }

    /// The receipts in their consensus form.
    pub fn envelopes(&self) -> &[ReceiptEnvelope] {
        &self.receipts
    }

    pub fn len(&self) -> usize {
        self.receipts.len()
    }

    pub fn is_empty(&self) -> bool {
        self.receipts.is_empty()
    }

    /// All logs of the block.
    pub fn log_count(&self) -> usize {
        self.receipts.iter().map(|receipt| receipt.logs().len()).sum()
    }

    /// Their approximate size in memory.
    pub fn bytes(&self) -> usize {
        let logs = |receipt: &ReceiptEnvelope| receipt.logs().iter().map(InMemorySize::size).sum::<usize>();
        let each = size_of::<ReceiptEnvelope>() + size_of::<u32>();
        size_of::<Self>() + self.receipts.iter().map(|receipt| each + logs(receipt)).sum::<usize>()
    }
}

/// A receipt in its consensus form. Its type is that of its transaction, which is proven already.
fn envelope(raw: &RawReceipt<'_>, transaction: &SignedTransaction) -> Result<ReceiptEnvelope, ProofFailure> {
    let receipt = raw.receipt()?;
    Ok(match transaction {
        SignedTransaction::Legacy(_) => ReceiptEnvelope::Legacy(receipt),
        SignedTransaction::Eip2930(_) => ReceiptEnvelope::Eip2930(receipt),
        SignedTransaction::Eip1559(_) => ReceiptEnvelope::Eip1559(receipt),
        SignedTransaction::Eip4844(_) => ReceiptEnvelope::Eip4844(receipt),
        SignedTransaction::Eip7702(_) => ReceiptEnvelope::Eip7702(receipt),
    })
}

/// Checks that gas grows from receipt to receipt, and that the blooms add up to the header's. The gas of the last receipt may differ
/// from the header's: from Amsterdam on, refunds count in one of them only.
fn prove_sums(receipts: &[ReceiptEnvelope], body: &ProvenBody) -> Result<(), ProofFailure> {
    if receipts.is_empty() {
        return Ok(());
    }
    if !receipts.is_sorted_by_key(TxReceipt::cumulative_gas_used) {
        return Err(ProofFailure::GasUsed);
    }
    let bloom = receipts.iter().fold(Bloom::ZERO, |all, receipt| all | *receipt.logs_bloom());
    if bloom == body.header().logs_bloom { Ok(()) } else { Err(ProofFailure::LogsBloom) }
}
