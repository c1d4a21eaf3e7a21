//! The calls of a batch → its reply. The embedded chain answers them one after the other, nodes answer them concurrently.

use answers::{Answer, Verification};
use bytes::Bytes;
use callers::BATCH_CREDITS;
use futures_util::stream::FuturesOrdered;
use futures_util::{FutureExt, StreamExt};
use http_server::ReplyParts;
use jsonrpc::Id;
use resources::OverBudget;
use tokio::time::{Instant, sleep};

use super::calls::ReadCall;
use super::one_call::{CallAnswer, CallEnd, REPEATED_AFTER, answer as answer_call};
use super::pass::{BatchRecords, LostCalls, Pass};
use super::{RequestCharge, RequestContext, batch_buffer};
use crate::errors::{ErrorReply, over_capacity};
use crate::meter::{CallRecord, Outcome, UnbegunCalls};
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
    let unbegun = UnbegunCalls::new(context.counters, context.caller, calls);
    let bytes_max = context.gateway.limits.http.batch_reply_bytes_max;
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
    let (mut pass, mut records) = (Pass::first(repetitions_max), BatchRecords::Unbegun(unbegun));
    loop {
        let mut reply = BatchReply::new();
        if context.gateway.answers.remote().is_some() {
            answer_concurrently(context, &pass, &mut records, read(), &limit, &mut reply).await;
        } else {
            answer_in_sequence(context, &pass, &mut records, read(), &limit, &mut reply).await;
        }
        if !pass.is_first() && !reply.lost.is_empty() {
            // An executed chain may be a moment behind the view of the nodes.
            sleep(REPEATED_AFTER).await;
        }
        match pass.next(&reply.lost, || context.gateway.answers.request_view()) {
            Some(next) => {
                limit.clear();
                (pass, records) = (next, BatchRecords::of_lost(reply.lost));
            }
            None => return Ok(reply.finish(limit)),
        }
    }
}

/// Answers the calls of a batch one after the other, from the embedded chain.
async fn answer_in_sequence<'w, 't>(
    context: &RequestContext<'w>,
    pass: &Pass<'w>,
    records: &mut BatchRecords<'w>,
    calls: impl Iterator<Item = ReadCall<'t>> + Send,
    limit: &ReplyLimit<'_>,
    reply: &mut BatchReply<'w>,
) {
    for (place, call) in calls.enumerate() {
        if place % CALLS_PER_TURN == CALLS_PER_TURN - 1 {
            tokio::task::yield_now().await;
        }
        batch_buffer::make_room(&mut reply.out).await;
        let record = records.take(place, || context.begin_record(&call));
        let end = element(context, pass, call, record, limit, &mut reply.out).await;
        reply.end_element(place, end).await;
    }
}

/// The reply to a batch as it grows.
struct BatchReply<'w> {
    /// Each element ends with a comma.
    out: Vec<u8>,
    refusals: RateRefusals,
    /// How far the least verified answer is verified.
    verified: Option<Verification>,
    lost: LostCalls<'w>,
}

impl<'w> BatchReply<'w> {
    fn new() -> Self {
        let (refusals, lost) = (RateRefusals::default(), LostCalls::default());
        Self { out: vec![b'['], refusals, verified: None, lost }
    }

    /// Counts the element of the call with the index `place`, and copies what is missing of it.
    async fn end_element(&mut self, place: usize, end: ElementEnd<'w>) {
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
                self.lost.refuse();
                rate_limited = Some(error).filter(|error| error.rate_limit_wait_s().is_some());
            }
            ElementEnd::Lost { record, deadline } => self.lost.add(place, record, deadline),
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

/// Calls of a batch that are answered before other connections of the thread get their turn.
const CALLS_PER_TURN: usize = 32;

/// Calls of one batch that wait for nodes at the same time: enough to be sent together, too few to delay other callers.
const CALLS_AT_ONCE: usize = 64;

/// Answers the calls of a batch concurrently: each waits for a node, and none for another call. The elements keep their order.
/// Shared results are copied into the reply in that order, within the limit that all of them have taken from.
async fn answer_concurrently<'w, 't>(
    context: &RequestContext<'w>,
    pass: &Pass<'w>,
    records: &mut BatchRecords<'w>,
    calls: impl Iterator<Item = ReadCall<'t>> + Send,
    limit: &ReplyLimit<'_>,
    reply: &mut BatchReply<'w>,
) {
    let mut waiting = FuturesOrdered::new();
    let mut calls = calls.enumerate();
    loop {
        while waiting.len() < CALLS_AT_ONCE
            && let Some((place, call)) = calls.next()
        {
            let record = records.take(place, || context.begin_record(&call));
            let alone = async move {
                let mut out = Vec::new();
                let end = element(context, pass, call, record, limit, &mut out).await;
                (place, out, end)
            };
            waiting.push_back(alone.boxed());
        }
        let Some((place, text, end)) = waiting.next().await else { return };
        batch_buffer::append(&mut reply.out, &text).await;
        reply.end_element(place, end).await;
    }
}

/// What the reply of a batch still needs after an element was written.
enum ElementEnd<'w> {
    /// It is written, or was a notification. An answer says how far it is verified.
    Written(Option<Verification>),
    /// Its result or the data of its error is still to be copied behind what is written, and the end behind that.
    Uncopied { large: Bytes, end: &'static [u8], verified: Option<Verification> },
    /// Its error is written, or it was a notification: the call was not admitted.
    NotAdmitted(ErrorReply),
    /// Its error is written; it is replaced if the batch is repeated.
    Lost { record: Option<CallRecord<'w>>, deadline: Instant },
}

/// One call of a batch → its element and a comma, or nothing for a notification.
async fn element<'w>(
    context: &RequestContext<'w>,
    pass: &Pass<'w>,
    call: ReadCall<'_>,
    mut record: Option<CallRecord<'w>>,
    limit: &ReplyLimit<'_>,
    out: &mut Vec<u8>,
) -> ElementEnd<'w> {
    let (start, id) = (out.len(), call.id.clone());
    let id = id.as_deref().map(Id::from_raw);
    if let Some(id) = id {
        jsonrpc::begin_result(out, id);
    }
    let (error, end) = match answer_call(context, pass, call, record.as_mut(), limit, out).await {
        CallEnd::Answered(answer) => return answer_element(answer, start, out),
        CallEnd::Failed(error) => (error, ElementEnd::Written(None)),
        CallEnd::NotAdmitted(error) => (error.clone(), ElementEnd::NotAdmitted(error)),
        CallEnd::Lost { deadline, error } => (error, ElementEnd::Lost { record, deadline }),
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
fn answer_element<'w>(answer: CallAnswer, start: usize, out: &mut Vec<u8>) -> ElementEnd<'w> {
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
