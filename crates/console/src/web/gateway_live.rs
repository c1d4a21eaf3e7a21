//! The live view of a gateway: rates from the differences of its counters over the last minutes.

use std::collections::VecDeque;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use callers::usage::Outcome;
use gateway::{
    GatewaySnapshot, GatewayState, NodeSnapshot, PartnerSnapshot, StorageKind, StorageSnapshot,
    TrafficCounters,
};
use parking_lot::Mutex;
use resources::{HistogramSum, unix_seconds};

use super::site::LiveSource;
use crate::pages::live::{
    HISTORY_POINTS_MAX, LiveChain, LiveError, LiveExecution, LiveHistory, LiveInstance, LiveNode,
    LivePartner, LiveStatus, LiveStorage, LiveTraffic,
};
use crate::pages::outcomes::{FailureRow, OutcomeCounts};

/// Samples between two points of a sparkline; the console takes one each second.
const SAMPLES_PER_POINT: usize = 2;

/// Samples that are kept: five minutes.
const SAMPLES_MAX: usize = HISTORY_POINTS_MAX * SAMPLES_PER_POINT + 1;

/// Samples over which the present values are taken, so that they do not jump.
const PRESENT_SAMPLES: usize = 10;

/// Reads the status of a gateway, and remembers its counters.
#[derive(Debug)]
pub struct GatewayLive {
    gateway: Arc<GatewayState>,
    /// The file of the archive, if there is one.
    archive_file: Option<PathBuf>,
    samples: Mutex<VecDeque<Sample>>,
}

#[derive(Clone, Debug)]
struct Sample {
    at: Instant,
    counters: TrafficCounters,
}

impl GatewayLive {
    pub fn new(gateway: Arc<GatewayState>, archive_file: Option<PathBuf>) -> Self {
        Self { gateway, archive_file, samples: Mutex::default() }
    }

    /// The archive with the size of its file. An archive that no node extends is only read.
    fn with_archive_file(&self, mut status: LiveStatus) -> LiveStatus {
        let bytes = self.archive_file.as_deref().and_then(|file| std::fs::metadata(file).ok());
        let Some(bytes) = bytes.map(|file| file.len()) else { return status };
        let newest = status.chain.head;
        let storage = status.storage.get_or_insert_with(|| LiveStorage {
            kind: StorageKind::Archive,
            state: "serving".to_owned(),
            is_problem: false,
            lowest: Some(0),
            newest,
            bytes,
            execution: None,
        });
        storage.bytes = bytes;
        status
    }
}

impl LiveSource for GatewayLive {
    fn status(&self) -> LiveStatus {
        let snapshot = self.gateway.snapshot();
        let mut samples = self.samples.lock();
        if samples.len() >= SAMPLES_MAX {
            samples.pop_front();
        }
        samples.push_back(Sample { at: Instant::now(), counters: snapshot.traffic.clone() });
        let (traffic, errors) = (traffic(&samples), errors(&samples));
        drop(samples);
        self.with_archive_file(status(snapshot, traffic, errors))
    }
}

fn traffic(samples: &VecDeque<Sample>) -> LiveTraffic {
    let newest = samples.len().saturating_sub(1);
    let present = values(samples, newest.saturating_sub(PRESENT_SAMPLES), newest);
    let mut history = LiveHistory { step_seconds: SAMPLES_PER_POINT as u64, ..LiveHistory::default() };
    // The points end with the newest sample.
    let first = newest % SAMPLES_PER_POINT;
    for start in (first..newest).step_by(SAMPLES_PER_POINT) {
        let point = values(samples, start, start + SAMPLES_PER_POINT);
        history.requests_per_second.push(point.requests_per_second);
        history.p50_ms.push(point.p50_ms);
        history.p99_ms.push(point.p99_ms);
        history.error_share.push(point.error_share);
        history.cache_hit_share.push(point.cache_hit_share);
    }
    LiveTraffic {
        requests_per_second: present.requests_per_second.unwrap_or(0.0),
        p50_ms: present.p50_ms,
        p99_ms: present.p99_ms,
        error_share: present.error_share,
        cache_hit_share: present.cache_hit_share,
        history,
    }
}

