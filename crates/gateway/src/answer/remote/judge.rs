//! Whether one answer of a node is believed, and what it comes to in the view that the call was pinned to.

use std::sync::Arc;

use alloy_primitives::B256;
use bytes::Bytes;
use nodes::check::{BlockFacts, Expect, Facts, Family, Lie, Verdict};
use nodes::view::SeenBlock;
use nodes::{BlockId, Canon, Judgement, Judging};
use parking_lot::Mutex;

use super::checking::{CheckedResult, believed_if};
use super::expect::{block_ref, expect};
use super::{Fetched, Keep, NULL, Remote};
use crate::answer::{Failure, Verification};
use crate::callers::AccountId;
use crate::params::Query;
use crate::resolve::BlockRef;

/// A query on its way through the nodes.
pub(super) struct Question<'a> {
    remote: &'a Remote,
    /// In whose share of the threads large answers are checked.
    account: AccountId,
    /// What the nodes have agreed on, if they ever have.
    canon: Option<&'a Canon>,
    query: &'a Query<BlockRef>,
    expect: Expect,
    /// What was learned from the answer that was believed last, which is the one that counts. Nothing where answers
    /// are believed without being looked at.
    facts: Mutex<Option<Facts>>,
    /// How far a log query would fit, if its answer has too many logs.
    too_many_logs: Mutex<Option<Option<u64>>>,
}

impl<'a> Question<'a> {
    pub(super) fn new(
        remote: &'a Remote,
        account: AccountId,
        canon: Option<&'a Canon>,
        query: &'a Query<BlockRef>,
    ) -> Self {
        let mut expect = expect(query, remote.limits.log_results_max);
        let block_of = |id: BlockId| canon?.block(id.number).filter(|seen| seen.id == id);
        match (&mut expect, query) {
            (Expect::Receipts { block, header }, _) => *header = block_of(*block).map(|seen| facts(seen)),
            (Expect::Uncle { block, hash }, Query::Uncle { index, .. }) => {
                let seen = block_of(*block);
                let index = usize::try_from(*index).unwrap_or(usize::MAX);
                let lists = seen.and_then(|seen| seen.lists());
                *hash = lists.and_then(|lists| lists.uncles().get(index)).copied();
            }
            _ => {}
        }
        let (facts, too_many_logs) = (Mutex::default(), Mutex::default());
        Self { remote, account, canon, query, expect, facts, too_many_logs }
    }

    pub(super) fn query(&self) -> &Query<BlockRef> {
        self.query
    }

