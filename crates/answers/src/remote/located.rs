//! Which block a transaction is in. A node's word about it is a claim until the proven block contains the transaction.
//!
//! No block can prove that a transaction is in none, so a quorum of the nodes must say so. Nodes that have dropped the index of old
//! transactions say so of every old one. So only nodes count that were shown to have all of it; while there are too few of them,
//! every node that may know better is waited for.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use alloy_primitives::B256;
use bytes::Bytes;
use methods::{BlockParam, BlockRef, TransactionPart};
use nodes::proven::{LocationClaim, PendingTransaction, ProofFailure, ProvenBody, Unproven};
use nodes::{
    Absence, AbsenceReplies, BlockId, CallFailure, CanonicalChain, HistoryKind, HistoryReach, Judgement,
    Judging, ResultFinding, RpcCall, RpcReply, Supplier,
};
use tokio::time::{Instant, sleep, timeout_at};

use super::asking::Asking;
use super::block_ids::block_ref;
use super::block_ids::head;
use super::encode;
use super::pool_source::PoolSource;
use super::sized_work::unless_refused;
use crate::failure::Failure;
use crate::provenance::Verification;

/// Claims up to this size are read at once.
const READ_AT_ONCE_BYTES_MAX: usize = 32 << 10;

/// How long a search that would fail waits for what is found out about the nodes.
const HISTORY_WAIT_MAX: Duration = Duration::from_secs(2);
const HISTORY_CHECKED_EVERY: Duration = Duration::from_millis(50);

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
    Nowhere(Nowhere),
}

/// A transaction that no node has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Nowhere {
    /// Whether every node was asked.
    pub(super) all_say_so: bool,
    /// Whether a quorum of the nodes could know.
    pub(super) verified: Verification,
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

    /// The block of the chain that a transaction was found in before.
    pub(super) fn known_place(&self, chain: &CanonicalChain, hash: B256) -> Option<BlockRef> {
        let known = self.blocks.place(&hash);
        let known = known.filter(|block| chain.by_number(block.number).map(block_ref) == Some(*block));
        known.or_else(|| self.followed_chain()?.place(chain, &hash))
    }

    /// Looks in the block that it was found in before, or that most nodes list it in.
    async fn locate_without_claims(
        &self,
        asking: Asking<'_>,
        hash: B256,
    ) -> Result<Option<Located>, Failure> {
        let chain = asking.chain;
        let known = self.known_place(chain, hash);
        let Some(block) = known.or_else(|| chain.contains_transaction(&hash).map(block_ref)) else {
            return Ok(None);
        };
        // That a stored block is canonical may be what nodes have said.
        let is_new_to_view = asking.supplier.is_of_pool() && !chain.knows_number(block.number);
        if is_new_to_view || !self.is_good_number(chain, block.number) {
            let number = BlockParam::Number(block.number);
            self.learn(asking.caller, chain, number, asking.deadline).await?;
            if chain.by_number(block.number).map(block_ref) != Some(block) {
                return Ok(None);
            }
        }
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
            Self::Wrong(failure) => Judgement::Wrong(*failure),
        }
    }
}

/// The findings so far.
#[derive(Default)]
struct SearchState {
    mined: Option<(Arc<ProvenBody>, usize)>,
    pending: Option<Box<PendingTransaction>>,
    /// Nodes that have it in no block of the view, and those that are not waited for.
    absence: AbsenceReplies,
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
                    self.absence.without.insert(node);
                    self.unverified.remove(&node);
                } else {
                    self.absence.record_other(node);
                }
            }
            LocationFinding::Unverified(claim) => _ = self.unverified.insert(node, claim),
            LocationFinding::OnOtherBranch | LocationFinding::Unsupported | LocationFinding::Wrong(_) => {
                self.absence.record_other(node);
                self.unverified.remove(&node);
            }
        }
    }

    /// Why it was not found.
    fn failure(self, quorum: usize) -> Failure {
        let is_disputed = !self.unverified.is_empty();
        let mut failures = self.unverified.into_values().map(|claim| claim.failure);
        match failures.find(|failure| *failure != Failure::Unavailable) {
            Some(failure) => failure,
            None if is_disputed || self.absence.without.len() < quorum => Failure::Unavailable,
            None => Failure::AbsenceUnknown,
        }
    }
}

