//! Nodes and partners. Nodes are named by host and port, or as the configuration calls them.

mod executed; // the archive that follows the nodes

use std::fmt::Write;
use std::sync::atomic::Ordering::Relaxed;

use answers::{FollowState, PoolSource};
use nodes::{Availability, Class, PoolNode};
use tokio::time::Instant;

use super::{describe, label, one};

pub(super) fn write(out: &mut String, remote: &PoolSource) {
    view(out, remote);
    if let Some(chain) = remote.executed_chain() {
        executed::write(out, remote, chain);
    }
    checks(out, remote);
    confirmations(out, remote);
    failovers(out, remote);
    follow(out, remote);
    let nodes: Vec<_> = remote.pool().nodes().iter().map(|node| ("node", &**node)).collect();
    let partners = remote.pool().partners().iter().map(|partner| ("partner", &**partner.node()));
    let all: Vec<_> = nodes.iter().copied().chain(partners).collect();
    usable_partners(out, remote);
    health(out, &nodes);
    excluded(out, &nodes);
    traffic(out, &all);
    faults(out, &all);
}

fn view(out: &mut String, remote: &PoolSource) {
    let view = remote.pool().view();
    let age = view.head_age().map_or(0.0, |age| age.as_secs_f64());
    one(
        out,
        "chaingate_head_age_seconds",
        "gauge",
        "Seconds since the head of the nodes last changed; 0 before the first head.",
        age,
    );
    let stale = u8::from(view.is_stale());
    one(
        out,
        "chaingate_head_stale",
        "gauge",
        "1 while the head has not changed for longer than head_stall_ms allows, or there is none yet.",
        stale,
    );
    let finalized =
        view.canonical_chain().and_then(|chain| chain.finalized()).map_or(0, |block| block.number);
    one(
        out,
        "chaingate_finalized_block",
        "gauge",
        "Number of the newest finalized block of the nodes; 0 while it is unknown.",
        finalized,
    );
    let used = remote.pool().memory().used_bytes();
    one(
        out,
        "chaingate_node_reply_memory_bytes",
        "gauge",
        "Bytes of memory in use by replies of nodes that are being read, inflated or checked.",
        used,
    );
}

fn checks(out: &mut String, remote: &PoolSource) {
    let name = "chaingate_wrong_answers_total";
    describe(
        out,
        name,
        "counter",
        "Answers of nodes and partners that failed a proof or have no form of an answer, by what is wrong.",
    );
    for (check, failures) in remote.integrity().failures() {
        let _ok = writeln!(out, "{name}{{check=\"{check}\"}} {failures}");
    }
}

fn confirmations(out: &mut String, remote: &PoolSource) {
    let confirmations = remote.confirmations();
    let name = "chaingate_confirmations_total";
    let help = "Calls about the state that a quorum of the nodes had to confirm, by what came of it.";
    describe(out, name, "counter", help);
    for (outcome, calls) in confirmations.outcomes() {
        let _ok = writeln!(out, "{name}{{outcome=\"{outcome}\"}} {calls}");
    }
    one(
        out,
        "chaingate_confirmation_node_calls_total",
        "counter",
        "Calls sent to nodes for answers that a quorum of them had to confirm.",
        confirmations.node_calls(),
    );
    one(
        out,
        "chaingate_contradicted_answers_total",
        "counter",
        "Answers of nodes that a quorum of the nodes or a proof contradicted.",
        confirmations.contradicted(),
    );
}

fn failovers(out: &mut String, remote: &PoolSource) {
    let name = "chaingate_partner_answers_total";
    describe(out, name, "counter", "Calls that a partner answered, by the reason why no node could.");
    for (reason, answers) in remote.failovers().counts() {
        let _ok = writeln!(out, "{name}{{reason=\"{reason}\"}} {answers}");
    }
}

fn usable_partners(out: &mut String, remote: &PoolSource) {
    let pool = remote.pool();
    let name = "chaingate_partner_usable";
    describe(out, name, "gauge", "1 if the partner has answered its last probe and is of this chain.");
    for partner in pool.partners() {
        let usable = u8::from(partner.is_usable(pool.chain_id()));
        let _ok = writeln!(out, "{name}{{partner=\"{}\"}} {usable}", label(partner.node().name()));
    }
}

