//! Which calls share an answer while it is fetched.

use methods::{BlockRef, Query};
use resources::AccountId;

use crate::cache::{CacheKey, CacheLookup};
use crate::query_plan::QueryPlan;

/// With whom a call may share its answer while it is fetched.
#[derive(Clone, PartialEq, Eq, Hash)]
pub(super) struct FlightKey {
    /// The account, if the answer takes long: a large answer is read or proven, and code is run, in the first caller's share of
    /// the pool, and callers of other accounts would wait behind that account's jobs.
    account: Option<AccountId>,
    query: CacheKey,
}

impl FlightKey {
    /// A call that names no block is answered from the view of the first who asked, and what is not there yet at one head
    /// may be there at the next.
    pub(super) fn of(account: AccountId, head: BlockRef, query: &Query<BlockRef>) -> Self {
        let names_a_block = query.blocks().next().is_some();
        let takes_long = QueryPlan::of(query).effort.takes_long;
        let asked = CacheLookup { query, head: (!names_a_block).then_some(head.hash) };
        Self { account: takes_long.then_some(account), query: asked.key() }
    }

    /// In whose share of the pool the answer is read or proven. For an answer that several accounts share it is
    /// nobody's (`AccountId::NONE`).
    pub(super) fn paying_account(&self) -> AccountId {
        self.account.unwrap_or(AccountId::NONE)
    }
}

#[cfg(test)]
mod tests {
    use methods::{BlockPart, BlockQuery, StateQuery, StateValue};

    use super::*;

    #[test]
    fn accounts_share_small_answers_and_no_large_ones() {
        let [one, other] = [AccountId::unique(), AccountId::unique()];
        let head = BlockRef { number: 7, hash: Default::default() };
        let key = |account, query: &Query<BlockRef>| FlightKey::of(account, head, query);
        let small = StateQuery { address: Default::default(), at: head, value: StateValue::Balance };
        let small = Query::State(small);
        assert!(key(one, &small) == key(other, &small));
        assert_eq!(key(one, &small).paying_account(), AccountId::NONE);
        let large = Query::Block(BlockQuery { block: head, part: BlockPart::Receipts });
        assert!(key(one, &large) == key(one, &large) && key(one, &large) != key(other, &large));
        assert_eq!(key(one, &large).paying_account(), one);
    }
}
