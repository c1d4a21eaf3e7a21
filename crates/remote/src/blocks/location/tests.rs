//! Nodes that name a block for a transaction, and others that have it in none.

use std::future::pending;
use std::pin::pin;
use std::time::Duration;

use futures_util::FutureExt;
use nodes::CanonicalChain;
use resources::AccountId;

use super::*;
use crate::test_blocks::{TestBlocks, chain_of_head};

/// The report when the first node names a block for a transaction, and two others have it in none.
async fn outvoted(
    test: &TestBlocks,
    account: AccountId,
    chain: &CanonicalChain,
    time: Duration,
) -> Result<Located, Failure> {
    let deadline = Instant::now() + time;
    let context = CallContext { account, caller: account, chain, deadline, only: None };
    let (hash, part) = (B256::repeat_byte(7), TransactionPart::Receipt);
    let search = TransactionSearch { blocks: &test.blocks, context, hash, part };
    let call = encode::receipt(hash);
    let without = || {
        let mut found = SearchState::default();
        for node in [1, 2].map(NodeId::new) {
            found.add(node, LocationFinding::InNoBlock { pending: None, is_at_head: true });
        }
        found
    };
    assert!(matches!(search.settle(&call, without(), false).await, Ok(Located::Nowhere(_))));

    let claim = Bytes::from(format!(r#"{{"blockHash":"{hash}","blockNumber":"0x5"}}"#));
    let mut found = without();
    found.add(NodeId::new(0), search.find(NodeId::new(0), claim).await.unwrap());
    search.settle(&call, found, false).await
}

/// The time of the call ended before the block that a node had named was looked up. Two others did not have the
/// transaction, and `null` was reported as confirmed.
#[tokio::test]
async fn a_claim_that_nobody_has_looked_at_is_not_outvoted() {
    let (test, chain) = (TestBlocks::new(3), chain_of_head(1_000));
    let account = AccountId::unique();
    let key = (account, chain.epoch(), BlockParam::Number(5));
    let far = Instant::now() + Duration::from_secs(3_600);
    let mut look_up = pin!(test.blocks.lookups.share(key, far, pending));
    assert!((&mut look_up).now_or_never().is_none(), "it does not end");
    let located = outvoted(&test, account, &chain, Duration::from_millis(20)).await;
    assert!(matches!(located, Err(Failure::Unavailable)), "{located:?}");
}

/// Two of three nodes had dropped the block that the third had named for a transaction. The look-up of that block failed
/// long before the deadline, and `null` was reported as confirmed.
#[tokio::test]
async fn a_claim_whose_look_up_failed_is_not_outvoted() {
    let (test, chain) = (TestBlocks::new(3), chain_of_head(1_000));
    let located = outvoted(&test, AccountId::unique(), &chain, Duration::from_secs(3_600)).await;
    assert!(matches!(located, Err(Failure::Unavailable)), "{located:?}");
}

/// A node that had named a block and then said that there is none still kept all others from saying so.
#[test]
fn a_claim_that_is_taken_back_is_outvoted() {
    let mut found = SearchState::default();
    found.add(NodeId::new(0), LocationFinding::unchecked(Failure::Unavailable));
    found.add(NodeId::new(0), LocationFinding::InNoBlock { pending: None, is_at_head: true });
    assert!(found.unverified.is_empty() && found.absence.without.contains(&NodeId::new(0)));
}
