//! Who is asked: the nodes, or partners where no node can answer.

use std::sync::Arc;

use bytes::Bytes;
use tokio::time::Instant;

use super::{Pool, PoolNode};
use crate::attempt::{self, AttemptRules, CallFailure, CallOutcome, ResultFinding, ResultJudge};
use crate::call::{Needs, RpcCall};
use crate::partner::Partner;
use crate::transport::Client;

/// Who is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Supplier {
    Nodes,
    /// One of the nodes, by its number, and nobody else.
    Node {
        number: usize,
    },
    /// The partners that may be asked the caller's method.
    Partners {
        method: &'static str,
    },
}

impl Supplier {
    /// Whether nodes of the pool are asked, whose heads are watched.
    pub fn is_of_pool(self) -> bool {
        match self {
            Self::Nodes | Self::Node { .. } => true,
            Self::Partners { .. } => false,
        }
    }
}

impl Pool {
    /// Asks until somebody gives an answer that is believed. Partners are numbered after the nodes.
    pub async fn ask_of<F: ResultFinding>(
        &self,
        supplier: Supplier,
        call: &RpcCall,
        judge: ResultJudge<'_, '_, F>,
        deadline: Instant,
    ) -> CallOutcome<Client, F> {
        match supplier {
            Supplier::Nodes => self.ask(call, judge, deadline).await,
            Supplier::Node { number } => self.ask_one(number, call, judge, deadline).await,
            Supplier::Partners { method } => self.ask_partner(method, call, judge, deadline).await,
        }
    }

    async fn ask_one<F: ResultFinding>(
        &self,
        number: usize,
        call: &RpcCall,
        judge: ResultJudge<'_, '_, F>,
        deadline: Instant,
    ) -> CallOutcome<Client, F> {
        match self.nodes.get(number) {
            Some(node) => ask_single(node, number, call, judge, &self.rules, deadline).await,
            None => CallOutcome { answer: Err(CallFailure::Unavailable), findings: Vec::new() },
        }
    }

    /// Asks the first partner that has the method, is well, and has quota left. Others are asked only if its answer is not confirmed.
    pub async fn ask_partner<F: ResultFinding>(
        &self,
        method: &str,
        call: &RpcCall,
        judge: ResultJudge<'_, '_, F>,
        deadline: Instant,
    ) -> CallOutcome<Client, F> {
        // Nobody watches the heads of partners, so it is not known which blocks they have.
        let call = RpcCall { needs: Needs::default(), ..call.clone() };
        let mut outcome = CallOutcome { answer: Err(CallFailure::Unavailable), findings: Vec::new() };
        let mut left = self.partners_with(method).count();
        for (position, partner) in self.partners.iter().enumerate().filter(|(_, partner)| partner.has(method))
        {
            let until = part_of(deadline, left);
            left -= 1;
            if !self.take_quota_if_usable(partner, 1, until).await {
                continue;
            }
            let number = self.nodes.len() + position;
            let asked = ask_single(partner.node(), number, &call, judge, &self.partner_rules, until).await;
            outcome.findings.extend(asked.findings);
            let is_confirmed = matches!(&asked.answer, Ok(answer) if answer.is_confirmed);
            if is_confirmed || outcome.answer.is_err() {
                outcome.answer = asked.answer;
            }
            if is_confirmed {
                break;
            }
        }
        outcome
    }

    /// Whether one of the suppliers is known to lack a method.
    pub fn some_lack(&self, supplier: Supplier, method: &'static str) -> bool {
        let lacks = |node: &Arc<PoolNode>| node.capabilities().lacks(method);
        match supplier {
            Supplier::Nodes => self.nodes.iter().any(lacks),
            Supplier::Node { number } => self.nodes.get(number).is_some_and(lacks),
            Supplier::Partners { method: asked } => {
                self.partners_with(asked).any(|partner| lacks(partner.node()))
            }
        }
    }

    /// Whether every node is known to lack the method or the state that a call needs, so that asking again does not help.
    pub fn all_lack(&self, call: &RpcCall) -> bool {
        let block = call.needs.block.unwrap_or(0);
        let lacks = |node: &PoolNode| {
            let capabilities = node.capabilities();
            let lacks_state = call.needs.state && capabilities.lowest_state_for(call.method) > block;
            lacks_state || capabilities.lacks(call.method)
        };
        self.nodes.iter().all(|node| lacks(node))
    }

    /// The most calls per second that one of the partners with this method accepts.
    pub fn partner_calls_per_second(&self, method: &str) -> u64 {
        self.partners_with(method).map(|partner| partner.quota().calls_per_second).max().unwrap_or(0)
    }

    pub(super) fn partners_with(&self, method: &str) -> impl Iterator<Item = &Partner<Client>> {
        self.partners.iter().filter(move |partner| partner.has(method))
    }

    /// Takes calls out of a partner's quota, if it is worth asking and of this chain.
    pub(super) async fn take_quota_if_usable(
        &self,
        partner: &Partner<Client>,
        calls: usize,
        deadline: Instant,
    ) -> bool {
        partner.is_worth_asking(Instant::now())
            && partner.is_of(self.chain_id(), deadline).await
            && partner.take(calls as u64)
    }
}

/// Asks the node or partner with this number, and nobody else.
async fn ask_single<F: ResultFinding>(
    node: &Arc<PoolNode>,
    number: usize,
    call: &RpcCall,
    judge: ResultJudge<'_, '_, F>,
    rules: &AttemptRules,
    deadline: Instant,
) -> CallOutcome<Client, F> {
    let numbered = |_: usize, result: &Bytes| judge(number, result);
    let asked = attempt::ask(std::slice::from_ref(node), call, &numbered, rules, deadline).await;
    let findings = asked.findings.into_iter().map(|(_, finding)| (number, finding)).collect();
    CallOutcome { findings, ..asked }
}

/// The end of the time for the next of `left` partners. Each gets a part of the time until the deadline, so that one that
/// hangs leaves time for the others.
pub(super) fn part_of(deadline: Instant, left: usize) -> Instant {
    let now = Instant::now();
    now + deadline.saturating_duration_since(now) / u32::try_from(left.max(1)).unwrap_or(u32::MAX)
}
