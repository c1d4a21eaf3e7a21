//! Answers that a quorum of the nodes must confirm.

use std::pin::Pin;

use bytes::Bytes;
use methods::{BlockPart, BlockQuery, Method, TransactionQuery};
use nodes::proven::ProofFailure;
use nodes::{
    Absence, AbsenceReplies, AnswersEvent, CanonicalChain, ChainFamily, HistoryKind, NodeId, NodeReply,
    QuorumCall, RpcCall, TrustMark,
};
use resources::AccountId;
use sources::{CacheLookup, Failure, Verification};

use super::State;
use super::decision::{QuorumDecision, Vote, Voters, decide};
use super::statement::{Form, NoStatement, Statement};
use crate::block_ids::{block_ref, head};
use crate::blocks::history_kind;
use crate::call_context::CallContext;
use crate::chain_query::ChainQuery;
use crate::fetched::{CacheDecision, Fetched, NULL};
use crate::settings::StateMode;
use crate::simulation_gas::SimulationGas;
use crate::workers::PARSED_AT_ONCE_BYTES_MAX;
use crate::{encode, node_failures};

/// The outcome of asking several nodes.
enum Confirmation {
    /// A proof has decided: between nodes that contradict each other, or where too few answer for a quorum.
    Proven(Result<Fetched, Failure>),
    Agreed {
        statement: Statement,
        trust: TrustMark,
    },
    /// No node that answers finds it, but too few of them can know.
    NotFound,
    NoQuorum(Vec<Vote>),
}

/// The votes of the nodes, the decision that follows, and a proof that came meanwhile.
struct Gathered {
    votes: Vec<Vote>,
    decision: QuorumDecision,
    proof: StateProof,
    /// Nodes that do not find a transaction. Those that may lack old ones have no vote.
    absence: AbsenceReplies,
}

/// The outcome of proving an answer that too few nodes give.
enum StateProof {
    NotTried,
    Given(Result<Fetched, Failure>),
    Failed,
}

type ProofUnderWay<'a> = Pin<Box<dyn Future<Output = Option<Result<Fetched, Failure>>> + Send + 'a>>;

/// The outcome of a proof. Without one, this never ends.
async fn finished(under_way: &mut Option<ProofUnderWay<'_>>) -> Option<Result<Fetched, Failure>> {
    match under_way {
        Some(proof) => proof.await,
        None => std::future::pending().await,
    }
}

/// Logs on which a quorum agrees.
pub(crate) enum ConfirmedLogs {
    Found {
        result: Bytes,
        count: u64,
    },
    /// Some node does not search as many blocks at once, and no quorum does.
    TooWide,
}

impl State {
    /// Whether what is in blocks is confirmed by a quorum, because headers of zkSync-like chains cannot be computed.
    pub(crate) fn confirms_blocks(&self) -> bool {
        self.blocks.family == ChainFamily::Zksync && self.mode != StateMode::Trust
    }

    /// The answer on which a quorum of the nodes agrees; `None` for questions that are answered in another way. `with_blocks` says
    /// whether what is in the block of the query cannot be proven either. `cached_as` finds the answer that they gave before.
    pub(crate) async fn answer_confirmed(
        &self,
        context: CallContext<'_>,
        method: &Method,
        query: ChainQuery<'_>,
        with_blocks: bool,
        cached_as: CacheLookup<'_>,
    ) -> Option<Result<Fetched, Failure>> {
        let form = Form::of(query, with_blocks).filter(|_| self.mode != StateMode::Trust)?;
        Some(Box::pin(self.confirm(context, method, query, form, cached_as)).await)
    }

    async fn confirm(
        &self,
        context: CallContext<'_>,
        method: &Method,
        query: ChainQuery<'_>,
        form: Form,
        cached_as: CacheLookup<'_>,
    ) -> Result<Fetched, Failure> {
        let confirm = |gas| self.confirm_with_gas(context, method, query, form, cached_as, gas);
        self.gas.with_granted(context.chain, query, context.deadline, confirm).await
    }

