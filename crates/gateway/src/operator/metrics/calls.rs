//! Calls, the memory, the threads and the cache that they share, and the archive.

use std::sync::atomic::Ordering::Relaxed;

use resources::{Histogram, HistogramSum};

use super::{MetricTable, SeriesWriter, counter, gauge, series};
use crate::gateway_state::GatewayState;
use crate::meter::{MethodCounts, Outcome, WorkerCounters};

#[rustfmt::skip]
pub(super) const CALLS: MetricTable<GatewayState> = MetricTable {
    title: "Calls",
    about: "Always present. A method has series once it was called.",
    with_source: |gateway, read| read(gateway),
    metrics: &[
        gauge("chaingate_calls_in_flight", "Calls admitted and not answered yet.",
            |gateway| gateway.capacity.taken() as u64),
        gauge("chaingate_calls_in_flight_max", "Limit of chaingate_calls_in_flight (calls_in_flight_max).",
            |gateway| gateway.capacity.calls_max() as u64),
        series("counter", "chaingate_calls_total", &["method", "outcome"],
            "JSON-RPC calls by method and outcome; the method other stands for those that are unknown, malformed, have wrong parameters or are excluded by the key.",
            calls),
        series("counter", "chaingate_credits_total", &["method"], "Credits charged for calls, by method.", credits),
        series("histogram", "chaingate_call_seconds", &["method"],
            "Time from the arrival of a call's request to the call's answer, by method.",
            latency),
        series("histogram", "chaingate_work_seconds", &["work"],
            "Time that the embedded chain or the nodes took for an answer: inline reads (read), and on the embedded chain log queries (logs), simulations (evm), fee histories (fees) and blocks (block).",
            work),
        counter("chaingate_shared_calls_total", "Times that a call waited for the answer to an equal call in flight.",
            |gateway| gateway.answers.shared_calls()),
    ],
};

#[rustfmt::skip]
pub(super) const RESOURCES: MetricTable<GatewayState> = MetricTable {
    title: "Memory, threads and cache",
    about: "Always present.",
    with_source: |gateway, read| read(gateway),
    metrics: &[
        gauge("chaingate_memory_bytes",
            "Bytes charged to accounts: request bodies and replies of at least 16 KiB, and on HTTP/2 also smaller ones, heads and 10 KiB for each request, where one connection holds more than 32 KiB of them.",
            |gateway| gateway.memory.bytes() as u64),
        gauge("chaingate_memory_bytes_max", "Limit of chaingate_memory_bytes (memory_bytes_max).",
            |gateway| gateway.memory.bytes_max() as u64),
        counter("chaingate_memory_refused_total",
            "Request bodies and replies that were refused because their account had used up its share of memory.",
            |gateway| gateway.memory.refused()),
        gauge("chaingate_pool_waiting", "Calls that wait for a thread of the pool.",
            |gateway| gateway.answers.threads().waiting() as u64),
        gauge("chaingate_pool_queue_max", "Limit of calls that wait for a thread of the pool (pool_queue_max).",
            |gateway| gateway.answers.limits().now().pool_queue_max as u64),
        series("histogram", "chaingate_pool_wait_seconds", &[], "Time that calls waited for a thread of the pool.",
            |gateway, series| {
                series.add_histogram(&[], &[&gateway.answers.timings().waits].into_iter().collect());
            }),
        counter("chaingate_pool_jobs_total",
            "Jobs that threads of the pool have begun: heavy calls, compressed and large bodies, large replies, and large answers of nodes.",
            |gateway| gateway.answers.threads().started()),
        counter("chaingate_cache_hits_total", "Look-ups in the cache of answers that found one.",
            |gateway| gateway.answers.cache().counts().hits.load(Relaxed)),
        counter("chaingate_cache_misses_total", "Look-ups in the cache of answers that found none.",
            |gateway| gateway.answers.cache().counts().misses.load(Relaxed)),
        counter("chaingate_cache_evictions_total", "Answers removed from the cache to make room for others.",
            |gateway| gateway.answers.cache().counts().evictions.load(Relaxed)),
        gauge("chaingate_cache_bytes", "Bytes that the answers in the cache take.",
            |gateway| gateway.answers.cache().bytes()),
    ],
};

/// The source is the size of the file.
#[rustfmt::skip]
pub(super) const ARCHIVE: MetricTable<u64> = MetricTable {
    title: "The archive",
    about: "With an archive.",
    with_source: |gateway, read| if let Some(bytes) = gateway.answers.archive_bytes() {
        read(&bytes);
    },
    metrics: &[gauge("chaingate_archive_bytes", "Bytes of the file of the archive.", |bytes| *bytes)],
};

/// Every method with its counts in each worker.
fn methods(gateway: &GatewayState) -> impl Iterator<Item = (&'static str, Vec<&MethodCounts>)> {
    let counts = |index: usize| gateway.worker_counters.iter().map(|worker| &worker.methods[index]).collect();
    WorkerCounters::labels().map(move |(method, index)| (method, counts(index)))
}

/// With all outcomes of a method from its first call on, `rate` sees the first fault as well.
fn calls(gateway: &GatewayState, series: &mut SeriesWriter<'_>) {
    for (method, workers) in methods(gateway) {
        let counts = Outcome::ALL.map(|outcome| {
            let calls = workers.iter().map(|counts| counts.outcomes[outcome as usize].load(Relaxed));
            (outcome.label(), calls.sum::<u64>())
        });
        if counts.iter().any(|(_, calls)| *calls > 0) {
            for (outcome, calls) in counts {
                series.add(&[("method", method), ("outcome", outcome)], calls);
            }
        }
    }
}

fn credits(gateway: &GatewayState, series: &mut SeriesWriter<'_>) {
    for (method, workers) in methods(gateway) {
        let credits: u64 = workers.iter().map(|counts| counts.credits.load(Relaxed)).sum();
        if credits > 0 {
            series.add(&[("method", method)], credits);
        }
    }
}

fn latency(gateway: &GatewayState, series: &mut SeriesWriter<'_>) {
    for (method, workers) in methods(gateway) {
        let times: HistogramSum = workers.iter().map(|counts| &counts.latency).collect();
        if times.count() > 0 {
            series.add_histogram(&[("method", method)], &times);
        }
    }
}

fn work(gateway: &GatewayState, series: &mut SeriesWriter<'_>) {
    let timings = gateway.answers.timings();
    let reads = gateway.worker_counters.iter().map(|worker| &worker.reads).collect();
    series.add_histogram(&[("work", "read")], &reads);
    let pooled: [(&str, &Histogram); 4] = [
        ("logs", &timings.logs),
        ("evm", &timings.calls),
        ("fees", &timings.fees),
        ("block", &timings.blocks),
    ];
    for (work, times) in pooled {
        series.add_histogram(&[("work", work)], &[times].into_iter().collect());
    }
}
