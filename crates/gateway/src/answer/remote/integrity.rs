//! What becomes of answers that cannot be true.
//!
//! A check never switches itself off, however often it fails: a lone node that always lies would be believed in the end.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use nodes::check::Lie;
use nodes::proven::ProofFailure;

use super::settings::Integrity;

/// The mode, and how often each check has failed.
#[derive(Debug)]
pub(crate) struct Judge {
    mode: Integrity,
    failed_checks: [AtomicU64; Lie::ALL.len()],
    failed_proofs: [AtomicU64; ProofFailure::ALL.len()],
}

impl Judge {
    pub(super) fn new(mode: Integrity) -> Self {
        Self { mode, failed_checks: Default::default(), failed_proofs: Default::default() }
    }

    /// Whether answers about blocks are made from proven blocks.
    pub(super) fn proves(&self) -> bool {
        self.mode == Integrity::Prove
    }

    /// Whether answers that contradict something are refused.
    pub(super) fn enforces(&self) -> bool {
        self.mode != Integrity::Off
    }

    /// Notes that an answer cannot be true; says whether it is to be refused.
    pub(super) fn refuses(&self, lie: Lie) -> bool {
        self.failed_checks[lie as usize].fetch_add(1, Relaxed);
        self.enforces()
    }

    /// Notes that a delivery has failed a proof.
    pub(super) fn count(&self, failure: ProofFailure) {
        self.failed_proofs[failure as usize].fetch_add(1, Relaxed);
    }

    /// Failures of checks and proofs by their names, for the metrics. Some have the same name: they find the same thing.
    pub(crate) fn failures(&self) -> BTreeMap<&'static str, u64> {
        let checks = Lie::ALL.map(Lie::name).into_iter().zip(&self.failed_checks);
        let proofs = ProofFailure::ALL.map(ProofFailure::name).into_iter().zip(&self.failed_proofs);
        let mut failures = BTreeMap::new();
        for (name, count) in checks.chain(proofs) {
            *failures.entry(name).or_default() += count.load(Relaxed);
        }
        failures
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// When every node had failed a check sixteen times and none had passed it, answers were not refused any more.
    #[test]
    fn a_check_that_always_fails_stays() {
        let judge = Judge::new(Integrity::Check);
        assert!((0..1_000).all(|_| judge.refuses(Lie::HeaderHash)));
    }

    #[test]
    fn what_is_off_refuses_nothing_and_counts() {
        let judge = Judge::new(Integrity::Off);
        assert!(!judge.refuses(Lie::Shape));
        judge.count(ProofFailure::Malformed);
        assert_eq!(judge.failures()["shape"], 2);
    }
}
