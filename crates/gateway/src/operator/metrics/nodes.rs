//! Nodes and partners, and the blocks that come from them. Nodes are named as the configuration calls them, or by host and port.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use nodes::{Availability, Class, PartnerTerms, PoolNode};
use remote::{ExecutedChain, ExecutionState, FollowState, FollowedChain, PoolSource};
use tokio::time::Instant;

use super::{MetricTable, SeriesWriter, counter, gauge, series};
use crate::gateway_state::GatewayState;

#[rustfmt::skip]
pub(super) const CHAIN: MetricTable<PoolSource> = MetricTable {
    title: "The chain of the nodes",
    about: "With `[[node]]`.",
    with_source: with_remote,
    metrics: &[
        series("gauge", "chaingate_head_age_seconds", &[],
            "Seconds since the head of the nodes last changed; 0 before the first head.",
            |remote, series| {
                series.add(&[], remote.pool().view().head_age().map_or(0.0, |age| age.as_secs_f64()));
            }),
        gauge("chaingate_head_stale",
            "1 while the head has not changed for longer than head_stall_ms allows, or there is none yet.",
            |remote| remote.pool().view().is_stale().into()),
        gauge("chaingate_finalized_block",
            "Number of the newest finalized block of the nodes; 0 while it is unknown.",
            |remote| {
                let chain = remote.pool().view().canonical_chain();
                chain.and_then(|chain| chain.finalized()).map_or(0, |block| block.number)
            }),
        gauge("chaingate_quorum", "Nodes that must agree on the head and on what no hash proves.",
            |remote| remote.pool().view().quorum() as u64),
        gauge("chaingate_nodes_voting",
            "Nodes that have a vote on the head: of this chain, and heard lately. With fewer than chaingate_quorum the head does not move.",
            |remote| remote.pool().voting().count() as u64),
        gauge("chaingate_node_reply_memory_bytes",
            "Bytes of memory in use by replies of nodes that are being read, inflated or checked.",
            |remote| remote.pool().memory().used_bytes() as u64),
    ],
};

#[rustfmt::skip]
pub(super) const VERIFICATION: MetricTable<PoolSource> = MetricTable {
    title: "Verification",
    about: "With `[[node]]`.",
    with_source: with_remote,
    metrics: &[
        series("counter", "chaingate_wrong_answers_total", &["check"],
            "Answers of nodes and partners that failed a proof or have no form of an answer, by what is wrong.",
            |remote, series| each_of(series, "check", remote.integrity().failures())),
        series("counter", "chaingate_confirmations_total", &["outcome"],
            "Calls about the state that a quorum of the nodes had to confirm, by what came of it.",
            |remote, series| each_of(series, "outcome", remote.confirmations().outcomes())),
        counter("chaingate_confirmation_node_calls_total",
            "Calls sent to nodes for answers that a quorum of them had to confirm.",
            |remote| remote.confirmations().node_calls()),
        counter("chaingate_contradicted_answers_total",
            "Answers of nodes that a quorum of the nodes or a proof contradicted.",
            |remote| remote.confirmations().contradicted()),
    ],
};

