//! The calls of a request on one view of the chain. All calls of a batch see the same chain, so a batch of which a block is
//! reorganised away is repeated as a whole.

use std::iter::Peekable;
use std::vec;

use answers::{Repetition, RequestView};
use tokio::time::Instant;

use crate::meter::{CallRecord, UnbegunCalls};

/// How often a batch is repeated. If the chain is reorganised more often within the time of a call, its answers would be
/// outdated anyway.
pub(super) const BATCH_REPETITIONS_MAX: u32 = 2;

/// One attempt at the calls of a request.
pub(super) struct Pass<'w> {
    /// The chain; that of the request, if this is its first pass.
    view: Option<RequestView<'w>>,
    /// Until when calls may be repeated, if this is not the first pass.
    deadline: Option<Instant>,
    repetitions_left: u32,
}

impl<'w> Pass<'w> {
    /// The only pass of a call that is not part of a batch. Such a call is repeated alone, until its deadline.
    pub(super) fn single() -> Self {
        Self::first(u32::MAX)
    }

    pub(super) fn first(repetitions_left: u32) -> Self {
        Self { view: None, deadline: None, repetitions_left }
    }

    /// The pass after this one, if calls have to be repeated and there is time for that.
    pub(super) fn next(&self, lost: &LostCalls<'_>, view: impl FnOnce() -> RequestView<'w>) -> Option<Self> {
        let deadline = lost.deadline.filter(|deadline| Instant::now() < *deadline)?;
        let repetitions_left = self.repetitions_left.saturating_sub(1);
        (!lost.some_are_refused).then(|| Self {
            view: Some(view()),
            deadline: Some(deadline),
            repetitions_left,
        })
    }

    /// The chain that all calls see; `of_request` is the view with which the request began.
    pub(super) fn view<'a>(&'a self, of_request: &'a RequestView<'w>) -> &'a RequestView<'w> {
        self.view.as_ref().unwrap_or(of_request)
    }

    pub(super) fn is_first(&self) -> bool {
        self.view.is_none()
    }

    /// How a call ends whose block is reorganised away.
    pub(super) fn repetition(&self) -> Repetition {
        match self.repetitions_left {
            0 => Repetition::No,
            _ => Repetition::Yes { deadline: self.deadline },
        }
    }
}

/// The calls of a batch that cannot be answered on the chain of a pass.
#[derive(Default)]
pub(super) struct LostCalls<'w> {
    /// Their records by the index of the call, in ascending order.
    records: Vec<(usize, CallRecord<'w>)>,
    /// Until when they may be repeated.
    deadline: Option<Instant>,
    /// Whether a call was not admitted. Then the batch is not repeated, because that call would be.
    some_are_refused: bool,
}

impl<'w> LostCalls<'w> {
    /// Adds a call whose block was reorganised away. It has no record if a pass before this one has answered it.
    pub(super) fn add(&mut self, call: usize, record: Option<CallRecord<'w>>, deadline: Instant) {
        self.deadline = self.deadline.max(Some(deadline));
        self.records.extend(record.map(|record| (call, record)));
    }

    /// Records that a call was not admitted.
    pub(super) fn refuse(&mut self) {
        self.some_are_refused = true;
    }

    pub(super) fn is_empty(&self) -> bool {
        self.deadline.is_none()
    }
}

/// The records of the calls of a batch, from which each call takes its own when it begins.
pub(super) enum BatchRecords<'w> {
    /// In the first pass, each call begins a record.
    Unbegun(UnbegunCalls<'w>),
    /// In a later pass, only the calls that the pass before did not finish have one. The others were counted.
    Unfinished(Peekable<vec::IntoIter<(usize, CallRecord<'w>)>>),
}

impl<'w> BatchRecords<'w> {
    pub(super) fn of_lost(lost: LostCalls<'w>) -> Self {
        Self::Unfinished(lost.records.into_iter().peekable())
    }

    /// The record of the call with this index, if it has one. Calls are taken in ascending order.
    pub(super) fn take(
        &mut self,
        call: usize,
        begin: impl FnOnce() -> CallRecord<'w>,
    ) -> Option<CallRecord<'w>> {
        match self {
            Self::Unbegun(calls) => {
                calls.begin_one();
                Some(begin())
            }
            Self::Unfinished(records) => {
                records.next_if(|(unfinished, _)| *unfinished == call).map(|(_, record)| record)
            }
        }
    }
}
