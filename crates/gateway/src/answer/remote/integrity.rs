//! What becomes of answers that cannot be true.
//!
//! On an unusual chain a check may fail on honest answers. It then fails on every node, always: when all nodes have
//! failed the same check, again and again, and no answer of that kind was ever sound, the check steps back to
//! observing, and says so.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

use nodes::check::{Expect, Lie};

use super::settings::Integrity;

/// Failures before a check may step back: a few unlucky calls prove nothing.
const FAILURES_MIN: u64 = 16;

/// Kinds of answers that are told apart.
const KINDS: usize = 8;

/// The mode, and what has been seen of each check.
#[derive(Debug)]
pub(crate) struct Judge {
    mode: Integrity,
    /// One bit for each node; those beyond 64 are as one.
    everyone: u64,
    kinds: [Kind; KINDS],
}

#[derive(Debug, Default)]
struct Kind {
    sound: AtomicBool,
    checks: [Check; Lie::ALL.len()],
}

#[derive(Debug, Default)]
struct Check {
    failed_by: AtomicU64,
    failures: AtomicU64,
    stepped_back: AtomicBool,
}

impl Judge {
    pub(super) fn new(mode: Integrity, nodes: usize) -> Self {
        let everyone = (0..nodes).fold(0, |all, node| all | bit(node));
        Self { mode, everyone, kinds: Default::default() }
    }

    /// Whether answers that contradict something are refused.
    pub(super) fn enforces(&self) -> bool {
        self.mode == Integrity::Enforce
    }

    pub(super) fn is_off(&self) -> bool {
        self.mode == Integrity::Off
    }

    /// Notes that an answer was sound: whoever fails this check from now on does so by their own fault.
    pub(super) fn passed(&self, expect: &Expect) {
        let sound = &self.kinds[kind(expect)].sound;
        if !sound.load(Relaxed) {
            sound.store(true, Relaxed);
        }
    }

    /// Notes that an answer cannot be true; says whether it is to be refused.
    pub(super) fn refuses(&self, node: usize, expect: &Expect, lie: Lie) -> bool {
        let kind = &self.kinds[kind(expect)];
        let check = &kind.checks[lie as usize];
        let failures = check.failures.fetch_add(1, Relaxed) + 1;
        let failed_by = check.failed_by.fetch_or(bit(node), Relaxed) | bit(node);
        // Partners are not asked for their vote.
        let all = failed_by & self.everyone == self.everyone;
        let unusual = all && failures >= FAILURES_MIN && !kind.sound.load(Relaxed);
        if unusual && !check.stepped_back.swap(true, Relaxed) {
            tracing::warn!(
                check = lie.name(),
                "every node fails this check, so it only observes from now on"
            );
        }
        self.mode == Integrity::Enforce && !check.stepped_back.load(Relaxed)
    }

    /// Notes that a delivery has failed a proof. Proofs do not step back: what is proven does not depend on the chain.
    pub(super) fn count(&self, check: &'static str) {
        if let Some(lie) = Lie::ALL.into_iter().find(|lie| lie.name() == check) {
            self.kinds[0].checks[lie as usize].failures.fetch_add(1, Relaxed);
        }
    }

    /// Failures of each check, for the metrics.
    pub(crate) fn failures(&self) -> impl Iterator<Item = (&'static str, u64)> {
        Lie::ALL.iter().map(|&lie| {
            let failures = |kind: &Kind| kind.checks[lie as usize].failures.load(Relaxed);
            (lie.name(), self.kinds.iter().map(failures).sum())
        })
    }
}

fn bit(node: usize) -> u64 {
    1 << node.min(63)
}

fn kind(expect: &Expect) -> usize {
    match expect {
        Expect::Block { .. } => 1,
        Expect::Transaction { .. } => 2,
        Expect::Receipt { .. } => 3,
        Expect::Receipts { .. } => 4,
        Expect::Uncle { .. } => 5,
        Expect::Logs(_) => 6,
        Expect::FeeHistory(_) => 7,
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BLOCK: Expect = Expect::Block { hash: None, number: None, full: false };

    #[test]
    fn a_check_that_every_node_always_fails_steps_back() {
        let judge = Judge::new(Integrity::Enforce, 2);
        for _ in 0..FAILURES_MIN {
            assert!(judge.refuses(0, &BLOCK, Lie::HeaderHash));
        }
        assert!(!judge.refuses(1, &BLOCK, Lie::HeaderHash));
        assert!(judge.refuses(1, &BLOCK, Lie::OtherBlock), "other checks stay");
    }

    /// A partner has a number of its own, which no node has.
    #[test]
    fn a_partner_that_fails_too_changes_nothing() {
        let judge = Judge::new(Integrity::Enforce, 1);
        assert!(judge.refuses(1, &BLOCK, Lie::HeaderHash));
        let refused = (0..FAILURES_MIN).filter(|_| judge.refuses(0, &BLOCK, Lie::HeaderHash)).count();
        assert!((refused as u64) < FAILURES_MIN, "it steps back");
    }

    #[test]
    fn a_check_that_was_ever_passed_stays() {
        let judge = Judge::new(Integrity::Enforce, 2);
        judge.passed(&BLOCK);
        for number in 0..10 * FAILURES_MIN {
            assert!(judge.refuses((number % 2) as usize, &BLOCK, Lie::HeaderHash));
        }
    }

    #[test]
    fn observing_refuses_nothing_and_counts() {
        let judge = Judge::new(Integrity::Observe, 1);
        assert!(!judge.refuses(0, &BLOCK, Lie::Shape));
        assert_eq!(judge.failures().find(|(name, _)| *name == "shape"), Some(("shape", 1)));
    }
}
