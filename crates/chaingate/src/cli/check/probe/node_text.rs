//! The result of asking a node, in words.

use nodes::{HistoryKind, HistoryReach, NodeData, NodeFault, NodeFindings, NodeInspection};
use resources::counted;

/// A node whose newest block is further below that of others is late. Nodes are asked within some seconds of each other.
const BLOCKS_BEHIND_MAX: u64 = 8;

pub(super) fn head_number(node: &NodeInspection) -> Option<u64> {
    let data = node.shown.as_ref().ok()?.data.as_ref()?;
    Some(data.head.number)
}

/// The requirements that every node must meet.
#[derive(Clone, Copy, Debug)]
pub(super) struct NodeNeeds {
    /// The newest block of any node.
    pub(super) newest_block: u64,
    /// Whether state is proven.
    pub(super) proofs: bool,
}

/// The shortcomings of a node that can be used.
pub(super) fn problems(
    found: &NodeFindings,
    needs: NodeNeeds,
    heads_fault: Option<&NodeFault>,
) -> Vec<String> {
    let mut problems = Vec::new();
    if let Some(data) = &found.data {
        let behind = needs.newest_block.saturating_sub(data.head.number);
        if behind > BLOCKS_BEHIND_MAX {
            problems
                .push(format!("its newest block is {behind} below that of others: look into its own log"));
        }
        if !data.missing_methods.is_empty() {
            let methods = data.missing_methods.join(", ");
            problems.push(format!("it refuses {methods}: enable them if this node is to answer them"));
        }
        if needs.proofs && !data.has_proofs {
            problems.push("it proves no state, and [integrity] state is \"prove\"".to_owned());
        }
    }
    if let Some(fault) = heads_fault {
        problems.push(format!("ws_url: {}", fault.with_advice()));
    }
    problems
}

pub(super) fn facts(found: &NodeFindings, now: i64) -> Vec<String> {
    let mut facts = vec![format!("chain {}", found.chain_id)];
    if let Some(data) = &found.data {
        facts.extend(data.client_version.clone());
        let age = u64::try_from(now).unwrap_or_default().saturating_sub(data.head_timestamp);
        facts.push(format!("block {}, {} old", data.head.number, counted(age, "second")));
        facts.push(history(data));
        facts.push(match data.lowest_state {
            Some(0) => "state of all blocks".to_owned(),
            Some(lowest) => format!("state from block {lowest}"),
            None => "state not found out".to_owned(),
        });
        facts.push(if data.has_proofs { "proofs" } else { "no proofs" }.to_owned());
    }
    facts.push(format!("{:.0?}", found.answered_in));
    facts
}

/// Down to which block it has blocks, transactions, receipts and logs.
fn history(data: &NodeData) -> String {
    let reaches = HistoryKind::ALL.map(|kind| (kind.name(), data.history(kind)));
    if reaches.iter().all(|(_, reach)| *reach == reaches[0].1) {
        return match reaches[0].1 {
            HistoryReach::Whole => "all old data".to_owned(),
            HistoryReach::From(lowest) => format!("old data from block {lowest}"),
            HistoryReach::Unknown => "old data not found out".to_owned(),
        };
    }
    let texts = reaches.map(|(name, reach)| match reach {
        HistoryReach::Whole => format!("all {name}"),
        HistoryReach::From(lowest) => format!("{name} from block {lowest}"),
        HistoryReach::Unknown => format!("{name} not found out"),
    });
    texts.join(", ")
}
