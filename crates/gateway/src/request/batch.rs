//! The calls of a batch → its reply. The embedded chain answers them one after the other, nodes answer them concurrently.

use bytes::Bytes;
use callers::BATCH_CREDITS;
use futures_util::stream::FuturesOrdered;
use futures_util::{FutureExt, StreamExt};
use http_server::ReplyParts;
use jsonrpc::Id;
use resources::OverBudget;
use sources::{Answer, Verification};

use super::calls::ReadCall;
use super::one_call::{CallAnswer, CallEnd, answer as answer_call};
use super::{RequestCharge, RequestContext, batch_buffer};
use crate::errors::{ErrorReply, over_capacity};
use crate::meter::{CallRecord, Outcome, UnbegunCalls};
use crate::policy::{CALLS_AT_ONCE, CALLS_PER_TURN};
use crate::respond::Reply;
use crate::shape::{REFUSAL_BYTES, ReplyLimit};

/// The size of a batch, known before its calls are answered.
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

pub(super) async fn answer<'t>(
    context: &RequestContext<'_>,
    BatchSize { calls: count, refusals_bytes }: BatchSize,
    calls: impl Iterator<Item = ReadCall<'t>> + Send,
) -> Result<Reply, ErrorReply> {
    let unbegun = UnbegunCalls::new(context.counters, context.caller, count, context.observation);
    let bytes_max = context.gateway.request_limits().batch_reply_bytes_max;
    // Memory for the shortest reply comes before the credits, so that no call is paid for that cannot be answered.
    let limit = ReplyLimit::for_batch(bytes_max, refusals_bytes, context.memory);
    let limit = limit.map_err(|OverBudget| over_capacity()).and_then(|limit| {
        let charge = RequestCharge::take(context, Outcome::Ok, BATCH_CREDITS)?;
        Ok((limit, charge))
    });
    let (limit, _charge) = match limit {
        Ok(charged) => charged,
        Err(refused) => {
            unbegun.refuse(refused.outcome);
            return Err(refused);
        }
    };
    let mut reply = BatchReply::new();
    if context.gateway.answers.remote().is_some() {
        answer_concurrently(context, unbegun, calls, &limit, &mut reply).await;
    } else {
        answer_in_sequence(context, unbegun, calls, &limit, &mut reply).await;
    }
    Ok(reply.finish(limit))
}

/// Answers the calls of a batch one after the other, from the embedded chain.
async fn answer_in_sequence<'t>(
    context: &RequestContext<'_>,
    mut unbegun: UnbegunCalls<'_>,
    calls: impl Iterator<Item = ReadCall<'t>> + Send,
    limit: &ReplyLimit<'_>,
    reply: &mut BatchReply,
) {
    for (place, call) in calls.enumerate() {
        if place % CALLS_PER_TURN == CALLS_PER_TURN - 1 {
            tokio::task::yield_now().await;
        }
        batch_buffer::make_room(&mut reply.out).await;
        unbegun.begin_one();
        let record = context.begin_record(&call);
        let end = element(context, call, record, limit, &mut reply.out).await;
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
    fn new() -> Self {
        Self { out: vec![b'['], refusals: RateRefusals::default(), verified: None }
    }

    /// Counts an element, and copies what is missing of it.
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
            ElementEnd::NotAdmitted(error) => {
                rate_limited = Some(error).filter(|error| error.rate_limit_wait_s().is_some());
            }
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
        let parts = ReplyParts::one(limit.into_charged(self.out));
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

/// Answers the calls of a batch concurrently: each waits for a node, and none for another call. The elements keep their order.
/// Shared results are copied into the reply in that order, within the limit that all of them have taken from.
async fn answer_concurrently<'t>(
    context: &RequestContext<'_>,
    mut unbegun: UnbegunCalls<'_>,
    mut calls: impl Iterator<Item = ReadCall<'t>> + Send,
    limit: &ReplyLimit<'_>,
    reply: &mut BatchReply,
) {
    let mut waiting = FuturesOrdered::new();
    loop {
        while waiting.len() < CALLS_AT_ONCE
            && let Some(call) = calls.next()
        {
            unbegun.begin_one();
            let record = context.begin_record(&call);
            let alone = async move {
                let mut out = Vec::new();
                let end = element(context, call, record, limit, &mut out).await;
                (out, end)
            };
            waiting.push_back(alone.boxed());
        }
        let Some((text, end)) = waiting.next().await else { return };
        batch_buffer::append(&mut reply.out, &text).await;
        reply.end_element(end).await;
    }
}

/// The part of an element that the reply of a batch still lacks after it was written.
enum ElementEnd {
    /// It is written, or was a notification. An answer says how far it is verified.
    Written(Option<Verification>),
    /// Its result or the data of its error is still to be copied behind what is written, and the end behind that.
    Uncopied { large: Bytes, end: &'static [u8], verified: Option<Verification> },
    /// Its error is written, or it was a notification: the call was not admitted.
    NotAdmitted(ErrorReply),
}

/// One call of a batch → its element and a comma, or nothing for a notification.
async fn element(
    context: &RequestContext<'_>,
    call: ReadCall<'_>,
    mut record: CallRecord<'_>,
    limit: &ReplyLimit<'_>,
    out: &mut Vec<u8>,
) -> ElementEnd {
    let (start, id) = (out.len(), call.id.clone());
    let id = id.as_deref().map(Id::from_raw);
    if let Some(id) = id {
        jsonrpc::begin_result(out, id);
    }
    let (error, end) = match answer_call(context, call, &mut record, limit, out).await {
        CallEnd::Answered(answer) => return answer_element(answer, start, out),
        CallEnd::Failed(error) => (error, ElementEnd::Written(None)),
        CallEnd::NotAdmitted(error) => (error.clone(), ElementEnd::NotAdmitted(error)),
    };
    out.truncate(start);
    if let Some(id) = id {
        if let Some(large) = error.write(out, id) {
            return ElementEnd::Uncopied { large, end: jsonrpc::ERROR_END, verified: None };
        }
        out.push(b',');
    }
    end
}

/// Finishes the element of an answer, which begins at `start`.
fn answer_element(answer: CallAnswer, start: usize, out: &mut Vec<u8>) -> ElementEnd {
    let verified = match answer {
        CallAnswer::With(Answer { shared: Some(large), provenance }) => {
            let verified = Some(provenance.verified);
            return ElementEnd::Uncopied { large, end: jsonrpc::RESULT_END, verified };
        }
        CallAnswer::With(Answer { shared: None, provenance }) => Some(provenance.verified),
        CallAnswer::Nothing(missing, provenance) => {
            out.extend_from_slice(missing.json());
            Some(provenance.verified)
        }
        CallAnswer::Notification => {
            out.truncate(start);
            return ElementEnd::Written(None);
        }
    };
    jsonrpc::end_result(out);
    out.push(b',');
    ElementEnd::Written(verified)
}
