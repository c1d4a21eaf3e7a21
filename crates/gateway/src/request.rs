//! The life of a request: calls the steps in their order.

mod batch; // the calls of a batch → its reply
mod batch_buffer; // copies into the reply of a batch
mod calls; // a body → its calls
mod pass; // one attempt at all calls, on one view of the chain

use std::borrow::Cow;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use answers::{
    Answer, Failure, PinnedCall, Provenance, Reorganised, Repetition, RequestView, Resolved, Unanswered,
    resolve,
};
use bytes::Bytes;
use callers::Denied;
use http::header::{self, HeaderName};
use http_server::{
    BodyRefused, Connection, Headers, INLINE_BODY_BYTES_MAX, ReceivedBody, Refused, RequestBody, RequestHead,
    RequestId, Service, ServiceReply, read_body,
};
use jsonrpc::{BodyFault, Id, Request};
use methods::{self, Method, MissingBlock, WorkPlacement};
use methods::{BlockParam, Query};
use resources::{AccountMemory, MemoryCharge, MonoTime};
use tokio::time::{Instant, sleep};

use crate::admit::{self, Permit, admit};
use crate::authenticate::{Caller, authenticate};
use crate::errors::{ErrorReply, over_capacity};
use crate::gateway_state::GatewayState;
use crate::meter::{CallRecord, Outcome, Shard};
use crate::respond::{Reply, respond};
use crate::route::{Route, route};
use crate::shape::ReplyLimit;

use batch::BatchSize;
use calls::{ReadCall, ReadRequest};
use pass::{BATCH_REPETITIONS_MAX, Pass};

impl Service for GatewayState {
    type Reply = Reply;

    // `Send` is stated because the compiler cannot infer it for a generic `B`.
    #[expect(clippy::manual_async_fn)]
    fn answer<'s, 'a: 's, B: RequestBody<'a>>(
        self: &'s Arc<Self>,
        connection: &'s Connection,
        id: RequestId,
        head: &'s RequestHead<'_>,
        body: &'s mut B,
    ) -> impl Future<Output = Reply> + Send {
        async move {
            let mut caller = None;
            let reply = match steps(self, connection, id, head, body, &mut caller).await {
                Ok(reply) => reply,
                Err(error) => Reply::error(Id::NULL, error),
            };
            let reply = respond(self, connection, id, head.headers, reply).await;
            log(self, connection, id, caller.as_ref(), &reply);
            reply
        }
    }

    async fn refuse_request(&self, connection: &Connection, id: RequestId, refused: Refused) -> Reply {
        let reply = Reply::error(Id::NULL, refused.into());
        let reply = respond(self, connection, id, Headers::Lines(&[]), reply).await;
        log(self, connection, id, None, &reply);
        reply
    }

    fn refuse_connection(&self, id: RequestId) -> Reply {
        Reply::error(Id::NULL, over_capacity()).with_request_id(id)
    }
}

/// Logs one line per request at the level debug. The path is left out, because it has the key; the name that the
/// configuration gives the key is logged instead.
fn log(
    gateway: &GatewayState,
    connection: &Connection,
    id: RequestId,
    caller: Option<&Caller>,
    reply: &Reply,
) {
    tracing::debug!(
        request = %id,
        key = caller.map(Caller::key_name),
        status = reply.status().as_u16(),
        bytes = reply.body_len(),
        us = gateway.clock.now().since(connection.now()).as_micros() as u64,
        "answered"
    );
}

async fn steps<'a>(
    gateway: &Arc<GatewayState>,
    connection: &Connection,
    id: RequestId,
    head: &RequestHead<'_>,
    body: &mut impl RequestBody<'a>,
    recognised: &mut Option<Caller>,
) -> Result<Reply, ErrorReply> {
    let routed = route(head, &gateway.limits.http);
    let key = match routed.map_err(|refused| unauthenticated(connection, head.headers, refused))? {
        Route::Preflight => return Ok(Reply::preflight()),
        Route::Call { key } => key,
    };
    let caller = match caller(gateway, connection, key, head.headers) {
        Ok(caller) => &*recognised.insert(caller),
        Err(refused) => {
            body.skip().await;
            return Err(refused);
        }
    };
    let ReceivedBody { bytes, charge } = read(gateway, connection, head, body, caller).await?;
    let context = RequestContext {
        gateway,
        shard: &gateway.shards[connection.worker()],
        caller,
        view: gateway.answers.request_view(),
        may_fail_over: caller.account().plan().failover && !refuses_failover(head.headers),
        now: connection.now(),
        id,
        memory: connection.memory(caller.account().id),
        body: charge.into_shared(),
    };
    let reply = body.run_while_connected(pin!(calls(&context, bytes))).await??;
    Ok(reply.for_account(caller.account().id))
}

