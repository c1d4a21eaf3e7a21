//! One call to several nodes, or to all of them.

use std::collections::HashSet;
use std::sync::Arc;

use tokio::time::Instant;

use super::Pool;
use crate::call::RpcCall;
use crate::node_id::NodeId;
use crate::scheduler::{SeveralAnswers, Wanted};
use crate::transport::Client;

/// One call to several nodes of a pool.
pub type QuorumCall<'a> = SeveralAnswers<'a, Client>;

impl Pool {
    /// How many of the configured nodes must agree.
    pub fn quorum(&self) -> usize {
        self.view.quorum()
    }

    /// Begins a call that several nodes answer.
    pub fn ask_several<'a>(&'a self, call: &'a RpcCall, deadline: Instant) -> QuorumCall<'a> {
        SeveralAnswers::new(self.nodes(), call, Wanted::Several, &self.rules, deadline)
    }

    /// Begins a call that all nodes of this chain answer, except some. Nodes that are down are asked too, because one may be back.
    pub fn ask_everyone<'a>(
        &'a self,
        call: &'a RpcCall,
        except: &HashSet<NodeId>,
        deadline: Instant,
    ) -> QuorumCall<'a> {
        let mut nodes = self.same_chain();
        nodes.retain(|node| !except.contains(&node.id()));
        SeveralAnswers::new(Arc::new(nodes), call, Wanted::All, &self.rules, deadline)
    }

    /// Blames a node that a quorum of the configured nodes has contradicted. Returns whether that ends the trust epoch.
    pub fn blame_contradicted(&self, node: NodeId, call: &RpcCall) -> bool {
        let Some(node) = self.node(node) else { return false };
        node.record_wrong_answer(call, "a quorum of the nodes, or a proof, says otherwise")
    }
}
