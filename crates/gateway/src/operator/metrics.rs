//! What was counted, as Prometheus text. Every label comes from a closed set, so the number of series is known.

use std::fmt::Write;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use crate::edge::Edge;
use crate::meter::{LATENCY_BOUNDS_US, MethodCounts, Outcome, Shard};

pub(super) fn text(edge: &Edge) -> String {
    let mut out = String::with_capacity(32 << 10);
    build(&mut out, edge);
    http(&mut out, edge);
    calls(&mut out, edge);
    latency(&mut out, edge);
    out
}

fn describe(out: &mut String, name: &str, kind: &str, help: &str) {
    // Writing to a string cannot fail.
    let _ok = writeln!(out, "# HELP {name} {help}\n# TYPE {name} {kind}");
}

fn build(out: &mut String, edge: &Edge) {
    describe(out, "chaingate_build_info", "gauge", "What runs here.");
    let version = env!("CARGO_PKG_VERSION");
    let network = edge.network.name.escape_default();
    let _ok = writeln!(out, "chaingate_build_info{{version=\"{version}\",network=\"{network}\"}} 1");
    describe(out, "chaingate_head_block", "gauge", "Number of the newest block served.");
    let _ok = writeln!(out, "chaingate_head_block {}", edge.answers.source().head().number);
}

fn sum(edge: &Edge, pick: impl Fn(&Shard) -> &AtomicU64) -> u64 {
    edge.shards.iter().map(|shard| pick(shard).load(Relaxed)).sum()
}

fn http(out: &mut String, edge: &Edge) {
    let mut gauge = |name: &str, help: &str, value: usize| {
        describe(out, name, "gauge", help);
        let _ok = writeln!(out, "{name} {value}");
    };
    gauge("chaingate_connections_open", "Connections now.", edge.connections.open.load(Relaxed));
    gauge("chaingate_calls_in_flight", "Calls now.", edge.capacity.taken());
    gauge("chaingate_pool_waiting", "Heavy calls that wait for a thread.", edge.answers.pool().waiting());
    let mut counter = |name: &str, help: &str, value: u64| {
        describe(out, name, "counter", help);
        let _ok = writeln!(out, "{name} {value}");
    };
    counter("chaingate_connections_total", "Connections served.", sum(edge, |shard| &shard.http.connections));
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
        let of = |pick: &dyn Fn(&MethodCounts) -> &AtomicU64| -> u64 {
            edge.shards.iter().map(|shard| pick(&shard.methods[index]).load(Relaxed)).sum()
        };
        let buckets: Vec<u64> =
            (0..=LATENCY_BOUNDS_US.len()).map(|bucket| of(&|counts| &counts.latency[bucket])).collect();
        let count: u64 = buckets.iter().sum();
        if count == 0 {
            continue;
        }
        let mut below = 0;
        for (bound, inside) in LATENCY_BOUNDS_US.iter().zip(&buckets) {
            below += inside;
            let seconds = *bound as f64 / 1e6;
            let _ok = writeln!(out, "{name}_bucket{{method=\"{method}\",le=\"{seconds}\"}} {below}");
        }
        let sum = of(&|counts| &counts.latency_us_sum) as f64 / 1e6;
        let _ok = writeln!(
            out,
            "{name}_bucket{{method=\"{method}\",le=\"+Inf\"}} {count}\n\
             {name}_sum{{method=\"{method}\"}} {sum}\n{name}_count{{method=\"{method}\"}} {count}"
        );
    }
}
