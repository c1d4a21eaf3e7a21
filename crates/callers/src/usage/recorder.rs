//! Counts calls on the request path.
//!
//! Each worker has a shard behind a mutex that only the collector ever contends for, ten times a second and for the time of
//! a swap. A shard sums calls up by key, method and outcome, so its size follows from how many keys are in use, and not from
//! how many calls they make.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use methods::{METHODS, MethodId};
use parking_lot::Mutex;
use resources::bucket_of;

use super::ledger_counts::LedgerCounts;
use super::outcome::Outcome;
use crate::api_key::ApiKey;
use crate::ledger_text::{ledger_text, shared_ledger_text};
use store::{UsageCounts, UsageGroup, UsageRow};

/// Groups that a shard counts between two collections: 16 MiB. Only a collector that is stuck lets a shard grow so large.
const SHARD_GROUPS_MAX: usize = 1 << 16;

/// What credits were charged for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UsageMethod {
    Call(MethodId),
    /// A call of an unknown method, a malformed call, or a call of a batch that was not begun.
    Other,
    /// A request as a whole: the surcharge of a batch, or a request that was refused before its calls were read.
    Request,
}

impl UsageMethod {
    pub fn name(self) -> &'static str {
        match self {
            Self::Call(method) => method.row().name,
            Self::Other => "other",
            Self::Request => "request",
        }
    }

    /// A number of its own for each.
    fn index(self) -> usize {
        match self {
            Self::Call(method) => method.index(),
            Self::Other => METHODS.len(),
            Self::Request => METHODS.len() + 1,
        }
    }
}

/// What is counted of one call, or of several calls that ended alike.
#[derive(Clone, Copy, Debug)]
pub struct CallUsage {
    pub method: UsageMethod,
    pub outcome: Outcome,
    /// 0 for credits of a request as a whole.
    pub calls: u64,
    pub credits: u64,
    pub bytes_in: u64,
    pub bytes_out: u64,
    pub latency: Duration,
}

/// The usage of all workers that is not collected yet.
#[derive(Debug)]
pub struct UsageRecorder {
    shards: Vec<Arc<UsageShard>>,
    /// What the gateway itself has used of what costs money: calls by the name of a partner.
    own: Mutex<HashMap<Arc<str>, u64>>,
    ledger: LedgerCounts,
}

/// The usage that one worker has counted.
#[derive(Debug, Default)]
pub struct UsageShard {
    /// Whether anything collects; without a collector nothing is counted.
    is_recording: AtomicBool,
    groups: Mutex<HashMap<GroupId, CountedGroup, foldhash::fast::RandomState>>,
    lost_calls: AtomicU64,
    lost_credits: AtomicU64,
}

/// A group by the address of its key, which stays valid because the counts hold the key, and the number of its method.
type GroupId = (usize, usize, Outcome);

#[derive(Debug)]
struct CountedGroup {
    key: Arc<ApiKey>,
    method: UsageMethod,
    counts: UsageCounts,
}

impl UsageRecorder {
    pub fn new(workers: usize) -> Self {
        let shards = std::iter::repeat_with(Arc::default).take(workers).collect();
        Self { shards, own: Mutex::default(), ledger: LedgerCounts::default() }
    }

    /// What became of the usage that was taken.
    pub fn ledger(&self) -> &LedgerCounts {
        &self.ledger
    }

    pub fn shard(&self, worker: usize) -> Arc<UsageShard> {
        Arc::clone(&self.shards[worker])
    }

    /// Counts from now on.
    pub(crate) fn start(&self) {
        self.shards.iter().for_each(|shard| shard.is_recording.store(true, Relaxed));
    }

    /// Takes what was counted since the last time. One group may be in several rows, one for each worker.
    pub(crate) fn take(&self, minute: u64, network: &Arc<str>) -> Vec<UsageRow> {
        let mut rows = Vec::new();
        for shard in &self.shards {
            let groups = {
                let mut groups = shard.groups.lock();
                let capacity = groups.len();
                std::mem::replace(
                    &mut *groups,
                    HashMap::with_capacity_and_hasher(capacity, Default::default()),
                )
            };
            rows.extend(groups.into_iter().map(|(id, counted)| row(id, counted, minute, network)));
        }
        let own = std::mem::take(&mut *self.own.lock());
        rows.extend(own.into_iter().map(|(name, calls)| own_row(name, calls, minute, network)));
        rows
    }

    /// Counts calls of the gateway itself. There are few names: those of the partners.
    pub(crate) fn record_own(&self, name: &Arc<str>, calls: u64) {
        if self.shards.iter().any(|shard| shard.is_recording.load(Relaxed)) {
            *self.own.lock().entry(Arc::clone(name)).or_default() += calls;
        }
    }

    /// Takes the calls and credits that could not be counted since the last time.
    pub(super) fn take_lost(&self) -> (u64, u64) {
        let lost = self
            .shards
            .iter()
            .map(|shard| (shard.lost_calls.swap(0, Relaxed), shard.lost_credits.swap(0, Relaxed)));
        lost.fold((0, 0), |sum, lost| (sum.0 + lost.0, sum.1 + lost.1))
    }
}

impl UsageShard {
    pub fn record(&self, key: &Arc<ApiKey>, call: CallUsage) {
        if !self.is_recording.load(Relaxed) {
            return;
        }
        let id = (Arc::as_ptr(key).addr(), call.method.index(), call.outcome);
        let mut groups = self.groups.lock();
        if let Some(counted) = groups.get_mut(&id) {
            return count(&mut counted.counts, &call);
        }
        if groups.len() >= SHARD_GROUPS_MAX {
            self.lost_calls.fetch_add(call.calls, Relaxed);
            self.lost_credits.fetch_add(call.credits, Relaxed);
            return;
        }
        let mut counts = UsageCounts::default();
        count(&mut counts, &call);
        groups.insert(id, CountedGroup { key: Arc::clone(key), method: call.method, counts });
    }
}

fn count(counts: &mut UsageCounts, call: &CallUsage) {
    let ns = u64::try_from(call.latency.as_nanos()).unwrap_or(u64::MAX);
    counts.calls += call.calls;
    counts.credits = counts.credits.saturating_add(call.credits);
    counts.bytes_in = counts.bytes_in.saturating_add(call.bytes_in);
    counts.bytes_out = counts.bytes_out.saturating_add(call.bytes_out);
    counts.latency_ns = counts.latency_ns.saturating_add(ns.saturating_mul(call.calls));
    counts.latency_buckets[bucket_of(ns)] += call.calls;
}

fn row((_, _, outcome): GroupId, counted: CountedGroup, minute: u64, network: &Arc<str>) -> UsageRow {
    let CountedGroup { key, method, counts } = counted;
    let group = UsageGroup {
        starts_at: minute,
        network: Arc::clone(network),
        account: ledger_text(&key.account.name).into(),
        key: shared_ledger_text(&key.id),
        method: method.name().into(),
        outcome: outcome.label().into(),
    };
    UsageRow { group, counts }
}

/// A row without an account, which counts in the credits of the day only.
fn own_row(name: Arc<str>, calls: u64, minute: u64, network: &Arc<str>) -> UsageRow {
    let group = UsageGroup {
        starts_at: minute,
        network: Arc::clone(network),
        account: "".into(),
        key: name,
        method: UsageMethod::Other.name().into(),
        outcome: Outcome::Ok.label().into(),
    };
    UsageRow { group, counts: UsageCounts { calls, credits: calls, ..UsageCounts::default() } }
}
