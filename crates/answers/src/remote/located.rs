//! Which block a transaction is in. A node's word about it is a claim until the proven block contains the transaction.
//!
//! No block can prove that a transaction is in none, so a quorum of the nodes must say so.

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

use alloy_primitives::B256;
use bytes::Bytes;
use methods::{BlockParam, TransactionPart};
use nodes::proven::{LocationClaim, PendingTransaction, ProofFailure, ProvenBody, Unproven};
use nodes::{BlockId, CallFailure, Judgement, Judging, ResultFinding, RpcCall, RpcReply, Supplier};
use tokio::time::timeout_at;

use super::asking::Asking;
use super::block_ids::block_ref;
use super::block_ids::head;
use super::encode;
use super::pool_source::PoolSource;
use crate::failure::Failure;

/// Claims up to this size are read at once.
const READ_AT_ONCE_BYTES_MAX: usize = 32 << 10;

/// Where a transaction is.
#[derive(Debug)]
pub(super) enum Located {
    Mined {
        body: Arc<ProvenBody>,
        index: usize,
    },
    /// A quorum of the nodes has it in no block, and one of them has it.
    Pending(Box<PendingTransaction>),
    /// A quorum of the nodes has it in no block, and none of them has it.
    Nowhere {
        /// Whether every node was asked.
        all_say_so: bool,
    },
}

impl PoolSource {
    pub(super) async fn locate(
        &self,
        asking: Asking<'_>,
        hash: B256,
        part: TransactionPart,
    ) -> Result<Located, Failure> {
        if let Some(located) = self.locate_without_claims(asking, hash).await? {
            return Ok(located);
        }
        let call = match part {
            TransactionPart::Transaction => encode::transaction(hash),
            TransactionPart::Receipt => encode::receipt(hash),
        };
        let call = call.for_account(asking.caller);
        let search = TransactionSearch { remote: self, asking, hash, part };
        let judge = |node: usize, result: &Bytes| -> Judging<'_, LocationFinding> {
            Judging::Elsewhere(Box::pin(search.find(node, result.clone())))
        };
        let asked = self.pool.ask_of(asking.supplier, &call, &judge, asking.deadline).await;
        let unchecked = match &asked.answer {
            Err(CallFailure::Unchecked) => Failure::OverCapacity,
            _ => Failure::Unavailable,
        };
        let mut found = SearchState::default();
        for (node, finding) in asked.findings {
            found.add(node, finding.unwrap_or_else(|| LocationFinding::unchecked(unchecked.clone())));
        }
        search.settle(&call, found, asked.answer.is_ok_and(|answered| answered.is_absent_everywhere)).await
    }

    /// Looks in the block that it was found in before, or that most nodes list it in.
    async fn locate_without_claims(
        &self,
        asking: Asking<'_>,
        hash: B256,
    ) -> Result<Option<Located>, Failure> {
        let chain = asking.chain;
        let known = self.blocks.place(&hash);
        let known = known.filter(|block| chain.by_number(block.number).map(block_ref) == Some(*block));
        let stored = || self.followed_chain()?.place(chain, &hash);
        let known = known.or_else(stored);
        let Some(block) = known.or_else(|| chain.contains_transaction(&hash).map(block_ref)) else {
            return Ok(None);
        };
        let body = self.body(asking, block).await?;
        Ok(body.position(&hash).map(|index| Located::Mined { body, index }))
    }
}

/// A transaction that nodes are asked for.
struct TransactionSearch<'a> {
    remote: &'a PoolSource,
    asking: Asking<'a>,
    hash: B256,
    part: TransactionPart,
}

/// What a node's reply says about the place of a transaction, as far as it was verified.
enum LocationFinding {
    Mined {
        body: Arc<ProvenBody>,
        index: usize,
    },
    /// The node has it in no block of the view.
    InNoBlock {
        pending: Option<Box<PendingTransaction>>,
        /// Whether the node has the head of the view. One that is behind cannot know.
        is_at_head: bool,
    },
    /// The node has it in a block that is not canonical, and may be the first on a branch that the others change to. So it
    /// neither has it in this chain nor says that it is in none.
    OnOtherBranch,
    /// The node names a block that it does not have itself.
    Unsupported,
    /// The reply could not be read, or the block that it names could not be looked at.
    Unverified(UnverifiedClaim),
    Wrong(ProofFailure),
}

