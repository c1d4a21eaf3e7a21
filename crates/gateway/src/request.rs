//! The life of a request: calls the steps in their order.

mod batch; // the calls of a batch → its reply
mod batch_buffer; // copies into the reply of a batch
mod calls; // a body → its calls
mod inflated; // a compressed body → the same decompressed
mod one_call; // a call → how it ended
mod panicked; // a request that panicked outside of its calls → its reply

use std::borrow::Cow;
use std::panic::AssertUnwindSafe;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use answers::Chain;
use callers::Denied;
use futures_util::FutureExt;
use http::header::{self, HeaderName};
use http_server::{
    Connection, Headers, INLINE_BODY_BYTES_MAX, ReceivedBody, Refused, ReplyParts, RequestBody,
    RequestCoding, RequestHead, RequestId, Service, ServiceReply,
};
use jsonrpc::{BodyFault, Id, Request};
use nodes::{TRACEPARENT, TraceContext};
use resources::{AccountMemory, MemoryCharge, MonoTime, QueueFull};
use sources::{Answer, Provenance};

use crate::admit;
use crate::authenticate::{Caller, authenticate};
use crate::errors::{ErrorReply, internal_error, over_capacity};
use crate::gateway_state::GatewayState;
use crate::meter::{CallRecord, Outcome, WorkerCounters};
use crate::observation::{CallObservation, CallStep, RequestObservation};
use crate::policy::{BODY_WITHOUT_TURN_BYTES_MAX, REFUSED_CREDITS};
use crate::respond::{REQUEST_ID, Reply, respond};
use crate::route::{Route, route};
use crate::shape::ReplyLimit;

use batch::BatchSize;
use calls::{ReadCall, ReadRequest};
use inflated::inflated;
use one_call::{CallAnswer, answer};
use panicked::panicked;

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
            let id = head.headers.text(&REQUEST_ID).and_then(RequestId::of_caller).unwrap_or(id);
            let mut known = KnownRequest::default();
            let mut observation = observe(self, connection, id, head.headers);
            let steps = steps(self, connection, id, head, body, &mut known, &mut observation);
            let reply = match AssertUnwindSafe(steps).catch_unwind().await {
                Ok(Ok(reply)) => reply,
                Ok(Err(error)) => {
                    if let Some(observation) = &observation {
                        observation.refuse(known.caller.as_ref(), &error);
                    }
                    Reply::error(Id::NULL, error)
                }
                Err(_) => {
                    tracing::error!(request = %id, "a request panicked");
                    if let Some(observation) = &observation {
                        observation.refuse(known.caller.as_ref(), &internal_error());
                    }
                    panicked(known.text.as_deref(), self.request_limits().batch_calls_max)
                }
            };
            let caller = known.caller;
            let responding =
                AssertUnwindSafe(respond(self, connection, id, head.headers, reply)).catch_unwind();
            let reply = responding
                .await
                .unwrap_or_else(|_| Reply::error(Id::NULL, internal_error()).with_request_id(id));
            log(self, connection, id, caller.as_ref(), &reply);
            reply
        }
    }

    async fn refuse_request(&self, connection: &Connection, id: RequestId, refused: Refused) -> Reply {
        let (error, no_headers) = (ErrorReply::from(refused), Headers::Lines(&[]));
        if let Some(observation) = observe(self, connection, id, no_headers) {
            observation.refuse(None, &error);
        }
        let reply = respond(self, connection, id, no_headers, Reply::error(Id::NULL, error)).await;
        log(self, connection, id, None, &reply);
        reply
    }

    fn refuse_connection(&self, id: RequestId) -> Reply {
        Reply::error(Id::NULL, over_capacity()).with_request_id(id)
    }
}

/// The facts about a request that its log line needs when it ends, however it ends.
#[derive(Default)]
struct KnownRequest<'a> {
    caller: Option<Caller>,
    /// Its body. A large one is empty once it is read in the pool.
    text: Option<Cow<'a, [u8]>>,
}

/// Begins to tell of a request, if somebody is told.
fn observe<'a>(
    gateway: &'a GatewayState,
    connection: &Connection,
    id: RequestId,
    headers: Headers<'_>,
) -> Option<RequestObservation<'a>> {
    let log = gateway.access_log.as_ref()?;
    Some(RequestObservation::begin(log, &gateway.answers, &gateway.clock, connection, id, headers))
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

