//! Which block a transaction is in. A node's word about it is a claim until the proven block contains the transaction.
//!
//! No block can prove that a transaction is in none, so a quorum of the nodes must say so.

use std::collections::HashSet;
use std::sync::Arc;

use alloy_primitives::B256;
use bytes::Bytes;
use methods::{BlockParam, TransactionPart};
use nodes::proven::{LocationClaim, PendingTransaction, ProofFailure, ProvenBody, Unproven};
use nodes::{BlockId, CallFailure, Judgement, Judging, RpcCall, RpcReply, Supplier};
use parking_lot::Mutex;
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
        let search = TransactionSearch { remote: self, asking, hash, part, found: Mutex::default() };
        let judge = |node: usize, result: &Bytes| search.judge(node, result);
        let asked = self.pool.ask_of(asking.supplier, &call, &judge, asking.deadline).await;
        if let Err(CallFailure::Unchecked) = asked {
            search.found.lock().failure = Some(Failure::OverCapacity);
        }
        search.settle(&call, asked.is_ok_and(|answered| answered.is_absent_everywhere)).await
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
        let kept = || self.kept_chain()?.place(chain, &hash);
        let known = known.or_else(kept);
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
    found: Mutex<SearchState>,
}

/// The claims of the nodes so far.
#[derive(Default)]
struct SearchState {
    mined: Option<(Arc<ProvenBody>, usize)>,
    pending: Option<Box<PendingTransaction>>,
    /// Nodes that have it in no block of the view.
    without: HashSet<usize>,
    /// Nodes that name a block which was not looked at yet.
    unverified: HashSet<usize>,
    /// Why the block that a node claims could not be looked at.
    failure: Option<Failure>,
}