/// What a node says, and why it was not verified.
struct UnverifiedClaim {
    /// The block that it names; `None` if the reply was not read.
    block: Option<BlockId>,
    failure: Failure,
}

impl LocationFinding {
    /// The reply was not read.
    fn unchecked(failure: Failure) -> Self {
        Self::Unverified(UnverifiedClaim { block: None, failure })
    }
}

impl ResultFinding for LocationFinding {
    fn judgement(&self) -> Judgement {
        match self {
            Self::Mined { .. } => Judgement::Believed,
            // Another node may know better.
            Self::InNoBlock { is_at_head: true, .. } => Judgement::Doubtful,
            Self::InNoBlock { is_at_head: false, .. }
            | Self::OnOtherBranch
            | Self::Unsupported
            | Self::Unverified(_) => Judgement::Late,
            Self::Wrong(failure) => Judgement::Wrong(failure.name()),
        }
    }
}

/// The findings so far.
#[derive(Default)]
struct SearchState {
    mined: Option<(Arc<ProvenBody>, usize)>,
    pending: Option<Box<PendingTransaction>>,
    /// Nodes that have it in no block of the view.
    without: HashSet<usize>,
    /// Nodes that may have it in a block that was not looked at.
    unverified: BTreeMap<usize, UnverifiedClaim>,
}

impl SearchState {
    fn add(&mut self, node: usize, finding: LocationFinding) {
        match finding {
            LocationFinding::Mined { body, index } => self.mined = Some((body, index)),
            LocationFinding::InNoBlock { pending, is_at_head } => {
                self.pending = pending.or(self.pending.take());
                // Its newest reply counts: it has taken back a block that it named before.
                if is_at_head {
                    self.without.insert(node);
                    self.unverified.remove(&node);
                }
            }
            LocationFinding::Unverified(claim) => _ = self.unverified.insert(node, claim),
            LocationFinding::OnOtherBranch | LocationFinding::Unsupported | LocationFinding::Wrong(_) => {
                self.unverified.remove(&node);
            }
        }
    }

    /// Why it was not found.
    fn failure(self) -> Failure {
        let mut failures = self.unverified.into_values().map(|claim| claim.failure);
        failures.find(|failure| *failure != Failure::Unavailable).unwrap_or(Failure::Unavailable)
    }
}

