//! Other nodes in the place of those that are asked, while calls go on.

use std::thread;
use std::time::Instant;

use nodes::{NodeId, Pool};

use super::settings::PoolConfig;
use super::started_pool::all_node_settings;
use crate::policy::{HANDOVER_CHECKED_EVERY, HANDOVER_TIME_MAX};

/// Brings the nodes and partners of a pool from one configuration to another. Nodes that go stay until those that come are known, so
/// that a change of all nodes fails no call; it blocks for as long. An error changes nothing.
pub fn change_nodes(pool: &Pool, before: &PoolConfig, after: &PoolConfig) -> Result<(), String> {
    let coming = all_node_settings(&without(after, before))?;
    let mut going = ids(pool, &without(before, after));
    if pool.nodes().len() + pool.partners().len() + coming.len() > nodes::NODES_MAX {
        // There is no room for both.
        going.drain(..).for_each(|id| {
            pool.remove_node(id);
        });
    }
    let come: Result<Vec<_>, _> = coming.into_iter().map(|settings| pool.add_node(settings)).collect();
    let come = come.map_err(|error| error.to_string())?;
    if !going.is_empty() {
        wait_until_known(pool, &come);
    }
    for id in going {
        pool.remove_node(id);
    }
    Ok(())
}

/// One configuration without the nodes and partners of another.
fn without(config: &PoolConfig, other: &PoolConfig) -> PoolConfig {
    let mut rest = config.clone();
    rest.nodes.retain(|node| !other.nodes.contains(node));
    rest.partners.retain(|partner| !other.partners.contains(partner));
    rest
}

/// The nodes and partners of the pool that were made from a configuration.
fn ids(pool: &Pool, config: &PoolConfig) -> Vec<NodeId> {
    let (nodes, partners) = (pool.nodes(), pool.partners());
    let own = config.nodes.iter().map(|node| (&nodes, node));
    let foreign = config.partners.iter().map(|partner| (&partners, &partner.remote));
    let found = own.chain(foreign).filter_map(|(present, remote)| {
        let name = remote.shown_name()?;
        present.iter().find(|node| *node.name() == *name).map(|node| node.id())
    });
    found.collect()
}

fn wait_until_known(pool: &Pool, ids: &[NodeId]) {
    let give_up_at = Instant::now() + HANDOVER_TIME_MAX;
    while !ids.iter().all(|id| pool.is_known(*id)) && Instant::now() < give_up_at {
        thread::sleep(HANDOVER_CHECKED_EVERY);
    }
}