async fn steps<'a, 's>(
    gateway: &'s Arc<GatewayState>,
    connection: &Connection,
    id: RequestId,
    head: &RequestHead<'_>,
    body: &mut impl RequestBody<'a>,
    known: &mut KnownRequest<'a>,
    observation: &mut Option<RequestObservation<'s>>,
) -> Result<Reply, ErrorReply> {
    let routed = route(head, &gateway.request_limits());
    let (key, coding) = match routed.map_err(|refused| unauthenticated(connection, head.headers, refused))? {
        Route::Preflight => return Ok(Reply::preflight()),
        Route::Call { key, coding } => (key, coding),
    };
    let caller = match caller(gateway, connection, key, head.headers) {
        Ok(caller) => &*known.caller.insert(caller),
        Err(refused) => {
            body.skip().await;
            return Err(refused);
        }
    };
    let account = caller.account().id;
    if let Some(observation) = observation {
        observation.end_step(CallStep::Authenticate);
    }
    let ReceivedBody { bytes, charge } = read(gateway, connection, body, coding, caller).await?;
    if let Some(observation) = observation {
        observation.end_step(CallStep::Read);
    }
    let text = known.text.insert(bytes);
    let context = RequestContext {
        gateway,
        counters: &gateway.worker_counters[connection.worker()],
        caller,
        chain: gateway.answers.chain(),
        may_fail_over: caller.account().plan().failover && !refuses_failover(head.headers),
        now: connection.now(),
        id,
        observation: observation.as_ref(),
        memory: connection.memory(account),
        body: charge.into_shared(),
    };
    let takes_turns = text.len() > BODY_WITHOUT_TURN_BYTES_MAX;
    let answering = pin!(calls(&context, text));
    let reply = pin!(in_trace(trace(gateway, head.headers), answering));
    let reply = if takes_turns {
        let in_turns = pin!(gateway.turns[connection.worker()].run(account, reply));
        body.run_while_connected(in_turns).await?.map_err(|QueueFull| over_capacity())?
    } else {
        body.run_while_connected(reply).await?
    };
    Ok(reply?.for_account(account))
}

/// Reads the whole body, and decompresses it.
async fn read<'a>(
    gateway: &Arc<GatewayState>,
    connection: &Connection,
    body: &mut impl RequestBody<'a>,
    coding: Option<RequestCoding>,
    caller: &Caller,
) -> Result<ReceivedBody<'a>, ErrorReply> {
    let memory = connection.memory(caller.account().id);
    let received = body.read(gateway.request_limits().body_bytes_max, memory).await?;
    connection.counts().bytes_in.fetch_add(received.bytes.len() as u64, Relaxed);
    let Some(coding) = coding else { return Ok(received) };
    let mut inflated = Box::pin(inflated(gateway, connection, caller, coding, received));
    body.run_while_connected(inflated.as_mut()).await?
}

/// The calls of a request → its reply. A large body is taken.
async fn calls(context: &RequestContext<'_>, text: &mut Cow<'_, [u8]>) -> Result<Reply, ErrorReply> {
    if text.len() > INLINE_BODY_BYTES_MAX {
        return Box::pin(answer_large_body(context, std::mem::take(text).into_owned())).await;
    }
    let text = &**text;
    let read = |item: &_, bytes| ReadCall::new(item, bytes, context.gateway, context.caller);
    match jsonrpc::parse_within(text, context.gateway.request_limits().batch_calls_max) {
        Ok(Request::Single(item)) => Ok(single(context, read(&item, text.len())).await),
        Ok(Request::Batch(items)) => {
            let bytes = text.len() / items.len();
            let size = BatchSize::of(items.iter().map(calls::id_of));
            batch::answer(context, size, items.iter().map(|item| read(item, bytes))).await
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
            let size = BatchSize::of(calls.iter().map(|call| call.id.as_deref().map(Id::from_raw)));
            batch::answer(context, size, calls.into_iter()).await
        }
        Err(fault) => refuse(context, len, fault),
    }
}

/// Refuses a body without calls, which is charged by its size.
fn refuse(context: &RequestContext<'_>, bytes: usize, fault: BodyFault) -> Result<Reply, ErrorReply> {
    RequestCharge::take(context, Outcome::Invalid, admit::refused_credits(bytes))?;
    Err(fault.into())
}

/// The charge for a request and not for one of its calls. It is counted when this is dropped; a panic of ours gives it back.
struct RequestCharge<'a> {
    gateway: &'a GatewayState,
    counters: &'a WorkerCounters,
    caller: &'a Caller,
    outcome: Outcome,
    credits: u64,
}

impl<'a> RequestCharge<'a> {
    fn take(context: &RequestContext<'a>, outcome: Outcome, credits: u64) -> Result<Self, ErrorReply> {
        let RequestContext { gateway, counters, caller, now, .. } = *context;
        let mut charge = Self { gateway, counters, caller, outcome, credits: 0 };
        charge.raise_to(credits, now)?;
        Ok(charge)
    }