/// The stored blocks, if the gateway stores any.
fn follow(out: &mut String, remote: &PoolSource) {
    let Some(followed) = remote.followed_chain() else { return };
    let snapshot = followed.snapshot();
    let newest = snapshot.ranges().next_back();
    let (memory_blocks, memory_bytes) = followed.in_memory();
    let is_following = u64::from(followed.state() == FollowState::Following);
    let mut gauge = |name: &str, help: &str, value: u64| one(out, name, "gauge", help, value);
    gauge(
        "chaingate_follow_running",
        "1 while new blocks are stored; 0 before the first head, while the disk cannot be written, and after a contradiction.",
        is_following,
    );
    gauge("chaingate_follow_blocks", "Blocks on disk.", snapshot.block_count());
    gauge(
        "chaingate_follow_headers",
        "Headers on disk for log queries, including those of stored blocks.",
        snapshot.header_count(),
    );
    let (lowest, highest) = newest.map_or((0, 0), |range| (*range.start(), *range.end()));
    gauge(
        "chaingate_follow_newest_block",
        "Number of the newest block on disk; 0 if there is none.",
        highest,
    );
    gauge(
        "chaingate_follow_lowest_block",
        "Number of the lowest block on disk without a gap up to the newest; 0 if there is none.",
        lowest,
    );
    gauge(
        "chaingate_follow_memory_blocks",
        "Blocks in memory that may still be reorganised.",
        memory_blocks as u64,
    );
    gauge("chaingate_follow_memory_bytes", "Bytes of memory of these blocks.", memory_bytes as u64);
    gauge("chaingate_follow_file_bytes", "Bytes of the file of stored blocks.", followed.file_bytes());
    one(
        out,
        "chaingate_follow_filled_blocks_total",
        "counter",
        "Older blocks that were fetched and stored.",
        followed.filled_blocks(),
    );
    one(
        out,
        "chaingate_follow_disk_failures_total",
        "counter",
        "Reads and writes of stored blocks that failed.",
        followed.disk_failures(),
    );
}

type Named<'a> = (&'static str, &'a PoolNode);

/// One line for each node.
fn lines(out: &mut String, name: &str, nodes: &[Named<'_>], value: impl Fn(&PoolNode) -> u64) {
    for (kind, node) in nodes {
        let _ok = writeln!(out, "{name}{{{kind}=\"{}\"}} {}", label(node.name()), value(node));
    }
}

fn health(out: &mut String, nodes: &[Named<'_>]) {
    let now = Instant::now();
    let name = "chaingate_node_health";
    describe(
        out,
        name,
        "gauge",
        "Health of a node: 3 = up, 2 = in doubt (calls failed lately), 1 = rate limited (it reported too many requests), 0 = down. Nodes with less are asked after those with more.",
    );
    lines(out, name, nodes, |node| match node.availability(now) {
        Availability::Up => 3,
        Availability::InDoubt => 2,
        Availability::RateLimited => 1,
        Availability::Down => 0,
    });
    let name = "chaingate_node_head_block";
    describe(out, name, "gauge", "Number of the newest block that a node reported; 0 before the first.");
    lines(out, name, nodes, |node| node.capabilities().head_number().unwrap_or_default());
    let name = "chaingate_node_calls_in_flight";
    describe(out, name, "gauge", "Calls sent to a node that it has not answered yet.");
    lines(out, name, nodes, |node| Class::ALL.iter().map(|&class| u64::from(node.in_flight(class))).sum());
}

/// Only excluded nodes have a line.
fn excluded(out: &mut String, nodes: &[Named<'_>]) {
    let now = Instant::now();
    let name = "chaingate_node_excluded";
    describe(
        out,
        name,
        "gauge",
        "1 for each node that is not used, by reason; wrong_answer: it was proven to lie, and is asked only if no other node can answer.",
    );
    for (kind, node) in nodes {
        let identity = node.capabilities().exclusion().map(|reason| reason.name());
        let lie = node.excluded_for(now).map(|_| "wrong_answer");
        for reason in identity.into_iter().chain(lie) {
            let _ok = writeln!(out, "{name}{{{kind}=\"{}\",reason=\"{reason}\"}} 1", label(node.name()));
        }
    }
}

fn traffic(out: &mut String, nodes: &[Named<'_>]) {
    let mut counter = |name: &str, help: &str, value: &dyn Fn(&PoolNode) -> u64| {
        describe(out, name, "counter", help);
        lines(out, name, nodes, value);
    };
    counter(
        "chaingate_node_calls_total",
        "Calls sent to a node or a partner, retries and hedges included.",
        &|node| node.counts().attempts.load(Relaxed),
    );
    counter(
        "chaingate_node_retries_total",
        "Calls sent to a node because another one had failed to answer them.",
        &|node| node.counts().retries.load(Relaxed),
    );
    counter(
        "chaingate_node_hedges_total",
        "Calls sent to a node while another one had not answered them yet.",
        &|node| node.counts().hedges.load(Relaxed),
    );
    counter(
        "chaingate_node_hedges_won_total",
        "Hedged calls that the node answered before the one that was asked first.",
        &|node| node.counts().hedges_won.load(Relaxed),
    );
    counter(
        "chaingate_node_received_bytes_total",
        "Bytes of reply bodies received from a node or a partner.",
        &|node| node.client().stats().bytes_in,
    );
    counter(
        "chaingate_node_batches_total",
        "Requests with more than one call sent to a node or a partner.",
        &|node| node.client().stats().batches,
    );
}

fn faults(out: &mut String, nodes: &[Named<'_>]) {
    let name = "chaingate_node_faults_total";
    describe(out, name, "counter", "Failed calls of a node or a partner, by kind of fault.");
    for (kind, node) in nodes {
        for (fault, count) in node.counts().faults() {
            let _ok = writeln!(out, "{name}{{{kind}=\"{}\",fault=\"{fault}\"}} {count}", label(node.name()));
        }
    }
}