/// Reads the whole body. A body that is refused while it is inflated is charged by its inflated size.
async fn read<'a>(
    gateway: &GatewayState,
    connection: &Connection,
    head: &RequestHead<'_>,
    body: &mut impl RequestBody<'a>,
    caller: &Caller,
) -> Result<ReceivedBody<'a>, ErrorReply> {
    let (account, threads) = (caller.account().id, gateway.answers.threads());
    let read = read_body(connection, head, body, account, gateway.limits.http.body_bytes_max, threads).await;
    match read {
        Ok(received) => Ok(received),
        Err(BodyRefused { refused, inflated }) => {
            if let Some(bytes) = inflated {
                let credits = admit::refused_credits(bytes);
                admit::charge(caller, credits, &gateway.clock, connection.now())?;
                gateway.shards[connection.worker()].count_request(caller, Outcome::Invalid, credits);
            }
            Err(refused.into())
        }
    }
}

/// The calls of a request → its reply.
async fn calls(context: &RequestContext<'_>, text: Cow<'_, [u8]>) -> Result<Reply, ErrorReply> {
    if text.len() > INLINE_BODY_BYTES_MAX {
        return Box::pin(answer_large_body(context, text.into_owned())).await;
    }
    let text = &*text;
    let read = |item: &_, bytes| ReadCall::new(item, bytes, context.gateway, context.caller);
    match jsonrpc::parse_within(text, context.gateway.limits.http.batch_calls_max) {
        Ok(Request::Single(item)) => Ok(single(context, read(&item, text.len())).await),
        Ok(Request::Batch(items)) => {
            let bytes = text.len() / items.len();
            let size = BatchSize::of(items.iter().map(calls::id_of));
            let read = || items.iter().map(|item| read(item, bytes));
            batch::answer(context, size, read, BATCH_REPETITIONS_MAX).await
        }
        Err(fault) => refuse(context, text.len(), fault),
    }
}

/// The calls of a large body, which is read in the pool → the reply. The charge for the body also covers its typed calls,
/// which are about as large.
async fn answer_large_body(context: &RequestContext<'_>, text: Vec<u8>) -> Result<Reply, ErrorReply> {
    let len = text.len();
    match calls::read_in_pool(context.gateway, context.caller, text, context.body.clone()).await? {
        Ok(ReadRequest::Single(call)) => Ok(single(context, *call).await),
        Ok(ReadRequest::Batch(calls)) => {
            // Their parameters are used up by the first answers, and a second copy of them would take as much memory again.
            let size = BatchSize::of(calls.iter().map(|call| call.id.as_deref().map(Id::from_raw)));
            let mut calls = Some(calls);
            batch::answer(context, size, || calls.take().into_iter().flatten(), 0).await
        }
        Err(fault) => refuse(context, len, fault),
    }
}

/// Refuses a body without calls, which is charged by its size.
fn refuse(context: &RequestContext<'_>, bytes: usize, fault: BodyFault) -> Result<Reply, ErrorReply> {
    charge_request(context, Outcome::Invalid, admit::refused_credits(bytes))?;
    Err(fault.into())
}

/// Charges for a request and not for one of its calls.
fn charge_request(context: &RequestContext<'_>, outcome: Outcome, credits: u64) -> Result<(), ErrorReply> {
    let RequestContext { gateway, shard, caller, now, .. } = *context;
    admit::charge(caller, credits, &gateway.clock, now)?;
    shard.count_request(caller, outcome, credits);
    Ok(())
}

const ENABLE_FAILOVER: HeaderName = HeaderName::from_static("enable-failover");

/// Whether the caller does not want a partner to see this request.
fn refuses_failover(headers: Headers<'_>) -> bool {
    headers.get(&ENABLE_FAILOVER).is_some_and(|value| value.eq_ignore_ascii_case(b"false"))
}

