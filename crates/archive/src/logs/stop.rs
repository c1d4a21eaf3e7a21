//! Deadline and cancellation: a query that nobody waits for any more really stops.

use std::{
    sync::atomic::{AtomicBool, Ordering},
    time::Instant,
};

use super::error::QueryError;

/// Reading the clock costs about a tenth of a row of the index. Every 8th row is often enough to stop within a
/// millisecond even when each row has to come from disk.
const STEPS_PER_CHECK: u32 = 8;

/// When to give up. By default never.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Stop<'a> {
    pub(crate) deadline: Option<Instant>,
    pub(crate) cancel: Option<&'a AtomicBool>,
}

impl<'a> Stop<'a> {
    pub(super) fn check(&self) -> Result<(), QueryError> {
        if self.cancel.is_some_and(|cancel| cancel.load(Ordering::Relaxed)) {
            return Err(QueryError::Cancelled);
        }
        if self.deadline.is_some_and(|deadline| Instant::now() >= deadline) {
            return Err(QueryError::Timeout);
        }
        Ok(())
    }

    pub(super) fn pace(self) -> Pace<'a> {
        Pace { stop: self, steps: 0 }
    }
}

/// Counts small steps and checks now and then.
#[derive(Debug)]
pub(super) struct Pace<'a> {
    stop: Stop<'a>,
    steps: u32,
}

impl Pace<'_> {
    /// The first step checks, so that a query that is late already does nothing.
    pub(super) fn step(&mut self) -> Result<(), QueryError> {
        let due = self.steps.is_multiple_of(STEPS_PER_CHECK);
        self.steps = self.steps.wrapping_add(1);
        if due { self.stop.check() } else { Ok(()) }
    }
}
