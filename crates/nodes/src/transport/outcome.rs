//! The body of a reply → what the node says to each call.
//!
//! A result stays a slice of the body. Each outcome is proven to be the one to its call: a reply that could be somebody
//! else's is worse than none. Small bodies are proven to be JSON; large results are left to those who check them.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use bytes::Bytes;
use jsonrpc::{Outcome, Outcomes, Value};

use crate::call::{Fault, Reply, RpcError};

use super::bare::{bare_result, bare_results};

/// A reply as HTTP brought it: inflated and whole.
#[derive(Debug)]
pub(super) struct Answer {
    pub(super) status: u16,
    pub(super) body: Bytes,
}

/// Results up to this size are copied out of the body, so that one that is kept for long, say in a cache, does not
/// keep the buffer that it came in.
pub(super) const COPIED_BYTES_MAX: usize = 2 << 10;

/// Bodies from this size on are taken apart without a look at their results, if they have the usual form.
const BARE_BYTES_MIN: usize = 4 << 10;

/// Bodies up to this size are read whole on the thread of their connection, which takes less than 200 µs.
const READ_AT_ONCE_BYTES_MAX: usize = 128 << 10;

/// Characters of a node's error text that are kept. Enough for any reason of a revert; the rest is noise.
const MESSAGE_CHARS_MAX: usize = 4_096;

/// Why a batch brought no replies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum BatchFault {
    /// The node wants calls one by one.
    Refused,
    Fault(Fault),
}

/// Whether an endpoint writes its replies in the usual form and with nothing else in them. That is learned from large
/// replies that were read whole: one with more members would look the same from outside.
#[derive(Debug, Default)]
pub(super) struct Habit(AtomicBool);

impl Habit {
    fn is_usual(&self) -> bool {
        self.0.load(Relaxed)
    }

    /// Learns from results that were read and those that would have been found from outside.
    fn learn(&self, read: &[Outcome<'_>], bare: Option<Vec<&[u8]>>) {
        let read = read.iter().map(|outcome| outcome.result.map(|result| result.raw().as_bytes()));
        self.0.store(bare.is_some_and(|bare| read.eq(bare.into_iter().map(Some))), Relaxed);
    }
}

impl Answer {
    /// The reply to the only call of a request.
    fn single(&self, id: u64, habit: &Habit) -> Result<Reply, Fault> {
        self.authorized()?;
        match self.outcomes(1) {
            Some(Outcomes::One(outcome)) => {
                self.teach(habit, &[outcome], id);
                self.reply(outcome, Some(id))
            }
            Some(Outcomes::Many(_)) | None => Err(self.fault(Fault::Garbled)),
        }
    }

    /// Providers put all kinds of errors into the body of a 401, and all of them mean that our credentials are wrong.
    fn authorized(&self) -> Result<(), Fault> {
        if self.status == 401 { Err(Fault::Status(401)) } else { Ok(()) }
    }

    fn is_large(&self) -> bool {
        self.body.len() >= BARE_BYTES_MIN
    }

    /// Whether reading it whole would keep the other connections of a thread waiting.
    pub(super) fn takes_long_to_read(&self) -> bool {
        self.body.len() > READ_AT_ONCE_BYTES_MAX
    }

    /// The results of `count` calls with running ids, if they can be found without a look at them.
    pub(super) fn results_from_outside(
        &self,
        first_id: u64,
        count: usize,
        habit: &Habit,
    ) -> Option<Vec<Bytes>> {
        if !self.is_large() || !habit.is_usual() || self.authorized().is_err() {
            return None;
        }
        let results = self.bare_results(first_id, count)?;
        Some(results.into_iter().map(|result| kept(&self.body, result)).collect())
    }

    fn bare_results(&self, first_id: u64, count: usize) -> Option<Vec<&[u8]>> {
        match count {
            1 => bare_result(&self.body, first_id).map(|result| vec![result]),
            _ => bare_results(&self.body, first_id, count),
        }
    }

