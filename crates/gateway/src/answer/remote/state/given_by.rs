//! Answers of one node that are kept as long as it is not proven wrong.

use nodes::{Pool, PoolNode};

use crate::answer::cache::GivenBy;
use crate::answer::remote::Remote;

impl GivenBy {
    /// Whether no further wrong answer is known of those who gave it.
    pub(in crate::answer::remote) fn is_trusted(self, pool: &Pool) -> bool {
        wrong_answers(pool, self.node) == self.wrong_answers
    }
}

impl Remote {
    /// An answer to which any node may contribute from now on.
    pub(in crate::answer::remote) fn given_by_anyone(&self) -> GivenBy {
        GivenBy { node: None, wrong_answers: wrong_answers(&self.pool, None) }
    }

    /// An answer of this node. `before` is from before it was asked: what was found out meanwhile counts against the answer.
    pub(in crate::answer::remote) fn given_by(&self, node: &PoolNode, before: GivenBy) -> GivenBy {
        match self.pool.nodes().iter().position(|other| std::ptr::eq(&**other, node)) {
            Some(number) if before.is_trusted(&self.pool) => {
                GivenBy { node: Some(number), wrong_answers: wrong_answers(&self.pool, Some(number)) }
            }
            _ => before,
        }
    }
}

fn wrong_answers(pool: &Pool, node: Option<usize>) -> u64 {
    let of = |node: &PoolNode| node.counts().wrong_answers();
    match node.and_then(|number| pool.nodes().get(number)) {
        Some(node) => of(node),
        None => pool.nodes().iter().map(|node| of(node)).sum(),
    }
}
