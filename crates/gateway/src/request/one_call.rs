//! Steps 5 to 8: one call of a request → how it ended.

use std::panic::AssertUnwindSafe;
use std::time::Duration;

use answers::{
    Answer, Failure, PinnedCall, Provenance, Reorganised, Repetition, RequestView, Resolved, Unanswered,
    resolve,
};
use bytes::Bytes;
use futures_util::FutureExt;
use http_server::RequestId;
use methods::{BlockParam, Method, MissingBlock, Query, WorkPlacement};
use tokio::time::{Instant, sleep};

use super::RequestContext;
use super::calls::ReadCall;
use super::pass::Pass;
use crate::admit::{Permit, admit};
use crate::errors::{ErrorReply, internal_error};
use crate::meter::{CallRecord, Outcome};
use crate::shape::ReplyLimit;

/// How a call ended on the chain of its pass.
pub(super) enum CallEnd {
    Answered(CallAnswer),
    /// It was admitted, and has an error as its answer.
    Failed(ErrorReply),
    NotAdmitted(ErrorReply),
    /// It is part of a batch, and its block was reorganised away. The error is its answer if the batch is not repeated.
    Lost {
        deadline: Instant,
        error: ErrorReply,
    },
}

impl CallEnd {
    fn of_admitted(tried: Result<Tried, ErrorReply>) -> Self {
        match tried {
            Ok(Tried::Answered(answer)) => Self::Answered(answer),
            Ok(Tried::Reorganised(Reorganised { deadline, .. })) => {
                Self::Lost { deadline, error: reorganised().into() }
            }
            Err(error) => Self::Failed(error),
        }
    }

    fn error_mut(&mut self) -> Option<&mut ErrorReply> {
        match self {
            Self::Answered(_) => None,
            Self::Failed(error) | Self::NotAdmitted(error) | Self::Lost { error, .. } => Some(error),
        }
    }

    pub(super) fn into_result(self) -> Result<CallAnswer, ErrorReply> {
        match self {
            Self::Answered(answer) => Ok(answer),
            Self::Failed(error) | Self::NotAdmitted(error) | Self::Lost { error, .. } => Err(error),
        }
    }
}

/// Answers one call of a request. The result is appended to `out`, unless it is shared. A call that was counted in a pass
/// before this one has no record.
pub(super) async fn answer(
    context: &RequestContext<'_>,
    pass: &Pass<'_>,
    call: ReadCall<'_>,
    mut record: Option<&mut CallRecord<'_>>,
    limit: &ReplyLimit<'_>,
    out: &mut Vec<u8>,
) -> CallEnd {
    let RequestContext { gateway, caller, now, .. } = *context;
    let id_bytes = call.id.as_ref().map(|id| id.len());
    // A repeated call was paid for the first time.
    let credits = if pass.is_first() { call.credits } else { 0 };
    let mut end = match admit(caller, credits, &gateway.capacity, &gateway.clock, now) {
        Ok(permit) => {
            if let Some(record) = record.as_mut().filter(|_| pass.is_first()) {
                record.set_credits(permit.credits());
            }
            let admitted = answer_admitted(context, pass, &permit, call, record.as_deref_mut(), limit, out);
            // A panic costs one call its answer, and nothing else.
            let tried = AssertUnwindSafe(admitted).catch_unwind().await;
            CallEnd::of_admitted(tried.unwrap_or_else(|_| {
                tracing::error!(request = %context.id, "a call panicked");
                Err(internal_error())
            }))
        }
        Err(refused) => CallEnd::NotAdmitted(refused.into()),
    };
    let mut outcome = Outcome::Ok;
    if let Some(error) = end.error_mut() {
        if let Some(id_bytes) = id_bytes {
            charge_error(context, limit, id_bytes, error).await;
        }
        outcome = error.outcome;
    }
    if let Some(record) = record {
        record.set_outcome(outcome);
    }
    end
}