    /// The replies to `count` calls with running ids, in the order of the calls, by reading the whole body.
    pub(super) fn read(
        &self,
        first_id: u64,
        count: usize,
        habit: &Habit,
    ) -> Result<Vec<Result<Reply, Fault>>, BatchFault> {
        if count == 1 { Ok(vec![self.single(first_id, habit)]) } else { self.batch(first_id, count, habit) }
    }

    /// Lets the habit learn from a large body that was read. A lone text is never found from outside, and says nothing.
    fn teach(&self, habit: &Habit, outcomes: &[Outcome<'_>], first_id: u64) {
        let is_text =
            |outcome: &Outcome<'_>| outcome.result.is_some_and(|result| result.raw().starts_with('"'));
        let is_lone_text = matches!(outcomes, [outcome] if is_text(outcome));
        if self.is_large() && !is_lone_text {
            habit.learn(outcomes, self.bare_results(first_id, outcomes.len()));
        }
    }

    /// The replies to a batch.
    fn batch(
        &self,
        first_id: u64,
        count: usize,
        habit: &Habit,
    ) -> Result<Vec<Result<Reply, Fault>>, BatchFault> {
        self.authorized().map_err(BatchFault::Fault)?;
        // One more than awaited is enough to know that there are too many.
        match self.outcomes(count + 1) {
            Some(Outcomes::Many(outcomes)) => {
                self.teach(habit, &outcomes, first_id);
                self.matched(&outcomes, first_id, count)
            }
            // A lone error is the answer to the array as such.
            Some(Outcomes::One(outcome)) if outcome.error.is_some_and(|error| !error.is_null()) => {
                Err(self.refusal(error_of(&self.body, outcome)))
            }
            Some(Outcomes::One(_)) => Err(BatchFault::Fault(Fault::WrongId)),
            None if (400..500).contains(&self.status) && self.status != 429 => Err(BatchFault::Refused),
            None => Err(BatchFault::Fault(self.fault(Fault::Garbled))),
        }
    }

    fn outcomes(&self, outcomes_max: usize) -> Option<Outcomes<'_>> {
        Outcomes::read(std::str::from_utf8(&self.body).ok()?, outcomes_max)
    }

    /// What a status means when the body says nothing.
    fn fault(&self, otherwise: Fault) -> Fault {
        match self.status {
            200 => otherwise,
            429 => Fault::RateLimited,
            status => Fault::Status(status),
        }
    }

    /// An error to the whole batch: one about limits of rate is no word about batches.
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
        outcomes: &[Outcome<'_>],
        first_id: u64,
        count: usize,
    ) -> Result<Vec<Result<Reply, Fault>>, BatchFault> {
        if outcomes.iter().any(|outcome| mentions_batch(&self.body, outcome)) {
            return Err(BatchFault::Refused);
        }
        let mut replies: Vec<Option<Result<Reply, Fault>>> = vec![None; count];
        for &outcome in outcomes {
            let place = id_of(outcome)
                .and_then(|id| usize::try_from(id.checked_sub(first_id)?).ok())
                .and_then(|place| replies.get_mut(place))
                .filter(|place| place.is_none());
            let Some(place) = place else { return Err(BatchFault::Fault(Fault::WrongId)) };
            *place = Some(self.reply(outcome, None));
        }
        // Calls that the node has left out were not answered; which of its replies are missing, it cannot say.
        replies.into_iter().collect::<Option<_>>().ok_or(BatchFault::Fault(Fault::WrongId))
    }

