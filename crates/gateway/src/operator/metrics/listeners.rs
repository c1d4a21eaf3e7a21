//! The gateway, its connections and its certificate.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use http_server::HttpCounts;

use super::{MetricTable, counter, gauge, series};
use crate::access_log::AccessLog;
use crate::gateway_state::GatewayState;
use crate::log;

#[rustfmt::skip]
pub(super) const GATEWAY: MetricTable<GatewayState> = MetricTable {
    title: "The gateway",
    about: "Always present.",
    with_source: |gateway, read| read(gateway),
    metrics: &[
        series("gauge", "chaingate_build_info", &["version", "network"],
            "Always 1; the labels have the version of the program and the name of the network.",
            |gateway, series| {
                series.add(&[("version", env!("CARGO_PKG_VERSION")), ("network", &gateway.network_name)], 1);
            }),
        gauge("chaingate_ready", "1 while /ready answers 200, else 0.", |gateway| gateway.is_ready().into()),
        gauge("chaingate_head_block", "Number of the newest block that is served; 0 before the first.",
            |gateway| gateway.head().unwrap_or_default()),
        counter("chaingate_log_lines_dropped_total",
            "Lines of the log that were dropped because its reader was too slow or gone.",
            |_| log::lines_dropped()),
    ],
};

#[rustfmt::skip]
pub(super) const ACCESS_LOG: MetricTable<AccessLog> = MetricTable {
    title: "The access log",
    about: "With `[access_log] calls`.",
    with_source: |gateway, read| if let Some(access_log) = gateway.access_log() {
        read(access_log);
    },
    metrics: &[
        counter("chaingate_access_log_lines_total",
            "Lines for the access log, including those that were dropped.",
            |access_log| access_log.lines()),
        counter("chaingate_access_log_lines_dropped_total",
            "Lines of the access log that were dropped because its file or reader was too slow, full or gone.",
            |access_log| access_log.lines_dropped()),
    ],
};

#[rustfmt::skip]
pub(super) const CONNECTIONS: MetricTable<GatewayState> = MetricTable {
    title: "Connections and requests",
    about: "Always present.",
    with_source: |gateway, read| read(gateway),
    metrics: &[
        gauge("chaingate_connections_open", "Open connections of callers.",
            |gateway| gateway.server.open_connections() as u64),
        gauge("chaingate_connections_max", "Limit of open connections of callers (connections_max).",
            |gateway| gateway.server.limits().connections_max as u64),
        counter("chaingate_connections_total", "Connections of callers that were accepted.",
            |gateway| sum(gateway, |counts| &counts.connections)),
        counter("chaingate_connections_refused_total",
            "Connections of callers that were refused because connections_max was reached.",
            |gateway| sum(gateway, |counts| &counts.refused)),
        counter("chaingate_connections_refused_by_address_total",
            "Connections refused because their address had connections_per_address_max.",
            |gateway| sum(gateway, |counts| &counts.address_refused)),
        counter("chaingate_connections_closed_for_others_total",
            "Connections without a valid key, idle ones, and those of an account with more than half of all, that were closed because there was no place for another connection.",
            |gateway| sum(gateway, |counts| &counts.closed_for_others)),
        counter("chaingate_requests_total", "HTTP requests of callers that were answered, refusals included.",
            |gateway| sum(gateway, |counts| &counts.requests)),
        series("counter", "chaingate_responses_total", &["status"],
            "HTTP replies to callers by the class of their status.",
            |gateway, series| {
                for hundred in 2..6 {
                    let replies = gateway.server.counts.iter().map(|counts| counts.statuses[hundred].load(Relaxed));
                    series.add(&[("status", &format!("{hundred}xx"))], replies.sum::<u64>());
                }
            }),
        counter("chaingate_received_bytes_total", "Bytes of request bodies read, before they are inflated.",
            |gateway| sum(gateway, |counts| &counts.bytes_in)),
        counter("chaingate_sent_bytes_total", "Bytes of reply bodies, after they are compressed.",
            |gateway| sum(gateway, |counts| &counts.bytes_out)),
        counter("chaingate_unauthenticated_refused_total",
            "Requests without a valid key that were refused because their address made more than unauthenticated_per_second_max.",
            |gateway| sum(gateway, |counts| &counts.unauthenticated_refused)),
    ],
};

/// The source is the time at which the certificate expires.
#[rustfmt::skip]
pub(super) const CERTIFICATE: MetricTable<u64> = MetricTable {
    title: "The certificate",
    about: "With `[listen] tls_certificate`. The files are read again when they change.",
    with_source: |gateway, read| {
        if let Some(certificate) = gateway.certificate() {
            read(&certificate.expires_at().try_into().unwrap_or(0));
        }
    },
    metrics: &[
        gauge("chaingate_tls_certificate_expires_at_seconds",
            "Time at which the TLS certificate in use expires, in seconds since 1970; for a chain, the earliest of its certificates.",
            |expires_at| *expires_at),
    ],
};

/// The sum over all workers.
fn sum(gateway: &GatewayState, pick: fn(&HttpCounts) -> &AtomicU64) -> u64 {
    gateway.server.counts.iter().map(|counts| pick(counts).load(Relaxed)).sum()
}
