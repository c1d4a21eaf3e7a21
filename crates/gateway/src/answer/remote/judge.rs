//! Whether one answer of a node is believed, and what it comes to in the view that the call was pinned to.

use std::sync::Arc;

use alloy_primitives::B256;
use bytes::Bytes;
use nodes::check::{self, BlockFacts, Expect, Facts, Lie, Verdict};
use nodes::{BlockId, Canon, Judgement};
use parking_lot::Mutex;

use super::expect::{block_ref, expect};
use super::{Fetched, Remote};
use crate::answer::Failure;
use crate::params::Query;
use crate::resolve::BlockRef;

/// A query on its way through the nodes.
pub(super) struct Question<'a> {
    remote: &'a Remote,
    canon: &'a Canon,
    query: &'a Query<BlockRef>,
    expect: Expect,
    /// What was learned from the answer that was believed last, which is the one that counts. Nothing where answers
    /// are believed without being looked at.
    facts: Mutex<Option<Facts>>,
}

impl<'a> Question<'a> {
    pub(super) fn new(remote: &'a Remote, canon: &'a Canon, query: &'a Query<BlockRef>) -> Self {
        let mut expect = expect(query);
        match (&mut expect, query) {
            (Expect::Receipts { block, header }, _) => *header = facts(canon, *block),
            (Expect::Uncle { block, hash }, Query::Uncle { index, .. }) => {
                let seen = canon.block(block.number).filter(|seen| seen.id == *block);
                let index = usize::try_from(*index).unwrap_or(usize::MAX);
                *hash = seen.and_then(|seen| seen.uncles.get(index)).copied();
            }
            _ => {}
        }
        Self { remote, canon, query, expect, facts: Mutex::default() }
    }

    pub(super) fn query(&self) -> &Query<BlockRef> {
        self.query
    }

    pub(super) fn judge(&self, node: usize, result: &Bytes) -> Judgement {
        let verdict = match (self.remote.judge.is_off(), &result[..]) {
            (true, b"null") => Verdict::Null,
            (true, _) => return unchecked(result),
            (false, _) => check::check(&self.expect, result, self.remote.family),
        };
        match verdict {
            Verdict::Sound(facts) => {
                self.remote.judge.passed(&self.expect);
                self.place(node, facts)
            }
            Verdict::Null => match self.is_there() {
                Some(true) => Judgement::Late,
                Some(false) => Judgement::Believed,
                None => Judgement::Doubtful,
            },
            Verdict::Empty | Verdict::TooMany { .. } => Judgement::Believed,
            Verdict::Wrong(lie) => match self.refuse(node, lie) {
                Judgement::Believed => unchecked(result),
                refused => refused,
            },
        }
    }

    fn refuse(&self, node: usize, lie: Lie) -> Judgement {
        if self.remote.judge.refuses(node, &self.expect, lie) {
            Judgement::Wrong(lie.name())
        } else {
            Judgement::Believed
        }
    }

    /// A sound answer about a transaction must put it where the view has it, too.
    fn place(&self, node: usize, facts: Facts) -> Judgement {
        let Some(hash) = self.transaction() else { return self.believe(facts) };
        match facts.block.and_then(|block| self.is_in(block, &hash)) {
            Some(true) => self.believe(facts),
            Some(false) => self.refuse(node, Lie::OtherBlock),
            // The node is behind, ahead, or on a fork. What it has is no answer where the view knows better.
            None if self.canon.contains_transaction(&hash).is_some() => Judgement::Late,
            None if facts.block.is_some_and(|block| self.is_on_another_fork(block)) => Judgement::Doubtful,
            None => self.believe(facts),
        }
    }

    fn believe(&self, facts: Facts) -> Judgement {
        *self.facts.lock() = Some(facts);
        Judgement::Believed
    }

    /// Whether a transaction is in this block, as far as the view can tell. A block's hash stands for one number.
    fn is_in(&self, block: BlockId, transaction: &B256) -> Option<bool> {
        let canonical = self.canon.by_hash(&block.hash)?;
        let seen = self.canon.block(canonical.number).filter(|seen| seen.id == block);
        match seen {
            Some(seen) => Some(seen.transactions.contains(transaction)),
            None => (canonical != block).then_some(false),
        }
    }

    fn is_on_another_fork(&self, block: BlockId) -> bool {
        self.canon.by_number(block.number).is_some_and(|canonical| canonical != block)
    }

    /// The hash that a question about a transaction names.
    fn transaction(&self) -> Option<B256> {
        match self.query {
            Query::TransactionByHash { hash } | Query::TransactionReceipt { hash } => Some(*hash),
            _ => None,
        }
    }

    /// The answer, once no other node is going to be asked.
    pub(super) fn settle(&self, result: Bytes, sure: bool) -> Result<Fetched, Failure> {
        if !sure || &result[..] == b"null" {
            return self.nothing();
        }
        if self.transaction().is_none() {
            let block = self.query.blocks().next().unwrap_or_else(|| block_ref(self.canon.head()));
            return Ok(Fetched { result, block: Some(block), keep: Some(Some(block)) });
        }
        match self.facts.lock().take().and_then(|facts| facts.block) {
            // The node is ahead. Here the block is not there yet, and neither is the transaction in it.
            Some(block) if block.number > self.canon.head().number => self.nothing(),
            Some(block) => {
                let block = Some(block_ref(block));
                Ok(Fetched { result, block, keep: Some(block) })
            }
            None => Ok(Fetched { result, block: None, keep: None }),
        }
    }

    /// Whether there is something to say, as far as the view can tell.
    fn is_there(&self) -> Option<bool> {
        match *self.query {
            Query::TransactionByHash { hash } | Query::TransactionReceipt { hash } => {
                self.canon.contains_transaction(&hash).map(|_| true)
            }
            Query::TransactionByIndex { block, index } => {
                self.canon.block(block.number).map(|seen| index < seen.transactions.len() as u64)
            }
            Query::Uncle { block, index } => {
                self.canon.block(block.number).map(|seen| index < seen.uncles.len() as u64)
            }
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
            Query::TransactionByIndex { block, .. } | Query::Uncle { block, .. } => {
                (Bytes::from_static(b"null"), Some(block))
            }
            _ => (Bytes::from_static(b"null"), None),
        };
        Ok(Fetched { result, block, keep: None })
    }
}

/// What the view knows of a block, for the checks of its receipts.
fn facts(canon: &Canon, id: BlockId) -> Option<Arc<BlockFacts>> {
    let block = canon.block(id.number).filter(|block| block.id == id)?;
    Some(Arc::new(BlockFacts {
        id,
        parent: block.parent,
        timestamp: block.timestamp,
        receipts_root: block.receipts_root,
        transactions: block.transactions.to_vec(),
        uncles: block.uncles.clone(),
    }))
}

/// Whoever does not want answers to be checked still wants them to be JSON, or the reply around them would not be.
fn unchecked(result: &[u8]) -> Judgement {
    if check::is_json(result) { Judgement::Believed } else { Judgement::Wrong("no JSON") }
}
