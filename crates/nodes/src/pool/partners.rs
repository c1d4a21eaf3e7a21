//! Nodes of other providers, asked one by one when no node of the operator can answer.

use tokio::time::Instant;

use super::Pool;
use crate::health::Availability;
use crate::node::Membership;
use crate::node_id::NodeId;

impl Pool {
    /// The partners that may be asked this method of a caller now: those of this chain that are not down, or are due for a probe.
    /// Nobody polls them, so calls are their probes.
    pub fn partners_for(&self, method: &str) -> Vec<NodeId> {
        let now = Instant::now();
        let partners = self.partners();
        let may_be_asked = partners.iter().filter(|node| {
            node.partner_terms().is_some_and(|terms| terms.has(method))
                && node.capabilities().membership() == Membership::Member
                && (node.availability(now) != Availability::Down || node.is_probe_due(now))
        });
        may_be_asked.map(|node| node.id()).collect()
    }
}
