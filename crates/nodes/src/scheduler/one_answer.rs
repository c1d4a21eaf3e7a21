//! Asking until one node gives an answer that is believed.

use std::sync::Arc;

use tokio::time::Instant;

use super::driver::{AskReason, Driver, DriverEvent};
use super::facts::is_member;
use super::next_action::Ending;
use super::payload::Payload;
use super::progress::{AttemptOutcome, NodeStatus, Wanted};
use super::{
    CallFailure, CallOutcome, CallRules, Judgement, NodeReply, Nodes, PoolAnswer, RangeLimit, ResultFinding,
    ResultJudge,
};
use crate::answering_node::record_answering_node;
use crate::call::Ask;
use crate::node_id::NodeId;

/// Asks nodes until one gives an answer that is believed.
pub(crate) async fn ask_one<A: Ask, P: Payload, F: ResultFinding>(
    nodes: Nodes<A>,
    payload: &P,
    judge: ResultJudge<'_, '_, F, P::Results>,
    rules: &CallRules,
    deadline: Instant,
) -> CallOutcome<A, F, P::Results> {
    if Instant::now() >= deadline {
        return CallOutcome { answer: Err(CallFailure::Deadline), findings: Vec::new() };
    }
    let driver = Driver::new(nodes, payload, Wanted::One, rules, deadline);
    let mut call = OneAnswer { driver, judge, findings: Vec::new(), fallback: None };
    let answer = call.answer().await;
    CallOutcome { answer, findings: call.findings }
}

struct OneAnswer<'a, 'j, A: Ask, P: Payload, F> {
    driver: Driver<'a, A, P>,
    judge: ResultJudge<'a, 'j, F, P::Results>,
    /// The finding about each result.
    findings: Vec<(NodeId, Option<F>)>,
    /// The result that is the answer if no better one comes.
    fallback: Option<P::Results>,
}

type Answered<A, R> = Result<PoolAnswer<A, R>, CallFailure>;

impl<A: Ask, P: Payload, F: ResultFinding> OneAnswer<'_, '_, A, P, F> {
    async fn answer(&mut self) -> Answered<A, P::Results> {
        loop {
            match self.driver.next().await {
                DriverEvent::Reply { node, reason, reply: NodeReply::Result(result) } => {
                    if let Some(answer) = self.judge_result(node, reason, result).await {
                        return answer;
                    }
                }
                DriverEvent::Reply { node, reason, reply: reply @ NodeReply::Error(_) } => {
                    self.driver.nodes[node].record_success(Instant::now());
                    return Ok(self.win(node, reason, reply));
                }
                DriverEvent::Reply { node, reason, reply: NodeReply::Limit(limit) } => {
                    self.record_limit(node, limit);
                    if let Some(limit) = self.driver.progress.agreed_limit() {
                        return Ok(self.win(node, reason, NodeReply::Limit(limit)));
                    }
                }
                DriverEvent::Failed { .. } | DriverEvent::Stalled => {}
                DriverEvent::Ended(Ending::TimeUp) => return self.end(CallFailure::Deadline),
                DriverEvent::Ended(Ending::Exhausted) => return self.exhausted(),
            }
        }
    }

    /// Judges a result. Returns the end of the call if that is one.
    async fn judge_result(
        &mut self,
        node: usize,
        reason: AskReason,
        result: P::Results,
    ) -> Option<Answered<A, P::Results>> {
        let ends_at = self.driver.progress.ends_at();
        let id = self.driver.nodes[node].id();
        let finding = (self.judge)(id, &result).finish_before(ends_at).await;
        let judgement = finding.as_ref().map(ResultFinding::judgement);
        self.findings.push((id, finding));
        let Some(judgement) = judgement else { return Some(self.end(CallFailure::Unchecked)) };
        let asked = &self.driver.nodes[node];
        match judgement {
            Judgement::Believed | Judgement::Doubtful | Judgement::Late => {
                asked.record_success(Instant::now());
            }
            Judgement::Wrong(failure) => {
                asked.record_wrong_answer(self.driver.payload.call(), failure.to_string());
            }
            Judgement::Unproven => {}
        }
        let outcome = match judgement {
            Judgement::Believed => return Some(Ok(self.win(node, reason, NodeReply::Result(result)))),
            Judgement::Doubtful => AttemptOutcome::Doubtful { is_empty: P::is_nothing(&result) },
            Judgement::Late => AttemptOutcome::Late,
            Judgement::Wrong(_) | Judgement::Unproven => AttemptOutcome::Failed,
        };
        self.driver.settle(node, outcome);
        if self.driver.progress.fallback.is_some_and(|fallback| fallback.node == node) {
            self.fallback = Some(result);
        }
        None
    }

