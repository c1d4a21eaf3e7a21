//! What becomes of answers that cannot be true.
//!
//! A check never switches itself off, however often it fails: a lone node that always lies would be believed in the end.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use nodes::check::{Expect, Lie};

use super::settings::Integrity;

/// The mode, and how often each check has failed.
#[derive(Debug)]
pub(crate) struct Judge {
    mode: Integrity,
    failures: [AtomicU64; Lie::ALL.len()],
}

impl Judge {
    pub(super) fn new(mode: Integrity) -> Self {
        Self { mode, failures: Default::default() }
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
    pub(super) fn refuses(&self, _node: usize, _expect: &Expect, lie: Lie) -> bool {
        self.failures[lie as usize].fetch_add(1, Relaxed);
        self.enforces()
    }

    /// Notes that a delivery has failed a proof.
    pub(super) fn count(&self, check: &'static str) {
        if let Some(lie) = Lie::ALL.into_iter().find(|lie| lie.name() == check) {
            self.failures[lie as usize].fetch_add(1, Relaxed);
        }
    }

    /// Failures of each check, for the metrics.
    pub(crate) fn failures(&self) -> impl Iterator<Item = (&'static str, u64)> {
        Lie::ALL.iter().map(|&lie| (lie.name(), self.failures[lie as usize].load(Relaxed)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BLOCK: Expect = Expect::Block { hash: None, number: None, full: false };

    /// When every node had failed a check sixteen times and none had passed it, answers were not refused any more.
    #[test]
    fn a_check_that_always_fails_stays() {
        let judge = Judge::new(Integrity::Check);
        assert!((0..1_000).all(|_| judge.refuses(0, &BLOCK, Lie::HeaderHash)));
    }

    #[test]
    fn what_is_off_refuses_nothing_and_counts() {
        let judge = Judge::new(Integrity::Off);
        assert!(!judge.refuses(0, &BLOCK, Lie::Shape));
        assert_eq!(judge.failures().find(|(name, _)| *name == "shape"), Some(("shape", 1)));
    }
}