    async fn confirm_with_gas(
        &self,
        context: CallContext<'_>,
        method: &Method,
        query: ChainQuery<'_>,
        form: Form,
        cached_as: CacheLookup<'_>,
        gas: SimulationGas,
    ) -> Result<Fetched, Failure> {
        let call = encode::call(method, query, Some(gas)).for_account(context.caller);
        let in_view = |statement| in_view(context.chain, query, statement);
        match self.agree(context, Some((query, cached_as)), &call, form, in_view).await? {
            Confirmation::Proven(answer) => answer,
            Confirmation::Agreed { statement, trust } => self.confirmed(context, query, statement, trust),
            Confirmation::NotFound => Ok(Fetched {
                result: NULL,
                block: None,
                verified: Verification::None,
                cache: CacheDecision::No,
                trust: None,
            }),
            // A simulation that nobody finished in time took too long.
            Confirmation::NoQuorum(votes)
                if votes.is_empty() && query.is_simulation() && context.is_over() =>
            {
                Err(Failure::CallTimeout(self.limits.now().call_timeout))
            }
            Confirmation::NoQuorum(_) if self.pool.all_lack(&call) => Err(Failure::Lacking),
            Confirmation::NoQuorum(_) => Err(Failure::Unavailable),
        }
    }

    /// The logs that a quorum gives.
    pub(crate) async fn confirm_logs(
        &self,
        context: CallContext<'_>,
        call: &RpcCall,
    ) -> Result<ConfirmedLogs, Failure> {
        match self.agree(context, None, call, Form::logs(), Ok).await? {
            Confirmation::Agreed { statement: Statement::Record(record), .. } => {
                Ok(ConfirmedLogs::Found { count: record.count as u64, result: record.whole })
            }
            Confirmation::Agreed { statement: Statement::TooWide, .. } => Ok(ConfirmedLogs::TooWide),
            Confirmation::NoQuorum(votes) if call.needs.log_blocks > 1 && some_find_it_too_wide(&votes) => {
                Ok(ConfirmedLogs::TooWide)
            }
            Confirmation::Proven(_)
            | Confirmation::Agreed { .. }
            | Confirmation::NotFound
            | Confirmation::NoQuorum(_) => Err(Failure::Unavailable),
        }
    }

    /// Asks nodes until a quorum says the same. `about` is the query, and where its earlier answer is cached. `in_view` converts a
    /// statement to what it means in the view of the call. A difference is decided by proof where a node gives one for the query,
    /// and so is what too few nodes answer: that proof is begun as soon as the missing nodes are overdue.
    async fn agree(
        &self,
        context: CallContext<'_>,
        about: Option<(ChainQuery<'_>, CacheLookup<'_>)>,
        call: &RpcCall,
        form: Form,
        in_view: impl Fn(Statement) -> Result<Statement, NoStatement> + Send,
    ) -> Result<Confirmation, Failure> {
        let mut trust = self.pool.trust_mark();
        let query = about.map(|(query, _)| query);
        let mut asked = self.pool.ask_several(call, context.deadline);
        let gathered = self.gather(context, query, &mut asked, form, in_view).await;
        self.confirmations.note_calls(asked.calls());
        let Gathered { votes, decision, proof, absence } = gathered?;
        if let Some((query, cached_as)) = about
            && !query.is_simulation()
        {
            let told = (&votes[..], &decision);
            self.note_change_of_mind(context.account, &mut trust, form, cached_as, told).await;
        }
        if let StateProof::Given(answer) = proof {
            self.confirmations.note_proven();
            return Ok(Confirmation::Proven(answer));
        }
        if let Some(query) = query {
            if let Some(result) = self.settle_difference(context, query, call, &votes).await {
                return Ok(Confirmation::Proven(Ok(Fetched::proven(result, query.block()))));
            }
            let is_undecided = matches!(decision, QuorumDecision::Undecided { .. });
            if is_undecided
                && !votes.is_empty()
                && matches!(proof, StateProof::NotTried)
                && let Some(answer) = self.prove_alone(context, query, nodes_of(&votes)).await
            {
                self.confirmations.note_proven();
                return Ok(Confirmation::Proven(answer));
            }
        }
        let QuorumDecision::Agreed { statement, contradicted } = decision else {
            self.confirmations.note_failed();
            let is_disputed = votes.iter().any(|(_, said)| !is_null(said));
            if let Some(kind) = query.and_then(kind_of_history).filter(|_| !is_disputed)
                && self.pool.absence(kind, call.method, &absence) == Absence::Unconfirmed
            {
                return Ok(Confirmation::NotFound);
            }
            return Ok(Confirmation::NoQuorum(votes));
        };
        let differed = votes.iter().any(|(_, said)| !said.means_the_same_as(&statement));
        self.confirmations.note_agreed(differed, contradicted.len());
        if !query.is_some_and(ChainQuery::is_simulation) {
            for node in contradicted {
                if self.pool.blame_contradicted(node, call) {
                    trust.survive_raise();
                }
            }
        }
        Ok(Confirmation::Agreed { statement, trust })
    }