    /// Charges what is missing to these credits.
    fn raise_to(&mut self, credits: u64, now: MonoTime) -> Result<(), ErrorReply> {
        if let Some(missing) = credits.checked_sub(self.credits).filter(|missing| *missing > 0) {
            admit::charge(self.caller, missing, &self.gateway.clock, now)?;
            self.credits = credits;
        }
        Ok(())
    }
}

impl Drop for RequestCharge<'_> {
    fn drop(&mut self) {
        if self.credits == 0 {
            return;
        }
        if self.outcome.is_free() || std::thread::panicking() {
            admit::give_back(self.caller, self.credits, self.gateway.clock.unix_seconds());
        } else {
            self.counters.count_request(self.caller, self.outcome, self.credits);
        }
    }
}

const ENABLE_FAILOVER: HeaderName = HeaderName::from_static("enable-failover");

const TAG: HeaderName = HeaderName::from_static("chaingate-tag");

/// Whether the caller does not want a partner to see this request.
fn refuses_failover(headers: Headers<'_>) -> bool {
    headers.get(&ENABLE_FAILOVER).is_some_and(|value| value.eq_ignore_ascii_case(b"false"))
}

/// Lets nodes know the trace that the calls of a request belong to, if there is one.
async fn in_trace<F: Future>(trace: Option<TraceContext>, answering: Pin<&mut F>) -> F::Output {
    match trace {
        None => answering.await,
        Some(trace) => trace.run(answering).await,
    }
}

/// The trace that a request belongs to, for nodes.
fn trace(gateway: &GatewayState, headers: Headers<'_>) -> Option<TraceContext> {
    gateway.answers.remote()?;
    headers.text(&TRACEPARENT).and_then(TraceContext::parse)
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
    let caller = match headers.get(&TAG) {
        Some(tag) => {
            let tag = gateway.usage.tag(caller.key(), tag, gateway.clock.unix_seconds());
            caller.with_tag(tag)
        }
        None => caller,
    };
    let text = |name| headers.text(name).unwrap_or_default();
    if let Some(settings) = caller.settings()
        && let Err(setting) = settings.check_request(text(&header::ORIGIN), text(&header::USER_AGENT))
    {
        admit::charge(&caller, REFUSED_CREDITS, &gateway.clock, connection.now())?;
        let counters = &gateway.worker_counters[connection.worker()];
        counters.count_request(&caller, Outcome::Denied, REFUSED_CREDITS);
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
    chain: Chain<'a>,
    may_fail_over: bool,
    now: MonoTime,
    id: RequestId,
    /// `None` if nobody is told of the request.
    observation: Option<&'a RequestObservation<'a>>,
    /// The memory that the reply is charged to.
    memory: AccountMemory<'a>,
    /// The charge for the body. Work in the pool that may outlive the request holds it, too.
    body: Option<Arc<MemoryCharge>>,
}

impl<'a> RequestContext<'a> {
    fn begin_record(&self, call: &ReadCall<'_>) -> CallRecord<'a> {
        let mut record = CallRecord::begin(self.counters, &self.gateway.clock, self.caller, self.now);
        record.method = call.parsed.as_ref().ok().map(|asked| asked.method);
        record.bytes_in = call.bytes as u64;
        record.observation = self.observation.map(CallObservation::begin);
        record
    }

    /// The name of the node that answered, if the caller may see it.
    fn node_to_show(&self, provenance: Provenance) -> Option<String> {
        let node = provenance.node?;
        self.caller.settings().filter(|settings| settings.shows_node())?;
        self.gateway.answers.node_name(node)
    }
}

async fn single(context: &RequestContext<'_>, call: ReadCall<'_>) -> Reply {
    let limit = ReplyLimit::for_single(context.memory);
    let mut record = context.begin_record(&call);
    let Some(id) = call.id.clone() else {
        let mut unused = Vec::new();
        // A notification is admitted and metered like any call, and its outcome is not reported.
        let _unsaid = answer(context, call, &mut record, &limit, &mut unused).await;
        return Reply::silent();
    };
    let id = Id::from_raw(&id);
    let mut out = Vec::with_capacity(REPLY_BYTES_USUAL);
    jsonrpc::begin_result(&mut out, id);
    let end = answer(context, call, &mut record, &limit, &mut out).await;
    let reply = match end.into_result() {
        Ok(CallAnswer::With(Answer { provenance, shared })) => {
            let parts = match shared {
                Some(shared) => ReplyParts::around(shared, out, jsonrpc::RESULT_END),
                None => {
                    jsonrpc::end_result(&mut out);
                    ReplyParts::one(out)
                }
            };
            Reply::result(parts, provenance).naming_node(context.node_to_show(provenance))
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
