//! What was counted, as Prometheus text. Every label comes from a closed set, so the number of series is known.

mod remote; // nodes and partners

use std::fmt::{Display, Write};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use crate::answer::Cache;
use crate::edge::Edge;
use crate::meter::{BOUNDS_US, Outcome, Shard, Times};

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
    one(out, "chaingate_cache_hits_total", "counter", "Answers that were kept.", count(&counts.hits));
    one(out, "chaingate_cache_misses_total", "counter", "Answers that were not.", count(&counts.misses));
    one(out, "chaingate_cache_evictions_total", "counter", "Answers pushed out.", count(&counts.evictions));
    one(out, "chaingate_cache_bytes", "gauge", "Bytes of the answers that are kept.", cache.bytes());
}

fn build(out: &mut String, edge: &Edge) {
    describe(out, "chaingate_build_info", "gauge", "What runs here.");
    let version = env!("CARGO_PKG_VERSION");
    let network = label(&edge.network.name);
    let _ok = writeln!(out, "chaingate_build_info{{version=\"{version}\",network=\"{network}\"}} 1");
}

/// Text as it stands between the quotes of a label. The format knows three escapes and no others.
fn label(text: &str) -> String {
    text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

fn sum(edge: &Edge, pick: impl Fn(&Shard) -> &AtomicU64) -> u64 {
    edge.shards.iter().map(|shard| pick(shard).load(Relaxed)).sum()
}

fn gauges(out: &mut String, edge: &Edge) {
    let mut gauge = |name: &str, help: &str, value: u64| {
        describe(out, name, "gauge", help);
        let _ok = writeln!(out, "{name} {value}");
    };
    let (answers, limits) = (&edge.answers, &edge.limits);
    gauge("chaingate_ready", "1 until the drain begins.", edge.is_ready().into());
    gauge("chaingate_head_block", "Number of the newest block served.", edge.head().unwrap_or_default());
    gauge("chaingate_connections_open", "Connections now.", edge.connections.open.load(Relaxed) as u64);
    gauge(
        "chaingate_connections_max",
        "Connections that there may be.",
        limits.listen.connections_max as u64,
    );
    gauge("chaingate_calls_in_flight", "Calls now.", edge.capacity.taken() as u64);
    gauge(
        "chaingate_pool_waiting",
        "Heavy calls that wait for a thread.",
        answers.threads().waiting() as u64,
    );
    gauge("chaingate_pool_queue_max", "Heavy calls that may wait.", limits.answer.pool_queue_max as u64);
    gauge("chaingate_held_bytes", "Large answers that wait to be read.", answers.held().bytes() as u64);
    gauge("chaingate_held_bytes_max", "Beyond this they are refused.", limits.answer.held_bytes_max as u64);
}

fn http(out: &mut String, edge: &Edge) {
    let mut counter = |name: &str, help: &str, value: u64| {
        describe(out, name, "counter", help);
        let _ok = writeln!(out, "{name} {value}");
    };
    counter("chaingate_connections_total", "Connections served.", sum(edge, |shard| &shard.http.connections));
    counter(
        "chaingate_connections_turned_away_total",
        "Connections for which there was no place.",
        sum(edge, |shard| &shard.http.turned_away),
    );
    counter("chaingate_requests_total", "HTTP requests answered.", sum(edge, |shard| &shard.http.requests));
    counter("chaingate_received_bytes_total", "Bytes of bodies.", sum(edge, |shard| &shard.http.bytes_in));
    counter("chaingate_sent_bytes_total", "Bytes of replies.", sum(edge, |shard| &shard.http.bytes_out));
    describe(out, "chaingate_responses_total", "counter", "HTTP replies by the hundred of their status.");
    for hundred in 2..6 {
        let count = sum(edge, |shard| &shard.http.statuses[hundred]);
        let _ok = writeln!(out, "chaingate_responses_total{{status=\"{hundred}xx\"}} {count}");
    }
}

fn calls(out: &mut String, edge: &Edge) {
    describe(out, "chaingate_calls_total", "counter", "Calls by method and how they ended.");
    for (method, index) in Shard::labels() {
        for outcome in Outcome::ALL {
            let count = sum(edge, |shard| &shard.methods[index].outcomes[outcome as usize]);
            if count > 0 {
                let outcome = outcome.label();
                let _ok = writeln!(
                    out,
                    "chaingate_calls_total{{method=\"{method}\",outcome=\"{outcome}\"}} {count}"
                );
            }
        }
    }
    describe(out, "chaingate_credits_total", "counter", "Credits paid by method.");
    for (method, index) in Shard::labels() {
        let credits = sum(edge, |shard| &shard.methods[index].credits);
        if credits > 0 {
            let _ok = writeln!(out, "chaingate_credits_total{{method=\"{method}\"}} {credits}");
        }
    }
}

fn latency(out: &mut String, edge: &Edge) {
    let name = "chaingate_call_seconds";
    describe(out, name, "histogram", "Time from a call's arrival to its answer.");
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
    describe(out, name, "histogram", "Time that an answer took, by what it took it for.");
    histogram(out, name, "work=\"read\"", &edge.shards.iter().map(|shard| &shard.reads).collect());
    histogram(out, name, "work=\"logs\"", &[&timings.logs].into_iter().collect());
    histogram(out, name, "work=\"evm\"", &[&timings.calls].into_iter().collect());
    histogram(out, name, "work=\"fees\"", &[&timings.fees].into_iter().collect());
    let name = "chaingate_pool_wait_seconds";
    describe(out, name, "histogram", "Time that heavy calls waited for a thread.");
    histogram(out, name, "", &[&timings.waits].into_iter().collect());
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
