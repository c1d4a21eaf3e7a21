//! The life of a request: every step in its order, and nothing else.

use std::pin::pin;

use ::http::header::HeaderName;
use bytes::Bytes;
use futures_util::stream::FuturesOrdered;
use futures_util::{FutureExt, StreamExt};
use jsonrpc::{Id, Item};

use crate::admit::{self, admit};
use crate::answer::{Answer, COUNTED_BYTES_MIN, Failure, Pending, Pinned, Provenance};
use crate::authenticate::{Caller, Denied, authenticate};
use crate::clock::Moment;
use crate::edge::Edge;
use crate::errors::{ErrorReply, over_capacity};
use crate::http::{self, Body, Head, Headers, Route};
use crate::listen::{Connection, RequestId};
use crate::meter::{Outcome, Shard, Ticket};
use crate::methods::{self, Method, Missing, Work as Place};
use crate::parse::{parse, price};
use crate::resolve::{Resolved, resolve};
use crate::respond::{Reply, respond};
use crate::shape::Room;

/// Answers one HTTP request.
// That it may go from thread to thread is said rather than found out, which the compiler cannot do for any body.
#[expect(clippy::manual_async_fn)]
pub(crate) fn serve<'s, 'a: 's, B: Body<'a>>(
    connection: &'s Connection,
    head: &'s Head<'_>,
    body: &'s mut B,
) -> impl Future<Output = Reply> + Send {
    async move {
        let id = connection.begin_request();
        let mut caller = None;
        let reply = match steps(connection, id, head, body, &mut caller).await {
            Ok(reply) => reply,
            Err(error) => Reply::error(Id::NULL, &error),
        };
        let reply = respond(connection, id, head.headers, reply).await;
        log(connection, id, caller.as_ref(), &reply);
        reply
    }
}

/// Logs one line per request at the level debug. The path is left out, because it has the key; the name that the
/// configuration gives the key is logged instead.
pub(crate) fn log(connection: &Connection, id: RequestId, caller: Option<&Caller>, reply: &Reply) {
    tracing::debug!(
        request = %id,
        key = caller.map(Caller::key_name),
        status = reply.status().as_u16(),
        bytes = reply.len(),
        us = connection.edge().clock.now().since(connection.now()).as_micros() as u64,
        "answered"
    );
}

async fn steps<'a>(
    connection: &Connection,
    id: RequestId,
    head: &Head<'_>,
    body: &mut impl Body<'a>,
    recognised: &mut Option<Caller>,
) -> Result<Reply, ErrorReply> {
    let edge = connection.edge();
    let routed = http::route(head, &edge.limits.http);
    let key = match routed.map_err(|refused| unauthenticated(connection, head.headers, refused))? {
        Route::Preflight => return Ok(Reply::preflight()),
        Route::Call { key } => key,
    };
    let caller = match caller(connection, key, head.headers) {
        Ok(caller) => &*recognised.insert(caller),
        Err(refused) => {
            body.skip().await;
            return Err(refused);
        }
    };
    let text = http::body(connection, head, body, &edge.limits).await?;
    let work = Work {
        edge,
        shard: connection.shard(),
        caller,
        pinned: edge.answers.pin(),
        may_fail_over: caller.account().plan.failover && !refuses_failover(head.headers),
        now: connection.now(),
        id,
    };
    let reply = body.attend(pin!(calls(&work, &text))).await??;
    Ok(reply.for_account(caller.account().id))
}

/// The calls of a request → its reply.
async fn calls(work: &Work<'_>, text: &[u8]) -> Result<Reply, ErrorReply> {
    match jsonrpc::parse_within(text, work.edge.limits.http.batch_calls_max) {
        Ok(jsonrpc::Request::Single(item)) => Ok(single(work, &item).await),
        Ok(jsonrpc::Request::Batch(items)) => batch(work, &items).await,
        Err(fault) => {
            admit::charge(work.caller, admit::REFUSED_CREDITS, &work.edge.clock, work.now)?;
            Err(fault.into())
        }
    }
}

const ENABLE_FAILOVER: HeaderName = HeaderName::from_static("enable-failover");

/// Whether the caller does not want a partner to see this request.
fn refuses_failover(headers: Headers<'_>) -> bool {
    headers.get(&ENABLE_FAILOVER).is_some_and(|value| value.eq_ignore_ascii_case(b"false"))
}

/// Who calls, if they may. Strangers pay nothing, or they could use up what is another's.
fn caller(connection: &Connection, key: &str, headers: Headers<'_>) -> Result<Caller, ErrorReply> {
    let edge = connection.edge();
    let caller = authenticate(&edge.callers.load(), key, headers)
        .map_err(|denied| unauthenticated(connection, headers, denied))?;
    connection.recognize();
    if let Some(settings) = caller.settings()
        && let Err(setting) = settings.allow_request(headers)
    {
        admit::charge(&caller, admit::REFUSED_CREDITS, &edge.clock, connection.now())?;
        return Err(Denied::Setting(setting).into());
    }
    Ok(caller)
}