impl TransactionSearch<'_> {
    fn judge(&self, node: usize, result: &Bytes) -> Judging<'_> {
        let result = result.clone();
        Judging::Elsewhere(Box::pin(async move {
            match self.read(result).await {
                Some(claim) => self.verify(node, claim).await,
                None => Judgement::Unchecked,
            }
        }))
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

    async fn verify(&self, node: usize, claim: Result<LocationClaim, Unproven>) -> Judgement {
        match claim {
            Ok(LocationClaim::Block(block)) => {
                self.found.lock().unverified.insert(node);
                let judgement = self.verify_block(node, block).await;
                // A look-up that ended with the time of the call has verified nothing.
                if judgement != Judgement::Late || !self.asking.is_over() {
                    self.found.lock().unverified.remove(&node);
                }
                judgement
            }
            Ok(LocationClaim::Pending(pending)) => {
                self.found.lock().pending = Some(pending);
                self.is_without(node)
            }
            Ok(LocationClaim::Nowhere) | Err(Unproven::NotThere | Unproven::UnknownType(_)) => {
                self.is_without(node)
            }
            Err(Unproven::Wrong(failure)) => self.convict(failure),
        }
    }

    /// A node has it in no block, so another one may know better. One that is behind cannot know.
    fn is_without(&self, node: usize) -> Judgement {
        let is_of_nodes = self.asking.supplier.is_of_pool();
        // Nobody watches the head of a partner.
        if is_of_nodes && !self.remote.pool.has_reached(node, head(self.asking.chain).number) {
            return Judgement::Late;
        }
        self.found.lock().without.insert(node);
        Judgement::Doubtful
    }

    fn convict(&self, failure: ProofFailure) -> Judgement {
        self.remote.integrity.count(failure);
        Judgement::Wrong(failure.name())
    }

    async fn verify_block(&self, node: usize, claimed: BlockId) -> Judgement {
        let chain = self.asking.chain;
        // A hash proves the number of its block.
        if chain.by_hash(&claimed.hash).is_some_and(|canonical| canonical != claimed) {
            return self.convict(ProofFailure::NotInBlock);
        }
        // The node is ahead. Here the block is not there yet, and neither is the transaction in it.
        if claimed.number > head(chain).number {
            return self.is_without(node);
        }
        let number = BlockParam::Number(claimed.number);
        let is_of_nodes = self.asking.supplier.is_of_pool();
        if is_of_nodes && self.remote.learn(chain, number, self.asking.deadline).await.is_err() {
            return Judgement::Late;
        }
        match chain.by_number(claimed.number) {
            Some(canonical) if canonical == claimed => self.look_into(claimed).await,
            // Which block has this number is what the partner says.
            None if !is_of_nodes => self.look_into(claimed).await,
            // The node is on another branch, and may be the first on one that the others change to. So it neither has it in
            // this chain nor says that it is in none. Below the window, no branch is this long: the place is made up, and the
            // next one may be, too.
            Some(_) if is_of_nodes && claimed.number < chain.lowest() => {
                self.remote.pool.doubt_locations(node);
                Judgement::Late
            }
            _ => Judgement::Late,
        }
    }

    async fn look_into(&self, block: BlockId) -> Judgement {
        match self.remote.body(self.asking, block_ref(block)).await {
            Ok(body) => match body.position(&self.hash) {
                Some(index) => {
                    self.found.lock().mined = Some((body, index));
                    Judgement::Believed
                }
                None => self.convict(ProofFailure::NotInBlock),
            },
            Err(failure) => {
                self.found.lock().failure = Some(failure);
                Judgement::Late
            }
        }
    }

    /// Where it is, once nodes were asked one after another. Where too few have said that it is in no block, or one names a
    /// block that was not looked at, the others are asked, too.
    async fn settle(&self, call: &RpcCall, all_say_so: bool) -> Result<Located, Failure> {
        let is_of_nodes = self.asking.supplier.is_of_pool();
        if is_of_nodes && self.found.lock().mined.is_none() && !self.is_confirmed_absent() {
            self.ask_the_others(call).await;
        }
        let is_confirmed_absent = self.is_confirmed_absent();
        let found = std::mem::take(&mut *self.found.lock());
        if let Some((body, index)) = found.mined {
            return Ok(Located::Mined { body, index });
        }
        if !is_confirmed_absent || found.failure.is_some() {
            return Err(found.failure.unwrap_or(Failure::Unavailable));
        }
        Ok(found.pending.map_or(Located::Nowhere { all_say_so }, Located::Pending))
    }

    /// Whether a quorum of the nodes has it in no block, and no node names a block that was not looked at. Of partners, one
    /// is asked.
    fn is_confirmed_absent(&self) -> bool {
        let found = self.found.lock();
        let has_quorum = match self.asking.supplier {
            Supplier::Nodes | Supplier::Node { .. } => self.remote.pool.is_quorum(&found.without),
            Supplier::Partners { .. } => !found.without.is_empty(),
        };
        has_quorum && found.unverified.is_empty()
    }

    /// Asks those that have not said yet whether they have it in a block.
    async fn ask_the_others(&self, call: &RpcCall) {
        let asked = self.found.lock().without.clone();
        let mut replies = self.remote.pool.ask_everyone(call, &asked, self.asking.deadline);
        while let Some((node, reply)) = replies.next().await {
            let Ok(RpcReply::Result(result)) = reply else { continue };
            let judgement = match self.judge(node, &result) {
                Judging::Done(judgement) => judgement,
                Judging::Elsewhere(judging) => {
                    timeout_at(self.asking.deadline, judging).await.unwrap_or(Judgement::Unchecked)
                }
            };
            if judgement == Judgement::Believed || self.is_confirmed_absent() {
                break;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::future::pending;
    use std::pin::pin;
    use std::time::Duration;

    use futures_util::FutureExt;
    use resources::AccountId;
    use tokio::time::Instant;

    use super::*;
    use crate::remote::test_source::{TestSource, chain_of_head};

    /// One node named the block of a transaction, and the time of the call ended before that block was looked up. Two others
    /// did not have the transaction, and `null` was reported as confirmed.
    #[tokio::test]
    async fn a_claim_that_nobody_has_looked_at_is_not_outvoted() {
        let test = TestSource::new(3);
        let chain = chain_of_head(1_000);
        let (account, supplier) = (AccountId::unique(), Supplier::Nodes);
        let deadline = Instant::now() + Duration::from_secs(3_600);
        let asking = Asking { account, caller: account, chain: &chain, deadline, supplier };
        let (hash, part) = (B256::repeat_byte(7), TransactionPart::Receipt);
        let search = TransactionSearch { remote: &test.source, asking, hash, part, found: Mutex::default() };
        let call = encode::receipt(hash);
        search.found.lock().without.extend([1, 2]);
        assert!(matches!(search.settle(&call, false).await, Ok(Located::Nowhere { .. })));

        // The look-up of the block is under way, and does not end.
        let number = (chain.epoch(), BlockParam::Number(5));
        let mut look_up = pin!(test.source.lookups.share(number, deadline, pending));
        assert!((&mut look_up).now_or_never().is_none());
        let claim = Bytes::from(format!(r#"{{"blockHash":"{hash}","blockNumber":"0x5"}}"#));
        let Judging::Elsewhere(mut judging) = search.judge(0, &claim) else { panic!("it takes a look-up") };
        assert!((&mut judging).now_or_never().is_none());
        drop(judging);
        search.found.lock().without.extend([1, 2]);
        assert!(matches!(search.settle(&call, false).await, Err(Failure::Unavailable)));
    }
}
