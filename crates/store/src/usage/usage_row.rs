//! Usage as it is spooled, stored and reported: what was counted, and for whom.

use std::sync::Arc;

use resources::BUCKETS;

/// The dimensions of a count of calls.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct UsageGroup {
    /// The start of the minute, hour or day, in seconds since 1970, UTC.
    pub starts_at: u64,
    pub network: Arc<str>,
    pub account: Arc<str>,
    /// The id of the key, never the key itself.
    pub key: Arc<str>,
    pub method: Arc<str>,
    pub outcome: Arc<str>,
    /// The tag of the calls; empty if the caller gave none.
    pub tag: Arc<str>,
}

/// The counts of calls.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UsageCounts {
    pub calls: u64,
    pub credits: u64,
    /// Bytes of the calls, after they are inflated.
    pub bytes_in: u64,
    /// Bytes of the results, before they are compressed.
    pub bytes_out: u64,
    /// The sum of the times from the arrival of a request to the answer of its call.
    pub latency_ns: u64,
    /// How many calls took how long, by the bounds of [`resources::BOUNDS_US`].
    pub latency_buckets: [u64; BUCKETS],
}

impl UsageCounts {
    pub fn add(&mut self, other: &Self) {
        self.calls = self.calls.saturating_add(other.calls);
        self.credits = self.credits.saturating_add(other.credits);
        self.bytes_in = self.bytes_in.saturating_add(other.bytes_in);
        self.bytes_out = self.bytes_out.saturating_add(other.bytes_out);
        self.latency_ns = self.latency_ns.saturating_add(other.latency_ns);
        for (sum, more) in self.latency_buckets.iter_mut().zip(&other.latency_buckets) {
            *sum = sum.saturating_add(*more);
        }
    }

    /// Takes away a part of these counts.
    pub fn subtract(&mut self, part: &Self) {
        self.calls = self.calls.saturating_sub(part.calls);
        self.credits = self.credits.saturating_sub(part.credits);
        self.bytes_in = self.bytes_in.saturating_sub(part.bytes_in);
        self.bytes_out = self.bytes_out.saturating_sub(part.bytes_out);
        self.latency_ns = self.latency_ns.saturating_sub(part.latency_ns);
        for (rest, less) in self.latency_buckets.iter_mut().zip(&part.latency_buckets) {
            *rest = rest.saturating_sub(*less);
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UsageRow {
    pub group: UsageGroup,
    pub counts: UsageCounts,
}
