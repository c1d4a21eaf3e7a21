//! Whether one answer of a node is believed, and what it comes to in the view that the call was pinned to.

use std::sync::Arc;

use alloy_primitives::B256;
use bytes::Bytes;
use nodes::check::{self, BlockFacts, Expect, Facts, Verdict};
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
    /// What was learned from the answer that was believed last, which is the one that counts.
    facts: Mutex<Facts>,
}

impl<'a> Question<'a> {
    pub(super) fn new(remote: &'a Remote, canon: &'a Canon, query: &'a Query<BlockRef>) -> Self {
        let mut expect = expect(query);
        if let Expect::Receipts { block, header } = &mut expect {
            *header = facts(canon, *block);
        }
        Self { remote, canon, query, expect, facts: Mutex::default() }
    }

    pub(super) fn query(&self) -> &Query<BlockRef> {
        self.query
    }

    pub(super) fn judge(&self, node: usize, result: &Bytes) -> Judgement {
        let verdict = match self.remote.judge.is_off() {
            true if &result[..] == b"null" => Verdict::Null,
            true => Verdict::Sound(Facts::default()),
            false => check::check(&self.expect, result, self.remote.family),
        };
        match verdict {
            Verdict::Sound(facts) => {
                self.remote.judge.passed(&self.expect);
                self.place(facts)
            }
            Verdict::Null => Judgement::Doubtful,
            Verdict::Empty | Verdict::TooMany { .. } => Judgement::Believed,
            Verdict::Wrong(lie) if self.remote.judge.refuses(node, &self.expect, lie) => {
                Judgement::Wrong(lie.name())
            }
            Verdict::Wrong(_) => Judgement::Believed,
        }
    }

    /// A sound answer about a transaction is doubtful still if its block is not the view's.
    fn place(&self, facts: Facts) -> Judgement {
        let Some(hash) = self.transaction() else { return self.believe(facts) };
        match facts.block {
            // It is pending there, and in a block here: the node is behind.
            None if self.canon.contains_transaction(&hash).is_some() => Judgement::Doubtful,
            Some(block) if self.is_on_another_fork(block) => Judgement::Doubtful,
            _ => self.believe(facts),
        }
    }

    fn believe(&self, facts: Facts) -> Judgement {
        *self.facts.lock() = facts;
        Judgement::Believed
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
        let facts = std::mem::take(&mut *self.facts.lock());
        let Some(hash) = self.transaction() else {
            let block = self.query.blocks().next().unwrap_or_else(|| block_ref(self.canon.head()));
            return Ok(Fetched { result, block: Some(block), keep: Some(Some(block)) });
        };
        match facts.block {
            // The node is ahead. Here the block is not there yet, and neither is the transaction in it.
            Some(block) if block.number > self.canon.head().number => self.nothing(),
            Some(block) => {
                let block = Some(block_ref(block));
                Ok(Fetched { result, block, keep: Some(block) })
            }
            None if self.canon.contains_transaction(&hash).is_some() => self.nothing(),
            None => Ok(Fetched { result, block: None, keep: None }),
        }
    }

    /// What it means that no node has anything to say.
    fn nothing(&self) -> Result<Fetched, Failure> {
        let null = |block| Ok(Fetched { result: Bytes::from_static(b"null"), block, keep: None });
        match *self.query {
            Query::TransactionByHash { hash } | Query::TransactionReceipt { hash } => {
                match self.canon.contains_transaction(&hash) {
                    // It is in a block of the view, and those who were asked do not know it: that is no answer.
                    Some(_) => Err(Failure::Unavailable),
                    None => null(None),
                }
            }
            Query::TransactionByIndex { block, index } => match self.canon.block(block.number) {
                Some(seen) if index < seen.transactions.len() as u64 => Err(Failure::Unavailable),
                _ => null(Some(block)),
            },
            Query::Uncle { block, index } => match self.canon.block(block.number) {
                Some(seen) if index < seen.uncles.len() as u64 => Err(Failure::Unavailable),
                _ => null(Some(block)),
            },
            Query::RawBlockTransactions { block } => {
                Ok(Fetched { result: Bytes::from_static(b"[]"), block: Some(block), keep: None })
            }
            // The view has the block, so there is something to say about it.
            _ => Err(Failure::Unavailable),
        }
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
