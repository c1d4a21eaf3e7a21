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
    /// The partners that may be asked this method, which is the caller's.
    Partners {
        method: &'static str,
    },
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
            Supplier::Partners { method } => self.ask_partner(method, call, judge, deadline).await,
        }
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
        let numbered = |_: &PoolNode, result: &Bytes| judge(self.nodes.len(), result);
        let mut best = Err(Failed::Out { tried: 0, lack: None });
        for partner in self.partners_with(method) {
            if !self.may_ask(partner, 1, deadline).await {
                continue;
            }
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
            Supplier::Partners { method: asked } => {
                self.partners_with(asked).any(|partner| lacks(partner.node()))
            }
        }
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
            && self.is_of_this_chain(partner, deadline).await
            && partner.take(calls as u64)
    }

    /// Nobody can tell before it is known which chain this is.
    async fn is_of_this_chain(&self, partner: &Partner<Client>, deadline: Instant) -> bool {
        match self.chain_id() {
            Some(chain_id) => partner.is_of(chain_id, deadline).await,
            None => true,
        }
    }
}
