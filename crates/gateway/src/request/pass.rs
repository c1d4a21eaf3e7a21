//! The calls of a request on one view of the chain. All calls of a batch see the same chain, so a batch of which a block is
//! reorganised away is repeated as a whole.

use answers::{Repetition, RequestView};
use parking_lot::Mutex;
use tokio::time::Instant;

use crate::meter::{CallRecord, UnbegunCalls};

/// How often a batch is repeated. If the chain is reorganised more often within the time of a call, its answers would be
/// outdated anyway.
pub(super) const BATCH_REPETITIONS_MAX: u32 = 2;

/// One attempt at the calls of a request.
pub(super) struct Pass<'w> {
    /// The chain; that of the request, if this is its first pass.
    view: Option<RequestView<'w>>,
    /// Records of calls that the pass before this one did not finish, by the index of the call.
    unfinished: Mutex<Vec<(usize, CallRecord<'w>)>>,
    /// The calls of a batch that have no record yet, if this is its first pass.
    unbegun: Option<UnbegunCalls<'w>>,
    /// Until when calls may be repeated, if this is not the first pass.
    deadline: Option<Instant>,
    repetitions_left: u32,
    lost: Mutex<Lost<'w>>,
}

/// The calls that cannot be answered on this chain.
#[derive(Default)]
struct Lost<'w> {
    calls: Vec<(usize, CallRecord<'w>)>,
    /// Until when they may be repeated.
    deadline: Option<Instant>,
    /// Whether a call was not admitted. Then the batch is not repeated, because that call would be.
    some_are_refused: bool,
}

impl<'w> Pass<'w> {
    /// The only pass of a call that is not part of a batch.
    pub(super) fn single() -> Self {
        Self::first(None, 0)
    }

    pub(super) fn first(unbegun: Option<UnbegunCalls<'w>>, repetitions_left: u32) -> Self {
        let (unfinished, lost) = (Mutex::default(), Mutex::default());
        Self { view: None, unfinished, unbegun, deadline: None, repetitions_left, lost }
    }

    /// The chain that all calls see; `of_request` is the view with which the request began.
    pub(super) fn view<'a>(&'a self, of_request: &'a RequestView<'w>) -> &'a RequestView<'w> {
        self.view.as_ref().unwrap_or(of_request)
    }

    pub(super) fn is_first(&self) -> bool {
        self.view.is_none()
    }

    /// How a call of a batch ends whose block is reorganised away.
    pub(super) fn repetition(&self) -> Repetition {
        match self.repetitions_left {
            0 => Repetition::No,
            _ => Repetition::Yes { deadline: self.deadline },
        }
    }

    /// The record of a call that has none yet, or whose record was not finished. Others were counted in the first pass.
    pub(super) fn record(
        &self,
        call: usize,
        begin: impl FnOnce() -> CallRecord<'w>,
    ) -> Option<CallRecord<'w>> {
        if self.is_first() {
            self.unbegun.iter().for_each(UnbegunCalls::begin_one);
            return Some(begin());
        }
        let mut unfinished = self.unfinished.lock();
        let at = unfinished.iter().position(|(unfinished, _)| *unfinished == call)?;
        Some(unfinished.swap_remove(at).1)
    }

    /// Records that the block of a call was reorganised away.
    pub(super) fn lose(&self, call: usize, record: Option<CallRecord<'w>>, deadline: Instant) {
        let mut lost = self.lost.lock();
        lost.deadline = lost.deadline.max(Some(deadline));
        lost.calls.extend(record.map(|record| (call, record)));
    }

    /// Records that a call was not admitted.
    pub(super) fn refuse(&self) {
        self.lost.lock().some_are_refused = true;
    }

    pub(super) fn has_lost_calls(&self) -> bool {
        self.lost.lock().deadline.is_some()
    }

    /// The pass after this one, if the calls have to be repeated and there is time for that.
    pub(super) fn next(self, view: impl FnOnce() -> RequestView<'w>) -> Option<Self> {
        let Lost { calls, deadline, some_are_refused } = self.lost.into_inner();
        let deadline = deadline.filter(|deadline| Instant::now() < *deadline && !some_are_refused)?;
        Some(Self {
            view: Some(view()),
            unfinished: Mutex::new(calls),
            unbegun: None,
            deadline: Some(deadline),
            repetitions_left: self.repetitions_left.saturating_sub(1),
            lost: Mutex::default(),
        })
    }
}
