//! The calls of a batch → its reply. The embedded chain answers them one after the other, nodes answer them concurrently.

use answers::{Answer, Verification};
use bytes::Bytes;
use futures_util::stream::FuturesOrdered;
use futures_util::{FutureExt, StreamExt};
use jsonrpc::Id;
use resources::OverBudget;
use tokio::time::sleep;

use super::calls::ReadCall;
use super::pass::Pass;
use super::{
    CallAnswer, REPEATED_AFTER, RequestContext, answer as answer_call, batch_buffer, charge_request,
};
use crate::admit;
use crate::errors::{ErrorReply, over_capacity};
use crate::meter::{Outcome, UnbegunCalls};
use crate::respond::Reply;
use crate::shape::{REFUSAL_BYTES, ReplyLimit};

/// What is known of a batch before its calls are answered.
pub(super) struct BatchSize {
    calls: usize,
    /// Bytes of the reply if all calls are refused.
    refusals_bytes: usize,
}

impl BatchSize {
    /// The size of a batch with calls of these ids.
    pub(super) fn of<'t>(ids: impl Iterator<Item = Option<Id<'t>>>) -> Self {
        let mut size = Self { calls: 0, refusals_bytes: 0 };
        for id in ids {
            size.calls += 1;
            size.refusals_bytes += id.map_or(0, |id| id.raw().len() + REFUSAL_BYTES);
        }
        size
    }
}

/// Answers a batch of `calls` calls, which `read` reads again for each pass.
pub(super) async fn answer<'t, I: Iterator<Item = ReadCall<'t>> + Send>(
    context: &RequestContext<'_>,
    BatchSize { calls, refusals_bytes }: BatchSize,
    mut read: impl FnMut() -> I,
    repetitions_max: u32,
) -> Result<Reply, ErrorReply> {
    let unbegun = UnbegunCalls::new(context.shard, context.caller, calls);
    let bytes_max = context.gateway.limits.http.batch_reply_bytes_max;
    // Memory for the shortest reply comes before the credits, so that no call is paid for that cannot be answered.
    let limit = ReplyLimit::for_batch(bytes_max, refusals_bytes, context.memory);
    let limit = limit.map_err(|OverBudget| over_capacity()).and_then(|limit| {
        charge_request(context, Outcome::Ok, admit::BATCH_CREDITS)?;
        Ok(limit)
    });
    let limit = match limit {
        Ok(limit) => limit,
        Err(refused) => {
            unbegun.refuse(refused.outcome);
            return Err(refused);
        }
    };
    let mut pass = Pass::first(Some(unbegun), repetitions_max);
    loop {
        let mut reply = BatchReply { out: vec![b'['], refusals: RateRefusals::default(), verified: None };
        if context.gateway.answers.remote().is_some() {
            answer_concurrently(context, &pass, read(), &limit, &mut reply).await;
        } else {
            answer_in_sequence(context, &pass, read(), &limit, &mut reply).await;
        }
        if !pass.is_first() && pass.has_lost_calls() {
            // An executed chain may be a moment behind the view of the nodes.
            sleep(REPEATED_AFTER).await;
        }
        match pass.next(|| context.gateway.answers.request_view()) {
            Some(next) => {
                limit.clear();
                pass = next;
            }
            None => return Ok(reply.finish(limit)),
        }
    }
}

/// Answers the calls of a batch one after the other, from the embedded chain.
async fn answer_in_sequence<'w, 't>(
    context: &RequestContext<'w>,
    pass: &Pass<'w>,
    calls: impl Iterator<Item = ReadCall<'t>> + Send,
    limit: &ReplyLimit<'_>,
    reply: &mut BatchReply,
) {
    for (place, call) in calls.enumerate() {
        if place % CALLS_PER_TURN == CALLS_PER_TURN - 1 {
            tokio::task::yield_now().await;
        }
        batch_buffer::make_room(&mut reply.out).await;
        let end = element(context, pass, place, call, limit, &mut reply.out).await;
        reply.end_element(end).await;
    }
}

/// The reply to a batch as it grows.
struct BatchReply {
    /// Each element ends with a comma.
    out: Vec<u8>,
    refusals: RateRefusals,
    /// How far the least verified answer is verified.
    verified: Option<Verification>,
}

impl BatchReply {
    async fn end_element(&mut self, end: ElementEnd) {
        let mut rate_limited = None;
        match end {
            ElementEnd::Written(verified) => self.count_verified(verified),
            ElementEnd::Uncopied { large, end, verified } => {
                self.count_verified(verified);
                batch_buffer::append(&mut self.out, &large).await;
                self.out.extend_from_slice(end);
                self.out.push(b',');
            }
            ElementEnd::RateLimited(error) => rate_limited = Some(error),
        }
        self.refusals.count(rate_limited);
    }

    fn count_verified(&mut self, verified: Option<Verification>) {
        self.verified = self.verified.into_iter().chain(verified).min();
    }