    fn record_limit(&mut self, position: usize, limit: RangeLimit) {
        let node = &self.driver.nodes[position];
        node.record_success(Instant::now());
        limit.blocks.into_iter().for_each(|blocks| node.record_log_range(self.driver.payload.call(), blocks));
        self.driver.settle(position, AttemptOutcome::Limited(limit));
    }

    fn win(
        &mut self,
        node: usize,
        reason: AskReason,
        reply: NodeReply<P::Results>,
    ) -> PoolAnswer<A, P::Results> {
        self.driver.record_won(node, reason);
        self.driver.drop_all();
        let node = Arc::clone(&self.driver.nodes[node]);
        PoolAnswer { reply, node, is_confirmed: true, is_absent_everywhere: false }
    }

    /// Ends the call because nobody is left who could be asked.
    fn exhausted(&mut self) -> Answered<A, P::Results> {
        let is_lacking = self.driver.progress.is_lacking() || self.is_lacked_by_all();
        self.end(if is_lacking { CallFailure::Lacking } else { CallFailure::Unavailable })
    }

    /// Ends the call without an answer that is believed: with the fallback, the widest range that is granted, or the failure.
    fn end(&mut self, failed: CallFailure) -> Answered<A, P::Results> {
        self.driver.drop_all();
        let is_absent_everywhere = self.is_absent_everywhere();
        let progress = &self.driver.progress;
        let (node, reply) = match (progress.fallback, self.fallback.take()) {
            (Some(fallback), Some(result)) => (fallback.node, NodeReply::Result(result)),
            _ => {
                let limit = progress.widest_limit().or_else(|| self.narrower_range(failed));
                limit.map(|(node, limit)| (node, NodeReply::Limit(limit))).ok_or(failed)?
            }
        };
        let is_confirmed = matches!(reply, NodeReply::Limit(_));
        let node = Arc::clone(&self.driver.nodes[node]);
        record_answering_node(node.id());
        Ok(PoolAnswer { reply, node, is_confirmed, is_absent_everywhere })
    }

    /// The widest range of the nodes that were not asked because they search fewer blocks at once.
    fn narrower_range(&self, failed: CallFailure) -> Option<(usize, RangeLimit)> {
        if !matches!(failed, CallFailure::Unavailable | CallFailure::Lacking) {
            return None;
        }
        let wanted = self.driver.payload.call().needs.log_blocks;
        let ranges = self.driver.nodes.iter().enumerate().filter_map(|(position, node)| {
            let range = node.capabilities().log_range_max();
            let is_narrower = is_member(node) && range < wanted;
            is_narrower.then_some((position, RangeLimit { blocks: Some(range) }))
        });
        ranges.max_by_key(|(_, limit)| limit.blocks)
    }

    /// Whether no node was asked because all of this chain are known to lack the method or the state.
    fn is_lacked_by_all(&self) -> bool {
        let call = self.driver.payload.call();
        let nodes = &self.driver.nodes;
        let members = || nodes.iter().filter(|node| is_member(node)).map(|node| node.capabilities());
        let (method, needs) = (call.method, call.needs);
        let block = needs.block.unwrap_or(0);
        self.driver.progress.statuses().all(|status| *status == NodeStatus::Untried)
            && members().next().is_some()
            && (members().all(|capabilities| capabilities.lacks(method))
                || needs.state && members().all(|capabilities| capabilities.lowest_state_for(method) > block))
    }

    /// Whether every node of this chain has answered with a null or an empty list.
    fn is_absent_everywhere(&self) -> bool {
        let mut nodes = self.driver.nodes.iter().zip(self.driver.progress.statuses());
        nodes.all(|(node, status)| *status == NodeStatus::Empty || !is_member(node))
    }
}