/// Identifies the caller and checks the settings of its key. An unauthenticated request is free, or it could use up the
/// credits of somebody else.
fn caller(
    gateway: &GatewayState,
    connection: &Connection,
    key: &str,
    headers: Headers<'_>,
) -> Result<Caller, ErrorReply> {
    let caller = authenticate(&gateway.callers, key, headers)
        .map_err(|denied| unauthenticated(connection, headers, denied))?;
    connection.recognize(caller.account().id);
    let text = |name| headers.text(name).unwrap_or_default();
    if let Some(settings) = caller.settings()
        && let Err(setting) = settings.check_request(text(&header::ORIGIN), text(&header::USER_AGENT))
    {
        admit::charge(&caller, admit::REFUSED_CREDITS, &gateway.clock, connection.now())?;
        let shard = &gateway.shards[connection.worker()];
        shard.count_request(&caller, Outcome::Denied, admit::REFUSED_CREDITS);
        return Err(Denied::Setting(setting).into());
    }
    Ok(caller)
}

/// The error of a request without a valid key. If its address made too many of them, that is the error, whatever `reason` is.
fn unauthenticated(
    connection: &Connection,
    headers: Headers<'_>,
    reason: impl Into<ErrorReply>,
) -> ErrorReply {
    match connection.count_unauthenticated(headers) {
        Ok(()) => reason.into(),
        Err(too_many) => too_many.into(),
    }
}

/// State that all calls of one request share.
struct RequestContext<'a> {
    gateway: &'a Arc<GatewayState>,
    shard: &'a Shard,
    caller: &'a Caller,
    /// The chain as all calls of the request see it.
    view: RequestView<'a>,
    may_fail_over: bool,
    now: MonoTime,
    id: RequestId,
    /// The memory that the reply is charged to.
    memory: AccountMemory<'a>,
    /// The charge for the body. Work in the pool that may outlive the request keeps it, too.
    body: Option<Arc<MemoryCharge>>,
}

/// One call of a request → its answer. `place` is its index in the request. The result is appended to `out`, unless it is
/// shared.
async fn answer<'w>(
    context: &RequestContext<'w>,
    pass: &Pass<'w>,
    place: usize,
    call: ReadCall<'_>,
    limit: &ReplyLimit<'_>,
    out: &mut Vec<u8>,
) -> Result<CallAnswer, ErrorReply> {
    let RequestContext { gateway, shard, caller, now, .. } = *context;
    let mut record = pass.record(place, || {
        let mut record = CallRecord::begin(shard, &gateway.clock, caller, now);
        record.set_call(call.parsed.as_ref().ok().map(|asked| asked.method), call.bytes);
        record
    });
    let id_bytes = call.id.as_ref().map(|id| id.len());
    let outcome = async {
        // A repeated call was paid for the first time.
        let credits = if pass.is_first() { call.credits } else { 0 };
        let permit =
            admit(caller, credits, &gateway.capacity, &gateway.clock, now).inspect_err(|_| pass.refuse())?;
        if let Some(record) = record.as_mut().filter(|_| pass.is_first()) {
            record.set_credits(permit.credits());
        }
        let asked = call.parsed?;
        let Some(id_bytes) = id_bytes else {
            return Ok(Tried::Answered(CallAnswer::Notification));
        };
        let (method, start) = (asked.method.row(), out.len());
        let named = asked.query.block_pair();
        let is_of_batch = limit.is_for_batch();
        let repetition = if is_of_batch { pass.repetition() } else { Repetition::Yes { deadline: None } };
        let view = pass.view(&context.view);
        let answered = match try_answer(context, &permit, method, asked.query, view, repetition, out).await? {
            Tried::Answered(answered) => answered,
            lost @ Tried::Reorganised(_) if is_of_batch => return Ok(lost),
            // Boxed: the future is large, and few calls need it.
            Tried::Reorganised(before) => {
                Box::pin(answer_again(context, &permit, method, named, before, out)).await?
            }
        };
        let (written, shared) = match &answered {
            CallAnswer::With(answer) => (out.len() - start, answer.shared.as_ref().map_or(0, Bytes::len)),
            CallAnswer::Nothing(missing, _) => (missing.json().len(), 0),
            CallAnswer::Notification => return Ok(Tried::Answered(answered)),
        };
        limit.take_result(written + id_bytes + ELEMENT_BYTES, shared)?;
        if let Some(record) = &mut record {
            record.set_result_bytes(written + shared);
        }
        Ok(Tried::Answered(answered))
    }
    .await;
    let (outcome, lost) = match outcome {
        Ok(Tried::Answered(answered)) => (Ok(answered), None),
        Ok(Tried::Reorganised(before)) => (Err(Failure::Unavailable.into()), Some(before.deadline)),
        Err(error) => (Err(error), None),
    };
    let outcome = match (outcome, id_bytes) {
        (Err(error), Some(id_bytes)) => Err(charged_error(context, limit, id_bytes, error).await),
        (outcome, _) => outcome,
    };
    if let Some(record) = &mut record {
        record.set_outcome(outcome.as_ref().map_or_else(|error: &ErrorReply| error.outcome, |_| Outcome::Ok));
    }
    if let Some(deadline) = lost {
        pass.lose(place, record, deadline);
    }
    outcome
}