impl TransactionSearch<'_> {
    /// Reads a result, and looks into the block that it names. `None` if no thread was free to read it.
    async fn find(&self, node: usize, result: Bytes) -> Option<LocationFinding> {
        Some(match self.read(result).await? {
            Ok(LocationClaim::Block(block)) => self.verify(node, block).await,
            Ok(LocationClaim::Pending(pending)) => self.in_no_block(node, Some(pending)),
            Ok(LocationClaim::Nowhere) | Err(Unproven::NotThere | Unproven::UnknownType(_)) => {
                self.in_no_block(node, None)
            }
            Err(Unproven::Wrong(failure)) => self.wrong(failure),
        })
    }

    async fn read(&self, result: Bytes) -> Option<Result<LocationClaim, Unproven>> {
        let (hash, part, bytes) = (self.hash, self.part, result.len());
        let read = move || match part {
            TransactionPart::Transaction => LocationClaim::of_transaction(&result, hash),
            TransactionPart::Receipt => LocationClaim::of_receipt(&result),
        };
        match bytes > READ_AT_ONCE_BYTES_MAX {
            true => self.remote.threads.run(self.asking.account, read).await,
            false => Some(read()),
        }
    }

    fn in_no_block(&self, node: usize, pending: Option<Box<PendingTransaction>>) -> LocationFinding {
        // Nobody watches the head of a partner.
        let is_at_head = !self.asking.supplier.is_of_pool()
            || self.remote.pool.has_reached(node, head(self.asking.chain).number);
        LocationFinding::InNoBlock { pending, is_at_head }
    }

    fn wrong(&self, failure: ProofFailure) -> LocationFinding {
        self.remote.integrity.count(failure);
        LocationFinding::Wrong(failure)
    }

    async fn verify(&self, node: usize, claimed: BlockId) -> LocationFinding {
        let chain = self.asking.chain;
        // A hash proves the number of its block.
        if chain.by_hash(&claimed.hash).is_some_and(|canonical| canonical != claimed) {
            return self.wrong(ProofFailure::NotInBlock);
        }
        // The node is ahead. Here the block is not there yet, and neither is the transaction in it.
        if claimed.number > head(chain).number {
            return self.in_no_block(node, None);
        }
        let is_of_nodes = self.asking.supplier.is_of_pool();
        if is_of_nodes {
            let number = BlockParam::Number(claimed.number);
            if let Err(failure) =
                self.remote.learn(self.asking.caller, chain, number, self.asking.deadline).await
            {
                return unverified(claimed, failure);
            }
        }
        match chain.by_number(claimed.number) {
            Some(canonical) if canonical == claimed => self.look_into(claimed).await,
            Some(_) => {
                // Below the window, no branch is this long: the place is made up, and the next one may be, too.
                if is_of_nodes && claimed.number < chain.lowest() {
                    self.remote.pool.doubt_locations(node);
                }
                LocationFinding::OnOtherBranch
            }
            None if is_of_nodes => unverified(claimed, Failure::Unavailable),
            // Which block has this number is what the partner says.
            None => self.look_into(claimed).await,
        }
    }

    async fn look_into(&self, block: BlockId) -> LocationFinding {
        match self.remote.body(self.asking, block_ref(block)).await {
            Ok(body) => match body.position(&self.hash) {
                Some(index) => LocationFinding::Mined { body, index },
                None => self.wrong(ProofFailure::NotInBlock),
            },
            Err(failure) => unverified(block, failure),
        }
    }

    /// Where it is, once nodes were asked one after another. Where too few have said that it is in no block, or one names a
    /// block that was not looked at, the others are asked, too, and then those that name such a block are asked for it.
    async fn settle(
        &self,
        call: &RpcCall,
        mut found: SearchState,
        all_say_so: bool,
    ) -> Result<Located, Failure> {
        let is_of_nodes = self.asking.supplier.is_of_pool();
        if is_of_nodes && found.mined.is_none() && !self.is_confirmed_absent(&found) {
            self.ask_the_others(call, &mut found).await;
            if found.mined.is_none() && self.has_quorum_without(&found) {
                self.ask_claimants(&mut found).await;
            }
        }
        let is_confirmed_absent = self.is_confirmed_absent(&found);
        match found.mined {
            Some((body, index)) => Ok(Located::Mined { body, index }),
            None if !is_confirmed_absent => Err(found.failure()),
            None => Ok(found.pending.map_or(Located::Nowhere { all_say_so }, Located::Pending)),
        }
    }

    /// Whether a quorum of the nodes has it in no block, and no node names a block that was not looked at. Of partners, one
    /// is asked.
    fn is_confirmed_absent(&self, found: &SearchState) -> bool {
        self.has_quorum_without(found) && found.unverified.is_empty()
    }

    fn has_quorum_without(&self, found: &SearchState) -> bool {
        match self.asking.supplier {
            Supplier::Nodes | Supplier::Node { .. } => self.remote.pool.is_quorum(&found.without),
            Supplier::Partners { .. } => !found.without.is_empty(),
        }
    }

    /// Asks those that have not said yet whether they have it in a block.
    async fn ask_the_others(&self, call: &RpcCall, found: &mut SearchState) {
        let deadline = self.asking.deadline;
        let mut replies = self.remote.pool.ask_everyone(call, &found.without, deadline);
        while let Some((node, reply)) = replies.next().await {
            let Ok(RpcReply::Result(result)) = reply else { continue };
            let finding = timeout_at(deadline, self.find(node, result)).await.ok().flatten();
            found.add(node, finding.unwrap_or_else(|| LocationFinding::unchecked(Failure::Unavailable)));
            if found.mined.is_some() || self.is_confirmed_absent(found) {
                break;
            }
        }
    }

    /// Asks nodes for the blocks that they have named and that could not be looked at.
    async fn ask_claimants(&self, found: &mut SearchState) {
        let claims = found.unverified.iter().filter_map(|(node, claim)| Some((*node, claim.block?)));
        for (node, block) in claims.collect::<Vec<_>>() {
            if let Some(finding) = self.ask_claimant(node, block).await {
                found.add(node, finding);
            }
        }
    }

    /// Asks a node for the block that it has named. A node that does not have that block, or not the transaction in it, cannot
    /// keep the others from saying that the transaction is in none. `None`: it may still be right.
    async fn ask_claimant(&self, node: usize, block: BlockId) -> Option<LocationFinding> {
        let (remote, payer, supplier) = (self.remote, self.asking.caller, Supplier::Node { number: node });
        let call = remote.on_any_branch(block_ref(block), encode::whole_block(&block_ref(block)));
        let call = call.for_account(payer);
        let prove = |_: usize, delivery: &Bytes| {
            let delivery = delivery.clone();
            remote.proving(payer, delivery.len(), move || ProvenBody::prove(&delivery, block.hash))
        };
        let mut asked = remote.pool.ask_of(supplier, &call, &prove, self.asking.deadline).await;
        let is_lacking = asked.answer.is_err_and(|failure| failure == CallFailure::Lacking);
        match asked.findings.pop().and_then(|(_, proof)| proof) {
            Some(Ok(body)) if body.position(&self.hash).is_none() => {
                return Some(self.wrong(ProofFailure::NotInBlock));
            }
            // A proof may fail for every node, so it says nothing about this one.
            Some(Ok(_) | Err(Unproven::UnknownType(_) | Unproven::Wrong(_))) => return None,
            Some(Err(Unproven::NotThere)) => {}
            // A node that lacks the method may have the block.
            None if is_lacking && !remote.pool.some_lack(supplier, call.method) => {}
            None => return None,
        }
        remote.pool.doubt_locations(node);
        Some(LocationFinding::Unsupported)
    }
}