    fn finish(mut self, limit: ReplyLimit<'_>) -> Reply {
        let refusal = self.refusals.into_refusal_of_all();
        if self.out.pop_if(|last| *last == b',').is_none() {
            // All calls were notifications, which have no elements.
            return refusal.map_or_else(Reply::silent, |error| Reply::error(Id::NULL, error));
        }
        self.out.push(b']');
        let parts = [limit.into_charged(self.out), Bytes::new(), Bytes::new()];
        match refusal.and_then(|error| error.rate_limit_wait_s()) {
            Some(retry_after_s) => Reply::refused_batch(parts, retry_after_s),
            None => Reply::batch(parts, self.verified),
        }
    }
}

/// How many calls of a batch the rate limit refused.
#[derive(Default)]
struct RateRefusals {
    calls: usize,
    refused: usize,
    /// The refusal with the longest time after which the call may be tried again.
    longest: Option<ErrorReply>,
}

impl RateRefusals {
    /// Counts one call, and the refusal if the rate limit refused it.
    fn count(&mut self, rate_limited: Option<ErrorReply>) {
        self.calls += 1;
        self.refused += usize::from(rate_limited.is_some());
        let wait_s = |refusal: &ErrorReply| refusal.rate_limit_wait_s();
        if rate_limited.as_ref().and_then(wait_s) > self.longest.as_ref().and_then(wait_s) {
            self.longest = rate_limited;
        }
    }

    /// The refusal with the longest time, if all calls were refused.
    fn into_refusal_of_all(self) -> Option<ErrorReply> {
        self.longest.filter(|_| self.refused == self.calls)
    }
}

/// Calls of a batch that are answered before other connections of the thread get their turn.
const CALLS_PER_TURN: usize = 32;

/// Calls of one batch that wait for nodes at the same time: enough to be sent together, too few to delay other callers.
const CALLS_AT_ONCE: usize = 64;

/// Answers the calls of a batch concurrently: each waits for a node, and none for another call. The elements keep their order.
/// Shared results are copied into the reply in that order, within the limit that all of them have taken from.
async fn answer_concurrently<'w, 't>(
    context: &RequestContext<'w>,
    pass: &Pass<'w>,
    calls: impl Iterator<Item = ReadCall<'t>> + Send,
    limit: &ReplyLimit<'_>,
    reply: &mut BatchReply,
) {
    let mut waiting = FuturesOrdered::new();
    let mut calls = calls.enumerate();
    loop {
        while waiting.len() < CALLS_AT_ONCE
            && let Some((place, call)) = calls.next()
        {
            let alone = async move {
                let mut out = Vec::new();
                let end = element(context, pass, place, call, limit, &mut out).await;
                (out, end)
            };
            waiting.push_back(alone.boxed());
        }
        let Some((text, end)) = waiting.next().await else { return };
        batch_buffer::append(&mut reply.out, &text).await;
        reply.end_element(end).await;
    }
}

/// What the reply of a batch still needs after an element was written.
enum ElementEnd {
    /// It is written, or was a notification. An answer says how far it is verified.
    Written(Option<Verification>),
    /// Its result or the data of its error is still to be copied behind what is written, and the end behind that.
    Uncopied { large: Bytes, end: &'static [u8], verified: Option<Verification> },
    /// Its error is written, or it was a notification: the rate limit refused the call.
    RateLimited(ErrorReply),
}

impl ElementEnd {
    fn of_error(error: &ErrorReply) -> Self {
        match error.rate_limit_wait_s() {
            Some(_) => Self::RateLimited(error.clone()),
            None => Self::Written(None),
        }
    }
}

/// One call of a batch → its element and a comma, or nothing for a notification.
async fn element<'w>(
    context: &RequestContext<'w>,
    pass: &Pass<'w>,
    place: usize,
    call: ReadCall<'_>,
    limit: &ReplyLimit<'_>,
    out: &mut Vec<u8>,
) -> ElementEnd {
    let start = out.len();
    let Some(id) = call.id.clone() else {
        let unsaid = answer_call(context, pass, place, call, limit, out).await;
        out.truncate(start);
        return unsaid.err().map_or(ElementEnd::Written(None), |error| ElementEnd::of_error(&error));
    };
    let id = Id::from_raw(&id);
    jsonrpc::begin_result(out, id);
    let mut end = ElementEnd::Written(None);
    match answer_call(context, pass, place, call, limit, out).await {
        Ok(CallAnswer::With(Answer { shared: Some(shared), provenance })) => {
            let verified = Some(provenance.verified);
            return ElementEnd::Uncopied { large: shared, end: jsonrpc::RESULT_END, verified };
        }
        Ok(CallAnswer::With(Answer { shared: None, provenance })) => {
            jsonrpc::end_result(out);
            end = ElementEnd::Written(Some(provenance.verified));
        }
        Ok(CallAnswer::Nothing(missing, provenance)) => {
            end = ElementEnd::Written(provenance.map(|provenance| provenance.verified));
            out.extend_from_slice(missing.json());
            jsonrpc::end_result(out);
        }
        Ok(CallAnswer::Notification) => {
            out.truncate(start);
            return end;
        }
        Err(error) => {
            out.truncate(start);
            end = ElementEnd::of_error(&error);
            if let Some(large) = error.write(out, id) {
                return ElementEnd::Uncopied { large, end: jsonrpc::ERROR_END, verified: None };
            }
        }
    }
    out.push(b',');
    end
}
