//! Who is asked for something: the nodes, or partners where no node can answer.

use std::sync::Arc;

use bytes::Bytes;
use tokio::time::Instant;

use super::{Judge, Pool, PoolNode};
use crate::attempt::{self, Answered, Failed};
use crate::call::{Call, Needs};
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
    /// The partners that may be asked this method, which is the caller's.
    Partners {
        method: &'static str,
    },
}

impl Supplier {
    /// Whether it is nodes of the pool that are asked, whose blocks their watchers know.
    pub fn is_of_pool(self) -> bool {
        match self {
            Self::Nodes | Self::Node { .. } => true,
            Self::Partners { .. } => false,
        }
    }
}

impl Pool {
    /// Asks until somebody gives an answer that is believed.
    pub async fn ask_of(
        &self,
        supplier: Supplier,
        call: &Call,
        judge: Judge<'_, '_>,
        deadline: Instant,
    ) -> Result<Answered<Client>, Failed> {
        match supplier {
            Supplier::Nodes => self.ask(call, judge, deadline).await,
            Supplier::Node { number } => self.ask_one(number, call, judge, deadline).await,
            Supplier::Partners { method } => self.ask_partner(method, call, judge, deadline).await,
        }
    }

    async fn ask_one(
        &self,
        number: usize,
        call: &Call,
        judge: Judge<'_, '_>,
        deadline: Instant,
    ) -> Result<Answered<Client>, Failed> {
        let Some(node) = self.nodes.get(number) else { return Err(Failed::Unavailable) };
        let numbered = |_: &PoolNode, result: &Bytes| judge(number, result);
        attempt::ask(std::slice::from_ref(node), call, &numbered, &self.rules, deadline).await
    }

    /// Asks the first partner that has the method, is well, and has budget left; others only if it has nothing to say.
    pub async fn ask_partner(
        &self,
        method: &str,
        call: &Call,
        judge: Judge<'_, '_>,
        deadline: Instant,
    ) -> Result<Answered<Client>, Failed> {
        // What a partner has is its own affair: nobody watches its head.
        let call = Call { needs: Needs::default(), ..call.clone() };
        let mut best = Err(Failed::Unavailable);
        for (place, partner) in self.partners.iter().enumerate() {
            if !partner.has(method) || !self.may_ask(partner, 1, deadline).await {
                continue;
            }
            let number = self.nodes.len() + place;
            let numbered = |_: &PoolNode, result: &Bytes| judge(number, result);
            let one = std::slice::from_ref(partner.node());
            match attempt::ask(one, &call, &numbered, &self.partner_rules, deadline).await {
                Ok(answered) if answered.sure => return Ok(answered),
                doubtful if best.is_err() => best = doubtful,
                _ => {}
            }
        }
        best
    }

    /// Whether one of those who are asked is known to lack a method.
    pub fn some_lack(&self, supplier: Supplier, method: &'static str) -> bool {
        let lacks = |node: &Arc<PoolNode>| node.known().lacks(method);
        match supplier {
            Supplier::Nodes => self.nodes.iter().any(lacks),
            Supplier::Node { number } => self.nodes.get(number).is_some_and(lacks),
            Supplier::Partners { method: asked } => {
                self.partners_with(asked).any(|partner| lacks(partner.node()))
            }
        }
    }

    /// Whether every node is known to lack the method or the state that a call needs, so that asking again does not help.
    pub fn all_lack(&self, call: &Call) -> bool {
        let block = call.needs.block.unwrap_or(0);
        let lacks_state =
            |node: &PoolNode| call.needs.state && node.known().lowest_state_for(call.method) > block;
        self.nodes.iter().all(|node| node.known().lacks(call.method) || lacks_state(node))
    }

    /// How many calls a partner takes in a second: those of the one that takes most.
    pub fn partner_calls_per_second(&self, method: &str) -> u64 {
        self.partners_with(method).map(|partner| partner.allowance().calls_per_second).max().unwrap_or(0)
    }

    pub(super) fn partners_with(&self, method: &str) -> impl Iterator<Item = &Partner<Client>> {
        self.partners.iter().filter(move |partner| partner.has(method))
    }

    /// Takes so many calls out of a partner's budget, if it is worth asking and of this chain.
    pub(super) async fn may_ask(&self, partner: &Partner<Client>, calls: usize, deadline: Instant) -> bool {
        partner.is_worth_asking(Instant::now())
            && partner.is_of(self.chain_id(), deadline).await
            && partner.take(calls as u64)
    }
}