/// Charges for the reply of a call that ends with an error, and gives that error, or why it cannot be sent.
async fn charged_error(
    context: &RequestContext<'_>,
    limit: &ReplyLimit<'_>,
    id_bytes: usize,
    mut error: ErrorReply,
) -> ErrorReply {
    if let Err(refused) = limit.take(error.reply_bytes(id_bytes)) {
        return refused.into();
    }
    let Some(data) = error.data.take_if(|data| data.is_large_revert()) else { return error };
    let (account, pool) = (context.caller.account().id, context.gateway.answers.threads());
    match Box::pin(pool.run(account, move || data.into_json())).await {
        Some(json) => ErrorReply { data: Some(json), ..error },
        None => over_capacity(),
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
    let RequestContext { gateway, shard, id, .. } = *context;
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
        shard.reads.record(gateway.clock.now().since(begun));
    }
    match answer {
        Ok(answer) => Ok(Tried::Answered(CallAnswer::With(answer))),
        Err(Unanswered::Reorganised(before)) => Ok(Tried::Reorganised(before)),
        Err(Unanswered::Failed(failure)) => {
            log_our_fault(id, method, &failure);
            Err(failure.into())
        }
    }
}

/// The pause before a call is repeated once more: less than nodes take to be reorganised again.
const REPEATED_AFTER: Duration = Duration::from_millis(20);

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
            Tried::Reorganised(_) => return Err(Failure::Unavailable.into()),
        }
        // An executed chain may be a moment behind the view of the nodes.
        sleep(REPEATED_AFTER).await;
    }
}

/// Bytes of an element of a batch around its id and its result.
const ELEMENT_BYTES: usize = 48;

/// Logs the cause of an internal error, which the caller does not see.
fn log_our_fault(request: RequestId, method: &Method, failure: &Failure) {
    if let Failure::Broken(what) = failure {
        tracing::error!(%request, method = method.name, what, "a call could not be answered");
    }
}

/// How a call was answered.
enum CallAnswer {
    With(Answer),
    /// With the value that stands for a missing block.
    Nothing(MissingBlock, Option<Provenance>),
    /// It was a notification.
    Notification,
}

async fn single(context: &RequestContext<'_>, call: ReadCall<'_>) -> Reply {
    let (limit, pass) = (ReplyLimit::for_single(context.memory), Pass::single());
    let Some(id) = call.id.clone() else {
        let mut unused = Vec::new();
        // A notification is admitted and metered like any call, and its outcome is not reported.
        let _unsaid = answer(context, &pass, 0, call, &limit, &mut unused).await;
        return Reply::silent();
    };
    let id = Id::from_raw(&id);
    let mut out = Vec::with_capacity(REPLY_BYTES_USUAL);
    jsonrpc::begin_result(&mut out, id);
    let reply = match answer(context, &pass, 0, call, &limit, &mut out).await {
        Ok(CallAnswer::With(Answer { provenance, shared: Some(shared) })) => {
            Reply::result(reply_parts(out, shared), Some(provenance))
        }
        Ok(CallAnswer::With(Answer { provenance, shared: None })) => {
            jsonrpc::end_result(&mut out);
            Reply::result([out.into(), Bytes::new(), Bytes::new()], Some(provenance))
        }
        Ok(CallAnswer::Nothing(missing, provenance)) => {
            out.extend_from_slice(missing.json());
            jsonrpc::end_result(&mut out);
            Reply::result([out.into(), Bytes::new(), Bytes::new()], provenance)
        }
        Ok(CallAnswer::Notification) => Reply::silent(),
        Err(error) => Reply::error(id, error),
    };
    // HTTP/2 sends a short reply in one piece, which has to carry the charge.
    reply.charged(limit.into_charge(), context.memory.counts_small())
}

/// Room for a storage value or a short object without growing.
const REPLY_BYTES_USUAL: usize = 256;

/// The parts of a reply with a shared answer, which is sent without copying it.
fn reply_parts(before: Vec<u8>, shared: Bytes) -> [Bytes; 3] {
    [before.into(), shared, Bytes::from_static(jsonrpc::RESULT_END)]
}