#[rustfmt::skip]
pub(super) const NODES: MetricTable<PoolSource> = MetricTable {
    title: "Nodes and partners",
    about: "With `[[node]]`. Nodes and partners are named by `name`, or by host and port.",
    with_source: with_remote,
    metrics: &[
        series("gauge", "chaingate_node_health", &["node"],
            "Health of a node: 3 = up, 2 = in doubt (calls failed lately), 1 = rate limited (it reported too many requests), 0 = down. Nodes with less are asked after those with more.",
            |remote, series| each_node(remote, series, health)),
        series("gauge", "chaingate_node_head_block", &["node"],
            "Number of the newest block that a node reported; 0 before the first.",
            |remote, series| each_node(remote, series, |node| node.capabilities().head_number().unwrap_or_default())),
        series("gauge", "chaingate_node_calls_in_flight", &["node"],
            "Calls sent to a node that it has not answered yet.",
            |remote, series| each_node(remote, series, |node| {
                Class::ALL.iter().map(|&class| u64::from(node.in_flight(class))).sum()
            })),
        series("gauge", "chaingate_node_excluded", &["node", "reason"],
            "1 for each node that is not used, by reason; wrong_answer: it was proven to lie, and is asked only if no other node can answer.",
            exclusions),
        series("counter", "chaingate_node_calls_total", &[NODE_OR_PARTNER],
            "Calls sent to a node or a partner, retries and hedges included.",
            |remote, series| each_endpoint(remote, series, |node| node.counts().attempts.load(Relaxed))),
        series("counter", "chaingate_node_retries_total", &[NODE_OR_PARTNER],
            "Calls sent to a node because another one had failed to answer them.",
            |remote, series| each_endpoint(remote, series, |node| node.counts().retries.load(Relaxed))),
        series("counter", "chaingate_node_hedges_total", &[NODE_OR_PARTNER],
            "Calls sent to a node while another one had not answered them yet.",
            |remote, series| each_endpoint(remote, series, |node| node.counts().hedges.load(Relaxed))),
        series("counter", "chaingate_node_hedges_won_total", &[NODE_OR_PARTNER],
            "Hedged calls that the node answered before the one that was asked first.",
            |remote, series| each_endpoint(remote, series, |node| node.counts().hedges_won.load(Relaxed))),
        series("histogram", "chaingate_node_reply_seconds", &[NODE_OR_PARTNER],
            "Time from a call to a node or a partner until its reply, errors of JSON-RPC included.",
            |remote, series| for (label, node) in endpoints(remote) {
                series.add_histogram(&[(label, node.name())], &[&node.counts().latency].into_iter().collect());
            }),
        series("counter", "chaingate_node_received_bytes_total", &[NODE_OR_PARTNER],
            "Bytes of reply bodies received from a node or a partner.",
            |remote, series| each_endpoint(remote, series, |node| node.client().stats().bytes_in)),
        series("counter", "chaingate_node_batches_total", &[NODE_OR_PARTNER],
            "Requests with more than one call sent to a node or a partner.",
            |remote, series| each_endpoint(remote, series, |node| node.client().stats().batches)),
        series("counter", "chaingate_node_faults_total", &[NODE_OR_PARTNER, "fault"],
            "Failed calls of a node or a partner, by kind of fault.",
            |remote, series| for (label, node) in endpoints(remote) {
                for (fault, count) in node.counts().faults() {
                    series.add(&[(label, node.name()), ("fault", fault)], count);
                }
            }),
        series("counter", "chaingate_partner_answers_total", &["reason"],
            "Calls that a partner answered, by the reason why no node could.",
            // They are asked for no other reason.
            |remote, series| series.add(&[("reason", "no_answer")], remote.partners().answers())),
        series("gauge", "chaingate_partner_usable", &["partner"],
            "1 if the partner has answered its last probe and is of this chain.",
            |remote, series| for partner in remote.pool().partners().iter() {
                series.add(&[("partner", partner.name())], u64::from(partner.is_usable()));
            }),
        series("gauge", "chaingate_partner_calls_today", &["partner"],
            "Calls to a partner since 00:00 UTC, over all gateways with the same store as far as this one knows.",
            |remote, series| for partner in remote.pool().partners().iter() {
                series.add(&[("partner", partner.name())], partner.partner_terms().map_or(0, PartnerTerms::used_today));
            }),
        series("gauge", "chaingate_partner_calls_per_day_max", &["partner"],
            "Limit of chaingate_partner_calls_today (calls_per_day).",
            |remote, series| for partner in remote.pool().partners().iter() {
                let calls = partner.partner_terms().map_or(0, |terms| terms.quota().calls_per_day);
                series.add(&[("partner", partner.name())], calls);
            }),
    ],
};

#[rustfmt::skip]
pub(super) const STORED_BLOCKS: MetricTable<FollowedChain> = MetricTable {
    title: "Stored blocks",
    about: "With `[follow]`.",
    with_source: |gateway, read| {
        if let Some(followed) = gateway.answers.remote().and_then(PoolSource::followed_chain) {
            read(followed);
        }
    },
    metrics: &[
        gauge("chaingate_follow_running",
            "1 while new blocks are stored; 0 before the first head, while the disk cannot be written, and after a contradiction.",
            |followed| (followed.state() == FollowState::Following).into()),
        gauge("chaingate_follow_blocks", "Blocks of the nodes that are stored on disk.", |followed| followed.stored().snapshot().block_count()),
        gauge("chaingate_follow_headers", "Headers on disk for log queries, including those of stored blocks.",
            |followed| followed.stored().snapshot().header_count()),
        gauge("chaingate_follow_newest_block", "Number of the newest block on disk; 0 if there is none.",
            |followed| followed.stored().snapshot().ranges().next_back().map_or(0, |range| *range.end())),
        gauge("chaingate_follow_lowest_block",
            "Number of the lowest block on disk without a gap up to the newest; 0 if there is none.",
            |followed| followed.stored().snapshot().ranges().next_back().map_or(0, |range| *range.start())),
        gauge("chaingate_follow_memory_blocks", "Blocks in memory that may still be reorganised.",
            |followed| followed.stored().in_memory().0 as u64),
        gauge("chaingate_follow_memory_bytes", "Bytes of memory of the blocks that may still be reorganised.",
            |followed| followed.stored().in_memory().1 as u64),
        gauge("chaingate_follow_file_bytes", "Bytes of the file of stored blocks.", |followed| followed.stored().file_bytes()),
        counter("chaingate_follow_filled_blocks_total", "Older blocks that were fetched and stored.",
            |followed| followed.filled_blocks()),
        counter("chaingate_follow_disk_failures_total", "Reads and writes of stored blocks that failed.",
            |followed| followed.stored().disk_failures()),
    ],
};

