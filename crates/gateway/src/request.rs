//! The life of a request: calls the steps in their order.

mod batch; // the calls of a batch → its reply
mod batch_buffer; // copies into the reply of a batch
mod calls; // a body → its calls
mod one_call; // a call → how it ended
mod pass; // one attempt at all calls, on one view of the chain

use std::borrow::Cow;
use std::pin::pin;
use std::sync::Arc;

use answers::{Answer, RequestView};
use callers::Denied;
use http::header::{self, HeaderName};
use http_server::{
    BodyRefused, Connection, Headers, INLINE_BODY_BYTES_MAX, ReceivedBody, Refused, ReplyParts, RequestBody,
    RequestHead, RequestId, Service, ServiceReply, read_body,
};
use jsonrpc::{BodyFault, Id, Request};
use resources::{AccountMemory, MemoryCharge, MonoTime};

use crate::admit;
use crate::authenticate::{Caller, authenticate};
use crate::errors::{ErrorReply, over_capacity};
use crate::gateway_state::GatewayState;
use crate::meter::{CallRecord, Outcome, WorkerCounters};
use crate::respond::{Reply, respond};
use crate::route::{Route, route};
use crate::shape::ReplyLimit;

use batch::BatchSize;
use calls::{ReadCall, ReadRequest};
use one_call::{CallAnswer, answer};
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
        counters: &gateway.worker_counters[connection.worker()],
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
                gateway.worker_counters[connection.worker()].count_request(caller, Outcome::Invalid, credits);
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
    let RequestContext { gateway, counters, caller, now, .. } = *context;
    admit::charge(caller, credits, &gateway.clock, now)?;
    counters.count_request(caller, outcome, credits);
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
        let counters = &gateway.worker_counters[connection.worker()];
        counters.count_request(&caller, Outcome::Denied, admit::REFUSED_CREDITS);
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
    counters: &'a WorkerCounters,
    caller: &'a Caller,
    /// The chain as all calls of the request see it.
    view: RequestView<'a>,
    may_fail_over: bool,
    now: MonoTime,
    id: RequestId,
    /// The memory that the reply is charged to.
    memory: AccountMemory<'a>,
    /// The charge for the body. Work in the pool that may outlive the request holds it, too.
    body: Option<Arc<MemoryCharge>>,
}

impl<'a> RequestContext<'a> {
    /// Begins the record of a call.
    fn begin_record(&self, call: &ReadCall<'_>) -> CallRecord<'a> {
        let mut record = CallRecord::begin(self.counters, &self.gateway.clock, self.caller, self.now);
        record.set_call(call.parsed.as_ref().ok().map(|asked| asked.method), call.bytes);
        record
    }
}

async fn single(context: &RequestContext<'_>, call: ReadCall<'_>) -> Reply {
    let (limit, pass) = (ReplyLimit::for_single(context.memory), Pass::single());
    let mut record = context.begin_record(&call);
    let Some(id) = call.id.clone() else {
        let mut unused = Vec::new();
        // A notification is admitted and metered like any call, and its outcome is not reported.
        let _unsaid = answer(context, &pass, call, Some(&mut record), &limit, &mut unused).await;
        return Reply::silent();
    };
    let id = Id::from_raw(&id);
    let mut out = Vec::with_capacity(REPLY_BYTES_USUAL);
    jsonrpc::begin_result(&mut out, id);
    let end = answer(context, &pass, call, Some(&mut record), &limit, &mut out).await;
    let reply = match end.into_result() {
        Ok(CallAnswer::With(Answer { provenance, shared: Some(shared) })) => {
            Reply::result(ReplyParts::around(shared, out, jsonrpc::RESULT_END), Some(provenance))
        }
        Ok(CallAnswer::With(Answer { provenance, shared: None })) => {
            jsonrpc::end_result(&mut out);
            Reply::result(ReplyParts::one(out), Some(provenance))
        }
        Ok(CallAnswer::Nothing(missing, provenance)) => {
            out.extend_from_slice(missing.json());
            jsonrpc::end_result(&mut out);
            Reply::result(ReplyParts::one(out), provenance)
        }
        Ok(CallAnswer::Notification) => Reply::silent(),
        Err(error) => Reply::error(id, error),
    };
    // HTTP/2 sends a short reply in one piece, which has to carry the charge.
    reply.charged(limit.into_charge(), context.memory.counts_small())
}

/// Room for a storage value or a short object without growing.
const REPLY_BYTES_USUAL: usize = 256;
