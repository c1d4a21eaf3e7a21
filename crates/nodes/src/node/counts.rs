//! Events of a node, counted for metrics.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use resources::Histogram;

use crate::call::Fault;

/// Names of the kinds of fault in metrics.
const KINDS: [&str; 15] = [
    "connect",
    "tls",
    "closed",
    "timeout",
    "too_large",
    "status",
    "rate_limited",
    "garbled",
    "wrong_id",
    "wrong",
    "refused",
    "no_memory",
    "dns",
    "larger_than_memory",
    "queue_full",
];

#[derive(Debug, Default)]
pub struct NodeCounts {
    /// Calls that went to this node.
    pub attempts: AtomicU64,
    /// Calls among them that were made because another node had failed.
    pub retries: AtomicU64,
    /// Calls among them that were made while another node was still working on the same call.
    pub hedges: AtomicU64,
    /// Hedges that brought the answer.
    pub hedges_won: AtomicU64,
    /// How long the replies to its calls took, results and errors alike.
    pub latency: Histogram,
    faults: [AtomicU64; KINDS.len()],
}

impl NodeCounts {
    pub(crate) fn count(&self, fault: Fault) {
        self.faults[position(fault)].fetch_add(1, Relaxed);
    }

    /// Answers that were proven wrong, or contradicted by a quorum.
    pub fn wrong_answers(&self) -> u64 {
        self.faults[position(Fault::Wrong)].load(Relaxed)
    }

    /// Each kind of fault, and how often it was seen.
    pub fn faults(&self) -> impl Iterator<Item = (&'static str, u64)> {
        KINDS.into_iter().zip(self.faults.iter().map(|count| count.load(Relaxed)))
    }
}

fn position(fault: Fault) -> usize {
    match fault {
        Fault::Connect | Fault::ConnectTimeout => 0,
        Fault::Tls(_) => 1,
        Fault::Closed => 2,
        Fault::Timeout => 3,
        Fault::TooLarge => 4,
        Fault::Status(_) => 5,
        Fault::RateLimited => 6,
        Fault::Garbled => 7,
        Fault::WrongId => 8,
        Fault::Wrong => 9,
        Fault::Refused => 10,
        Fault::NoMemory => 11,
        Fault::Dns => 12,
        Fault::LargerThanMemory => 13,
        Fault::QueueFull => 14,
    }
}
