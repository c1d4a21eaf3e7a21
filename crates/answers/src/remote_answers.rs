//! Nodes, and the executed chain that answers most calls without them.

use std::sync::Arc;
use std::time::Duration;

use methods::Method;
use nodes::Canon;
use resources::{MemoryBudget, Threads};

use super::embedded::{Embedded, EmbeddedCall};
use super::remote::{ExecutionThread, NodeCall, Remote};
use crate::cache::Cache;
use crate::failure::{Failure, another_source};
use crate::limits::Limits;
use crate::provenance::Answer;
use crate::query_plan::QueryPlan;
use crate::remote::Sight;
use crate::timings::Timings;
use crate::unanswered::Repetition;

/// The nodes, and what is answered without them.
pub(super) struct RemoteAnswers {
    // In the order in which they have to go: the thread uses the nodes.
    _execution: Option<ExecutionThread>,
    /// Answers from the executed chain.
    executed: Option<Embedded>,
    pub(super) remote: Arc<Remote>,
}

/// How long nodes have to say whether a transaction that is in no block is pending.
const PENDING_PATIENCE: Duration = Duration::from_secs(2);

impl RemoteAnswers {
    pub(super) fn start(
        remote: Remote,
        threads: Arc<Threads>,
        cache: Arc<Cache>,
        memory: MemoryBudget,
        timings: &Arc<Timings>,
        limits: Limits,
    ) -> std::io::Result<Self> {
        let executed = remote.executed_chain().map(|chain| {
            let (threads, cache, timings) = (Arc::clone(&threads), Arc::clone(&cache), Arc::clone(timings));
            Embedded::new(chain.source(), threads, cache, memory.clone(), timings, limits.clone())
        });
        let remote = Arc::new(remote.within(threads, cache, memory, limits));
        Ok(Self { _execution: ExecutionThread::start(&remote)?, executed, remote })
    }

    pub(super) fn shared_calls(&self) -> u64 {
        self.remote.shared_calls() + self.executed.as_ref().map_or(0, Embedded::shared_calls)
    }

    /// Asks nodes, or else partners. With all of them down nobody knows what is pending, and the newest block is what comes
    /// closest, as with the embedded chain.
    pub(super) async fn answer_at_pending(
        &self,
        call: EmbeddedCall<'_>,
        sight: Sight<'_>,
        method: &'static Method,
        may_fail_over: bool,
        out: &mut Vec<u8>,
    ) -> Result<Answer, Failure> {
        let Some(executed) = &self.executed else { return Err(another_source()) };
        let asked = self.remote.answer_pending(call.account.id, sight, method, &call.query, may_fail_over);
        match Box::pin(asked).await {
            Err(Failure::Unavailable) if self.remote.pool().is_silent() => {
                executed.answer(call, method, out).await
            }
            answered => answered,
        }
    }

    /// Answers from the executed chain. Nodes are asked for a transaction that it does not have: it may be pending.
    pub(super) async fn answer_from_executed_chain(
        &self,
        call: EmbeddedCall<'_>,
        canon: Option<&Arc<Canon>>,
        method: &'static Method,
        may_fail_over: bool,
        out: &mut Vec<u8>,
    ) -> Result<Answer, Failure> {
        let Some(executed) = &self.executed else { return Err(another_source()) };
        let (start, account) = (out.len(), call.account.id);
        let may_be_pending = QueryPlan::of(&call.query).subject.may_be_pending();
        let may_be_pending = canon.filter(|_| may_be_pending).map(|canon| (canon, call.query.clone()));
        let answer = executed.answer(call, method, out).await?;
        let is_null = answer.shared.as_deref().unwrap_or(&out[start..]) == b"null";
        if let Some((canon, query)) = may_be_pending
            && is_null
            && !self.remote.pool().is_silent()
        {
            let call = NodeCall { account, canon, method, may_fail_over, repetition: Repetition::No };
            let by_nodes = Box::pin(self.remote.answer(call, query));
            if let Ok(Ok(pending)) = tokio::time::timeout(PENDING_PATIENCE, by_nodes).await {
                out.truncate(start);
                return Ok(pending);
            }
        }
        Ok(answer)
    }
}
