//! Step 7: exactly one record per call, also when the caller disconnects.
//!
//! A [`CallRecord`] begins with its call and is counted when it is dropped, so a cancelled call is counted as abandoned. Each
//! worker has counters of its own, so that counting never makes two cores wait for each other; `/metrics` adds them
//! up, and [`callers::usage`] collects what each key has used.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use callers::usage::{CallUsage, UsageMethod, UsageShard};

use methods::{METHODS, MethodId};
use resources::{Clock, Histogram, MonoTime};

use crate::admit;
use crate::authenticate::Caller;
use crate::observation::{CallObservation, CallStep, EndedCall, RequestObservation};

pub(crate) use callers::usage::Outcome;

#[derive(Debug)]
pub(crate) struct WorkerCounters {
    /// By the index of the method in its table; unknown methods share the entry after the last.
    pub(crate) methods: Vec<MethodCounts>,
    /// How long inline answers took.
    pub(crate) reads: Histogram,
    usage: Arc<UsageShard>,
}

#[derive(Debug, Default)]
pub(crate) struct MethodCounts {
    pub(crate) outcomes: [AtomicU64; Outcome::ALL.len()],
    pub(crate) latency: Histogram,
    pub(crate) credits: AtomicU64,
}

impl WorkerCounters {
    pub(crate) fn new(usage: Arc<UsageShard>) -> Self {
        let methods = std::iter::repeat_with(MethodCounts::default).take(METHODS.len() + 1).collect();
        Self { methods, reads: Histogram::default(), usage }
    }

    /// The labels and counts of every method.
    pub(crate) fn labels() -> impl Iterator<Item = (&'static str, usize)> {
        let named = METHODS.iter().enumerate().map(|(index, method)| (method.name, index));
        named.chain([("other", METHODS.len())])
    }

    /// Counts credits that were charged for a request and not for one of its calls.
    pub(crate) fn count_request(&self, caller: &Caller, outcome: Outcome, credits: u64) {
        let (method, latency) = (UsageMethod::Request, Duration::ZERO);
        let usage = CallUsage { method, outcome, calls: 0, credits, bytes_in: 0, bytes_out: 0, latency };
        self.usage.record(caller.key(), caller.tag(), usage);
    }
}

/// The record of one call, which is counted when it is dropped.
#[derive(Debug)]
pub(crate) struct CallRecord<'a> {
    counters: &'a WorkerCounters,
    clock: &'a Clock,
    caller: &'a Caller,
    started: MonoTime,
    pub(crate) method: Option<MethodId>,
    /// The cost of the call, once it is admitted.
    pub(crate) credits: u64,
    pub(crate) bytes_in: u64,
    pub(crate) bytes_out: u64,
    pub(crate) outcome: Outcome,
    /// `None` if nobody is told of the call.
    pub(crate) observation: Option<CallObservation<'a>>,
}

impl<'a> CallRecord<'a> {
    pub(crate) fn begin(
        counters: &'a WorkerCounters,
        clock: &'a Clock,
        caller: &'a Caller,
        started: MonoTime,
    ) -> Self {
        Self {
            counters,
            clock,
            caller,
            started,
            method: None,
            credits: 0,
            bytes_in: 0,
            bytes_out: 0,
            outcome: Outcome::Abandoned,
            observation: None,
        }
    }

    /// Ends a step now, if somebody is told of it.
    pub(crate) fn end_step(&mut self, step: CallStep) {
        if let Some(observation) = &mut self.observation {
            observation.end_step(step);
        }
    }
}

impl Drop for CallRecord<'_> {
    fn drop(&mut self) {
        let now = self.clock.now();
        self.outcome = outcome_after(self.outcome);
        let credits = if self.outcome.is_free() {
            admit::give_back(self.caller, self.credits, self.clock.unix_seconds());
            0
        } else {
            self.credits
        };
        let latency = now.since(self.started);
        let counts = &self.counters.methods[self.method.map_or(METHODS.len(), MethodId::index)];
        counts.outcomes[self.outcome as usize].fetch_add(1, Relaxed);
        counts.latency.record(latency);
        counts.credits.fetch_add(credits, Relaxed);
        let (method, outcome) = (self.method.map_or(UsageMethod::Other, UsageMethod::Call), self.outcome);
        let (bytes_in, bytes_out) = (self.bytes_in, self.bytes_out);
        let usage = CallUsage { method, outcome, calls: 1, credits, bytes_in, bytes_out, latency };
        self.counters.usage.record(self.caller.key(), self.caller.tag(), usage);
        if let Some(observation) = self.observation.take() {
            let (caller, method) = (self.caller, self.method);
            observation.end(&EndedCall { caller, method, outcome, bytes_in, bytes_out, now });
        }
    }
}

/// The outcome of a call whose record is dropped: a call that a panic of ours has ended is not abandoned by its caller.
fn outcome_after(outcome: Outcome) -> Outcome {
    if outcome == Outcome::Abandoned && std::thread::panicking() { Outcome::InternalError } else { outcome }
}

/// The calls of a batch that have no record yet. Those that never get one are counted together when this is dropped: as
/// abandoned if the caller has disconnected, or as refused with their batch.
#[derive(Debug)]
pub(crate) struct UnbegunCalls<'a> {
    counters: &'a WorkerCounters,
    caller: &'a Caller,
    calls: u64,
    outcome: Outcome,
    /// `None` if nobody is told of them.
    observation: Option<&'a RequestObservation<'a>>,
}

impl<'a> UnbegunCalls<'a> {
    pub(crate) fn new(
        counters: &'a WorkerCounters,
        caller: &'a Caller,
        calls: usize,
        observation: Option<&'a RequestObservation<'a>>,
    ) -> Self {
        Self { counters, caller, calls: calls as u64, outcome: Outcome::Abandoned, observation }
    }

    /// One of them has its record now.
    pub(crate) fn begin_one(&mut self) {
        self.calls -= 1;
    }

    /// Counts all of them as refused. Their request tells why.
    pub(crate) fn refuse(mut self, outcome: Outcome) {
        (self.outcome, self.observation) = (outcome, None);
    }
}

impl Drop for UnbegunCalls<'_> {
    fn drop(&mut self) {
        let calls = self.calls;
        if calls == 0 {
            return;
        }
        let counts = &self.counters.methods[METHODS.len()];
        let (method, outcome, latency) = (UsageMethod::Other, outcome_after(self.outcome), Duration::ZERO);
        counts.outcomes[outcome as usize].fetch_add(calls, Relaxed);
        let usage = CallUsage { method, outcome, calls, credits: 0, bytes_in: 0, bytes_out: 0, latency };
        self.counters.usage.record(self.caller.key(), self.caller.tag(), usage);
        if let Some(observation) = self.observation {
            observation.abandon(self.caller, calls, outcome);
        }
    }
}
