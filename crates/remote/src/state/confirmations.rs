//! Outcomes of answers that a quorum must confirm, for the metrics.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Outcomes of answers that a quorum must confirm, for the metrics.
#[derive(Debug, Default)]
pub struct Confirmations {
    /// All nodes that were asked agreed.
    undisputed: AtomicU64,
    /// Nodes disagreed, and a quorum or a proof has decided.
    disputed: AtomicU64,
    /// Too few nodes answered, and a proof has decided.
    proven: AtomicU64,
    /// No quorum agreed in time.
    failed: AtomicU64,
    /// Calls to nodes for all of these.
    node_calls: AtomicU64,
    /// Answers that a quorum or a proof contradicted.
    contradicted: AtomicU64,
}

impl Confirmations {
    pub(super) fn note_agreed(&self, differed: bool, contradicted: usize) {
        let agreed = if differed { &self.disputed } else { &self.undisputed };
        agreed.fetch_add(1, Relaxed);
        self.contradicted.fetch_add(contradicted as u64, Relaxed);
    }

    pub(super) fn note_proven(&self) {
        self.proven.fetch_add(1, Relaxed);
    }

    pub(super) fn note_failed(&self) {
        self.failed.fetch_add(1, Relaxed);
    }

    pub(super) fn note_calls(&self, calls: u64) {
        self.node_calls.fetch_add(calls, Relaxed);
    }

    pub fn outcomes(&self) -> [(&'static str, u64); 4] {
        let counts = [
            ("undisputed", &self.undisputed),
            ("disputed", &self.disputed),
            ("proven", &self.proven),
            ("failed", &self.failed),
        ];
        counts.map(|(name, count)| (name, count.load(Relaxed)))
    }

    pub fn node_calls(&self) -> u64 {
        self.node_calls.load(Relaxed)
    }

    pub fn contradicted(&self) -> u64 {
        self.contradicted.load(Relaxed)
    }
}
