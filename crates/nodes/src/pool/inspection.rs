//! One look at every node of a configuration, without a pool that watches them.

use std::sync::Arc;

use futures_util::future::join_all;
use resources::Supervisor;

use super::members::{NodeMaker, PoolMembers};
use super::{Pool, PoolSettings};
use crate::transport::{ReplyBuffers, check_heads};
use crate::view::NodesView;
use crate::watch::{self, NodeInspection};

/// The results of all nodes, and how many of them must be usable.
#[derive(Debug)]
pub struct PoolInspection {
    pub nodes: Vec<NodeInspection>,
    pub quorum: usize,
}

impl Pool {
    /// Asks every node and partner what it is and has. It takes at most half a minute, and 5 seconds for a node that hangs.
    pub async fn inspect(settings: PoolSettings) -> PoolInspection {
        let view = NodesView::new(settings.view);
        let memory = ReplyBuffers::new(settings.reply_memory_bytes);
        let maker = NodeMaker::new(memory, Supervisor::default(), Arc::clone(&view));
        let nodes = PoolMembers::new(maker, settings.nodes).watched().borrow().clone();
        let voters = nodes.iter().filter(|node| !node.node.is_partner()).map(|node| node.node.id());
        view.set_nodes(&voters.collect::<Vec<_>>());
        let quorum = view.quorum();
        let heads = join_all(nodes.iter().map(|node| async move {
            let endpoint = node.heads.as_ref()?;
            check_heads(endpoint).await.err().map(Into::into)
        }));
        let (mut inspections, heads) = tokio::join!(watch::inspect(&nodes, &settings.watch, quorum), heads);
        for (inspection, fault) in inspections.iter_mut().zip(heads) {
            inspection.heads_fault = fault;
        }
        PoolInspection { nodes: inspections, quorum }
    }
}
