//! Answers that a quorum of the nodes must confirm.

use bytes::Bytes;
use nodes::Family;
use nodes::proven::ProofFailure;
use nodes::{Call, Canon, Said};

use super::decision::{Decision, Vote, Voters, decide};
use super::proven::proven;
use super::statement::{Form, NoStatement, Statement};
use crate::answer::remote::block_answers::Asking;
use crate::answer::remote::checking::CHECKED_AT_ONCE_BYTES_MAX;
use crate::answer::remote::{Fetched, Keep, NULL, Remote, StateMode, block_ref, encode, head, says};
use crate::answer::{Failure, Verification};
use crate::callers::AccountId;
use crate::params::Query;
use crate::resolve::BlockRef;

/// What came of asking several nodes.
enum Confirmation {
    /// A proof has decided between nodes that contradict each other.
    Proven(Bytes),
    Agreed(Statement),
    NoQuorum(Vec<Vote>),
}

/// Logs on which a quorum agrees.
pub(in crate::answer::remote) enum ConfirmedLogs {
    Found {
        result: Bytes,
        count: u64,
    },
    /// Some node does not search as many blocks at once, and no quorum does.
    TooWide,
}

impl Remote {
    /// Whether what is in blocks is confirmed by a quorum, because headers of zkSync-like chains cannot be computed.
    pub(in crate::answer::remote) fn confirms_blocks(&self) -> bool {
        self.family == Family::Zksync && self.state != StateMode::Trust
    }

    /// The answer on which a quorum of the nodes agrees; `None` for questions that are answered in another way.
    pub(in crate::answer::remote) async fn answer_confirmed(
        &self,
        asking: Asking<'_>,
        query: &Query<BlockRef>,
    ) -> Option<Result<Fetched, Failure>> {
        let form = Form::of(query, self.confirms_blocks()).filter(|_| self.state != StateMode::Trust)?;
        Some(self.confirm(asking, query, form).await)
    }

    async fn confirm(
        &self,
        asking: Asking<'_>,
        query: &Query<BlockRef>,
        form: Form,
    ) -> Result<Fetched, Failure> {
        let call = encode::call(query, Some(self.gas_cap(asking.canon)))
            .ok_or_else(|| Failure::Broken("a question that no node is asked".to_owned()))?;
        let in_view = |statement| in_view(asking.canon, query, statement);
        match self.agree(asking, Some(query), &call, form, in_view).await? {
            Confirmation::Proven(result) => Ok(proven(query, result)),
            Confirmation::Agreed(statement) => self.confirmed(asking, query, statement),
            // A simulation that nobody finished in time took too long.
            Confirmation::NoQuorum(votes) if votes.is_empty() && is_simulation(query) && asking.is_over() => {
                Err(Failure::CallTimeout(self.limits.call_timeout))
            }
            Confirmation::NoQuorum(_) => Err(Failure::Unavailable),
        }
    }

    /// The logs that a quorum gives.
    pub(in crate::answer::remote) async fn confirm_logs(
        &self,
        asking: Asking<'_>,
        call: &Call,
    ) -> Result<ConfirmedLogs, Failure> {
        match self.agree(asking, None, call, Form::logs(), Ok).await? {
            Confirmation::Agreed(Statement::Record(record)) => {
                Ok(ConfirmedLogs::Found { count: record.count as u64, result: record.whole })
            }
            Confirmation::Agreed(Statement::TooWide) => Ok(ConfirmedLogs::TooWide),
            Confirmation::NoQuorum(votes) if call.needs.log_blocks > 1 && some_find_it_too_wide(&votes) => {
                Ok(ConfirmedLogs::TooWide)
            }
            Confirmation::Proven(_) | Confirmation::Agreed(_) | Confirmation::NoQuorum(_) => {
                Err(Failure::Unavailable)
            }
        }
    }

    /// Asks nodes until a quorum says the same. `in_view` says what a statement comes to in the view of the call. A difference
    /// is decided by proof where a node gives one for the query.
    async fn agree(
        &self,
        asking: Asking<'_>,
        query: Option<&Query<BlockRef>>,
        call: &Call,
        form: Form,
        in_view: impl Fn(Statement) -> Result<Statement, NoStatement> + Send,
    ) -> Result<Confirmation, Failure> {
        let voters = Voters { nodes: self.pool.nodes().len(), quorum: self.pool.quorum() };
        let mut asked = self.pool.ask_several(call, asking.deadline);
        let mut votes: Vec<Vote> = Vec::with_capacity(voters.nodes);
        let mut decision = decide(voters, &votes, false);
        while let Decision::Undecided { missing } = decision {
            let Some(answer) = asked.next(missing).await else {
                decision = decide(voters, &votes, true);
                break;
            };
            match self.read_statement(asking.account, form, answer.said).await?.and_then(&in_view) {
                Ok(statement) => {
                    asked.accept(answer.node);
                    votes.push((answer.node, statement));
                }
                Err(NoStatement::NotThere) => asked.is_late(answer.node),
                Err(NoStatement::Malformed) => {
                    self.integrity.count(ProofFailure::Malformed);
                    asked.refuse(answer.node, "shape");
                }
            }
            decision = decide(voters, &votes, false);
        }
        self.confirmations.note_calls(asked.calls());
        if let Some(query) = query
            && let Some(proven) = self.settle_difference(asking, query, call, &votes).await
        {
            return Ok(Confirmation::Proven(proven));
        }
        let Decision::Agreed { statement, contradicted } = decision else {
            self.confirmations.note_failed();
            return Ok(Confirmation::NoQuorum(votes));
        };
        let differed = votes.iter().any(|(_, said)| !said.means_the_same_as(&statement));
        self.confirmations.note_agreed(differed, contradicted.len());
        if !query.is_some_and(is_simulation) {
            contradicted.iter().for_each(|node| self.pool.convict_contradicted(*node, call));
        }
        Ok(Confirmation::Agreed(statement))
    }