/// Why a request without a valid key is refused. Too many of them from one address are refused for that alone.
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

/// What every call of one request has in common.
struct Work<'a> {
    edge: &'a Edge,
    shard: &'a Shard,
    caller: &'a Caller,
    /// The chain as all calls of the request see it.
    pinned: Pinned<'a>,
    may_fail_over: bool,
    now: Moment,
    id: RequestId,
}

/// One call → its answer. The result is appended to `out`, unless it is shared.
async fn answer(
    work: &Work<'_>,
    item: &Item<'_>,
    room: Room,
    out: &mut Vec<u8>,
) -> Result<Answered, ErrorReply> {
    let Work { edge, shard, caller, now, id, .. } = *work;
    let mut ticket = Ticket::draw(shard, &edge.clock, caller, now);
    let outcome = async {
        let parsed = parse(item, &edge.network, edge.limits.answer.log_params_max, caller.settings());
        ticket.is_for(parsed.as_ref().ok().map(|asked| asked.method));
        let permit = admit(caller, price(&parsed), &edge.capacity, &edge.clock, now)?;
        ticket.paid(permit.credits());
        let asked = parsed?;
        if item.as_ref().is_ok_and(|call| call.id.is_none()) {
            return Ok(Answered::Silently);
        }
        let method = asked.method.row();
        let may_fail_over = work.may_fail_over && edge.network.failover.contains(&method.name);
        let at_pending = methods::is_at_pending(method, &asked.query);
        let sight = edge.answers.look(&work.pinned, method, &asked.query, may_fail_over).await?;
        let query = match resolve(sight.view(), &edge.rules, method, asked.query)? {
            Resolved::Nothing(missing) => {
                return Ok(Answered::Nothing(missing, edge.answers.nothing(sight, method)));
            }
            Resolved::Pinned(query) => query,
        };
        let begun = edge.clock.now();
        let call = Pending { method, query, sight, may_fail_over, at_pending };
        let answer = edge.answers.answer(&permit, call, out).await;
        if method.work == Place::Inline {
            shard.reads.record(edge.clock.now().since(begun));
        }
        let answer = answer.inspect_err(|failure| log_our_fault(id, method, failure))?;
        room.check(out.len() + answer.shared.as_ref().map_or(0, Bytes::len))?;
        Ok(Answered::With(answer))
    }
    .await;
    ticket.ends(outcome.as_ref().map_or_else(|error: &ErrorReply| error.outcome, |_| Outcome::Ok));
    outcome
}

/// What is our fault is told to the log in full, and to the caller not at all.
fn log_our_fault(request: RequestId, method: &Method, failure: &Failure) {
    if let Failure::Broken(what) = failure {
        tracing::error!(%request, method = method.name, what, "a call could not be answered");
    }
}

/// How a call was answered.
enum Answered {
    With(Answer),
    /// With what stands for a block that is not there.
    Nothing(Missing, Option<Provenance>),
    /// It was a notification.
    Silently,
}

async fn single(work: &Work<'_>, item: &Item<'_>) -> Reply {
    let Some(id) = id_of(item) else {
        let mut unused = Vec::new();
        // A notification is admitted and metered like any call, and nothing is said about how it went.
        let _unsaid = answer(work, item, Room::for_single(), &mut unused).await;
        return Reply::silent();
    };
    let mut out = Vec::with_capacity(REPLY_BYTES_USUAL);
    jsonrpc::begin_result(&mut out, id);
    match answer(work, item, Room::for_single(), &mut out).await {
        Ok(Answered::With(Answer { provenance, shared: Some(shared) })) => {
            Reply::result(around(out, shared), Some(provenance))
        }
        Ok(Answered::With(Answer { provenance, shared: None })) => {
            jsonrpc::end_result(&mut out);
            match hold(work, out) {
                Ok(whole) => Reply::result([whole, Bytes::new(), Bytes::new()], Some(provenance)),
                Err(error) => Reply::error(id, &error),
            }
        }
        Ok(Answered::Nothing(missing, provenance)) => {
            out.extend_from_slice(missing.json());
            jsonrpc::end_result(&mut out);
            Reply::result([out.into(), Bytes::new(), Bytes::new()], provenance)
        }
        Ok(Answered::Silently) => Reply::silent(),
        Err(error) => Reply::error(id, &error),
    }
}

/// Room for a storage value or a short object without growing.
const REPLY_BYTES_USUAL: usize = 256;

/// A shared answer goes out as it is, between what is the caller's own.
fn around(before: Vec<u8>, shared: Bytes) -> [Bytes; 3] {
    [before.into(), shared, Bytes::from_static(b"}")]
}