    /// Compares what nodes say with what was confirmed before. If a quorum says something else, all that was confirmed by then is
    /// asked again. If no quorum decides, and a node contradicts it, the earlier answer is dropped. An honest node may find another
    /// estimate each time.
    async fn note_change_of_mind(
        &self,
        account: AccountId,
        trust: &mut TrustMark,
        form: Form,
        cached_as: CacheLookup<'_>,
        (votes, decision): (&[Vote], &QuorumDecision),
    ) {
        let Some(before) = self.cache.get(&cached_as).filter(|before| before.trust.is_some()) else { return };
        let said = self.read_statement(account, form, NodeReply::Result(before.result)).await;
        let Ok(Ok(before)) = said else { return };
        if before.estimate().is_some() {
            return;
        }
        match decision {
            QuorumDecision::Agreed { statement, .. } if !statement.means_the_same_as(&before) => {
                self.pool.record_correction(trust);
            }
            QuorumDecision::Undecided { .. }
                if votes.iter().any(|(_, said)| !said.means_the_same_as(&before)) =>
            {
                self.cache.remove(&cached_as);
            }
            QuorumDecision::Agreed { .. } | QuorumDecision::Undecided { .. } => {}
        }
    }

    /// Gathers what nodes say until a quorum says the same, nobody is left, or a proof has come meanwhile.
    async fn gather<'a>(
        &'a self,
        context: CallContext<'a>,
        query: Option<ChainQuery<'a>>,
        asked: &mut QuorumCall<'_>,
        form: Form,
        in_view: impl Fn(Statement) -> Result<Statement, NoStatement> + Send,
    ) -> Result<Gathered, Failure> {
        let voters = Voters { nodes: asked.nodes(), quorum: self.pool.quorum() };
        let mut votes: Vec<Vote> = Vec::with_capacity(voters.nodes);
        let mut under_way: Option<ProofUnderWay<'a>> = None;
        let (mut proof, mut absence) = (StateProof::NotTried, AbsenceReplies::default());
        let kind = query.and_then(kind_of_history);
        loop {
            let decision = decide(voters, &votes, false);
            let QuorumDecision::Undecided { missing } = decision else {
                return Ok(Gathered { votes, decision, proof, absence });
            };
            let event = tokio::select! {
                biased;
                event = asked.next(missing) => event,
                given = finished(&mut under_way) => {
                    under_way = None;
                    proof = given.map_or(StateProof::Failed, StateProof::Given);
                    if matches!(proof, StateProof::Given(_)) {
                        return Ok(Gathered { votes, decision, proof, absence });
                    }
                    continue;
                }
            };
            match event {
                AnswersEvent::Answer(answer) => {
                    let said = self.read_statement(context.account, form, answer.reply).await?;
                    let statement = self.note_statement(asked, answer.node, said.and_then(&in_view));
                    let Some(statement) = statement else { continue };
                    match self.has_receipts(answer.node, query, &statement) {
                        Some(true) => {}
                        Some(false) => continue,
                        None => {
                            asked.record_late(answer.node);
                            continue;
                        }
                    }
                    let is_absent = kind.is_some() && is_null(&statement);
                    if is_absent {
                        absence.without.insert(answer.node);
                    }
                    if !is_absent || kind.is_some_and(|kind| self.pool.has_whole_history(answer.node, kind)) {
                        votes.push((answer.node, statement));
                    }
                }
                AnswersEvent::Failed { .. } => {}
                AnswersEvent::Stalled => {
                    under_way = query.map(|query| {
                        Box::pin(self.prove_alone(context, query, nodes_of(&votes))) as ProofUnderWay<'a>
                    });
                }
                AnswersEvent::Over => {
                    if let Some(proving) = under_way {
                        proof = proving.await.map_or(StateProof::Failed, StateProof::Given);
                    }
                    let decision = decide(voters, &votes, true);
                    return Ok(Gathered { votes, decision, proof, absence });
                }
            }
        }
    }

    /// Whether a node can know the receipts of a block of which it says that there are none. `None` before that was found out.
    fn has_receipts(
        &self,
        node: NodeId,
        query: Option<ChainQuery<'_>>,
        statement: &Statement,
    ) -> Option<bool> {
        match (query, statement) {
            (
                Some(ChainQuery::Block(BlockQuery { block, part: BlockPart::Receipts })),
                Statement::Record(record),
            ) if record.count == 0 => self.pool.can_know(node, HistoryKind::Receipts, block.number),
            _ => Some(true),
        }
    }

    /// Takes note of what a node's answer says about the node.
    fn note_statement(
        &self,
        asked: &mut QuorumCall<'_>,
        node: NodeId,
        said: Result<Statement, NoStatement>,
    ) -> Option<Statement> {
        match said {
            Ok(statement) => {
                asked.record_accepted(node);
                return Some(statement);
            }
            Err(NoStatement::NotThere) => asked.record_late(node),
            Err(NoStatement::Malformed) => {
                self.blocks.workers.integrity.count(ProofFailure::Malformed);
                asked.record_refused(node, ProofFailure::Malformed);
            }
        }
        None
    }

    /// The answer by proof, for which one node is enough: those are asked that have answered, because the others may be
    /// silent. `None` if none of them proves it.
    async fn prove_alone(
        &self,
        context: CallContext<'_>,
        query: ChainQuery<'_>,
        answered_by: Vec<NodeId>,
    ) -> Option<Result<Fetched, Failure>> {
        for id in answered_by {
            let context = CallContext { only: Some(id), ..context };
            let answer = Box::pin(self.prove_state(context, query)).await;
            let is_proven = matches!(
                answer,
                Some(Ok(_) | Err(Failure::Reverted { .. } | Failure::Execution(_) | Failure::Refused(_)))
            );
            if is_proven {
                return answer;
            }
        }
        None
    }

    /// The proven value where nodes contradict each other; `None` if they do not, or no node proves it. Whoever said something
    /// else is wrong.
    async fn settle_difference(
        &self,
        context: CallContext<'_>,
        query: ChainQuery<'_>,
        call: &RpcCall,
        votes: &[Vote],
    ) -> Option<Bytes> {
        let (_, first) = votes.first()?;
        if votes.iter().all(|(_, said)| said.means_the_same_as(first)) {
            return None;
        }
        let result = self.settle_by_proof(context, query).await?;
        let proven = Statement::Result(result.clone());
        let wrong: Vec<_> = votes.iter().filter(|(_, said)| *said != proven).map(|(node, _)| *node).collect();
        self.confirmations.note_agreed(true, wrong.len());
        if !query.is_simulation() {
            wrong.iter().for_each(|node| _ = self.pool.blame_contradicted(*node, call));
        }
        Some(result)
    }

    /// Reads what a node said: at once if it is short, else in the account's share of the threads.
    pub(super) async fn read_statement(
        &self,
        account: AccountId,
        form: Form,
        said: NodeReply,
    ) -> Result<Result<Statement, NoStatement>, Failure> {
        let bytes = if let NodeReply::Result(result) = &said { result.len() } else { 0 };
        self.blocks
            .workers
            .run_sized(account, bytes, PARSED_AT_ONCE_BYTES_MAX, move || form.read(&said))
            .await
    }

    fn confirmed(
        &self,
        context: CallContext<'_>,
        query: ChainQuery<'_>,
        statement: Statement,
        trust: TrustMark,
    ) -> Result<Fetched, Failure> {
        let (result, is_in) = match statement {
            Statement::Result(result) => (result, None),
            Statement::Record(record) => (record.whole, record.block),
            Statement::Estimate(estimate) => (format!("\"{estimate:#x}\"").into(), None),
            Statement::Reverted(data) => return Err(Failure::Reverted { data }),
            Statement::Stopped(execution) => {
                return Err(node_failures::of_execution(execution, &self.limits.now()));
            }
            Statement::TooWide => return Err(Failure::Unavailable),
        };
        let block = match query.transaction() {
            // A transaction that is pending or unknown may be in a block any moment.
            Some(_) => is_in,
            None => query.block().or(Some(head(context.chain))),
        };
        let cache = if block.is_some() { CacheDecision::On(block) } else { CacheDecision::No };
        Ok(Fetched { result, block, verified: self.blocks.by_quorum(), cache, trust: Some(trust) })
    }
}

