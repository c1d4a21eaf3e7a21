//! The terms of every fetch from nodes.

use alloy_primitives::B256;
use methods::BlockRef;
use nodes::{CanonicalChain, NodeId, PartnerQuota, PartnerTerms, Pool};
use resources::AccountId;
use tokio::time::Instant;

/// For which accounts, in which view, until when, and from which nodes something is fetched.
#[derive(Clone, Copy)]
pub(super) struct Asking<'a> {
    /// In whose share of the threads large answers are read and proven. If accounts share the answer, it is none of them.
    pub(super) account: AccountId,
    /// In whose share of the connections nodes are asked.
    pub(super) caller: AccountId,
    pub(super) chain: &'a CanonicalChain,
    pub(super) deadline: Instant,
    /// The only node that is asked, which may be a partner. `None` for all nodes of the operator.
    pub(super) only: Option<NodeId>,
}

impl Asking<'_> {
    /// Whether the time is up.
    pub(super) fn is_over(&self) -> bool {
        Instant::now() >= self.deadline
    }

    /// How much may be asked, if a partner is.
    pub(super) fn partner_quota(&self, pool: &Pool) -> Option<PartnerQuota> {
        pool.node(self.only?)?.partner_terms().map(PartnerTerms::quota)
    }
}

/// Which fetches are one, and who pays for the proof.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct FetchKey<K = B256> {
    /// The account, if the block is below the window. Blocks of the window are few and asked for by everyone: all accounts
    /// share one fetch, and none of them waits behind the jobs of another. Older blocks are many, so each account fetches them
    /// in its own share of the pool.
    account: Option<AccountId>,
    only: Option<NodeId>,
    pub(super) key: K,
}

impl<K> FetchKey<K> {
    /// The key for something of a block.
    pub(super) fn of(asking: Asking<'_>, block: BlockRef, key: K) -> Self {
        let is_deep = block.number < asking.chain.lowest();
        Self { account: is_deep.then_some(asking.account), only: asking.only, key }
    }

    pub(super) fn pays(&self) -> AccountId {
        self.account.unwrap_or(AccountId::NONE)
    }

    pub(super) fn terms(&self, deadline: Instant) -> FetchTerms {
        FetchTerms { pays: self.pays(), deadline, only: self.only }
    }
}

/// Who is asked for a part of a block, until when, and in whose share of the connections and of the pool.
#[derive(Clone, Copy)]
pub(super) struct FetchTerms {
    pub(super) pays: AccountId,
    pub(super) deadline: Instant,
    pub(super) only: Option<NodeId>,
}
