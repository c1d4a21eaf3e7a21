//! Metrics as Prometheus text. Every label comes from a closed set, so the number of series is known.

mod disk; // the disk that has the data directory
mod remote; // nodes and partners
mod shared; // limits that other instances use, too
mod tasks; // the tasks beside requests
mod usage; // the ledger of usage

use std::fmt::{Display, Write};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use answers::Cache;
use callers::{FeedStatus, KeysOrigin};
use http_server::HttpCounts;
use resources::{BOUNDS_US, HistogramSum};

use crate::gateway_state::GatewayState;
use crate::log;
use crate::meter::{Outcome, WorkerCounters};

pub(super) fn text(gateway: &GatewayState) -> String {
    let mut out = String::with_capacity(32 << 10);
    build(&mut out, gateway);
    gauges(&mut out, gateway);
    http(&mut out, gateway);
    if let Some(time) = gateway.tls_expires_at() {
        certificate(&mut out, time);
    }
    calls(&mut out, gateway);
    latency(&mut out, gateway);
    work(&mut out, gateway);
    cache(&mut out, gateway.answers.cache());
    usage::write(&mut out, gateway.usage.ledger());
    callers(&mut out, gateway.callers.feed_status());
    disk::write(&mut out, &gateway.disk);
    tasks::write(&mut out, &gateway.supervisor.report());
    if let Some(remote) = gateway.answers.remote() {
        remote::write(&mut out, remote);
    }
    if let Some(limits) = gateway.callers.shared_limits() {
        shared::write(&mut out, limits.status());
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

fn callers(out: &mut String, status: &FeedStatus) {
    let facts = status.facts();
    let mut gauge = |name: &str, help: &str, value: i64| one(out, name, "gauge", help, value);
    gauge(
        "chaingate_store_connected",
        "1 while the store of accounts and keys can be reached, else 0.",
        facts.is_connected.into(),
    );
    gauge(
        "chaingate_store_copy_used",
        "1 while accounts and keys come from the local copy, because the store could not be reached at the start, else 0.",
        (facts.origin == KeysOrigin::Copy).into(),
    );
    gauge("chaingate_store_accounts", "Accounts of the store in memory.", count(facts.accounts));
    gauge("chaingate_store_keys", "Keys of the store in memory.", count(facts.keys));
    gauge(
        "chaingate_store_bad_rows",
        "Rows of the store that are refused because something in them is wrong; the log names them.",
        count(facts.bad_rows),
    );
    gauge(
        "chaingate_store_revision",
        "Number of the newest change of the store that is in effect.",
        facts.revision,
    );
    one(
        out,
        "chaingate_store_copy_failures_total",
        "counter",
        "Failures to write the local copy of accounts and keys.",
        facts.copy_failures,
    );
}

fn count(count: u64) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

fn build(out: &mut String, gateway: &GatewayState) {
    describe(
        out,
        "chaingate_build_info",
        "gauge",
        "Always 1; the labels have the version of the program and the name of the network.",
    );
    let version = env!("CARGO_PKG_VERSION");
    let network = label(&gateway.network.name);
    let _ok = writeln!(out, "chaingate_build_info{{version=\"{version}\",network=\"{network}\"}} 1");
}

/// Text as it stands between the quotes of a label. The format knows three escapes and no others.
fn label(text: &str) -> String {
    text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

fn sum(gateway: &GatewayState, pick: impl Fn(&HttpCounts) -> &AtomicU64) -> u64 {
    gateway.server.counts.iter().map(|counts| pick(counts).load(Relaxed)).sum()
}

fn sum_over_workers(gateway: &GatewayState, pick: impl Fn(&WorkerCounters) -> &AtomicU64) -> u64 {
    gateway.worker_counters.iter().map(|counters| pick(counters).load(Relaxed)).sum()
}

fn gauges(out: &mut String, gateway: &GatewayState) {
    let mut gauge = |name: &str, help: &str, value: u64| {
        one(out, name, "gauge", help, value);
    };
    let (answers, limits) = (&gateway.answers, &gateway.limits);
    gauge("chaingate_ready", "1 while /ready answers 200, else 0.", gateway.is_ready().into());
    gauge(
        "chaingate_head_block",
        "Number of the newest block that is served; 0 before the first.",
        gateway.head().unwrap_or_default(),
    );
    gauge(
        "chaingate_connections_open",
        "Open connections of callers.",
        gateway.server.open_connections() as u64,
    );
    gauge(
        "chaingate_connections_max",
        "Limit of open connections of callers (connections_max).",
        limits.listen.connections_max as u64,
    );
    gauge(
        "chaingate_calls_in_flight",
        "Calls admitted and not answered yet.",
        gateway.capacity.taken() as u64,
    );
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
        gateway.memory.bytes() as u64,
    );
    gauge(
        "chaingate_memory_bytes_max",
        "Limit of chaingate_memory_bytes (memory_bytes_max).",
        gateway.memory.bytes_max() as u64,
    );
}

fn certificate(out: &mut String, expires_at: i64) {
    one(
        out,
        "chaingate_tls_certificate_expires_at_seconds",
        "gauge",
        "Time at which the TLS certificate in use expires, in seconds since 1970; for a chain, the earliest of its certificates.",
        expires_at,
    );
}

fn counter(out: &mut String, name: &str, help: &str, value: u64) {
    one(out, name, "counter", help, value);
}

fn http(out: &mut String, gateway: &GatewayState) {
    let mut counter = |name: &str, help: &str, value: u64| counter(out, name, help, value);
    counter(
        "chaingate_memory_refused_total",
        "Request bodies and replies that were refused because their account had used up its share of memory.",
        gateway.memory.refused(),
    );
    counter(
        "chaingate_connections_total",
        "Connections of callers that were accepted.",
        sum(gateway, |counts| &counts.connections),
    );
    counter(
        "chaingate_connections_refused_total",
        "Connections of callers that were refused because connections_max was reached.",
        sum(gateway, |counts| &counts.refused),
    );
    counter(
        "chaingate_connections_refused_by_address_total",
        "Connections refused because their address had connections_per_address_max.",
        sum(gateway, |counts| &counts.address_refused),
    );
    counter(
        "chaingate_connections_closed_for_others_total",
        "Connections without a valid key, idle ones, and those of an account with more than half of all, that were closed because there was no place for another connection.",
        sum(gateway, |counts| &counts.closed_for_others),
    );
    counter(
        "chaingate_unauthenticated_refused_total",
        "Requests without a valid key that were refused because their address made more than unauthenticated_per_second_max.",
        sum(gateway, |counts| &counts.unauthenticated_refused),
    );
    counter(
        "chaingate_requests_total",
        "HTTP requests of callers that were answered, refusals included.",
        sum(gateway, |counts| &counts.requests),
    );
    counter(
        "chaingate_received_bytes_total",
        "Bytes of request bodies read, before they are inflated.",
        sum(gateway, |counts| &counts.bytes_in),
    );
    counter(
        "chaingate_sent_bytes_total",
        "Bytes of reply bodies, after they are compressed.",
        sum(gateway, |counts| &counts.bytes_out),
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
        let count = sum(gateway, |counts| &counts.statuses[hundred]);
        let _ok = writeln!(out, "chaingate_responses_total{{status=\"{hundred}xx\"}} {count}");
    }
}

fn calls(out: &mut String, gateway: &GatewayState) {
    describe(
        out,
        "chaingate_calls_total",
        "counter",
        "JSON-RPC calls by method and outcome; the method other stands for those that are unknown, malformed, have wrong parameters or are excluded by the key.",
    );
    for (method, index) in WorkerCounters::labels() {
        let counts = Outcome::ALL.map(|outcome| {
            let count =
                sum_over_workers(gateway, |counters| &counters.methods[index].outcomes[outcome as usize]);
            (outcome.label(), count)
        });
        // With all outcomes of a method from its first call on, `rate` sees the first fault as well.
        if counts.iter().any(|(_, count)| *count > 0) {
            for (outcome, count) in counts {
                let _ok = writeln!(
                    out,
                    "chaingate_calls_total{{method=\"{method}\",outcome=\"{outcome}\"}} {count}"
                );
            }
        }
    }
    describe(out, "chaingate_credits_total", "counter", "Credits charged for calls, by method.");
    for (method, index) in WorkerCounters::labels() {
        let credits = sum_over_workers(gateway, |counters| &counters.methods[index].credits);
        if credits > 0 {
            let _ok = writeln!(out, "chaingate_credits_total{{method=\"{method}\"}} {credits}");
        }
    }
}

fn latency(out: &mut String, gateway: &GatewayState) {
    let name = "chaingate_call_seconds";
    describe(
        out,
        name,
        "histogram",
        "Time from the arrival of a call's request to the call's answer, by method.",
    );
    for (method, index) in WorkerCounters::labels() {
        let times: HistogramSum =
            gateway.worker_counters.iter().map(|counters| &counters.methods[index].latency).collect();
        if times.count() > 0 {
            histogram(out, name, &format!("method=\"{method}\""), &times);
        }
    }
}

/// How long sources take for an answer, without queueing and sending.
fn work(out: &mut String, gateway: &GatewayState) {
    let timings = gateway.answers.timings();
    let name = "chaingate_work_seconds";
    describe(
        out,
        name,
        "histogram",
        "Time that the embedded chain or the nodes took for an answer: inline reads (read), and on the embedded chain log queries (logs), simulations (evm), fee histories (fees) and blocks (block).",
    );
    histogram(
        out,
        name,
        "work=\"read\"",
        &gateway.worker_counters.iter().map(|counters| &counters.reads).collect(),
    );
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
        gateway.answers.shared_calls(),
    );
    counter(
        out,
        "chaingate_pool_jobs_total",
        "Jobs that threads of the pool have begun: heavy calls, compressed and large bodies, large replies, and large answers of nodes.",
        gateway.answers.threads().started(),
    );
}

fn histogram(out: &mut String, name: &str, labels: &str, times: &HistogramSum) {
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
