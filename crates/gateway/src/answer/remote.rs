//! The pool as a source: what is kept, then the nodes, then (by plan) a partner.

pub(crate) mod settings; // the configuration
mod encode; // queries → calls
mod expect; // queries → what their answers must fit
mod integrity; // what becomes of answers that cannot be true
mod judge; // whether one answer is believed
mod logs; // log queries, in chunks that are kept
mod says; // what nodes mean → our failures

use std::sync::Arc;
use std::time::Duration;

use alloy_primitives::B256;
use bytes::Bytes;
use nodes::{Answered, Canon, Pool};
use tokio::time::Instant;

use super::cache::{Asked, Cache, Kept};
use super::flights::Flights;
use super::{Answer, Failure, Held, Limits, Origin, Provenance, View};
use crate::methods::{Cacheable, Deadline, Method, Work};
use crate::params::{BlockParam, Query};
use crate::resolve::BlockRef;

pub(crate) use integrity::Judge;
use judge::Question;

/// Answers calls from nodes.
pub struct Remote {
    pool: Arc<Pool>,
    cache: Cache,
    flights: Flights,
    judge: Judge,
    held: Held,
    limits: Limits,
    family: nodes::check::Family,
    call_timeout: Duration,
}

impl Remote {
    /// The canonical chain as it is now; `None` before any node has told of it.
    pub(super) fn view(&self) -> Option<Arc<Canon>> {
        self.pool.canon()
    }

    /// Makes sure that the view can say what block is meant, if there is such a block.
    pub(super) async fn learn(&self, canon: &Canon, block: BlockParam) -> Result<(), Failure> {
        let known = match block {
            BlockParam::Number(number) => number >= canon.lowest() || canon.block_by_number(number).is_some(),
            BlockParam::Hash { hash, .. } => canon.block_by_hash(hash).is_some(),
            BlockParam::Tag(_) => true,
        };
        if known {
            return Ok(());
        }
        let deadline = Instant::now() + self.call_timeout;
        let learned = match block {
            BlockParam::Number(number) => self.pool.learn_number(canon, number, deadline).await,
            BlockParam::Hash { hash, .. } => self.pool.learn_hash(canon, hash, deadline).await,
            BlockParam::Tag(_) => Ok(()),
        };
        learned.map_err(|_| Failure::Unavailable)
    }

    /// Answers a query whose blocks are pinned to `canon`.
    pub(super) async fn answer(
        &self,
        canon: &Arc<Canon>,
        method: &'static Method,
        query: Query<BlockRef>,
        may_fail_over: bool,
    ) -> Result<Answer, Failure> {
        if let Some(result) = self.known(canon, &query) {
            return Ok(answer(Origin::Cache, Some(head(canon)), result));
        }
        let at_head = (method.cacheable == Cacheable::Head).then(|| head(canon).hash);
        let asked = Asked { query: &query, head: at_head };
        if let Some(kept) = self.cache.get(&asked).filter(|kept| holds(canon, kept)) {
            return Ok(answer(Origin::Cache, kept.block, kept.result));
        }
        let outcome = self.flights.share(&query, || self.fetch(canon, method, &query, at_head)).await;
        match outcome {
            Err(Failure::Unavailable) if may_fail_over => self.from_partner(canon, method, &query).await,
            other => other,
        }
    }

    /// What is known without asking anyone.
    fn known(&self, canon: &Canon, query: &Query<BlockRef>) -> Option<Bytes> {
        let chain_id = self.pool.chain_id();
        Some(match query {
            Query::ChainId => format!("\"{chain_id:#x}\"").into(),
            Query::NetVersion => format!("\"{chain_id}\"").into(),
            Query::BlockNumber => format!("\"{:#x}\"", head(canon).number).into(),
            Query::Syncing => Bytes::from_static(b"false"),
            Query::ClientVersion => Bytes::from_static(super::CLIENT_VERSION),
            _ => return None,
        })
    }

