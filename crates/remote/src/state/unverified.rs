//! Answers of one node, or of a partner, that are passed on: nothing proves them, and nobody confirms them.
//!
//! They must have the form of an answer. A result that lacks what the view knows to exist is not used: the node is late, and
//! another one is asked.

use bytes::Bytes;
use methods::{BlockPart, BlockRef};
use nodes::proven::ProofFailure;
use nodes::raw::is_json;
use nodes::{
    CallFailure, CanonicalChain, ChainFamily, Client, Judgement, Judging, NodeId, NodeReply, PoolAnswer,
};
use resources::AccountId;
use sources::{Failure, Verification};
use tokio::time::{Instant, sleep};

use super::State;
use super::confirm::in_view;
use super::statement::{Form, NoStatement, Statement};
use crate::block_ids::head;
use crate::chain_query::ChainQuery;
use crate::fetched::{CacheDecision, Fetched, NULL};
use crate::node_failures;
use crate::policy::{HISTORY_CHECKED_EVERY, HISTORY_WAIT_MAX};
use crate::workers::{PARSED_AT_ONCE_BYTES_MAX, unless_refused};

/// A query whose answer is passed on.
pub(crate) struct UnverifiedAnswer<'a> {
    state: &'a State,
    /// In whose share of the threads large answers are read.
    account: AccountId,
    /// The chain that the nodes agree on, once they have shown one.
    chain: Option<&'a CanonicalChain>,
    query: ChainQuery<'a>,
    /// `None` where anything is passed on that is JSON.
    form: Option<Form>,
}

impl<'a> UnverifiedAnswer<'a> {
    pub(crate) fn new(
        state: &'a State,
        account: AccountId,
        chain: Option<&'a CanonicalChain>,
        query: ChainQuery<'a>,
    ) -> Self {
        // Members that we do not know are left out, unless the operator wants what nodes say as it is.
        let keeps_members = !state.blocks.workers.integrity.proves();
        let form = Form::of(query, state.blocks.family == ChainFamily::Zksync)
            .filter(|form| !keeps_members || !matches!(form, Form::Record(_)));
        Self { state, account, chain, query, form }
    }