/// Answers an admitted call, and charges for its result.
async fn answer_admitted(
    context: &RequestContext<'_>,
    pass: &Pass<'_>,
    permit: &Permit<'_>,
    call: ReadCall<'_>,
    record: Option<&mut CallRecord<'_>>,
    limit: &ReplyLimit<'_>,
    out: &mut Vec<u8>,
) -> Result<Tried, ErrorReply> {
    let asked = call.parsed?;
    let Some(id) = call.id else { return Ok(Tried::Answered(CallAnswer::Notification)) };
    let (method, named, start) = (asked.method.row(), asked.query.block_pair(), out.len());
    let view = pass.view(&context.view);
    let answer = match try_answer(context, permit, method, asked.query, view, pass.repetition(), out).await? {
        Tried::Answered(answer) => answer,
        lost @ Tried::Reorganised(_) if limit.is_for_batch() => return Ok(lost),
        // Boxed: the future is large, and few calls need it.
        Tried::Reorganised(before) => {
            Box::pin(answer_again(context, permit, method, named, before, out)).await?
        }
    };
    let (written, shared) = match &answer {
        CallAnswer::With(answer) => (out.len() - start, answer.shared.as_ref().map_or(0, Bytes::len)),
        CallAnswer::Nothing(missing, _) => (missing.json().len(), 0),
        CallAnswer::Notification => return Ok(Tried::Answered(answer)),
    };
    limit.take_result(written + id.len() + ELEMENT_BYTES, shared)?;
    if let Some(record) = record {
        record.set_result_bytes(written + shared);
    }
    Ok(Tried::Answered(answer))
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

/// The outcome of a call on the chain of one view.
enum Tried {
    Answered(CallAnswer),
    Reorganised(Reorganised),
}

/// Answers a call on the chain of one view.
async fn try_answer(
    context: &RequestContext<'_>,
    permit: &Permit<'_>,
    method: &'static Method,
    query: Query<BlockParam>,
    view: &RequestView<'_>,
    repetition: Repetition,
    out: &mut Vec<u8>,
) -> Result<Tried, ErrorReply> {
    let RequestContext { gateway, counters, id, .. } = *context;
    let may_fail_over = context.may_fail_over && gateway.network.failover.contains(&method.name);
    let at_pending = method.is_forwarded_at_pending(&query);
    let view = view.for_call(permit.account().id, method, &query, may_fail_over).await?;
    let query = match resolve(view.blocks(), &gateway.rules, method, query)? {
        Resolved::Nothing(missing) => {
            let provenance = view.absence_provenance(method);
            return Ok(Tried::Answered(CallAnswer::Nothing(missing, provenance)));
        }
        Resolved::Pinned(query) => query,
    };
    let begun = gateway.clock.now();
    let body = context.body.clone();
    let call = PinnedCall { method, query, may_fail_over, at_pending, repetition, body };
    let answer = view.answer(permit.account(), call, out).await;
    if method.rules.work == WorkPlacement::Inline {
        counters.reads.record(gateway.clock.now().since(begun));
    }
    match answer {
        Ok(answer) => Ok(Tried::Answered(CallAnswer::With(answer))),
        Err(Unanswered::Reorganised(before)) => Ok(Tried::Reorganised(before)),
        Err(Unanswered::Failed(failure)) => {
            log_internal_error(id, method, &failure);
            Err(failure.into())
        }
    }
}

/// The pause before a call is repeated once more: less than nodes take to be reorganised again.
pub(super) const REPEATED_AFTER: Duration = Duration::from_millis(20);

/// Repeats a call on the chain as it is now, because its block was reorganised away. `named` has its blocks as the caller
/// named them.
async fn answer_again(
    context: &RequestContext<'_>,
    permit: &Permit<'_>,
    method: &'static Method,
    named: [Option<BlockParam>; 2],
    mut before: Reorganised,
    out: &mut Vec<u8>,
) -> Result<CallAnswer, ErrorReply> {
    loop {
        let mut names = named.into_iter().flatten();
        let query = before.query.try_map(|_| names.next().ok_or(Failure::Unavailable))?;
        let (view, deadline) = (context.gateway.answers.request_view(), Some(before.deadline));
        let repetition = Repetition::Yes { deadline };
        match try_answer(context, permit, method, query, &view, repetition, out).await? {
            Tried::Answered(answered) => return Ok(answered),
            Tried::Reorganised(again) if Instant::now() < again.deadline => before = again,
            Tried::Reorganised(_) => return Err(reorganised().into()),
        }
        // An executed chain may be a moment behind the view of the nodes.
        sleep(REPEATED_AFTER).await;
    }
}

/// The failure of a call whose block is not found on the chain any more, however often it is repeated.
fn reorganised() -> Failure {
    Failure::NotServed { reason: "the nodes do not agree on the block of the call; repeat it".to_owned() }
}

/// Bytes of an element of a batch around its id and its result.
const ELEMENT_BYTES: usize = 48;

/// Logs the cause of an internal error, which the caller does not see.
fn log_internal_error(request: RequestId, method: &Method, failure: &Failure) {
    if let Failure::Broken(what) = failure {
        tracing::error!(%request, method = method.name, what, "a call could not be answered");
    }
}

/// How a call was answered.
pub(super) enum CallAnswer {
    With(Answer),
    /// With the value that stands for a missing block.
    Nothing(MissingBlock, Provenance),
    /// It was a notification.
    Notification,
}