    async fn fetch(
        &self,
        canon: &Arc<Canon>,
        method: &Method,
        query: &Query<BlockRef>,
        at_head: Option<B256>,
    ) -> Result<Answer, Failure> {
        if self.held.is_full() {
            return Err(Failure::OverCapacity);
        }
        let deadline = Instant::now() + self.time(method);
        if let Query::Logs { filter, blocks } = query {
            return self.logs(canon, filter, *blocks, deadline).await;
        }
        let fetched = self.ask(canon, query, deadline).await?;
        if let Some(block) = fetched.keep {
            let asked = Asked { query, head: at_head };
            let kept = Kept { result: fetched.result.clone(), block, epoch: canon.epoch(), count: 0 };
            if method.cacheable != Cacheable::Never {
                self.cache.keep(asked.key(), kept);
            }
        }
        Ok(answer(Origin::Node, fetched.block, fetched.result))
    }

    /// How long a call may take over all nodes that are asked.
    fn time(&self, method: &Method) -> Duration {
        match method.work {
            Work::Pooled(Deadline::Logs) => self.limits.log_timeout,
            Work::Pooled(Deadline::Call) => self.limits.call_timeout,
            _ => self.call_timeout,
        }
    }

    /// Asks nodes until one gives an answer that can be believed.
    async fn ask(
        &self,
        canon: &Canon,
        query: &Query<BlockRef>,
        deadline: Instant,
    ) -> Result<Fetched, Failure> {
        let gas_cap = canon.head_block().gas_limit.saturating_mul(self.limits.call_gas_multiple);
        let call = encode::call(query, gas_cap)
            .ok_or_else(|| Failure::Broken("a question that no node is asked".to_owned()))?;
        let question = Question::new(self, canon, query);
        let judge = |node: usize, result: &Bytes| question.judge(node, result);
        match self.pool.ask(&call, &judge, deadline).await {
            Ok(Answered::Result { result, doubtful }) => question.settle(result, doubtful),
            Ok(Answered::Error(meaning)) => Err(says::failure(&meaning, &self.limits)),
            Err(_) => Err(Failure::Unavailable),
        }
    }

    /// Asks a partner, when nobody of our own can answer.
    async fn from_partner(
        &self,
        canon: &Arc<Canon>,
        method: &Method,
        query: &Query<BlockRef>,
    ) -> Result<Answer, Failure> {
        let gas_cap = canon.head_block().gas_limit.saturating_mul(self.limits.call_gas_multiple);
        let call = encode::call(query, gas_cap).ok_or(Failure::Unavailable)?;
        let question = Question::new(self, canon, query);
        let judge = |node: usize, result: &Bytes| question.judge(node, result);
        let deadline = Instant::now() + self.time(method);
        match self.pool.ask_partner(method.name, &call, &judge, deadline).await {
            Ok(Answered::Result { result, doubtful }) => {
                let fetched = question.settle(result, doubtful)?;
                Ok(answer(Origin::Partner, fetched.block, fetched.result))
            }
            Ok(Answered::Error(meaning)) => Err(says::failure(&meaning, &self.limits)),
            Err(_) => Err(Failure::Unavailable),
        }
    }
}

/// An answer of a node, checked.
struct Fetched {
    result: Bytes,
    /// The block at which it is true.
    block: Option<BlockRef>,
    /// Whether it may be kept, and on which block it then hangs.
    keep: Option<Option<BlockRef>>,
}

fn answer(origin: Origin, block: Option<BlockRef>, result: Bytes) -> Answer {
    Answer { provenance: Provenance { origin, block }, shared: Some(result) }
}

/// Whether what an answer hangs on is still canonical.
fn holds(canon: &Canon, kept: &Kept) -> bool {
    match kept.block {
        None => true,
        Some(block) if block.number < canon.lowest() => kept.epoch == canon.epoch(),
        Some(block) => canon.block_by_number(block.number) == Some(block),
    }
}

fn head(canon: &Canon) -> BlockRef {
    canon.head()
}