    /// What a proof says where nodes contradict each other; `None` if they do not, or no node proves it. Whoever said something
    /// else is wrong.
    async fn settle_difference(
        &self,
        asking: Asking<'_>,
        query: &Query<BlockRef>,
        call: &Call,
        votes: &[Vote],
    ) -> Option<Bytes> {
        let (_, first) = votes.first()?;
        if votes.iter().all(|(_, said)| said.means_the_same_as(first)) {
            return None;
        }
        let result = self.settle_by_proof(asking, query).await?;
        let proven = Statement::Result(result.clone());
        let wrong: Vec<_> = votes.iter().filter(|(_, said)| *said != proven).map(|(node, _)| *node).collect();
        self.confirmations.note_agreed(true, wrong.len());
        if !is_simulation(query) {
            wrong.iter().for_each(|node| self.pool.convict_contradicted(*node, call));
        }
        Some(result)
    }

    /// Reads what a node said: at once if it is short, else in the account's share of the threads.
    pub(super) async fn read_statement(
        &self,
        account: AccountId,
        form: Form,
        said: Said,
    ) -> Result<Result<Statement, NoStatement>, Failure> {
        let bytes = if let Said::Result(result) = &said { result.len() } else { 0 };
        self.run_sized(account, bytes, CHECKED_AT_ONCE_BYTES_MAX, move || form.read(&said)).await
    }

    fn confirmed(
        &self,
        asking: Asking<'_>,
        query: &Query<BlockRef>,
        statement: Statement,
    ) -> Result<Fetched, Failure> {
        let (result, is_in) = match statement {
            Statement::Result(result) => (result, None),
            Statement::Record(record) => (record.whole, record.block),
            Statement::Estimate(estimate) => (format!("\"{estimate:#x}\"").into(), None),
            Statement::Reverted(data) => return Err(Failure::Reverted { data }),
            Statement::Stopped(execution) => return Err(says::stopped(execution, &self.limits)),
            Statement::TooWide => return Err(Failure::Unavailable),
        };
        let block = match transaction(query) {
            // What is pending, or not there, may be in a block any moment.
            Some(_) => is_in,
            None => query.blocks().next().or(Some(head(asking.canon))),
        };
        let keep = if block.is_some() { Keep::On(block) } else { Keep::No };
        Ok(Fetched { result, block, verified: Verification::Confirmed, keep })
    }
}

fn some_find_it_too_wide(votes: &[Vote]) -> bool {
    votes.iter().any(|(_, said)| *said == Statement::TooWide)
}

/// What a message comes to depends on how much gas a node grants it, too, so that honest nodes may differ, and a caller could
/// have them taken for liars.
fn is_simulation(query: &Query<BlockRef>) -> bool {
    matches!(query, Query::Call { .. } | Query::EstimateGas { .. })
}

/// The transaction that a question names by its hash.
pub(super) fn transaction(query: &Query<BlockRef>) -> Option<&alloy_primitives::B256> {
    match query {
        Query::TransactionByHash { hash } | Query::TransactionReceipt { hash } => Some(hash),
        _ => None,
    }
}

/// What a node says of a transaction, as it is in the view of the call: nothing is known there of blocks above the head, and
/// what most nodes list in a block is not missing.
pub(super) fn in_view(
    canon: &Canon,
    query: &Query<BlockRef>,
    statement: Statement,
) -> Result<Statement, NoStatement> {
    let Some(hash) = transaction(query) else { return Ok(statement) };
    let block = if let Statement::Record(record) = &statement { record.block } else { None };
    match block {
        Some(block) if block.number > head(canon).number => Ok(Statement::Result(NULL)),
        Some(block) => match canon.by_number(block.number).map(block_ref) {
            Some(canonical) if canonical != block => Err(NoStatement::NotThere),
            _ => Ok(statement),
        },
        None if canon.contains_transaction(hash).is_some() => Err(NoStatement::NotThere),
        None => Ok(statement),
    }
}
