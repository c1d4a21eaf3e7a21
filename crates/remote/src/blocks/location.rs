//! Which block a transaction is in. A node's word about it is a claim until the proven block contains the transaction.
//!
//! No block can prove that a transaction is in none, so a quorum of the nodes must say so. Nodes that have dropped the index of old
//! transactions say so of every old one. So only nodes count that were shown to have all of it; while there are too few of them,
//! every node that may know better is waited for.

use std::collections::BTreeMap;
use std::sync::Arc;

use alloy_primitives::B256;
use bytes::Bytes;
use methods::{BlockParam, TransactionPart};
use nodes::proven::{LocationClaim, PendingTransaction, ProofFailure, ProvenBody, Unproven};
use nodes::{
    Absence, AbsenceReplies, AnswersEvent, BlockId, CallFailure, HistoryKind, HistoryReach, Judgement,
    Judging, NodeAnswer, NodeId, NodeReply, ResultFinding, RpcCall,
};
use sources::{Failure, Verification};
use tokio::time::{Instant, sleep, timeout_at};

use super::Blocks;
use crate::block_ids::{block_ref, head};
use crate::call_context::CallContext;
use crate::encode;
use crate::policy::{HISTORY_CHECKED_EVERY, HISTORY_WAIT_MAX};
use crate::workers::unless_refused;

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

/// A transaction that is looked for.
pub(super) struct TransactionSearch<'a> {
    pub(super) blocks: &'a Blocks,
    pub(super) context: CallContext<'a>,
    pub(super) hash: B256,
    pub(super) part: TransactionPart,
}

/// The place of a transaction according to a node's reply, as far as it was verified.
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

/// A reply, and why it was not verified.
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
    unverified: BTreeMap<NodeId, UnverifiedClaim>,
}

impl SearchState {
    fn add(&mut self, node: NodeId, finding: LocationFinding) {
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
    pub(super) async fn locate(&self) -> Result<Located, Failure> {
        if let Some(located) = self.locate_without_claims().await? {
            return Ok(located);
        }
        let CallContext { caller, deadline, only, .. } = self.context;
        let call = match self.part {
            TransactionPart::Transaction => encode::transaction(self.hash),
            TransactionPart::Receipt => encode::receipt(self.hash),
        };
        let call = call.for_account(caller);
        let judge = |node: NodeId, result: &Bytes| -> Judging<'_, LocationFinding> {
            Judging::Elsewhere(Box::pin(self.find(node, result.clone())))
        };
        let asked = self.blocks.pool.ask(only, &call, &judge, deadline).await;
        let unchecked = match &asked.answer {
            Err(CallFailure::Unchecked) => Failure::OverCapacity,
            _ => Failure::Unavailable,
        };
        let mut found = SearchState::default();
        for (node, finding) in asked.findings {
            found.add(node, finding.unwrap_or_else(|| LocationFinding::unchecked(unchecked.clone())));
        }
        self.settle(&call, found, asked.answer.is_ok_and(|answered| answered.is_absent_everywhere)).await
    }

    /// Looks in the block that it was found in before, or that most nodes list it in.
    async fn locate_without_claims(&self) -> Result<Option<Located>, Failure> {
        let CallContext { caller, chain, deadline, .. } = self.context;
        let known = self.blocks.known_place(chain, self.hash);
        let Some(block) = known.or_else(|| chain.contains_transaction(&self.hash).map(block_ref)) else {
            return Ok(None);
        };
        // That a stored block is canonical may be what nodes have said.
        if !chain.knows_number(block.number) || !self.blocks.is_good_number(chain, block.number) {
            self.blocks.learn(caller, chain, BlockParam::Number(block.number), deadline).await?;
            if chain.by_number(block.number).map(block_ref) != Some(block) {
                return Ok(None);
            }
        }
        let body = self.blocks.body(self.context, block).await?;
        Ok(body.position(&self.hash).map(|index| Located::Mined { body, index }))
    }

