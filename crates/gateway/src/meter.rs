//! Step 10: exactly one record per call, also when the caller hangs up.
//!
//! A [`CallRecord`] begins with its call and is counted when it is dropped, so a call that is given up half-way is counted as
//! abandoned. Each worker counts in a shard of its own, so that counting never makes two
//! cores wait for each other; the operator's page adds the shards up.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use methods::{METHODS, MethodId};
use resources::{Clock, Histogram, MonoTime};

use crate::admit;
use crate::authenticate::Caller;

/// How a call ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    Ok,
    /// The EVM ran and failed; the answer is an error, and a right one.
    Reverted,
    Invalid,
    /// The key's settings leave it out.
    Denied,
    /// A limit of the plan or the key is used up.
    Refused,
    OverCapacity,
    Unavailable,
    OurFault,
    Abandoned,
}

impl Outcome {
    pub const ALL: [Self; 9] = [
        Self::Ok,
        Self::Reverted,
        Self::Invalid,
        Self::Denied,
        Self::Refused,
        Self::OverCapacity,
        Self::Unavailable,
        Self::OurFault,
        Self::Abandoned,
    ];

    pub fn label(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Reverted => "reverted",
            Self::Invalid => "invalid",
            Self::Denied => "denied",
            Self::Refused => "refused",
            Self::OverCapacity => "over_capacity",
            Self::Unavailable => "unavailable",
            Self::OurFault => "our_fault",
            Self::Abandoned => "abandoned",
        }
    }

    /// Callers do not pay for being refused by a limit, nor for our faults.
    fn is_free(self) -> bool {
        matches!(self, Self::Refused | Self::OverCapacity | Self::Unavailable | Self::OurFault)
    }
}

/// The counters of one worker.
#[derive(Debug)]
pub struct Shard {
    /// By the place of the method in its table; names that we do not know share the place behind the last.
    pub(crate) methods: Vec<MethodCounts>,
    /// How long answers took that are given on the thread of their connection.
    pub(crate) reads: Histogram,
}

/// The counters of one method.
#[derive(Debug, Default)]
pub(crate) struct MethodCounts {
    pub(crate) outcomes: [AtomicU64; Outcome::ALL.len()],
    pub(crate) latency: Histogram,
    pub(crate) credits: AtomicU64,
}

impl Default for Shard {
    fn default() -> Self {
        let methods = std::iter::repeat_with(MethodCounts::default).take(METHODS.len() + 1).collect();
        Self { methods, reads: Histogram::default() }
    }
}

impl Shard {
    /// The labels and counts of every method.
    pub(crate) fn labels() -> impl Iterator<Item = (&'static str, usize)> {
        let named = METHODS.iter().enumerate().map(|(index, method)| (method.name, index));
        named.chain([("other", METHODS.len())])
    }
}

/// The record of one call, which is counted when it is dropped.
#[derive(Debug)]
pub(crate) struct CallRecord<'a> {
    shard: &'a Shard,
    clock: &'a Clock,
    caller: &'a Caller,
    started: MonoTime,
    label: usize,
    credits: u64,
    outcome: Outcome,
}

impl<'a> CallRecord<'a> {
    pub(crate) fn begin(shard: &'a Shard, clock: &'a Clock, caller: &'a Caller, started: MonoTime) -> Self {
        Self { shard, clock, caller, started, label: METHODS.len(), credits: 0, outcome: Outcome::Abandoned }
    }

    pub(crate) fn set_method(&mut self, method: Option<MethodId>) {
        self.label = method.map_or(METHODS.len(), MethodId::index);
    }

    /// Sets what the call costs, once it is admitted.
    pub(crate) fn set_credits(&mut self, credits: u64) {
        self.credits = credits;
    }

    pub(crate) fn set_outcome(&mut self, outcome: Outcome) {
        self.outcome = outcome;
    }
}

impl Drop for CallRecord<'_> {
    fn drop(&mut self) {
        let now = self.clock.now();
        let credits = if self.outcome.is_free() {
            admit::give_back(self.caller, self.credits, self.clock.unix_seconds());
            0
        } else {
            self.credits
        };
        let counts = &self.shard.methods[self.label];
        counts.outcomes[self.outcome as usize].fetch_add(1, Relaxed);
        counts.latency.record(now.since(self.started));
        counts.credits.fetch_add(credits, Relaxed);
    }
}
