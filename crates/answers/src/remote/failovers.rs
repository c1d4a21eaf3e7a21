//! How often partners have answered, and why they were asked.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use std::time::{Duration, Instant};

use methods::Method;
use parking_lot::Mutex;

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

impl FailoverReason {
    fn sentence(self) -> &'static str {
        match self {
            Self::Head => "no quorum of the nodes had shown its chain",
            Self::Block => "no node had the block",
            Self::Answer => "no node answered",
        }
    }
}

/// Answers of partners, by the reason why they were asked.
#[derive(Debug, Default)]
pub struct Failovers {
    counts: [AtomicU64; FailoverReason::ALL.len()],
    last: Mutex<Option<(FailoverReason, Instant)>>,
}

impl Failovers {
    /// Counts and logs an answer of a partner.
    pub(super) fn count(&self, reason: FailoverReason, method: &Method) {
        self.counts[reason as usize].fetch_add(1, Relaxed);
        *self.last.lock() = Some((reason, Instant::now()));
        tracing::info!(
            method = method.name,
            reason = reason.name(),
            "a partner answered, because no node of our own could"
        );
    }

    pub fn counts(&self) -> impl Iterator<Item = (&'static str, u64)> {
        let count = |reason: FailoverReason| self.counts[reason as usize].load(Relaxed);
        FailoverReason::ALL.into_iter().map(move |reason| (reason.name(), count(reason)))
    }

    /// Why a partner has answered last, in plain words, and how long ago that was.
    pub fn last(&self) -> Option<(&'static str, Duration)> {
        let (reason, at) = (*self.last.lock())?;
        Some((reason.sentence(), at.elapsed()))
    }
}
