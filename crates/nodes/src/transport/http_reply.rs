//! An HTTP reply → the replies to its calls.
//!
//! A result stays a slice of the body. Each reply is matched to its call by id, because a reply to another call is worse than
//! none. Small bodies are parsed as JSON; large results are left to those who check them.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use bytes::Bytes;
use jsonrpc::{RpcResponse, RpcResponses, Value};

use crate::call::{Fault, RpcError, RpcReply};

use super::split_reply::{split_batch, split_reply};

/// A complete HTTP reply, inflated.
#[derive(Debug)]
pub(super) struct NodeHttpReply {
    pub(super) status: u16,
    pub(super) body: Bytes,
}

/// Results up to this size are copied out of the body, so that one in a cache does not keep the whole buffer alive.
pub(super) const COPIED_BYTES_MAX: usize = 2 << 10;

/// Bodies from this size on are split without parsing their results, if they have the usual form.
const SPLIT_BYTES_MIN: usize = 4 << 10;

/// Bodies up to this size are parsed on the thread of their connection, which takes less than 200 µs.
const READ_AT_ONCE_BYTES_MAX: usize = 128 << 10;

/// The most characters of a node's error text that are kept, enough for any reason of a revert.
const MESSAGE_CHARS_MAX: usize = 4_096;

/// Why a batch brought no replies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum BatchFault {
    /// The node wants calls one by one.
    Refused,
    Fault(Fault),
}

/// Whether an endpoint writes its replies in the usual form, without further members. It is learned from large replies that were
/// parsed, because a reply with more members can look the same to [`super::split_reply`].
#[derive(Debug, Default)]
pub(super) struct ReplyFormat(AtomicBool);

impl ReplyFormat {
    fn is_usual(&self) -> bool {
        self.0.load(Relaxed)
    }

    /// Compares parsed results with those that splitting would have found.
    fn record(&self, read: &[RpcResponse<'_>], split: Option<Vec<&[u8]>>) {
        let read = read.iter().map(|outcome| outcome.result.map(|result| result.raw().as_bytes()));
        self.0.store(split.is_some_and(|split| read.eq(split.into_iter().map(Some))), Relaxed);
    }
}

impl NodeHttpReply {
    /// The reply to the only call of a request.
    fn single(&self, id: u64, format: &ReplyFormat) -> Result<RpcReply, Fault> {
        self.authorized()?;
        match self.outcomes(1) {
            Some(RpcResponses::One(outcome)) => {
                self.record_format(format, &[outcome], id);
                self.reply(outcome, Some(id))
            }
            Some(RpcResponses::Many(_)) | None => Err(self.fault(Fault::Garbled)),
        }
    }

    /// Providers put various errors into the body of a 401. All of them mean that our credentials are wrong.
    fn authorized(&self) -> Result<(), Fault> {
        if self.status == 401 { Err(Fault::Status(401)) } else { Ok(()) }
    }

    fn is_large(&self) -> bool {
        self.body.len() >= SPLIT_BYTES_MIN
    }

    /// Whether parsing it would delay the other connections of a thread.
    pub(super) fn takes_long_to_read(&self) -> bool {
        self.body.len() > READ_AT_ONCE_BYTES_MAX
    }

    /// The results of `count` calls with consecutive ids, if they can be found without parsing them.
    pub(super) fn split_results(
        &self,
        first_id: u64,
        count: usize,
        format: &ReplyFormat,
    ) -> Option<Vec<Bytes>> {
        if !self.is_large() || !format.is_usual() || self.authorized().is_err() {
            return None;
        }
        let results = self.split_raw(first_id, count)?;
        Some(results.into_iter().map(|result| copy_or_slice(&self.body, result)).collect())
    }

    fn split_raw(&self, first_id: u64, count: usize) -> Option<Vec<&[u8]>> {
        match count {
            1 => split_reply(&self.body, first_id).map(|result| vec![result]),
            _ => split_batch(&self.body, first_id, count),
        }
    }

