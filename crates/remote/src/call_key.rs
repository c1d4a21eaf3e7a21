//! Which calls and fetches are one while they are under way, and who pays for them.

use alloy_primitives::B256;
use methods::{BlockRef, Method, Query};
use nodes::{CanonicalChain, NodeId};
use resources::AccountId;
use sources::{CacheKey, CacheLookup};

use crate::block_ids::head;
use crate::call_context::CallContext;

/// With whom a call may share its answer, or a fetch what it brings, while it is under way.
#[derive(Clone, PartialEq, Eq, Hash)]
pub(super) struct CallKey<K = B256> {
    /// The account, if it pays. Large answers are read or proven, and code is run, in the first caller's share of the pool, and
    /// callers of other accounts would wait behind that account's jobs. Blocks of the window are few and asked for by everyone, so
    /// all accounts share one fetch; older ones are many, so each account fetches them in its own share.
    account: Option<AccountId>,
    only: Option<NodeId>,
    pub(super) key: K,
}

impl<K> CallKey<K> {
    /// The key for something of a block.
    pub(super) fn of_block(context: CallContext<'_>, block: BlockRef, key: K) -> Self {
        let account = (block.number < context.chain.lowest()).then_some(context.account);
        Self { account, only: context.only, key }
    }

    /// In whose share of the pool it is read or proven. If several accounts share it, it is nobody's (`AccountId::NONE`).
    pub(super) fn pays(&self) -> AccountId {
        self.account.unwrap_or(AccountId::NONE)
    }

    /// The terms of a fetch that several calls share.
    pub(super) fn context<'a>(&self, context: CallContext<'a>) -> CallContext<'a> {
        CallContext { account: self.pays(), caller: self.pays(), ..context }
    }
}

impl CallKey<CacheKey> {
    /// The key for the answer to a call. One that names no block is answered from the view of the first who asked, and what is not
    /// there yet at one head may be there at the next.
    pub(super) fn of_call(
        account: AccountId,
        chain: &CanonicalChain,
        method: &Method,
        query: &Query<BlockRef>,
    ) -> Self {
        let names_a_block = query.blocks().next().is_some();
        let is_deep = query.blocks().any(|block| block.number < chain.lowest());
        let asked = CacheLookup { query, head: (!names_a_block).then_some(head(chain).hash) };
        let account = (method.rules.effort.takes_long() || is_deep).then_some(account);
        Self { account, only: None, key: asked.key() }
    }
}

#[cfg(test)]
mod tests {
    use methods::{BlockPart, BlockQuery, MethodId, StateQuery, StateValue};

    use super::*;
    use crate::test_blocks::chain_of_head;

    fn method(name: &str) -> &'static Method {
        MethodId::named(name).unwrap().row()
    }

    /// Counts and uncles of old blocks were fetched in the share of nobody, in which the new blocks of all accounts are
    /// proven: one account that asked for the counts of many old blocks filled it.
    #[test]
    fn what_is_below_the_window_is_fetched_in_the_share_of_the_account() {
        let [one, other] = [AccountId::unique(), AccountId::unique()];
        let chain = chain_of_head(7);
        let old = BlockRef { number: 6, hash: Default::default() };
        for (name, part) in [
            ("eth_getBlockTransactionCountByHash", BlockPart::TransactionCount),
            ("eth_getUncleCountByBlockHash", BlockPart::UncleCount),
            ("eth_getUncleByBlockHashAndIndex", BlockPart::Uncle { index: 0 }),
        ] {
            let key = |account, block| {
                CallKey::of_call(account, &chain, method(name), &Query::Block(BlockQuery { block, part }))
            };
            assert_eq!(key(one, old).pays(), one);
            assert!(key(one, old) == key(one, old) && key(one, old) != key(other, old));
            assert_eq!(key(one, head(&chain)).pays(), AccountId::NONE);
        }
        let balance = StateQuery { address: Default::default(), at: old, value: StateValue::Balance };
        assert_eq!(
            CallKey::of_call(one, &chain, method("eth_getBalance"), &Query::State(balance)).pays(),
            one
        );
    }

    #[test]
    fn accounts_share_small_answers_and_no_large_ones() {
        let [one, other] = [AccountId::unique(), AccountId::unique()];
        let chain = chain_of_head(7);
        let head = head(&chain);
        let key = |account, query: &Query<BlockRef>| {
            let name = if query.reads_state() { "eth_getBalance" } else { "eth_getBlockReceipts" };
            CallKey::of_call(account, &chain, method(name), query)
        };
        let small = StateQuery { address: Default::default(), at: head, value: StateValue::Balance };
        let small = Query::State(small);
        assert!(key(one, &small) == key(other, &small));
        assert_eq!(key(one, &small).pays(), AccountId::NONE);
        let large = Query::Block(BlockQuery { block: head, part: BlockPart::Receipts });
        assert!(key(one, &large) == key(one, &large) && key(one, &large) != key(other, &large));
        assert_eq!(key(one, &large).pays(), one);
    }
}
