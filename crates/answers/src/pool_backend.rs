//! Nodes, and the executed chain that answers most calls without them.

use std::sync::Arc;
use std::time::Duration;

use methods::{BlockParam, Method, Query};
use nodes::CanonicalChain;
use resources::{MemoryBudget, ThreadPool};

use super::embedded::{Embedded, EmbeddedCall};
use super::remote::{
    ExecutedChain, ExecutedView, FollowThread, NodeCall, PoolSource, StartedPool, start_executing,
};
use crate::cache::Cache;
use crate::failure::Failure;
use crate::limits::AnswerLimits;
use crate::provenance::Answer;
use crate::query_plan::QueryPlan;
use crate::timings::Timings;
use crate::unanswered::Repetition;
use crate::view::Source;

/// The nodes, and what is answered without them.
pub(super) struct PoolBackend {
    // Fields are dropped in this order: the thread uses the nodes.
    _execution: Option<FollowThread>,
    executed: Option<ExecutedBackend>,
    pub(super) remote: Arc<PoolSource>,
}

/// The executed chain, and who answers from it.
struct ExecutedBackend {
    chain: Arc<ExecutedChain>,
    embedded: Embedded,
}

/// The chain of the nodes as one request sees it.
pub(super) struct PoolView<'b> {
    /// `None` before any node has shown its chain.
    pub(super) chain: Option<Arc<CanonicalChain>>,
    /// What may be answered from the executed chain, and by whom.
    executed: Option<(ExecutedView, &'b Embedded)>,
}

impl PoolView<'_> {
    /// The newest block; `None` before any node has shown its chain.
    pub(super) fn head(&self) -> Option<u64> {
        let executed = self.executed.as_ref().and_then(|(executed, _)| executed.head());
        let of_nodes = || self.chain.as_ref().map(|chain| chain.head().number);
        executed.map(|head| head.number).or_else(of_nodes)
    }

    /// Who answers a query from the executed chain, and its snapshot, if that has all the blocks that are meant.
    pub(super) fn executed_for(&self, query: &Query<BlockParam>) -> Option<(&Embedded, &Arc<dyn Source>)> {
        let (executed, embedded) = self.executed.as_ref()?;
        Some((*embedded, executed.source_for(query)?))
    }
}

/// How long nodes have to say whether a transaction that is in no block is pending.
const PENDING_LOOKUP_TIMEOUT: Duration = Duration::from_secs(2);

impl PoolBackend {
    pub(super) fn start(
        nodes: StartedPool,
        threads: Arc<ThreadPool>,
        cache: Arc<Cache>,
        memory: MemoryBudget,
        timings: &Arc<Timings>,
        limits: AnswerLimits,
    ) -> std::io::Result<Self> {
        let executed = nodes.executed_chain().map(|chain| {
            let (threads, cache, timings) = (Arc::clone(&threads), Arc::clone(&cache), Arc::clone(timings));
            let embedded =
                Embedded::new(chain.source(), threads, cache, memory.clone(), timings, limits.clone());
            ExecutedBackend { chain: Arc::clone(chain), embedded }
        });
        let remote = Arc::new(PoolSource::new(nodes, threads, cache, memory, limits));
        Ok(Self { _execution: start_executing(&remote)?, executed, remote })
    }

    pub(super) fn shared_calls(&self) -> u64 {
        let by_executed = self.executed.as_ref().map_or(0, |executed| executed.embedded.shared_calls());
        self.remote.shared_calls() + by_executed
    }

    /// The chain as it is now.
    pub(super) fn view(&self) -> PoolView<'_> {
        let pool = self.remote.pool();
        let executed = self.executed.as_ref();
        let executed = executed.map(|executed| (executed.chain.current_view(pool), &executed.embedded));
        // Both are of one moment.
        let chain = match &executed {
            Some((executed, _)) => executed.canonical_chain().cloned(),
            None => pool.canonical_chain(),
        };
        PoolView { chain, executed }
    }

    /// Answers from the executed chain. Nodes are asked for a transaction that it does not have: it may be pending.
    pub(super) async fn answer_from_executed_chain(
        &self,
        executed: &Embedded,
        call: EmbeddedCall<'_>,
        chain: Option<&Arc<CanonicalChain>>,
        method: &'static Method,
        may_fail_over: bool,
        out: &mut Vec<u8>,
    ) -> Result<Answer, Failure> {
        let (start, account) = (out.len(), call.account.id);
        let may_be_pending = QueryPlan::of(&call.query).subject.may_be_pending();
        let may_be_pending = chain.filter(|_| may_be_pending).map(|chain| (chain, call.query.clone()));
        let answer = executed.answer(call, method, out).await?;
        let is_null = answer.shared.as_deref().unwrap_or(&out[start..]) == b"null";
        if let Some((chain, query)) = may_be_pending
            && is_null
            && !self.remote.pool().all_unreachable()
        {
            let repetition = Repetition::Never { deadline: None };
            let call = NodeCall { account, chain, method, may_fail_over, repetition };
            let by_nodes = Box::pin(self.remote.answer(call, query));
            if let Ok(Ok(pending)) = tokio::time::timeout(PENDING_LOOKUP_TIMEOUT, by_nodes).await {
                out.truncate(start);
                return Ok(pending);
            }
        }
        Ok(answer)
    }
}