    /// `id` is given unless it was compared already.
    fn reply(&self, outcome: Outcome<'_>, id: Option<u64>) -> Result<Reply, Fault> {
        let error = outcome.error.filter(|error| !error.is_null());
        // Who could not read the call cannot repeat its id, and says null.
        let nobody = outcome.id.is_none_or(Value::is_null) && error.is_some();
        if id.is_some() && id_of(outcome) != id && !nobody {
            return Err(Fault::WrongId);
        }
        // Some nodes write a null result beside their errors, and all may write a null error beside a result.
        match (outcome.result, error) {
            (Some(result), None) => Ok(Reply::Result(kept(&self.body, result.raw().as_bytes()))),
            (result, Some(_)) if result.is_none_or(Value::is_null) => {
                error_of(&self.body, outcome).map(Reply::Error).ok_or(Fault::Garbled)
            }
            _ => Err(Fault::Garbled),
        }
    }
}

fn kept(body: &Bytes, raw: &[u8]) -> Bytes {
    if raw.len() <= COPIED_BYTES_MAX { Bytes::copy_from_slice(raw) } else { body.slice_ref(raw) }
}

fn id_of(outcome: Outcome<'_>) -> Option<u64> {
    outcome.id.and_then(Value::as_u64)
}

fn error_of(body: &Bytes, outcome: Outcome<'_>) -> Option<RpcError> {
    let mut error = RpcError { code: 0, message: String::new(), data: None };
    let mut coded = false;
    for member in outcome.error?.members()? {
        match &*member.name {
            "code" => {
                error.code = member.value.raw().parse().ok()?;
                coded = true;
            }
            "message" => error.message = member.value.as_str()?.chars().take(MESSAGE_CHARS_MAX).collect(),
            "data" => error.data = Some(kept(body, member.value.raw().as_bytes())),
            _ => {}
        }
    }
    coded.then_some(error)
}

/// Providers limit the rate of calls in three dialects.
fn is_about_rate(error: &RpcError) -> bool {
    let message = error.message.to_ascii_lowercase();
    error.code == 429 || message.contains("rate limit") || message.contains("too many requests")
}

/// Whether a node complains about the batch, in one of the replies or without any id. Geth's limits of a batch come
/// this way.
fn mentions_batch(body: &Bytes, outcome: &Outcome<'_>) -> bool {
    if outcome.error.is_none_or(Value::is_null) {
        return false;
    }
    let unread = outcome.id.is_none_or(Value::is_null);
    unread
        || error_of(body, *outcome).is_some_and(|error| {
            let message = error.message.to_ascii_lowercase();
            // The reason of a revert is a contract's text, not the node's.
            let is_revert = error.code == 3 || message.contains("revert");
            !is_revert && (message.contains("batch") || message.contains("response too large"))
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(result: &str) -> Answer {
        let body = format!(r#"{{"jsonrpc":"2.0","id":7,"result":{result}}}"#);
        Answer { status: 200, body: body.into() }
    }

    fn is_found_from_outside(result: &str, id: u64, count: usize, habit: &Habit) -> bool {
        answer(result).results_from_outside(id, count, habit).is_some()
    }

    /// What is not found from outside is read whole, which takes milliseconds for megabytes.
    #[test]
    fn results_are_found_from_outside_where_a_node_writes_the_usual_form() {
        let (usual, unknown) = (Habit(AtomicBool::new(true)), Habit::default());
        let array = format!("[{}]", "1".repeat(BARE_BYTES_MIN));
        assert!(is_found_from_outside(&array, 7, 1, &usual));
        assert!(!is_found_from_outside(&array, 7, 1, &unknown), "nothing is known of this node");
        assert!(!is_found_from_outside(&array, 8, 1, &usual), "it has another id");
        assert!(!is_found_from_outside(&array, 7, 2, &usual), "it is no batch");
        assert!(!is_found_from_outside("[1]", 7, 1, &usual), "it is small");
    }

    /// The code of a contract made the next large reply of its node be read whole.
    #[test]
    fn a_large_text_does_not_change_what_is_known_of_a_node() {
        let (habit, array) = (Habit::default(), format!("[{}]", "1".repeat(BARE_BYTES_MIN)));
        answer(&array).single(7, &habit).unwrap();
        assert!(is_found_from_outside(&array, 7, 1, &habit));
        answer(&format!("\"0x{}\"", "60".repeat(BARE_BYTES_MIN))).single(7, &habit).unwrap();
        assert!(is_found_from_outside(&array, 7, 1, &habit));
    }
}