/// What happened between two samples.
#[derive(Debug, Default)]
struct LiveValues {
    requests_per_second: Option<f64>,
    p50_ms: Option<f64>,
    p99_ms: Option<f64>,
    error_share: Option<f64>,
    cache_hit_share: Option<f64>,
}

fn values(samples: &VecDeque<Sample>, from: usize, to: usize) -> LiveValues {
    let (Some(from), Some(to)) = (samples.get(from), samples.get(to)) else { return LiveValues::default() };
    let seconds = to.at.saturating_duration_since(from.at).as_secs_f64();
    if seconds <= 0.0 {
        return LiveValues::default();
    }
    let (before, after) = (&from.counters, &to.counters);
    let latency = difference(&before.latency, &after.latency);
    let counts = outcomes_between(before, after);
    let share = |part: u64, all: u64| (all > 0).then(|| part as f64 / all as f64);
    let hits = after.cache_hits.saturating_sub(before.cache_hits);
    let misses = after.cache_misses.saturating_sub(before.cache_misses);
    LiveValues {
        requests_per_second: Some(after.requests.saturating_sub(before.requests) as f64 / seconds),
        p50_ms: latency.quantile_ms(0.5),
        p99_ms: latency.quantile_ms(0.99),
        error_share: share(counts.failed(), counts.calls()),
        cache_hit_share: share(hits, hits + misses),
    }
}

fn difference(before: &HistogramSum, after: &HistogramSum) -> HistogramSum {
    let mut difference = after.clone();
    for (bucket, before) in difference.buckets.iter_mut().zip(&before.buckets) {
        *bucket = bucket.saturating_sub(*before);
    }
    difference
}

fn outcomes_between(before: &TrafficCounters, after: &TrafficCounters) -> OutcomeCounts {
    let mut counts = OutcomeCounts::default();
    for ((outcome, before), after) in Outcome::ALL.into_iter().zip(before.outcomes).zip(after.outcomes) {
        counts.add(outcome, after.saturating_sub(before));
    }
    counts
}

/// The errors since the oldest sample, the most frequent first.
fn errors(samples: &VecDeque<Sample>) -> Vec<LiveError> {
    let (Some(oldest), Some(newest)) = (samples.front(), samples.back()) else { return Vec::new() };
    let rows = outcomes_between(&oldest.counters, &newest.counters).failures();
    let error = |row: FailureRow| LiveError {
        code: format!("{}: {}", row.outcome.label(), row.codes),
        meaning: row.meaning.to_owned(),
        count: row.calls,
    };
    // A revert is an answer of the chain, and no error of the service.
    rows.into_iter().filter(|row| row.outcome != Outcome::Reverted).map(error).collect()
}

fn status(snapshot: GatewaySnapshot, traffic: LiveTraffic, errors: Vec<LiveError>) -> LiveStatus {
    let now = unix_seconds();
    let head = snapshot.chain.head;
    let ago = |time: Duration| now - i64::try_from(time.as_secs()).unwrap_or(0);
    let chain = snapshot.chain;
    let instances = snapshot.instances;
    LiveStatus {
        now,
        not_ready_because: snapshot.not_ready_because,
        tasks_down: snapshot.tasks_down.iter().map(|task| (task.name.clone(), task.reason())).collect(),
        traffic,
        errors,
        chain: LiveChain {
            head,
            head_hash: chain.head_hash,
            head_age_seconds: chain.head_age.map(|age| age.as_secs()),
            waits_because: chain.waits_because,
            finalized: chain.finalized,
            reorganisations: chain.reorganisations,
            last_reorganisation_at: chain.last_reorganisation.map(ago),
        },
        nodes: snapshot.nodes.into_iter().map(|node| live_node(node, head)).collect(),
        partners: snapshot.partners.into_iter().map(live_partner).collect(),
        last_partner_answer: snapshot
            .last_partner_answer
            .map(|(reason, time)| (reason.to_owned(), ago(time))),
        storage: snapshot.storage.map(live_storage),
        instances: instances
            .map(|shared| live_instances(shared.count, shared.is_connected))
            .unwrap_or_default(),
    }
}