impl TransactionSearch<'_> {
    /// Reads a result, and looks into the block that it names. `None` if no thread was free to read it.
    async fn find(&self, node: usize, result: Bytes) -> Option<LocationFinding> {
        Some(match self.read(result).await? {
            Ok(LocationClaim::Block(block)) => self.verify(node, block).await,
            Ok(LocationClaim::Pending(pending)) => self.in_no_block(node, Some(pending)),
            Ok(LocationClaim::Nowhere)
            | Err(Unproven::NotThere | Unproven::UnknownType(_) | Unproven::OddHeader) => {
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
            true => unless_refused(self.remote.threads.run(self.asking.account, read).await),
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
            self.remote.pool.note_claim(chain, node, claimed);
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
        if is_of_nodes && found.mined.is_none() && self.absence(call, &found).is_none() {
            self.ask_the_others(call, &mut found).await;
            if found.mined.is_none() && self.has_quorum_without(&found) {
                self.ask_claimants(&mut found).await;
            }
            if found.mined.is_none() {
                self.wait_for_histories(call, &found).await;
            }
        }
        let absence = self.absence(call, &found);
        match (found.mined, absence) {
            (Some((body, index)), _) => {
                self.record_lacking(&found.absence, body.header().number);
                Ok(Located::Mined { body, index })
            }
            (None, None) => Err(SearchState { mined: None, ..found }.failure(self.remote.pool.quorum())),
            (None, Some(verified)) => Ok(match found.pending {
                Some(pending) => Located::Pending(pending),
                None => Located::Nowhere(Nowhere { all_say_so, verified }),
            }),
        }
    }

    /// Whether it is in no block, and how far that is verified: no node names a block that was not looked at, and a quorum of the
    /// nodes has it in none. Of partners, one is asked.
    fn absence(&self, call: &RpcCall, found: &SearchState) -> Option<Verification> {
        if !found.unverified.is_empty() {
            return None;
        }
        match self.asking.supplier {
            Supplier::Nodes | Supplier::Node { .. } => {
                match self.remote.pool.absence(history_kind(self.part), call.method, &found.absence) {
                    Absence::Confirmed => Some(self.remote.by_quorum()),
                    Absence::Unconfirmed => Some(Verification::None),
                    Absence::Open => None,
                }
            }
            Supplier::Partners { .. } => (!found.absence.without.is_empty()).then_some(Verification::None),
        }
    }

    fn has_quorum_without(&self, found: &SearchState) -> bool {
        self.remote.pool.is_quorum(&found.absence.without)
    }

    /// Waits until it was found out whether the nodes that do not find it can know. That takes a moment after the start.
    async fn wait_for_histories(&self, call: &RpcCall, found: &SearchState) {
        let kind = history_kind(self.part);
        let until = self.asking.deadline.min(Instant::now() + HISTORY_WAIT_MAX);
        let is_unknown = |node: &usize| self.remote.pool.history(*node, kind) == HistoryReach::Unknown;
        while self.absence(call, found).is_none()
            && found.unverified.is_empty()
            && self.has_quorum_without(found)
            && found.absence.without.iter().any(is_unknown)
            && Instant::now() < until
        {
            sleep(HISTORY_CHECKED_EVERY).await;
        }
    }

    /// Nodes that did not find it do not have what is in its block. Of new blocks, they may only be late.
    fn record_lacking(&self, absence: &AbsenceReplies, block: u64) {
        if self.asking.supplier.is_of_pool() && block < self.asking.chain.lowest() {
            let kind = history_kind(self.part);
            absence
                .without
                .iter()
                .for_each(|node| self.remote.pool.record_lacking_history(*node, kind, block));
        }
    }

    /// Asks those that have not said yet whether they have it in a block.
    async fn ask_the_others(&self, call: &RpcCall, found: &mut SearchState) {
        let deadline = self.asking.deadline;
        let kind = history_kind(self.part);
        let mut replies = self.remote.pool.ask_everyone(call, &found.absence.without, deadline);
        while let Some((node, reply)) = replies.next().await {
            match reply {
                Ok(RpcReply::Result(result)) => {
                    let finding = timeout_at(deadline, self.find(node, result)).await.ok().flatten();
                    let unchecked = || LocationFinding::unchecked(Failure::Unavailable);
                    found.add(node, finding.unwrap_or_else(unchecked));
                }
                Ok(RpcReply::Error(_)) => {}
                Err(fault) => self.remote.pool.record_unreachable(kind, node, fault, &mut found.absence),
            }
            if found.mined.is_some() || self.absence(call, found).is_some() {
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
            Some(Ok(_) | Err(Unproven::UnknownType(_) | Unproven::OddHeader | Unproven::Wrong(_))) => {
                return None;
            }
            Some(Err(Unproven::NotThere)) => {}
            // A node that lacks the method may have the block.
            None if is_lacking && !remote.pool.some_lack(supplier, call.method) => {}
            None => return None,
        }
        remote.pool.doubt_locations(node);
        Some(LocationFinding::Unsupported)
    }
}

/// The kind of data that a node must have to know of a transaction.
pub(super) fn history_kind(part: TransactionPart) -> HistoryKind {
    match part {
        TransactionPart::Transaction => HistoryKind::Transactions,
        TransactionPart::Receipt => HistoryKind::Receipts,
    }
}

fn unverified(block: BlockId, failure: Failure) -> LocationFinding {
    LocationFinding::Unverified(UnverifiedClaim { block: Some(block), failure })
}

#[cfg(test)]
mod tests;
