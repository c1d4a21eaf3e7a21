//! Why no node answers a call, in words for callers: no names, addresses or texts of nodes.

use nodes::{Availability, Pool, PoolNode, RpcCall};
use sources::Failure;
use tokio::time::Instant;

/// Methods by which the parts of blocks are fetched.
const BLOCK_METHODS: [&str; 6] = [
    "eth_getBlockByHash",
    "eth_getBlockReceipts",
    "eth_getTransactionByHash",
    "eth_getTransactionReceipt",
    "eth_getUncleByBlockHashAndIndex",
    "eth_getUncleCountByBlockHash",
];

/// The failure of a call that no node answers.
pub(super) fn not_served(pool: &Pool, call: &RpcCall) -> Failure {
    let nodes = pool.nodes();
    let mut counted: Vec<(String, usize)> = Vec::new();
    for why in nodes.iter().map(|node| why_not(node, call)) {
        match counted.iter_mut().find(|(known, _)| *known == why) {
            Some((_, count)) => *count += 1,
            None => counted.push((why, 1)),
        }
    }
    let causes = counted.iter().map(|(why, count)| match nodes.len() {
        1 => format!("the node {why}"),
        all => format!("{count} of {all} nodes: {why}"),
    });
    Failure::NotServed { reason: causes.collect::<Vec<_>>().join("; ") }
}

/// The reason why a node does not answer this call.
fn why_not(node: &PoolNode, call: &RpcCall) -> String {
    let (capabilities, method) = (node.capabilities(), call.method);
    let block = call.needs.block.unwrap_or(0);
    let missing = capabilities.missing_methods();
    if capabilities.exclusion().is_some() {
        return "is of another chain, or is syncing".to_owned();
    }
    if missing.contains(&method) {
        return format!("does not have the method {method}");
    }
    if capabilities.lacks_state_of(call) {
        return format!("does not have the state of block {block}");
    }
    if let Some(cap) = capabilities.gas_cap().filter(|cap| *cap < call.needs.gas) {
        return format!("grants a call at most {cap} gas");
    }
    if node.excluded_for(Instant::now()).is_some() {
        return "has given a wrong answer".to_owned();
    }
    if !node.answers_watcher() || node.availability(Instant::now()) == Availability::Down {
        return "does not answer".to_owned();
    }
    if capabilities.head_number().is_some_and(|head| head < block) {
        return format!("does not have block {block} yet");
    }
    match missing.into_iter().find(|method| !call.needs.state && BLOCK_METHODS.contains(method)) {
        Some(method) => format!("does not have the method {method}"),
        None => format!("gives no answer to {method} that can be used"),
    }
}