    /// Reads a result, and looks into the block that it names. `None` if no thread was free to read it.
    async fn find(&self, node: NodeId, result: Bytes) -> Option<LocationFinding> {
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
            true => unless_refused(self.blocks.workers.threads.run(self.context.account, read).await),
            false => Some(read()),
        }
    }

    fn in_no_block(&self, node: NodeId, pending: Option<Box<PendingTransaction>>) -> LocationFinding {
        let is_at_head = self.blocks.pool.has_reached(node, head(self.context.chain).number);
        LocationFinding::InNoBlock { pending, is_at_head }
    }

    fn wrong(&self, failure: ProofFailure) -> LocationFinding {
        self.blocks.workers.integrity.count(failure);
        LocationFinding::Wrong(failure)
    }

    async fn verify(&self, node: NodeId, claimed: BlockId) -> LocationFinding {
        let chain = self.context.chain;
        // A hash proves the number of its block.
        if chain.by_hash(&claimed.hash).is_some_and(|canonical| canonical != claimed) {
            return self.wrong(ProofFailure::NotInBlock);
        }
        // The node is ahead. Here the block is not there yet, and neither is the transaction in it.
        if claimed.number > head(chain).number {
            return self.in_no_block(node, None);
        }
        self.blocks.pool.note_claim(chain, claimed);
        let number = BlockParam::Number(claimed.number);
        let CallContext { caller, deadline, .. } = self.context;
        if let Err(failure) = self.blocks.learn(caller, chain, number, deadline).await {
            return unverified(claimed, failure);
        }
        match chain.by_number(claimed.number) {
            Some(canonical) if canonical == claimed => self.look_into(claimed).await,
            Some(_) => {
                // Below the window, no branch is this long: the place is made up, and the next one may be, too.
                if claimed.number < chain.lowest() {
                    self.blocks.pool.doubt_locations(node);
                }
                LocationFinding::OnOtherBranch
            }
            None => unverified(claimed, Failure::Unavailable),
        }
    }

    async fn look_into(&self, block: BlockId) -> LocationFinding {
        match self.blocks.body(self.context, block_ref(block)).await {
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
        if self.context.only.is_none() && found.mined.is_none() && self.absence(call, &found).is_none() {
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
            (None, None) => Err(SearchState { mined: None, ..found }.failure(self.blocks.pool.quorum())),
            (None, Some(verified)) => Ok(match found.pending {
                Some(pending) => Located::Pending(pending),
                None => Located::Nowhere(Nowhere { all_say_so, verified }),
            }),
        }
    }

    /// Whether it is in no block, and how far that is verified: no node names a block that was not looked at, and a quorum of the
    /// nodes has it in none. Where one node alone is asked, such as a partner, it says so.
    fn absence(&self, call: &RpcCall, found: &SearchState) -> Option<Verification> {
        if !found.unverified.is_empty() {
            return None;
        }
        if self.context.only.is_some() {
            return (!found.absence.without.is_empty()).then_some(Verification::None);
        }
        match self.blocks.pool.absence(history_kind(self.part), call.method, &found.absence) {
            Absence::Confirmed => Some(self.blocks.by_quorum()),
            Absence::Unconfirmed => Some(Verification::None),
            Absence::Open => None,
        }
    }

    fn has_quorum_without(&self, found: &SearchState) -> bool {
        self.blocks.pool.is_quorum(&found.absence.without)
    }

    /// Waits until it was found out whether the nodes that do not find it can know. That takes a moment after the start.
    async fn wait_for_histories(&self, call: &RpcCall, found: &SearchState) {
        let kind = history_kind(self.part);
        let until = self.context.deadline.min(Instant::now() + HISTORY_WAIT_MAX);
        let is_unknown = |node: &NodeId| self.blocks.pool.history(*node, kind) == HistoryReach::Unknown;
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
        if self.context.only.is_none() && block < self.context.chain.lowest() {
            let kind = history_kind(self.part);
            absence
                .without
                .iter()
                .for_each(|node| self.blocks.pool.record_lacking_history(*node, kind, block));
        }
    }

    /// Asks those that have not said yet whether they have it in a block.
    async fn ask_the_others(&self, call: &RpcCall, found: &mut SearchState) {
        let deadline = self.context.deadline;
        let kind = history_kind(self.part);
        let mut replies = self.blocks.pool.ask_everyone(call, &found.absence.without, deadline);
        loop {
            match replies.next(1).await {
                AnswersEvent::Answer(NodeAnswer { node, reply: NodeReply::Result(result) }) => {
                    let finding = timeout_at(deadline, self.find(node, result)).await.ok().flatten();
                    let unchecked = || LocationFinding::unchecked(Failure::Unavailable);
                    found.add(node, finding.unwrap_or_else(unchecked));
                }
                AnswersEvent::Answer(_) | AnswersEvent::Stalled => {}
                AnswersEvent::Failed { node, fault } => {
                    self.blocks.pool.record_unreachable(kind, node, fault, &mut found.absence);
                }
                AnswersEvent::Over => break,
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
    async fn ask_claimant(&self, node: NodeId, block: BlockId) -> Option<LocationFinding> {
        let (blocks, payer) = (self.blocks, self.context.caller);
        let call = encode::whole_block(&block_ref(block));
        let call = call.for_account(payer);
        let prove = |_: NodeId, delivery: &Bytes| {
            let delivery = delivery.clone();
            blocks.workers.proving(payer, delivery.len(), move || ProvenBody::prove(&delivery, block.hash))
        };
        let mut asked = blocks.pool.ask(Some(node), &call, &prove, self.context.deadline).await;
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
            None if is_lacking && !blocks.pool.some_lack(Some(node), call.method) => {}
            None => return None,
        }
        blocks.pool.doubt_locations(node);
        Some(LocationFinding::Unsupported)
    }
}

/// The kind of data that a node must have to know of a transaction.
pub(crate) fn history_kind(part: TransactionPart) -> HistoryKind {
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
