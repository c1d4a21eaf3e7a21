//! Answers that are cached as long as none of the nodes that gave them is proven wrong.

use nodes::{Pool, PoolNode};

use crate::cache::GivenBy;
use crate::remote::pool_source::PoolSource;

/// The nodes that a `GivenBy` tells apart.
const NODES_TOLD_APART: usize = u64::BITS as usize;

impl GivenBy {
    /// Whether no further wrong answer is known of those who gave it.
    pub(in crate::remote) fn is_trusted(self, pool: &Pool) -> bool {
        wrong_answers(pool, self.nodes) == self.wrong_answers
    }
}

/// How many wrong answers were known of each node at one moment.
pub(super) struct WrongAnswers(Vec<u64>);

impl PoolSource {
    /// An answer to which any node may contribute from now on.
    pub(in crate::remote) fn given_by_anyone(&self) -> GivenBy {
        GivenBy { nodes: u64::MAX, wrong_answers: wrong_answers(&self.pool, u64::MAX) }
    }

    /// An answer of this node. `before` is from before it was asked: what was found out meanwhile counts against the answer.
    pub(in crate::remote) fn given_by(&self, node: &PoolNode, before: GivenBy) -> GivenBy {
        match self.pool.nodes().iter().position(|other| std::ptr::eq(&**other, node)) {
            Some(number) if before.is_trusted(&self.pool) => {
                let nodes = bit(number);
                GivenBy { nodes, wrong_answers: wrong_answers(&self.pool, nodes) }
            }
            _ => before,
        }
    }

    /// Wrong answers that are known now, before nodes are asked to confirm an answer.
    pub(super) fn known_wrong_answers(&self) -> WrongAnswers {
        WrongAnswers(self.pool.nodes().iter().map(|node| node.counts().wrong_answers()).collect())
    }
}

impl WrongAnswers {
    /// An answer that these nodes have confirmed since. It no longer counts when one of them is proven wrong.
    pub(super) fn confirmed_by(&self, nodes: impl Iterator<Item = usize>) -> GivenBy {
        let nodes = nodes.fold(0, |nodes, node| nodes | bit(node));
        let known = self.0.iter().enumerate().filter(|(number, _)| is_one_of(nodes, *number));
        GivenBy { nodes, wrong_answers: known.map(|(_, known)| known).sum() }
    }
}

fn wrong_answers(pool: &Pool, nodes: u64) -> u64 {
    let all = pool.nodes().iter().enumerate().filter(|(number, _)| is_one_of(nodes, *number));
    all.map(|(_, node)| node.counts().wrong_answers()).sum()
}

fn is_one_of(nodes: u64, number: usize) -> bool {
    number >= NODES_TOLD_APART || nodes & bit(number) != 0
}

fn bit(number: usize) -> u64 {
    u32::try_from(number).ok().and_then(|number| 1_u64.checked_shl(number)).unwrap_or(0)
}
