//! The votes of the nodes → what is true, if fewer nodes than a quorum lie. Pure.
//!
//! A statement of a quorum of the configured nodes is true: at least one of them is honest, and honest nodes say the same. Estimates
//! are the exception, because clients search for them with different tolerances. Where no quorum gives the same number, so
//! many are gathered that there are as many honest ones on either side of the median as nodes may lie.

use std::collections::BTreeMap;

use nodes::NodeId;
use nodes::dialect::Execution;

use super::statement::Statement;
use super::statement::record::Record;

/// Estimates that differ by at most this part are taken for the same when too few nodes answer for a median. It is the
/// tolerance of the most common clients.
const ESTIMATE_TOLERANCE_PART: u128 = 64;

/// The nodes of the configuration, and how many of them must agree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Voters {
    pub(super) nodes: usize,
    pub(super) quorum: usize,
}

/// The result of the votes so far.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum QuorumDecision {
    Agreed {
        statement: Statement,
        /// Nodes that have said what cannot be true then.
        contradicted: Vec<NodeId>,
    },
    /// At least so many more must be heard.
    Undecided { missing: usize },
}

/// A node and its statement. Each node has at most one.
pub(super) type Vote = (NodeId, Statement);

/// `is_last` when nobody else can be asked.
pub(super) fn decide(voters: Voters, votes: &[Vote], is_last: bool) -> QuorumDecision {
    let quorum = voters.quorum.max(1);
    let agreed = votes.iter().map(|(_, statement)| statement).find(|statement| {
        votes.iter().filter(|(_, other)| other.means_the_same_as(statement)).count() >= quorum
    });
    let Some(statement) = agreed.cloned().or_else(|| estimate(voters, votes, is_last)) else {
        return QuorumDecision::Undecided { missing: missing(voters, votes) };
    };
    let is_contradicted = |(_, said): &&Vote| said.is_contradicted_by(&statement);
    let contradicted = votes.iter().filter(is_contradicted).map(|(node, _)| *node).collect();
    QuorumDecision::Agreed { statement: detailed(statement, votes, quorum), contradicted }
}

/// An agreed statement with those of its details that a quorum gives, too.
fn detailed(statement: Statement, votes: &[Vote], quorum: usize) -> Statement {
    let is_given = |given: &&Statement| votes.iter().filter(|(_, other)| other == *given).count() >= quorum;
    let same = votes.iter().map(|(_, said)| said).filter(|said| said.means_the_same_as(&statement));
    if let Some(given) = same.clone().find(is_given) {
        return given.clone();
    }
    match statement {
        Statement::Stopped(Execution::GasAllowance { .. }) => {
            Statement::Stopped(Execution::GasAllowance { most: None })
        }
        Statement::Record(record) => {
            Statement::Record(Box::new(Record { whole: record.settled.clone(), ..*record }))
        }
        other => other,
    }
}

/// Nodes that may lie without being a quorum.
fn liars_max(voters: Voters) -> usize {
    voters.quorum.max(1) - 1
}

/// Estimates that make a median which lies between honest ones. Whoever says that there is none, when a quorum has one, is one
/// of those who lie. A node that gave up within its own limits need not be one.
fn median_needs(voters: Voters, votes: &[Vote]) -> usize {
    let is_lie = |(_, said): &&Vote| said.estimate().is_none() && !said.depends_on_the_node();
    let liars = liars_max(voters).saturating_sub(votes.iter().filter(is_lie).count());
    (2 * liars + 1).max(voters.quorum.max(1))
}

fn estimates(votes: &[Vote]) -> Vec<u128> {
    let mut estimates: Vec<_> = votes.iter().filter_map(|(_, statement)| statement.estimate()).collect();
    estimates.sort_unstable();
    estimates
}

fn estimate(voters: Voters, votes: &[Vote], is_last: bool) -> Option<Statement> {
    let estimates = estimates(votes);
    if estimates.len() >= median_needs(voters, votes) {
        return estimates.get(estimates.len() / 2).copied().map(Statement::Estimate);
    }
    let close = || {
        estimates.windows(voters.quorum.max(1)).find_map(|window| {
            let (lowest, highest) = (window.first()?, window.last()?);
            // The highest of them: with less gas a transaction may fail.
            (highest - lowest <= highest / ESTIMATE_TOLERANCE_PART).then_some(*highest)
        })
    };
    is_last.then(close).flatten().map(Statement::Estimate)
}

fn missing(voters: Voters, votes: &[Vote]) -> usize {
    let quorum = voters.quorum.max(1);
    let mut votes_by_kind: BTreeMap<usize, usize> = BTreeMap::new();
    for (_, statement) in votes {
        let first = votes.iter().position(|(_, other)| other.means_the_same_as(statement));
        *votes_by_kind.entry(first.unwrap_or_default()).or_default() += 1;
    }
    let most = votes_by_kind.values().max().copied().unwrap_or(0);
    let estimates = estimates(votes).len();
    let for_median = median_needs(voters, votes).saturating_sub(estimates);
    let for_quorum = quorum.saturating_sub(most);
    if estimates > 0 { for_quorum.min(for_median).max(1) } else { for_quorum.max(1) }
}

#[cfg(test)]
mod tests;
