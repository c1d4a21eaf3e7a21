//! The terms of everything that is fetched from nodes.

use nodes::{CanonicalChain, NodeId, PartnerQuota, PartnerTerms, Pool};
use resources::AccountId;
use tokio::time::Instant;

use crate::policy::FETCH_TIME_MAX;

/// For which accounts, in which view, until when, and from which nodes something is fetched.
#[derive(Clone, Copy)]
pub(super) struct CallContext<'a> {
    /// In whose share of the threads large answers are read and proven. If accounts share the answer, it is none of them.
    pub(super) account: AccountId,
    /// In whose share of the connections nodes are asked.
    pub(super) caller: AccountId,
    pub(super) chain: &'a CanonicalChain,
    pub(super) deadline: Instant,
    /// The only node that is asked, which may be a partner. `None` for all nodes of the operator.
    pub(super) only: Option<NodeId>,
}

impl<'a> CallContext<'a> {
    /// Of one block, or the headers that lead to it, that a follower fetches.
    pub(super) fn of_follower(account: AccountId, chain: &'a CanonicalChain) -> Self {
        Self { account, caller: account, chain, deadline: Instant::now() + FETCH_TIME_MAX, only: None }
    }

    /// Whether the time is up.
    pub(super) fn is_over(&self) -> bool {
        Instant::now() >= self.deadline
    }

    /// How much may be asked, if a partner is.
    pub(super) fn partner_quota(&self, pool: &Pool) -> Option<PartnerQuota> {
        pool.node(self.only?)?.partner_terms().map(PartnerTerms::quota)
    }
}