    /// The replies to `count` calls with consecutive ids, in the order of the calls, by parsing the whole body.
    pub(super) fn read(
        &self,
        first_id: u64,
        count: usize,
        format: &ReplyFormat,
    ) -> Result<Vec<Result<RpcReply, Fault>>, BatchFault> {
        if count == 1 { Ok(vec![self.single(first_id, format)]) } else { self.batch(first_id, count, format) }
    }

    /// Records the format of a large body that was parsed. A single string is never split, so it says nothing.
    fn record_format(&self, format: &ReplyFormat, outcomes: &[RpcResponse<'_>], first_id: u64) {
        let is_text =
            |outcome: &RpcResponse<'_>| outcome.result.is_some_and(|result| result.raw().starts_with('"'));
        let is_lone_text = matches!(outcomes, [outcome] if is_text(outcome));
        if self.is_large() && !is_lone_text {
            format.record(outcomes, self.split_raw(first_id, outcomes.len()));
        }
    }

    /// The replies to a batch.
    fn batch(
        &self,
        first_id: u64,
        count: usize,
        format: &ReplyFormat,
    ) -> Result<Vec<Result<RpcReply, Fault>>, BatchFault> {
        self.authorized().map_err(BatchFault::Fault)?;
        // Reading one more than expected shows that there are too many.
        match self.outcomes(count + 1) {
            Some(RpcResponses::Many(outcomes)) => {
                self.record_format(format, &outcomes, first_id);
                self.matched(&outcomes, first_id, count)
            }
            // A single error is the answer to the whole batch.
            Some(RpcResponses::One(outcome)) if outcome.error.is_some_and(|error| !error.is_null()) => {
                Err(self.refusal(error_of(&self.body, outcome)))
            }
            Some(RpcResponses::One(_)) => Err(BatchFault::Fault(Fault::WrongId)),
            None if (400..500).contains(&self.status) && self.status != 429 => Err(BatchFault::Refused),
            None => Err(BatchFault::Fault(self.fault(Fault::Garbled))),
        }
    }

    fn outcomes(&self, outcomes_max: usize) -> Option<RpcResponses<'_>> {
        RpcResponses::read(std::str::from_utf8(&self.body).ok()?, outcomes_max)
    }

    /// The fault of a reply whose body cannot be read.
    fn fault(&self, otherwise: Fault) -> Fault {
        match self.status {
            200 => otherwise,
            429 => Fault::RateLimited,
            status => Fault::Status(status),
        }
    }

    /// The meaning of an error to the whole batch. One about the rate of calls does not mean that batches are refused.
    fn refusal(&self, error: Option<RpcError>) -> BatchFault {
        match error {
            None => BatchFault::Fault(Fault::Garbled),
            Some(error) if self.status == 429 || is_about_rate(&error) => {
                BatchFault::Fault(Fault::RateLimited)
            }
            Some(_) => BatchFault::Refused,
        }
    }

