//! Whether answers about blocks are made from proven blocks, and how often a proof failed.
//!
//! A proof never switches itself off, however often it fails: a lone node that always lies would be believed in the end.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use nodes::proven::ProofFailure;

use super::settings::Integrity;

/// The mode, and how often each proof has failed.
#[derive(Debug)]
pub struct IntegrityPolicy {
    mode: Integrity,
    failed_proofs: [AtomicU64; ProofFailure::ALL.len()],
}

impl IntegrityPolicy {
    pub(super) fn new(mode: Integrity) -> Self {
        Self { mode, failed_proofs: Default::default() }
    }

    /// Whether answers about blocks are made from proven blocks.
    pub(super) fn proves(&self) -> bool {
        self.mode == Integrity::Prove
    }

    /// Notes that a delivery has failed a proof.
    pub(super) fn count(&self, failure: ProofFailure) {
        self.failed_proofs[failure as usize].fetch_add(1, Relaxed);
    }

    /// Failed proofs by their names, for the metrics.
    pub fn failures(&self) -> impl Iterator<Item = (&'static str, u64)> {
        let counts = self.failed_proofs.iter().map(|count| count.load(Relaxed));
        ProofFailure::ALL.map(ProofFailure::name).into_iter().zip(counts)
    }
}