#[rustfmt::skip]
pub(super) const EXECUTED_BLOCKS: MetricTable<ExecutedBlocks> = MetricTable {
    title: "Executed blocks",
    about: "With `[follow] mode = \"full\"`.",
    with_source: |gateway, read| {
        with_remote(gateway, &mut |remote| if let Some(chain) = remote.executed_chain() {
            let newest = remote.pool().view().head().map(|newest| newest.number);
            read(&ExecutedBlocks { chain: Arc::clone(chain), newest });
        });
    },
    metrics: &[
        gauge("chaingate_executed_block", "Number of the newest block that was executed.",
            |executed| executed.chain.head()),
        gauge("chaingate_executed_behind_blocks", "Blocks of the nodes that were not executed yet.",
            |executed| executed.newest.map_or(0, |newest| newest.saturating_sub(executed.chain.head()))),
        gauge("chaingate_executed_stopped",
            "1 while the next block cannot be executed (the log says why). Nodes answer about the blocks that the archive lacks.",
            |executed| matches!(executed.chain.state(), ExecutionState::Stopped(_)).into()),
        counter("chaingate_executed_blocks_total",
            "Blocks that were executed since the start, those of other branches included.",
            |executed| executed.chain.executed_blocks()),
        counter("chaingate_executed_reorganisations_total",
            "How often blocks of the archive were replaced by those of another branch.",
            |executed| executed.chain.reorganisations()),
        counter("chaingate_executed_failures_total",
            "How often a block could not be executed, or the archive could not be taken back far enough.",
            |executed| executed.chain.failures()),
    ],
};

fn with_remote(gateway: &GatewayState, read: &mut dyn FnMut(&PoolSource)) {
    if let Some(remote) = gateway.answers.remote() {
        read(remote);
    }
}

/// The archive that follows the nodes, and their newest block.
pub(super) struct ExecutedBlocks {
    chain: Arc<ExecutedChain>,
    newest: Option<u64>,
}

/// The label of metrics that partners have, too.
const NODE_OR_PARTNER: &str = "node or partner";

/// Every node and every partner, with the name of its label.
fn endpoints(remote: &PoolSource) -> Vec<(&'static str, Arc<PoolNode>)> {
    let nodes = remote.pool().nodes();
    let nodes = nodes.iter().map(|node| ("node", Arc::clone(node)));
    let partners = remote.pool().partners();
    let partners = partners.iter().map(|partner| ("partner", Arc::clone(partner)));
    nodes.chain(partners).collect()
}

fn each_endpoint(remote: &PoolSource, series: &mut SeriesWriter<'_>, read: fn(&PoolNode) -> u64) {
    for (label, node) in endpoints(remote) {
        series.add(&[(label, node.name())], read(&node));
    }
}

fn each_node(remote: &PoolSource, series: &mut SeriesWriter<'_>, read: fn(&PoolNode) -> u64) {
    for node in remote.pool().nodes().iter() {
        series.add(&[("node", node.name())], read(node));
    }
}

fn each_of<'a>(series: &mut SeriesWriter<'_>, label: &str, counts: impl IntoIterator<Item = (&'a str, u64)>) {
    for (value, count) in counts {
        series.add(&[(label, value)], count);
    }
}

fn health(node: &PoolNode) -> u64 {
    match node.availability(Instant::now()) {
        Availability::Up => 3,
        Availability::InDoubt => 2,
        Availability::RateLimited => 1,
        Availability::Down => 0,
    }
}

fn exclusions(remote: &PoolSource, series: &mut SeriesWriter<'_>) {
    let now = Instant::now();
    for node in remote.pool().nodes().iter() {
        let identity = node.capabilities().exclusion().map(|reason| reason.name());
        let lie = node.excluded_for(now).map(|_| "wrong_answer");
        for reason in identity.into_iter().chain(lie) {
            series.add(&[("node", node.name()), ("reason", reason)], 1);
        }
    }
}