    pub(crate) fn judge(&self, node: NodeId, result: &Bytes) -> Judging<'_, Judgement> {
        if let Some(block) = self.state_to_show(node, result) {
            let result = result.clone();
            return Judging::Elsewhere(Box::pin(async move {
                let is_shown = self.wait_for_state(node, block).await;
                Some(if is_shown { self.conclude(read(self.form, result)) } else { Judgement::Late })
            }));
        }
        let (form, bytes, result) = (self.form, result.len(), result.clone());
        let read = move || read(form, result);
        if bytes <= PARSED_AT_ONCE_BYTES_MAX {
            return Judging::Done(self.conclude(read()));
        }
        Judging::Elsewhere(Box::pin(async move {
            let read = self
                .state
                .blocks
                .workers
                .run_sized(self.account, bytes, PARSED_AT_ONCE_BYTES_MAX, read)
                .await;
            Some(self.conclude(unless_refused(read)?))
        }))
    }

    /// The block whose state a node must be shown to have before this result counts: some nodes return zero for old states that they
    /// have dropped.
    fn state_to_show(&self, node: NodeId, result: &Bytes) -> Option<u64> {
        let is_state = matches!(self.query, ChainQuery::State(_));
        let block = self.query.block().filter(|_| is_state && is_zero(result))?.number;
        (!self.state.pool.shows_state(node, block)).then_some(block)
    }

    /// Waits until it was found out whether a node has the state of a block, for a moment.
    async fn wait_for_state(&self, node: NodeId, block: u64) -> bool {
        let until = Instant::now() + HISTORY_WAIT_MAX;
        while !self.state.pool.shows_state(node, block) {
            if Instant::now() >= until {
                return false;
            }
            sleep(HISTORY_CHECKED_EVERY).await;
        }
        true
    }

    fn conclude(&self, read: Result<Statement, NoStatement>) -> Judgement {
        match read.and_then(|statement| self.in_view(statement)) {
            Ok(Statement::Result(result)) if result == NULL => match self.is_there() {
                Some(true) => Judgement::Late,
                Some(false) => Judgement::Believed,
                None => Judgement::Doubtful,
            },
            Ok(_) => Judgement::Believed,
            Err(NoStatement::NotThere) if self.is_there().is_none() => Judgement::Doubtful,
            Err(NoStatement::NotThere) => Judgement::Late,
            Err(NoStatement::Malformed) => {
                self.state.blocks.workers.integrity.count(ProofFailure::Malformed);
                Judgement::Wrong(ProofFailure::Malformed)
            }
        }
    }

    /// A statement as it is in the view of the call. One of unknown form names no block and stays as it is.
    fn in_view(&self, statement: Statement) -> Result<Statement, NoStatement> {
        match (self.form, self.chain) {
            (Some(_), Some(chain)) => in_view(chain, self.query, statement),
            _ => Ok(statement),
        }
    }

    /// The answer, once no other node is going to be asked.
    pub(crate) async fn settle(
        &self,
        answered: Result<PoolAnswer<Client>, CallFailure>,
    ) -> Result<Fetched, Failure> {
        let limits = &self.state.limits.now();
        let answered = answered.map_err(|failed| node_failures::of_call(self.query, failed, limits))?;
        let result = match answered.reply {
            NodeReply::Result(result) => result,
            NodeReply::Error(error) => return Err(node_failures::of_caller_error(&error, limits)),
            NodeReply::Limit(_) => return Err(Failure::Unavailable),
        };
        if !answered.is_confirmed || result.trim_ascii() == b"null" {
            let cache = if answered.is_absent_everywhere { CacheDecision::Absent } else { CacheDecision::No };
            return self.nothing().map(|nothing| Fetched { cache, ..nothing });
        }
        let (result, is_in) = match self.form {
            Some(form @ Form::Record(_)) => {
                let read = self.state.read_statement(self.account, form, NodeReply::Result(result)).await?;
                match read.and_then(|statement| self.in_view(statement)) {
                    Ok(Statement::Record(record)) => (record.whole, record.block),
                    // The node is ahead. Here the block is not there yet, and neither is the transaction in it.
                    _ => return self.nothing(),
                }
            }
            // In the form in which it is confirmed: some nodes write a storage value like a number.
            Some(form) => match form.read(&NodeReply::Result(result.clone())) {
                Ok(Statement::Result(written)) => (written, None),
                _ => (result, None),
            },
            None => (result, None),
        };
        let block = match self.query.transaction() {
            Some(_) => is_in,
            None => self.query.block().or(self.chain.map(head)),
        };
        let cache = if block.is_some() { CacheDecision::On(block) } else { CacheDecision::No };
        Ok(Fetched { result, block, verified: Verification::None, cache, trust: None })
    }

    /// Whether there is something to say, as far as the view can tell.
    fn is_there(&self) -> Option<bool> {
        let lists = |block: BlockRef| {
            let seen = self.chain?.block(block.number).filter(|seen| seen.id.hash == block.hash)?;
            seen.lists()
        };
        match self.query {
            ChainQuery::Transaction(query) => {
                self.chain.and_then(|chain| chain.contains_transaction(&query.hash)).map(|_| true)
            }
            ChainQuery::Block(query) => match query.part {
                BlockPart::Transaction { index } => {
                    lists(query.block).map(|lists| index < lists.transactions().len() as u64)
                }
                BlockPart::Uncle { index } => {
                    lists(query.block).map(|lists| index < lists.uncles().len() as u64)
                }
                BlockPart::Whole { .. }
                | BlockPart::Header
                | BlockPart::TransactionCount
                | BlockPart::Receipts
                | BlockPart::UncleCount => Some(true),
            },
            ChainQuery::RawTransactions(_) => None,
            // The view has the block, so there is something to say about it.
            ChainQuery::Fees(_) | ChainQuery::State(_) | ChainQuery::Simulation(_) => Some(true),
        }
    }

    /// The answer where no node has a result.
    fn nothing(&self) -> Result<Fetched, Failure> {
        if self.is_there() == Some(true) {
            return Err(Failure::Unavailable);
        }
        let result = match self.query {
            ChainQuery::RawTransactions(_) => Bytes::from_static(b"[]"),
            ChainQuery::Block(_)
            | ChainQuery::Transaction(_)
            | ChainQuery::Fees(_)
            | ChainQuery::State(_)
            | ChainQuery::Simulation(_) => NULL,
        };
        let block = self.query.block();
        Ok(Fetched { result, block, verified: Verification::None, cache: CacheDecision::No, trust: None })
    }
}

fn read(form: Option<Form>, result: Bytes) -> Result<Statement, NoStatement> {
    let Some(form) = form else {
        // The result is embedded in the reply, so it must be one JSON value.
        let is_null = result.trim_ascii() == b"null";
        let result = if is_null { NULL } else { result };
        return if is_json(&result) { Ok(Statement::Result(result)) } else { Err(NoStatement::Malformed) };
    };
    form.read(&NodeReply::Result(result))
}
/// Whether a result is the number zero, or an empty string of bytes.
fn is_zero(result: &[u8]) -> bool {
    let digits = result.trim_ascii().strip_prefix(b"\"0x").and_then(|text| text.strip_suffix(b"\""));
    digits.is_some_and(|digits| digits.iter().all(|digit| *digit == b'0'))
}
