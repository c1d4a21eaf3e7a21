//! Partners: asked one by one when no node of the operator can answer, with the same steps and the same proofs.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use methods::Method;
use nodes::{NodeId, Pool};
use parking_lot::Mutex;
use sources::{CacheKey, Failure, Flights};
use tokio::time::Instant;

use crate::call_key::CallKey;

/// The partners of a pool, and how often they have answered.
#[derive(Debug)]
pub struct Partners {
    pool: Arc<Pool>,
    /// Calls that they are asked. Not every caller of the same query may have their answer.
    pub(super) flights: Flights<CallKey<CacheKey>>,
    answers: AtomicU64,
    last_answer_at: Mutex<Option<Instant>>,
}

impl Partners {
    pub(super) fn new(pool: Arc<Pool>) -> Self {
        Self {
            pool,
            flights: Flights::default(),
            answers: AtomicU64::new(0),
            last_answer_at: Mutex::new(None),
        }
    }

    /// The answer of the first partner that has one. Each gets a part of the time, so that one that hangs leaves time for the others.
    pub(super) async fn ask<T, F: Future<Output = Result<T, Failure>>>(
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
                    self.record_answer(method);
                    break;
                }
            }
        }
        outcome
    }

    fn record_answer(&self, method: &Method) {
        self.answers.fetch_add(1, Relaxed);
        *self.last_answer_at.lock() = Some(Instant::now());
        tracing::info!(method = method.name, "a partner answered, because no node of our own could");
    }

    pub fn answers(&self) -> u64 {
        self.answers.load(Relaxed)
    }

    /// Time since the last answer.
    pub fn last_answer_age(&self) -> Option<Duration> {
        self.last_answer_at.lock().map(|at| at.elapsed())
    }
}

/// Whether another node may answer a call that failed like this.
pub(super) fn is_for_another(failure: &Failure) -> bool {
    matches!(failure, Failure::Unavailable | Failure::AbsenceUnknown | Failure::Lacking)
}
