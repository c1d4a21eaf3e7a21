//! State and everything else that no block proves: how far one node is believed.

mod confirm; // a quorum of the nodes must agree
mod given_by; // who gave what is kept
mod pass_on; // one node is believed
mod decision; // who said what → what is true
mod statement; // what a node says → what it means

mod proven; // answers that a block's hash commits to
mod proofs; // accounts, slots and code with their proofs
mod execution; // calls and estimates, run here on proven state
mod rules; // by which rules a block runs
mod touched; // what calls read

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use settings::Section;

pub(super) use confirm::ConfirmedLogs;
pub(super) use pass_on::PassedOn;
pub(super) use proofs::ProvenState;
pub(super) use rules::ChainRules;
pub(super) use touched::Touched;

/// How far nodes are believed about the state: storage, balances, nonces, code, calls and estimates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StateMode {
    /// Everything is proven by the state root of its block. What no node proves is confirmed.
    Prove,
    /// A quorum of the configured nodes must give the same answer.
    Confirm,
    /// One node's answer is passed on.
    Trust,
}

/// With fewer nodes, a quorum is all of them: one that is down would make every answer fail.
const CONFIRMED_NODES_MIN: usize = 3;

impl StateMode {
    /// The mode for so many nodes, unless the operator has chosen one.
    pub(super) fn default_for(nodes: usize) -> Self {
        if nodes >= CONFIRMED_NODES_MIN { Self::Confirm } else { Self::Trust }
    }

    pub(super) fn read(section: &mut Section<'_>, nodes: usize) -> Self {
        let usual = Self::default_for(nodes);
        match section.optional_text("state").as_deref() {
            None => usual,
            Some("prove") => Self::Prove,
            Some("confirm") => Self::Confirm,
            Some("trust") => Self::Trust,
            Some(other) => {
                section.mistake("state", &format!("no mode `{other}`; there are prove, confirm, trust"));
                usual
            }
        }
    }

    pub fn name(self) -> &'static str {
        match self {
            Self::Prove => "prove",
            Self::Confirm => "confirm",
            Self::Trust => "trust",
        }
    }
}

/// What became of answers that a quorum must confirm, for the metrics.
#[derive(Debug, Default)]
pub struct Confirmations {
    /// All nodes that were asked agreed.
    undisputed: AtomicU64,
    /// A quorum agreed, and others said something else.
    disputed: AtomicU64,
    /// Too few nodes answered, and a proof has decided.
    proven: AtomicU64,
    /// No quorum agreed in time.
    failed: AtomicU64,
    /// Calls to nodes for all of these.
    node_calls: AtomicU64,
    /// Answers that a quorum contradicted.
    contradicted: AtomicU64,
}

impl Confirmations {
    fn note_agreed(&self, differed: bool, contradicted: usize) {
        let agreed = if differed { &self.disputed } else { &self.undisputed };
        agreed.fetch_add(1, Relaxed);
        self.contradicted.fetch_add(contradicted as u64, Relaxed);
    }

    fn note_proven(&self) {
        self.proven.fetch_add(1, Relaxed);
    }

    fn note_failed(&self) {
        self.failed.fetch_add(1, Relaxed);
    }

    fn note_calls(&self, calls: u64) {
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
