//! Steps 4 to 7: one call of a request → how it ended.

use std::panic::AssertUnwindSafe;
use std::time::Duration;

use answers::{Chain, Resolved, resolve};
use bytes::Bytes;
use futures_util::FutureExt;
use http_server::RequestId;
use methods::{BlockParam, Method, MethodId, MissingBlock, WorkPlacement};
use remote::{HandedBack, PinnedCall, Repetition, Unanswered};
use sources::{Answer, Failure, Provenance};
use tokio::time::sleep;

use super::RequestContext;
use super::calls::ReadCall;
use crate::admit::{Permit, admit};
use crate::errors::{ErrorReply, internal_error};
use crate::meter::{CallRecord, Outcome};
use crate::observation::CallStep;
use crate::parse::ParsedCall;
use crate::shape::ReplyLimit;

pub(super) enum CallEnd {
    Answered(CallAnswer),
    /// It was admitted, and has an error as its answer.
    Failed(ErrorReply),
    NotAdmitted(ErrorReply),
}

impl CallEnd {
    fn error_mut(&mut self) -> Option<&mut ErrorReply> {
        match self {
            Self::Answered(_) => None,
            Self::Failed(error) | Self::NotAdmitted(error) => Some(error),
        }
    }

    pub(super) fn into_result(self) -> Result<CallAnswer, ErrorReply> {
        match self {
            Self::Answered(answer) => Ok(answer),
            Self::Failed(error) | Self::NotAdmitted(error) => Err(error),
        }
    }
}

/// Answers one call of a request. The result is appended to `out`, unless it is shared.
pub(super) async fn answer(
    context: &RequestContext<'_>,
    call: ReadCall<'_>,
    record: &mut CallRecord<'_>,
    limit: &ReplyLimit<'_>,
    out: &mut Vec<u8>,
) -> CallEnd {
    let RequestContext { gateway, caller, now, .. } = *context;
    let id_bytes = call.id.as_ref().map(|id| id.len());
    let admitted = admit(caller, call.credits, &gateway.capacity, &gateway.clock, now);
    record.end_step(CallStep::Admit);
    let mut end = match admitted {
        Ok(permit) => {
            record.credits = permit.credits();
            let admitted = answer_admitted(context, &permit, call, record, limit, out);
            // A panic costs one call its answer, and nothing else.
            let tried = AssertUnwindSafe(admitted).catch_unwind().await;
            let tried = tried.unwrap_or_else(|_| {
                tracing::error!(request = %context.id, "a call panicked");
                Err(internal_error())
            });
            tried.map_or_else(CallEnd::Failed, CallEnd::Answered)
        }
        Err(refused) => CallEnd::NotAdmitted(refused.into()),
    };
    let mut outcome = Outcome::Ok;
    if let Some(error) = end.error_mut() {
        if let Some(id_bytes) = id_bytes {
            charge_error(context, limit, id_bytes, error).await;
        }
        outcome = error.outcome;
        if let Some(observation) = &mut record.observation {
            observation.failed(error);
        }
    }
    record.outcome = outcome;
    end
}

/// Answers an admitted call, and charges for its result.
async fn answer_admitted(
    context: &RequestContext<'_>,
    permit: &Permit<'_>,
    call: ReadCall<'_>,
    record: &mut CallRecord<'_>,
    limit: &ReplyLimit<'_>,
    out: &mut Vec<u8>,
) -> Result<CallAnswer, ErrorReply> {
    let asked = call.parsed?;
    let Some(id) = call.id else {
        if let Some(observation) = &mut record.observation {
            observation.answered(None);
        }
        return Ok(CallAnswer::Notification);
    };
    let (method, named, start) = (asked.method, asked.query.block_pair(), out.len());
    // All calls of a batch see the same chain.
    let repetition =
        if limit.is_for_batch() { Repetition::Never { deadline: None } } else { Repetition::Once };
    let answer = match try_answer(context, permit, record, asked, &context.chain, repetition, out).await? {
        Tried::Answered(answer) => answer,
        // Boxed: the future is large, and few calls need it.
        Tried::HandedBack(before) => {
            Box::pin(answer_again(context, permit, record, (method, named), before, out)).await?
        }
    };
    if let Some(observation) = &mut record.observation {
        observation.answered(answer.provenance());
    }
    let (written, shared) = match &answer {
        CallAnswer::With(answer) => (out.len() - start, answer.shared.as_ref().map_or(0, Bytes::len)),
        CallAnswer::Nothing(missing, _) => (missing.json().len(), 0),
        CallAnswer::Notification => return Ok(answer),
    };
    limit.take_result(written + id.len() + ELEMENT_BYTES, shared)?;
    record.bytes_out = (written + shared) as u64;
    Ok(answer)
}