async fn batch(work: &Work<'_>, items: &[Item<'_>]) -> Result<Reply, ErrorReply> {
    admit::charge(work.caller, admit::BATCH_CREDITS, &work.edge.clock, work.now)?;
    let room = Room::for_batch(work.edge.limits.http.batch_reply_bytes_max);
    let mut out = vec![b'['];
    let mut refusals = RateRefusals::default();
    if work.edge.answers.remote().is_some() {
        together(work, items, room, &mut out, &mut refusals).await;
        return finish(work, out, &refusals);
    }
    for (index, item) in items.iter().enumerate() {
        if index % CALLS_PER_TURN == CALLS_PER_TURN - 1 {
            tokio::task::yield_now().await;
        }
        refusals.count(element(work, item, room, &mut out).await);
    }
    finish(work, out, &refusals)
}

/// How many calls of a batch the rate limit refused.
#[derive(Default)]
struct RateRefusals {
    calls: usize,
    refused: usize,
    /// The longest time after which a refused call may be tried again.
    retry_after_s: u64,
}

impl RateRefusals {
    /// `retry_after_s` is there if the rate limit refused the call.
    fn count(&mut self, retry_after_s: Option<u64>) {
        self.calls += 1;
        self.refused += usize::from(retry_after_s.is_some());
        self.retry_after_s = self.retry_after_s.max(retry_after_s.unwrap_or(0));
    }

    fn are_all(&self) -> bool {
        self.refused == self.calls
    }
}

/// Closes a batch whose elements each end with a comma.
fn finish(work: &Work<'_>, mut out: Vec<u8>, refusals: &RateRefusals) -> Result<Reply, ErrorReply> {
    match out.last_mut() {
        Some(last) if *last == b',' => *last = b']',
        _ => return Ok(Reply::silent()),
    }
    let parts = [hold(work, out)?, Bytes::new(), Bytes::new()];
    if refusals.are_all() {
        return Ok(Reply::refused_batch(parts, refusals.retry_after_s));
    }
    Ok(Reply::result(parts, None))
}

/// A large reply waits for its caller only where there is room for it.
fn hold(work: &Work<'_>, reply: Vec<u8>) -> Result<Bytes, ErrorReply> {
    let held = work.edge.answers.held();
    if reply.len() >= COUNTED_BYTES_MIN && held.is_full() {
        return Err(over_capacity());
    }
    Ok(held.hold(reply))
}

/// Calls of a batch that are answered in one go, before other connections of the thread have their turn.
const CALLS_PER_TURN: usize = 32;

/// Calls of one batch that wait for nodes at the same time. Enough to travel together, too few to crowd others out.
const CALLS_AT_ONCE: usize = 64;

/// Answers the calls of a batch side by side: each waits for a node, and none for another. The elements are in order.
async fn together(
    work: &Work<'_>,
    items: &[Item<'_>],
    room: Room,
    out: &mut Vec<u8>,
    refusals: &mut RateRefusals,
) {
    let mut waiting = FuturesOrdered::new();
    let mut items = items.iter();
    loop {
        while waiting.len() < CALLS_AT_ONCE
            && let Some(item) = items.next()
        {
            waiting.push_back(alone(work, item, room).boxed());
        }
        let Some((id, element, retry_after_s)) = waiting.next().await else { return };
        refusals.count(retry_after_s);
        let start = out.len();
        out.extend_from_slice(&element);
        if let (Err(error), Some(id)) = (room.check(out.len()), id) {
            out.truncate(start);
            ErrorReply::from(error).write(out, id);
            out.push(b',');
        }
    }
}

/// One call of a batch in a buffer of its own.
async fn alone<'a>(work: &Work<'_>, item: &Item<'a>, room: Room) -> (Option<Id<'a>>, Vec<u8>, Option<u64>) {
    let mut out = Vec::new();
    let retry_after_s = element(work, item, room, &mut out).await;
    (id_of(item), out, retry_after_s)
}

/// One call of a batch → its element and a comma, or nothing for a notification.
///
/// Returns the seconds to wait if the rate limit refused the call.
async fn element(work: &Work<'_>, item: &Item<'_>, room: Room, out: &mut Vec<u8>) -> Option<u64> {
    let start = out.len();
    let Some(id) = id_of(item) else {
        let unsaid = answer(work, item, room, out).await;
        out.truncate(start);
        return unsaid.err().and_then(|error| error.rate_limit_wait_s());
    };
    jsonrpc::begin_result(out, id);
    match answer(work, item, room, out).await {
        Ok(Answered::With(answer)) => out.extend_from_slice(&answer.shared.unwrap_or_default()),
        Ok(Answered::Nothing(missing, _)) => out.extend_from_slice(missing.json()),
        Ok(Answered::Silently) => {
            out.truncate(start);
            return None;
        }
        Err(error) => {
            out.truncate(start);
            error.write(out, id);
            out.push(b',');
            return error.rate_limit_wait_s();
        }
    }
    jsonrpc::end_result(out);
    out.push(b',');
    None
}

/// The id to answer under; `None` for a notification.
fn id_of<'a>(item: &Item<'a>) -> Option<Id<'a>> {
    match item {
        Ok(call) => call.id,
        Err(bad) => Some(bad.id),
    }
}