fn live_node(node: NodeSnapshot, head: Option<u64>) -> LiveNode {
    LiveNode {
        name: node.name,
        state: node.state,
        head: node.head,
        lag: head.zip(node.head).map(|(ours, theirs)| ours.saturating_sub(theirs)),
        latency_ms: node.latency.map(|latency| latency.as_secs_f64() * 1_000.0),
        faults: node.faults,
        reason: node.not_used_because,
    }
}

fn live_partner(partner: PartnerSnapshot) -> LivePartner {
    LivePartner { name: partner.name, used: partner.used_today, budget: Some(partner.calls_per_day) }
}

fn live_storage(storage: StorageSnapshot) -> LiveStorage {
    let execution = |(done_blocks, total_blocks)| LiveExecution { done_blocks, total_blocks };
    LiveStorage {
        kind: storage.kind,
        state: storage.state,
        is_problem: storage.is_problem,
        lowest: storage.lowest,
        newest: storage.newest,
        bytes: storage.bytes,
        execution: storage.progress.map(execution),
    }
}

/// Redis tells how many gateways share the limits, and not their names.
fn live_instances(count: u64, is_connected: bool) -> Vec<LiveInstance> {
    let state = if is_connected {
        "shares limits over Redis"
    } else {
        "Redis does not answer; counts its part alone"
    };
    let instance = |number: u64| LiveInstance {
        name: if number == 1 { "this gateway".to_owned() } else { format!("gateway {number}") },
        is_this: number == 1,
        state: state.to_owned(),
    };
    /// Rows of the table; more gateways are not told apart anyway.
    const SHOWN_MAX: u64 = 50;
    (1..=count.clamp(1, SHOWN_MAX)).map(instance).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A sample per second; each second has ten requests that take up to 1 ms, one of them refused, and half from the cache.
    fn samples(seconds: usize) -> VecDeque<Sample> {
        let start = Instant::now();
        let (ok, refused) = (Outcome::Ok as usize, Outcome::Refused as usize);
        let sample = |second: u64| {
            let mut counters = TrafficCounters { requests: 10 * second, ..TrafficCounters::default() };
            (counters.outcomes[ok], counters.outcomes[refused]) = (9 * second, second);
            counters.latency.buckets[7] = 10 * second;
            (counters.cache_hits, counters.cache_misses) = (5 * second, 5 * second);
            Sample { at: start + Duration::from_secs(second), counters }
        };
        (0..seconds as u64).map(sample).collect()
    }

    #[test]
    fn rates_are_differences_over_time() {
        let traffic = traffic(&samples(SAMPLES_MAX));
        assert_eq!(traffic.requests_per_second, 10.0);
        assert_eq!((traffic.error_share, traffic.cache_hit_share), (Some(0.1), Some(0.5)));
        assert!(traffic.p50_ms.is_some_and(|p50| p50 > 0.5 && p50 < 1.0), "{:?}", traffic.p50_ms);
        assert_eq!(traffic.history.requests_per_second.len(), HISTORY_POINTS_MAX);
        assert!(traffic.history.requests_per_second.iter().all(|rate| *rate == Some(10.0)));
        let errors = errors(&samples(SAMPLES_MAX));
        assert_eq!(
            (errors.len(), errors[0].code.as_str(), errors[0].count),
            (1, "refused: 429 or 402, -32005", SAMPLES_MAX as u64 - 1)
        );
    }

    #[test]
    fn there_are_no_values_before_the_second_sample() {
        for count in [0, 1] {
            let traffic = traffic(&samples(count));
            assert_eq!((traffic.requests_per_second, traffic.p50_ms), (0.0, None));
            assert!(traffic.history.p50_ms.is_empty());
        }
        assert_eq!(traffic(&samples(2)).history.p50_ms.len(), 0, "a point has two seconds");
        assert_eq!(traffic(&samples(3)).history.p50_ms.len(), 1);
    }
}