    pub(super) fn judge(&self, result: &Bytes) -> Judging<'_> {
        // How many logs there may be is not a matter of trust.
        let is_checked = self.remote.judge.enforces() || matches!(self.query, Query::Logs { .. });
        if !is_checked && &result[..] != b"null" {
            return self.remote.unchecked(self.account, result);
        }
        self.remote.checking(self.account, &self.expect, result, move |checked| self.conclude(checked))
    }

    /// What follows from a check in the view of the call.
    fn conclude(&self, checked: CheckedResult) -> Judgement {
        match checked.verdict {
            Verdict::Sound(facts) => self.place(facts),
            Verdict::Null => match self.is_there() {
                Some(true) => Judgement::Late,
                Some(false) => Judgement::Believed,
                None => Judgement::Doubtful,
            },
            Verdict::Empty => Judgement::Believed,
            Verdict::TooMany { to, .. } => {
                *self.too_many_logs.lock() = Some(to);
                Judgement::Believed
            }
            Verdict::Wrong(lie) => match self.refuse(lie) {
                Judgement::Believed => believed_if(checked.is_json),
                refused => refused,
            },
            Verdict::Contradicted if self.remote.judge.enforces() => Judgement::Late,
            Verdict::Contradicted => believed_if(checked.is_json),
        }
    }

    fn refuse(&self, lie: Lie) -> Judgement {
        if self.remote.judge.refuses(lie) { Judgement::Wrong(lie.name()) } else { Judgement::Believed }
    }

    /// A sound answer about a transaction must put it where the view has it, too.
    fn place(&self, facts: Facts) -> Judgement {
        let Some(hash) = self.transaction() else { return self.compare_lists(facts) };
        let placement = facts.block.map_or(Placement::Unknown, |block| self.placement(block, &hash));
        match placement {
            Placement::Listed => self.believe(facts),
            Placement::Impossible => self.refuse(Lie::OtherBlock),
            Placement::Contradicted if self.remote.judge.enforces() => Judgement::Late,
            Placement::Contradicted => self.believe(facts),
            // The node is behind, ahead, or on a fork. What it has is no answer where the view knows better.
            Placement::Unknown if self.is_there() == Some(true) => Judgement::Late,
            Placement::Unknown if facts.block.is_some_and(|block| self.is_on_another_fork(block)) => {
                Judgement::Doubtful
            }
            Placement::Unknown => self.believe(facts),
        }
    }

    /// A block with the hashes of its transactions must have those that most nodes report: its header does not prove them.
    fn compare_lists(&self, facts: Facts) -> Judgement {
        let listed = facts.header.as_ref().filter(|_| !facts.proven).and_then(|block| {
            let seen = self.canon?.block(block.id.number).filter(|seen| seen.id == block.id)?;
            Some((block.transactions.as_deref()?, seen.lists()?.transactions()))
        });
        match listed {
            Some((theirs, agreed)) if theirs != agreed && self.remote.judge.enforces() => Judgement::Late,
            _ => self.believe(facts),
        }
    }

    fn believe(&self, facts: Facts) -> Judgement {
        *self.facts.lock() = Some(facts);
        Judgement::Believed
    }

    /// Whether a transaction is in this block, as far as the view can tell. A block's hash proves its number where headers
    /// have their hashes; which transactions it has, and which block has a number, is what most nodes say.
    fn placement(&self, block: BlockId, transaction: &B256) -> Placement {
        let Some(canon) = self.canon else { return Placement::Unknown };
        if block.number < canon.lowest() && self.is_on_another_fork(block) {
            return Placement::Contradicted;
        }
        let Some(canonical) = canon.by_hash(&block.hash) else { return Placement::Unknown };
        if canonical != block {
            let is_proven = self.remote.family == Family::Ethereum;
            return if is_proven { Placement::Impossible } else { Placement::Contradicted };
        }
        match canon.block(block.number).and_then(|seen| seen.lists()) {
            Some(lists) if lists.has_transaction(transaction) => Placement::Listed,
            Some(_) => Placement::Contradicted,
            None => Placement::Unknown,
        }
    }

    fn is_on_another_fork(&self, block: BlockId) -> bool {
        let canonical = self.canon.and_then(|canon| canon.by_number(block.number));
        canonical.is_some_and(|canonical| canonical != block)
    }

    /// The hash that a question about a transaction names.
    fn transaction(&self) -> Option<B256> {
        match self.query {
            Query::TransactionByHash { hash } | Query::TransactionReceipt { hash } => Some(*hash),
            _ => None,
        }
    }

    /// The answer, once no other node is going to be asked; `nowhere` if all were and have nothing to say.
    pub(super) fn settle(&self, result: Bytes, sure: bool, nowhere: bool) -> Result<Fetched, Failure> {
        if !sure || &result[..] == b"null" {
            let keep = if nowhere { Keep::Absent } else { Keep::No };
            return self.nothing().map(|nothing| Fetched { keep, ..nothing });
        }
        if let Query::Logs { .. } = self.query {
            return self.logs(result);
        }
        if self.transaction().is_none() {
            let block = self.query.blocks().next().or_else(|| self.head());
            return Ok(Fetched { result, block, verified: Verification::None, keep: Keep::On(block) });
        }
        match self.facts.lock().take().and_then(|facts| facts.block) {
            // The node is ahead. Here the block is not there yet, and neither is the transaction in it.
            Some(block) if self.head().is_some_and(|head| block.number > head.number) => self.nothing(),
            Some(block) => {
                let block = Some(block_ref(block));
                Ok(Fetched { result, block, verified: Verification::None, keep: Keep::On(block) })
            }
            None => Ok(Fetched { result, block: None, verified: Verification::None, keep: Keep::No }),
        }
    }

    fn head(&self) -> Option<BlockRef> {
        self.canon.map(|canon| block_ref(canon.head()))
    }

    /// Logs that came in one piece.
    fn logs(&self, result: Bytes) -> Result<Fetched, Failure> {
        let mut blocks = self.query.blocks();
        let first = blocks.next();
        let last = blocks.next().or(first);
        match (*self.too_many_logs.lock(), first) {
            (Some(to), Some(first)) => Err(Failure::TooManyResults {
                from: first.number,
                to: to.unwrap_or(first.number).max(first.number),
                most: self.remote.limits.log_results_max,
            }),
            _ => Ok(Fetched { result, block: last, verified: Verification::None, keep: Keep::No }),
        }
    }

    /// Whether there is something to say, as far as the view can tell.
    fn is_there(&self) -> Option<bool> {
        let lists = |block: BlockRef| self.canon?.block(block.number)?.lists();
        match *self.query {
            Query::TransactionByHash { hash } | Query::TransactionReceipt { hash } => {
                self.canon.and_then(|canon| canon.contains_transaction(&hash)).map(|_| true)
            }
            Query::TransactionByIndex { block, index } => {
                lists(block).map(|lists| index < lists.transactions().len() as u64)
            }
            Query::Uncle { block, index } => lists(block).map(|lists| index < lists.uncles().len() as u64),
            Query::RawBlockTransactions { .. } => None,
            // The view has the block, so there is something to say about it.
            _ => Some(true),
        }
    }

    /// What it means that no node has anything to say.
    fn nothing(&self) -> Result<Fetched, Failure> {
        if self.is_there() == Some(true) {
            return Err(Failure::Unavailable);
        }
        let (result, block) = match *self.query {
            Query::RawBlockTransactions { block } => (Bytes::from_static(b"[]"), Some(block)),
            Query::TransactionByIndex { block, .. } | Query::Uncle { block, .. } => (NULL, Some(block)),
            _ => (NULL, None),
        };
        Ok(Fetched { result, block, verified: Verification::None, keep: Keep::No })
    }
}

/// Where a node puts a transaction, compared with the view.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Placement {
    /// Most nodes list it in this block.
    Listed,
    /// The block's hash proves that it has another number.
    Impossible,
    /// Most nodes say otherwise, and nothing proves that they are right.
    Contradicted,
    Unknown,
}

/// What the view knows of a block, for the checks of its receipts.
fn facts(block: &SeenBlock) -> Arc<BlockFacts> {
    Arc::new(BlockFacts {
        id: block.id,
        parent: block.parent,
        timestamp: block.timestamp,
        receipts_root: block.receipts_root,
        transactions: block.lists().map(|lists| lists.transactions().to_vec()),
        uncles: Vec::new(),
    })
}
