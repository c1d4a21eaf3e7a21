//! What was counted, as Prometheus text. Every label comes from a closed set, so the number of series is known.

mod remote; // nodes and partners

use std::fmt::{Display, Write};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use answers::Cache;
use http_server::HttpCounts;
use resources::{BOUNDS_US, Times};

use crate::edge::Edge;
use crate::log;
use crate::meter::{Outcome, Shard};

pub(super) fn text(edge: &Edge) -> String {
    let mut out = String::with_capacity(32 << 10);
    build(&mut out, edge);
    gauges(&mut out, edge);
    http(&mut out, edge);
    calls(&mut out, edge);
    latency(&mut out, edge);
    work(&mut out, edge);
    cache(&mut out, edge.answers.cache());
    if let Some(remote) = edge.answers.remote() {
        remote::write(&mut out, remote);
    }
    out
}

fn describe(out: &mut String, name: &str, kind: &str, help: &str) {
    // Writing to a string cannot fail.
    let _ok = writeln!(out, "# HELP {name} {help}\n# TYPE {name} {kind}");
}

fn one(out: &mut String, name: &str, kind: &str, help: &str, value: impl Display) {
    describe(out, name, kind, help);
    let _ok = writeln!(out, "{name} {value}");
}

fn cache(out: &mut String, cache: &Cache) {
    let counts = cache.counts();
    let count = |counter: &AtomicU64| counter.load(Relaxed);
    one(
        out,
        "chaingate_cache_hits_total",
        "counter",
        "Look-ups in the cache of answers that found one.",
        count(&counts.hits),
    );
    one(
        out,
        "chaingate_cache_misses_total",
        "counter",
        "Look-ups in the cache of answers that found none.",
        count(&counts.misses),
    );
    one(
        out,
        "chaingate_cache_evictions_total",
        "counter",
        "Answers removed from the cache to make room for others.",
        count(&counts.evictions),
    );
    one(out, "chaingate_cache_bytes", "gauge", "Bytes that the answers in the cache take.", cache.bytes());
}

fn build(out: &mut String, edge: &Edge) {
    describe(
        out,
        "chaingate_build_info",
        "gauge",
        "Always 1; the labels have the version of the program and the name of the network.",
    );
    let version = env!("CARGO_PKG_VERSION");
    let network = label(&edge.network.name);
    let _ok = writeln!(out, "chaingate_build_info{{version=\"{version}\",network=\"{network}\"}} 1");
}

