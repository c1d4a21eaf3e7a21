//! Partners: asked one by one when no node of the operator can answer, with the same steps and the same proofs.

use std::sync::Arc;

use methods::{BlockRef, Method, Query};
use nodes::{CanonicalChain, NodeId};
use resources::AccountId;
use tokio::time::Instant;

use super::asking::Asking;
use super::flight_key::FlightKey;
use super::pool_source::PoolSource;
use crate::failure::Failure;
use crate::provenance::Answer;

impl PoolSource {
    /// Asks partners for the answer that no node of the operator has given.
    pub(super) async fn fail_over(
        &self,
        caller: AccountId,
        chain: &Arc<CanonicalChain>,
        method: &'static Method,
        query: &Query<BlockRef>,
    ) -> Result<Answer, Failure> {
        let key = FlightKey::of(caller, chain, query).of_partners();
        let (account, deadline) = (key.paying_account(), Instant::now() + self.time(method));
        let ask = |partner, deadline| {
            let asking = Asking { account, caller, chain, deadline, only: Some(partner) };
            self.fetch(asking, chain, method, query)
        };
        let ask_partners = || self.ask_partners(method, deadline, ask);
        self.flights.share(key, deadline, ask_partners).await?.lend(self.blocks.workers.memory.of(caller))
    }

    /// The answer of the first partner that has one. Each gets a part of the time, so that one that hangs leaves time for the others.
    pub(super) async fn ask_partners<T, F: Future<Output = Result<T, Failure>>>(
        &self,
        method: &Method,
        deadline: Instant,
        ask: impl Fn(NodeId, Instant) -> F,
    ) -> Result<T, Failure> {
        let (partners, mut outcome) = (self.pool.partners_for(method.name), Err(Failure::Unavailable));
        for (left, partner) in (1..=partners.len() as u32).rev().zip(partners) {
            let now = Instant::now();
            outcome = ask(partner, now + deadline.saturating_duration_since(now) / left).await;
            match &outcome {
                Err(failure) if is_for_another(failure) => {}
                Err(_) => break,
                Ok(_) => {
                    self.partner_answers.record(method);
                    break;
                }
            }
        }
        outcome
    }
}

/// Whether another node may answer a call that failed like this.
pub(super) fn is_for_another(failure: &Failure) -> bool {
    matches!(failure, Failure::Unavailable | Failure::AbsenceUnknown | Failure::Lacking)
}
