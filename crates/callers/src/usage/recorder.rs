//! Counts calls on the request path.
//!
//! Each worker has a shard behind a mutex that only the collector ever contends for, ten times a second and for the time of
//! a swap. A shard sums calls up by key, method, outcome and tag, so its size follows from how many keys are in use, and not from
//! how many calls they make.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use methods::{METHODS, MethodId};
use parking_lot::Mutex;
use resources::bucket_of;

use super::account_totals::AccountTotals;
use super::ledger_counts::LedgerCounts;
use super::outcome::Outcome;
use super::tags::{TagSets, UsageTag};
use crate::api_key::ApiKey;
use crate::policy::SHARD_GROUPS_MAX;
use store::{UsageCounts, UsageGroup, UsageRow};

/// The reason for which credits were charged.
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

    /// A number that no other reason has.
    fn index(self) -> usize {
        match self {
            Self::Call(method) => method.index(),
            Self::Other => METHODS.len(),
            Self::Request => METHODS.len() + 1,
        }
    }
}

/// The counts of one call, or of several calls that ended alike.
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
    /// Calls of the gateway itself that cost money, by the name of a partner.
    own: Mutex<HashMap<Arc<str>, u64>>,
    used_keys: Mutex<UsedKeys>,
    ledger: LedgerCounts,
    accounts: AccountTotals,
    tags: TagSets,
}

/// Keys by their addresses, which stay valid because the map holds the keys.
pub(super) type UsedKeys = HashMap<usize, Arc<ApiKey>>;

/// The usage that one worker has counted.
#[derive(Debug, Default)]
pub struct UsageShard {
    /// Whether anything collects; without a collector nothing is counted.
    is_recording: AtomicBool,
    groups: Mutex<HashMap<GroupId, CountedGroup, foldhash::fast::RandomState>>,
    lost_calls: AtomicU64,
    lost_credits: AtomicU64,
}

/// A group by the address of its key, which stays valid because the counts hold the key, the number of its method, and its tag.
type GroupId = (usize, usize, Outcome, Option<UsageTag>);

#[derive(Debug)]
struct CountedGroup {
    key: Arc<ApiKey>,
    method: UsageMethod,
    counts: UsageCounts,
}

impl UsageRecorder {
    pub fn new(workers: usize) -> Self {
        let shards = std::iter::repeat_with(Arc::default).take(workers).collect();
        Self {
            shards,
            own: Mutex::default(),
            used_keys: Mutex::default(),
            ledger: LedgerCounts::default(),
            accounts: AccountTotals::default(),
            tags: TagSets::default(),
        }
    }

    /// The tag under which calls of a key are counted that come with this text.
    pub fn tag(&self, key: &ApiKey, text: &[u8], unix_seconds: u64) -> UsageTag {
        self.tags.tag(key, text, unix_seconds)
    }

    /// Counts of stored, waiting and lost usage.
    pub fn ledger(&self) -> &LedgerCounts {
        &self.ledger
    }

    /// The usage of each account since the start, as far as it is collected.
    pub fn accounts(&self) -> &AccountTotals {
        &self.accounts
    }

    pub fn shard(&self, worker: usize) -> Arc<UsageShard> {
        Arc::clone(&self.shards[worker])
    }

    /// Starts to count.
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
            let mut used_keys = self.used_keys.lock();
            rows.extend(groups.into_iter().map(|(id, counted)| {
                used_keys.entry(id.0).or_insert_with(|| Arc::clone(&counted.key));
                row(id, counted, minute, network)
            }));
        }
        self.accounts.add(&rows);
        let own = std::mem::take(&mut *self.own.lock());
        rows.extend(own.into_iter().map(|(name, calls)| own_row(name, calls, minute, network)));
        rows
    }

    /// The keys whose usage was taken since the last call of this function.
    pub(super) fn take_used_keys(&self) -> UsedKeys {
        std::mem::take(&mut *self.used_keys.lock())
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
    pub fn record(&self, key: &Arc<ApiKey>, tag: Option<&UsageTag>, call: CallUsage) {
        if !self.is_recording.load(Relaxed) {
            return;
        }
        let id = (Arc::as_ptr(key).addr(), call.method.index(), call.outcome, tag.cloned());
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

fn row((_, _, outcome, tag): GroupId, counted: CountedGroup, minute: u64, network: &Arc<str>) -> UsageRow {
    let CountedGroup { key, method, counts } = counted;
    let group = UsageGroup {
        starts_at: minute,
        network: Arc::clone(network),
        account: key.account.name.as_str().into(),
        key: Arc::clone(&key.id),
        method: method.name().into(),
        outcome: outcome.label().into(),
        tag: tag.map_or_else(|| "".into(), UsageTag::into_text),
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
        tag: "".into(),
    };
    UsageRow { group, counts: UsageCounts { calls, credits: calls, ..UsageCounts::default() } }
}