    fn matched(
        &self,
        outcomes: &[RpcResponse<'_>],
        first_id: u64,
        count: usize,
    ) -> Result<Vec<Result<RpcReply, Fault>>, BatchFault> {
        if outcomes.iter().any(|outcome| mentions_batch(&self.body, outcome)) {
            return Err(BatchFault::Refused);
        }
        let mut replies: Vec<Option<Result<RpcReply, Fault>>> = vec![None; count];
        for &outcome in outcomes {
            let place = id_of(outcome)
                .and_then(|id| usize::try_from(id.checked_sub(first_id)?).ok())
                .and_then(|place| replies.get_mut(place))
                .filter(|place| place.is_none());
            let Some(place) = place else { return Err(BatchFault::Fault(Fault::WrongId)) };
            *place = Some(self.reply(outcome, None));
        }
        // A missing reply makes the whole batch unusable.
        replies.into_iter().collect::<Option<_>>().ok_or(BatchFault::Fault(Fault::WrongId))
    }

    /// Reads one reply. `id` is compared if it is given.
    fn reply(&self, outcome: RpcResponse<'_>, id: Option<u64>) -> Result<RpcReply, Fault> {
        let error = outcome.error.filter(|error| !error.is_null());
        // A node that could not parse the call does not know its id, and writes null.
        let is_unread = outcome.id.is_none_or(Value::is_null) && error.is_some();
        if id.is_some() && id_of(outcome) != id && !is_unread {
            return Err(Fault::WrongId);
        }
        // Nodes may write a null result beside an error, and a null error beside a result.
        match (outcome.result, error) {
            (Some(result), None) => Ok(RpcReply::Result(copy_or_slice(&self.body, result.raw().as_bytes()))),
            (result, Some(_)) if result.is_none_or(Value::is_null) => {
                error_of(&self.body, outcome).map(RpcReply::Error).ok_or(Fault::Garbled)
            }
            _ => Err(Fault::Garbled),
        }
    }
}

fn copy_or_slice(body: &Bytes, raw: &[u8]) -> Bytes {
    if raw.len() <= COPIED_BYTES_MAX { Bytes::copy_from_slice(raw) } else { body.slice_ref(raw) }
}

fn id_of(outcome: RpcResponse<'_>) -> Option<u64> {
    outcome.id.and_then(Value::as_u64)
}

fn error_of(body: &Bytes, outcome: RpcResponse<'_>) -> Option<RpcError> {
    let mut error = RpcError { code: 0, message: String::new(), data: None };
    let mut coded = false;
    for member in outcome.error?.members()? {
        match &*member.name {
            "code" => {
                error.code = member.value.raw().parse().ok()?;
                coded = true;
            }
            "message" => error.message = member.value.as_str()?.chars().take(MESSAGE_CHARS_MAX).collect(),
            "data" => error.data = Some(copy_or_slice(body, member.value.raw().as_bytes())),
            _ => {}
        }
    }
    coded.then_some(error)
}

fn is_about_rate(error: &RpcError) -> bool {
    let message = error.message.to_ascii_lowercase();
    error.code == 429 || message.contains("rate limit") || message.contains("too many requests")
}

/// Whether an error is about the batch as a whole. Geth reports its limits for batches in one of the replies, or without an id.
fn mentions_batch(body: &Bytes, outcome: &RpcResponse<'_>) -> bool {
    if outcome.error.is_none_or(Value::is_null) {
        return false;
    }
    let unread = outcome.id.is_none_or(Value::is_null);
    unread
        || error_of(body, *outcome).is_some_and(|error| {
            let message = error.message.to_ascii_lowercase();
            // The reason of a revert is a text of the contract, not of the node.
            let is_revert = error.code == 3 || message.contains("revert");
            !is_revert && (message.contains("batch") || message.contains("response too large"))
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(result: &str) -> NodeHttpReply {
        let body = format!(r#"{{"jsonrpc":"2.0","id":7,"result":{result}}}"#);
        NodeHttpReply { status: 200, body: body.into() }
    }

    fn can_be_split(result: &str, id: u64, count: usize, format: &ReplyFormat) -> bool {
        answer(result).split_results(id, count, format).is_some()
    }

    /// A reply that is not split is parsed, which takes milliseconds for megabytes.
    #[test]
    fn large_replies_of_the_usual_form_are_split() {
        let (usual, unknown) = (ReplyFormat(AtomicBool::new(true)), ReplyFormat::default());
        let array = format!("[{}]", "1".repeat(SPLIT_BYTES_MIN));
        assert!(can_be_split(&array, 7, 1, &usual));
        assert!(!can_be_split(&array, 7, 1, &unknown), "nothing is known of this node");
        assert!(!can_be_split(&array, 8, 1, &usual), "it has another id");
        assert!(!can_be_split(&array, 7, 2, &usual), "it is no batch");
        assert!(!can_be_split("[1]", 7, 1, &usual), "it is small");
    }

    /// After the code of a contract, the next large reply of its node was parsed.
    #[test]
    fn a_large_text_does_not_change_what_is_known_of_a_node() {
        let (format, array) = (ReplyFormat::default(), format!("[{}]", "1".repeat(SPLIT_BYTES_MIN)));
        answer(&array).single(7, &format).unwrap();
        assert!(can_be_split(&array, 7, 1, &format));
        answer(&format!("\"0x{}\"", "60".repeat(SPLIT_BYTES_MIN))).single(7, &format).unwrap();
        assert!(can_be_split(&array, 7, 1, &format));
    }
}