/// Charges for the reply of a call that ends with an error. An error that cannot be sent is replaced by the reason.
async fn charge_error(
    context: &RequestContext<'_>,
    limit: &ReplyLimit<'_>,
    id_bytes: usize,
    error: &mut ErrorReply,
) {
    if let Err(refused) = limit.take(error.reply_bytes(id_bytes)) {
        *error = refused.into();
        return;
    }
    let Some(data) = error.data.take_if(|data| data.is_large_revert()) else { return };
    let (account, pool) = (context.caller.account().id, context.gateway.answers.threads());
    match Box::pin(pool.run(account, move || data.into_json())).await {
        Ok(json) => error.data = Some(json),
        Err(failure) => *error = failure.into(),
    }
}

/// The outcome of a call on one chain.
enum Tried {
    Answered(CallAnswer),
    HandedBack(HandedBack),
}

/// Answers a call on one chain.
async fn try_answer(
    context: &RequestContext<'_>,
    permit: &Permit<'_>,
    record: &mut CallRecord<'_>,
    asked: ParsedCall,
    chain: &Chain<'_>,
    repetition: Repetition,
    out: &mut Vec<u8>,
) -> Result<Tried, ErrorReply> {
    let RequestContext { gateway, counters, id, .. } = *context;
    let (method, query) = (asked.method.row(), asked.query);
    let may_fail_over = context.may_fail_over && gateway.settings().network.failover.contains(&method.name);
    let chain = chain.for_call(permit.account().id, method, &query).await?;
    let query = match resolve(chain.blocks(), &gateway.settings().rules, method, query)? {
        Resolved::Nothing(missing) => {
            let provenance = chain.absence_provenance();
            return Ok(Tried::Answered(CallAnswer::Nothing(missing, provenance)));
        }
        Resolved::Pinned(query) => query,
    };
    let begun = gateway.clock.now();
    if let Some(observation) = &mut record.observation {
        observation.end_step_at(CallStep::Resolve, begun);
    }
    let body = context.body.clone();
    let call = PinnedCall { method, query, may_fail_over, repetition, body };
    let answer = chain.answer(permit.account(), call, out).await;
    record.end_step(CallStep::Answer);
    if method.rules.work == WorkPlacement::Inline {
        counters.reads.record(gateway.clock.now().since(begun));
    }
    match answer {
        Ok(answer) => Ok(Tried::Answered(CallAnswer::With(answer))),
        Err(Unanswered::HandedBack(before)) => Ok(Tried::HandedBack(before)),
        Err(Unanswered::Failed(failure)) => {
            log_internal_error(id, method, &failure);
            Err(failure.into())
        }
    }
}

/// The pause before a call is resolved once more: an executed chain may be a moment behind the view of the nodes.
const RESOLVED_AGAIN_AFTER: Duration = Duration::from_millis(20);

/// Answers a call on the chain as it is now, because no node could answer it before. `named` has its blocks as the caller named
/// them.
async fn answer_again(
    context: &RequestContext<'_>,
    permit: &Permit<'_>,
    record: &mut CallRecord<'_>,
    (method, named): (MethodId, [Option<BlockParam>; 2]),
    before: HandedBack,
    out: &mut Vec<u8>,
) -> Result<CallAnswer, ErrorReply> {
    sleep(RESOLVED_AGAIN_AFTER).await;
    let mut names = named.into_iter().flatten();
    let query = before.query.try_map(|_| names.next().ok_or(Failure::Unavailable))?;
    let chain = context.gateway.answers.chain();
    let repetition = Repetition::Never { deadline: Some(before.deadline) };
    let asked = ParsedCall { method, query };
    match try_answer(context, permit, record, asked, &chain, repetition, out).await? {
        Tried::Answered(answered) => Ok(answered),
        Tried::HandedBack(_) => Err(Failure::Unavailable.into()),
    }
}

/// Bytes of an element of a batch around its id and its result.
const ELEMENT_BYTES: usize = 48;

/// Logs the cause of an internal error, which the caller does not see.
fn log_internal_error(request: RequestId, method: &Method, failure: &Failure) {
    if let Failure::Broken(what) = failure {
        tracing::error!(%request, method = method.name, what, "a call could not be answered");
    }
}

pub(super) enum CallAnswer {
    With(Answer),
    /// With the value that stands for a missing block.
    Nothing(MissingBlock, Provenance),
    Notification,
}

impl CallAnswer {
    fn provenance(&self) -> Option<Provenance> {
        match self {
            Self::With(answer) => Some(answer.provenance),
            Self::Nothing(_, provenance) => Some(*provenance),
            Self::Notification => None,
        }
    }
}
