//! How often partners have answered, and why they were asked.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use methods::Method;

/// Why a partner was asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FailoverReason {
    /// No node has shown its chain yet.
    Head,
    /// No node has the block that is meant.
    Block,
    /// No node has answered.
    Answer,
}

impl FailoverReason {
    const ALL: [Self; 3] = [Self::Head, Self::Block, Self::Answer];

    fn name(self) -> &'static str {
        match self {
            Self::Head => "no_head",
            Self::Block => "no_block",
            Self::Answer => "no_answer",
        }
    }
}

/// Answers of partners, by the reason why they were asked.
#[derive(Debug, Default)]
pub struct Failovers([AtomicU64; FailoverReason::ALL.len()]);

impl Failovers {
    /// Counts and logs an answer of a partner.
    pub(super) fn count(&self, reason: FailoverReason, method: &Method) {
        self.0[reason as usize].fetch_add(1, Relaxed);
        tracing::info!(
            method = method.name,
            reason = reason.name(),
            "a partner answered, because no node of our own could"
        );
    }

    pub fn counts(&self) -> impl Iterator<Item = (&'static str, u64)> {
        FailoverReason::ALL.into_iter().map(|reason| (reason.name(), self.0[reason as usize].load(Relaxed)))
    }
}
