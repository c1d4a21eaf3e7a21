//! Which calls share an answer while it is fetched.

use methods::{BlockRef, Query};
use nodes::CanonicalChain;
use resources::AccountId;

use super::block_ids::head;
use crate::cache::{CacheKey, CacheLookup};
use crate::query_plan::QueryPlan;

/// With whom a call may share its answer while it is fetched.
#[derive(Clone, PartialEq, Eq, Hash)]
pub(super) struct FlightKey {
    /// The account, if the answer takes long: a large answer is read or proven, and code is run, in the first caller's share of
    /// the pool, and callers of other accounts would wait behind that account's jobs.
    account: Option<AccountId>,
    query: CacheKey,
    /// Whether partners are asked. Not every caller of the same query may have their answer.
    is_of_partners: bool,
}

impl FlightKey {
    /// A call that names no block is answered from the view of the first who asked, and what is not there yet at one head
    /// may be there at the next.
    pub(super) fn of(account: AccountId, chain: &CanonicalChain, query: &Query<BlockRef>) -> Self {
        let names_a_block = query.blocks().next().is_some();
        let is_deep = query.blocks().any(|block| block.number < chain.lowest());
        let takes_long = QueryPlan::of(query).effort.takes_long;
        let asked = CacheLookup { query, head: (!names_a_block).then_some(head(chain).hash) };
        let account = (takes_long || is_deep).then_some(account);
        Self { account, query: asked.key(), is_of_partners: false }
    }

    /// The key of the same call once partners are asked.
    pub(super) fn of_partners(self) -> Self {
        Self { is_of_partners: true, ..self }
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
    use crate::remote::test_blocks::chain_of_head;

    /// Counts and uncles of old blocks were fetched in the share of nobody, in which the new blocks of all accounts are
    /// proven: one account that asked for the counts of many old blocks filled it.
    #[test]
    fn what_is_below_the_window_is_fetched_in_the_share_of_the_account() {
        let [one, other] = [AccountId::unique(), AccountId::unique()];
        let chain = chain_of_head(7);
        let old = BlockRef { number: 6, hash: Default::default() };
        for part in [BlockPart::TransactionCount, BlockPart::UncleCount, BlockPart::Uncle { index: 0 }] {
            let key =
                |account, block| FlightKey::of(account, &chain, &Query::Block(BlockQuery { block, part }));
            assert_eq!(key(one, old).paying_account(), one);
            assert!(key(one, old) == key(one, old) && key(one, old) != key(other, old));
            assert_eq!(key(one, head(&chain)).paying_account(), AccountId::NONE);
        }
        let balance = StateQuery { address: Default::default(), at: old, value: StateValue::Balance };
        assert_eq!(FlightKey::of(one, &chain, &Query::State(balance)).paying_account(), one);
    }

    #[test]
    fn accounts_share_small_answers_and_no_large_ones() {
        let [one, other] = [AccountId::unique(), AccountId::unique()];
        let chain = chain_of_head(7);
        let head = head(&chain);
        let key = |account, query: &Query<BlockRef>| FlightKey::of(account, &chain, query);
        let small = StateQuery { address: Default::default(), at: head, value: StateValue::Balance };
        let small = Query::State(small);
        assert!(key(one, &small) == key(other, &small));
        assert_eq!(key(one, &small).paying_account(), AccountId::NONE);
        let large = Query::Block(BlockQuery { block: head, part: BlockPart::Receipts });
        assert!(key(one, &large) == key(one, &large) && key(one, &large) != key(other, &large));
        assert_eq!(key(one, &large).paying_account(), one);
    }
}