fn unverified(block: BlockId, failure: Failure) -> LocationFinding {
    LocationFinding::Unverified(UnverifiedClaim { block: Some(block), failure })
}

#[cfg(test)]
mod tests {
    use std::future::pending;
    use std::pin::pin;
    use std::time::Duration;

    use futures_util::FutureExt;
    use nodes::CanonicalChain;
    use resources::AccountId;
    use tokio::time::Instant;

    use super::*;
    use crate::remote::test_source::{TestSource, chain_of_head};

    /// What is reported when the first node names a block for a transaction, and two others have it in none.
    async fn outvoted(
        test: &TestSource,
        account: AccountId,
        chain: &CanonicalChain,
        time: Duration,
    ) -> Result<Located, Failure> {
        let (deadline, supplier) = (Instant::now() + time, Supplier::Nodes);
        let asking = Asking { account, caller: account, chain, deadline, supplier };
        let (hash, part) = (B256::repeat_byte(7), TransactionPart::Receipt);
        let search = TransactionSearch { remote: &test.source, asking, hash, part };
        let call = encode::receipt(hash);
        let without = || SearchState { without: HashSet::from([1, 2]), ..SearchState::default() };
        assert!(matches!(search.settle(&call, without(), false).await, Ok(Located::Nowhere { .. })));

        let claim = Bytes::from(format!(r#"{{"blockHash":"{hash}","blockNumber":"0x5"}}"#));
        let mut found = without();
        found.add(0, search.find(0, claim).await.unwrap());
        search.settle(&call, found, false).await
    }

    /// The time of the call ended before the block that a node had named was looked up. Two others did not have the
    /// transaction, and `null` was reported as confirmed.
    #[tokio::test]
    async fn a_claim_that_nobody_has_looked_at_is_not_outvoted() {
        let (test, chain) = (TestSource::new(3), chain_of_head(1_000));
        let account = AccountId::unique();
        let key = (account, chain.epoch(), BlockParam::Number(5));
        let far = Instant::now() + Duration::from_secs(3_600);
        let mut look_up = pin!(test.source.lookups.share(key, far, pending));
        assert!((&mut look_up).now_or_never().is_none(), "it does not end");
        let located = outvoted(&test, account, &chain, Duration::from_millis(20)).await;
        assert!(matches!(located, Err(Failure::Unavailable)), "{located:?}");
    }

    /// Two of three nodes had dropped the block that the third had named for a transaction. The look-up of that block failed
    /// long before the deadline, and `null` was reported as confirmed.
    #[tokio::test]
    async fn a_claim_whose_look_up_failed_is_not_outvoted() {
        let (test, chain) = (TestSource::new(3), chain_of_head(1_000));
        let located = outvoted(&test, AccountId::unique(), &chain, Duration::from_secs(3_600)).await;
        assert!(matches!(located, Err(Failure::Unavailable)), "{located:?}");
    }

    /// A node that had named a block and then said that there is none still kept all others from saying so.
    #[test]
    fn a_claim_that_is_taken_back_is_outvoted() {
        let mut found = SearchState::default();
        found.add(0, LocationFinding::unchecked(Failure::Unavailable));
        found.add(0, LocationFinding::InNoBlock { pending: None, is_at_head: true });
        assert!(found.unverified.is_empty() && found.without.contains(&0));
    }
}