fn nodes_of(votes: &[Vote]) -> Vec<NodeId> {
    votes.iter().map(|(node, _)| *node).collect()
}

/// The kind of data that a node must have to know of the transaction that is asked for.
fn kind_of_history(query: ChainQuery<'_>) -> Option<HistoryKind> {
    query.transaction().map(|query| history_kind(query.part))
}

fn is_null(statement: &Statement) -> bool {
    matches!(statement, Statement::Result(result) if *result == NULL)
}

fn some_find_it_too_wide(votes: &[Vote]) -> bool {
    votes.iter().any(|(_, said)| *said == Statement::TooWide)
}

/// The statement of a node about a transaction, as it is in the view of the call: nothing is known there of blocks above the head, and
/// what most nodes list in a block is not missing.
pub(super) fn in_view(
    chain: &CanonicalChain,
    query: ChainQuery<'_>,
    statement: Statement,
) -> Result<Statement, NoStatement> {
    let Some(TransactionQuery { hash, .. }) = query.transaction() else { return Ok(statement) };
    let block = if let Statement::Record(record) = &statement { record.block } else { None };
    match block {
        Some(block) if block.number > head(chain).number => Ok(Statement::Result(NULL)),
        Some(block) => match chain.by_number(block.number).map(block_ref) {
            Some(canonical) if canonical != block => Err(NoStatement::NotThere),
            _ => Ok(statement),
        },
        None if chain.contains_transaction(&hash).is_some() => Err(NoStatement::NotThere),
        None => Ok(statement),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use methods::{MethodId, Query, StateQuery, StateValue};
    use tokio::time::Instant;

    use super::*;
    use crate::test_blocks::{TestBlocks, TestState, chain_of_head};

    /// Where every node lacked the state, each call made the watchers poll all of them and was tried again, as if a block had
    /// been reorganised away.
    #[tokio::test]
    async fn state_that_every_node_lacks_is_not_asked_for_again() {
        let method = MethodId::named("eth_getBalance").unwrap().row();
        let chain = chain_of_head(9);
        let balance = StateValue::Balance;
        let query = StateQuery { address: Default::default(), at: head(&chain), value: balance };
        let deadline = Instant::now() + Duration::from_secs(3_600);
        let account = AccountId::unique();
        let context = CallContext { account, caller: account, chain: &chain, deadline, only: None };
        // Of no node it is true that all of them lack it.
        for (nodes, failure) in [(0, Failure::Lacking), (3, Failure::Unavailable)] {
            let test = TestState::new(TestBlocks::new(nodes));
            let cached_as = CacheLookup { query: &Query::State(query), head: None };
            let query = ChainQuery::State(query);
            let answer = test.state.answer_confirmed(context, method, query, false, cached_as).await;
            assert_eq!(answer.unwrap().err(), Some(failure), "{nodes} nodes");
        }
    }
}