/// Text as it stands between the quotes of a label. The format knows three escapes and no others.
fn label(text: &str) -> String {
    text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

fn sum(edge: &Edge, pick: impl Fn(&HttpCounts) -> &AtomicU64) -> u64 {
    edge.server.counts.iter().map(|counts| pick(counts).load(Relaxed)).sum()
}

fn sum_of_shards(edge: &Edge, pick: impl Fn(&Shard) -> &AtomicU64) -> u64 {
    edge.shards.iter().map(|shard| pick(shard).load(Relaxed)).sum()
}

fn gauges(out: &mut String, edge: &Edge) {
    let mut gauge = |name: &str, help: &str, value: u64| {
        describe(out, name, "gauge", help);
        let _ok = writeln!(out, "{name} {value}");
    };
    let (answers, limits) = (&edge.answers, &edge.limits);
    gauge("chaingate_ready", "1 while /ready answers 200, else 0.", edge.is_ready().into());
    gauge(
        "chaingate_head_block",
        "Number of the newest block that is served; 0 before the first.",
        edge.head().unwrap_or_default(),
    );
    gauge(
        "chaingate_connections_open",
        "Open connections of callers.",
        edge.server.open_connections() as u64,
    );
    gauge(
        "chaingate_connections_max",
        "Limit of open connections of callers (connections_max).",
        limits.listen.connections_max as u64,
    );
    gauge("chaingate_calls_in_flight", "Calls admitted and not answered yet.", edge.capacity.taken() as u64);
    gauge(
        "chaingate_pool_waiting",
        "Calls that wait for a thread of the pool.",
        answers.threads().waiting() as u64,
    );
    gauge(
        "chaingate_pool_queue_max",
        "Limit of calls that wait for a thread of the pool (pool_queue_max).",
        limits.answer.pool_queue_max as u64,
    );
    gauge(
        "chaingate_memory_bytes",
        "Bytes charged to accounts: request bodies and replies of at least 16 KiB, and on HTTP/2 also smaller ones, heads and 10 KiB for each request, where one connection holds more than 32 KiB of them.",
        edge.memory.bytes() as u64,
    );
    gauge(
        "chaingate_memory_bytes_max",
        "Limit of chaingate_memory_bytes (memory_bytes_max).",
        edge.memory.bytes_max() as u64,
    );
}

fn counter(out: &mut String, name: &str, help: &str, value: u64) {
    describe(out, name, "counter", help);
    let _ok = writeln!(out, "{name} {value}");
}

fn http(out: &mut String, edge: &Edge) {
    let mut counter = |name: &str, help: &str, value: u64| counter(out, name, help, value);
    counter(
        "chaingate_memory_refused_total",
        "Request bodies and replies that were refused because their account had used up its share of memory.",
        edge.memory.refused(),
    );
    counter(
        "chaingate_connections_total",
        "Connections of callers that were accepted.",
        sum(edge, |counts| &counts.connections),
    );
    counter(
        "chaingate_connections_turned_away_total",
        "Connections of callers that were refused because connections_max was reached.",
        sum(edge, |counts| &counts.turned_away),
    );
    counter(
        "chaingate_connections_refused_by_address_total",
        "Connections refused because their address had connections_per_address_max.",
        sum(edge, |counts| &counts.address_refused),
    );
    counter(
        "chaingate_connections_closed_for_others_total",
        "Connections without a valid key, and idle ones, that were closed because there was no place for another connection.",
        sum(edge, |counts| &counts.closed_for_others),
    );
    counter(
        "chaingate_unauthenticated_refused_total",
        "Requests without a valid key that were refused because their address made more than unauthenticated_per_second_max.",
        sum(edge, |counts| &counts.unauthenticated_refused),
    );
    counter(
        "chaingate_requests_total",
        "HTTP requests of callers that were answered, refusals included.",
        sum(edge, |counts| &counts.requests),
    );
    counter(
        "chaingate_received_bytes_total",
        "Bytes of request bodies read, before they are inflated.",
        sum(edge, |counts| &counts.bytes_in),
    );
    counter(
        "chaingate_sent_bytes_total",
        "Bytes of reply bodies, after they are compressed.",
        sum(edge, |counts| &counts.bytes_out),
    );
    counter(
        "chaingate_log_lines_dropped_total",
        "Lines of the log that were dropped because its reader was too slow or gone.",
        log::lines_dropped(),
    );
    describe(
        out,
        "chaingate_responses_total",
        "counter",
        "HTTP replies to callers by the class of their status.",
    );
    for hundred in 2..6 {
        let count = sum(edge, |counts| &counts.statuses[hundred]);
        let _ok = writeln!(out, "chaingate_responses_total{{status=\"{hundred}xx\"}} {count}");
    }
}

fn calls(out: &mut String, edge: &Edge) {
    describe(
        out,
        "chaingate_calls_total",
        "counter",
        "JSON-RPC calls by method and outcome; the method other stands for unknown and malformed ones.",
    );
    for (method, index) in Shard::labels() {
        for outcome in Outcome::ALL {
            let count = sum_of_shards(edge, |shard| &shard.methods[index].outcomes[outcome as usize]);
            if count > 0 {
                let outcome = outcome.label();
                let _ok = writeln!(
                    out,
                    "chaingate_calls_total{{method=\"{method}\",outcome=\"{outcome}\"}} {count}"
                );
            }
        }
    }
    describe(out, "chaingate_credits_total", "counter", "Credits charged for calls, by method.");
    for (method, index) in Shard::labels() {
        let credits = sum_of_shards(edge, |shard| &shard.methods[index].credits);
        if credits > 0 {
            let _ok = writeln!(out, "chaingate_credits_total{{method=\"{method}\"}} {credits}");
        }
    }
}

fn latency(out: &mut String, edge: &Edge) {
    let name = "chaingate_call_seconds";
    describe(
        out,
        name,
        "histogram",
        "Time from the arrival of a call's request to the call's answer, by method.",
    );
    for (method, index) in Shard::labels() {
        let times: Times = edge.shards.iter().map(|shard| &shard.methods[index].latency).collect();
        if times.count() > 0 {
            histogram(out, name, &format!("method=\"{method}\""), &times);
        }
    }
}

/// What the sources take for an answer, without the way there and back.
fn work(out: &mut String, edge: &Edge) {
    let timings = edge.answers.timings();
    let name = "chaingate_work_seconds";
    describe(
        out,
        name,
        "histogram",
        "Time that the embedded chain or the nodes took for an answer: inline reads (read), and on the embedded chain log queries (logs), simulations (evm), fee histories (fees) and blocks (block).",
    );
    histogram(out, name, "work=\"read\"", &edge.shards.iter().map(|shard| &shard.reads).collect());
    histogram(out, name, "work=\"logs\"", &[&timings.logs].into_iter().collect());
    histogram(out, name, "work=\"evm\"", &[&timings.calls].into_iter().collect());
    histogram(out, name, "work=\"fees\"", &[&timings.fees].into_iter().collect());
    histogram(out, name, "work=\"block\"", &[&timings.blocks].into_iter().collect());
    let name = "chaingate_pool_wait_seconds";
    describe(out, name, "histogram", "Time that calls waited for a thread of the pool.");
    histogram(out, name, "", &[&timings.waits].into_iter().collect());
    counter(
        out,
        "chaingate_shared_calls_total",
        "Times that a call waited for the answer to an equal call in flight.",
        edge.answers.shared_calls(),
    );
    counter(
        out,
        "chaingate_pool_jobs_total",
        "Jobs that threads of the pool have begun: heavy calls, large bodies and replies, and large answers of nodes.",
        edge.answers.threads().begun(),
    );
}

fn histogram(out: &mut String, name: &str, labels: &str, times: &Times) {
    let comma = if labels.is_empty() { "" } else { "," };
    let mut below = 0;
    for (bound, inside) in BOUNDS_US.iter().zip(&times.buckets) {
        below += inside;
        let seconds = *bound as f64 / 1e6;
        let _ok = writeln!(out, "{name}_bucket{{{labels}{comma}le=\"{seconds}\"}} {below}");
    }
    let (count, sum) = (times.count(), times.sum_ns as f64 / 1e9);
    let braced = if labels.is_empty() { String::new() } else { format!("{{{labels}}}") };
    let _ok = writeln!(
        out,
        "{name}_bucket{{{labels}{comma}le=\"+Inf\"}} {count}\n{name}_sum{braced} {sum}\n{name}_count{braced} {count}"
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_label_may_be_any_text() {
        assert_eq!(label("a\"b\\c\nd ü"), "a\\\"b\\\\c\\nd ü");
    }
}
