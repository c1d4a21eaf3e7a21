//! Deadline and cancellation of queries.

use std::{
    sync::atomic::{AtomicBool, Ordering},
    time::Instant,
};

use super::error::QueryError;

/// Reading the clock costs about a tenth of a row of the index. Every 8th row is often enough to stop within a
/// millisecond even when each row has to come from disk.
const STEPS_PER_CHECK: u32 = 8;

/// When a query stops. By default it never does.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct StopConditions<'a> {
    pub(crate) deadline: Option<Instant>,
    pub(crate) cancel: Option<&'a AtomicBool>,
}

impl<'a> StopConditions<'a> {
    pub(super) fn check(&self) -> Result<(), QueryError> {
        if self.cancel.is_some_and(|cancel| cancel.load(Ordering::Relaxed)) {
            return Err(QueryError::Cancelled);
        }
        if self.deadline.is_some_and(|deadline| Instant::now() >= deadline) {
            return Err(QueryError::Timeout);
        }
        Ok(())
    }

    pub(super) fn stop_check(self) -> StopCheck<'a> {
        StopCheck { stop: self, steps: 0 }
    }
}

/// Counts steps and checks the stop conditions every few of them.
#[derive(Debug)]
pub(super) struct StopCheck<'a> {
    stop: StopConditions<'a>,
    steps: u32,
}

impl StopCheck<'_> {
    /// Counts a step. The first one checks, so that a query whose deadline has passed does nothing.
    pub(super) fn step(&mut self) -> Result<(), QueryError> {
        let due = self.steps.is_multiple_of(STEPS_PER_CHECK);
        self.steps = self.steps.wrapping_add(1);
        if due { self.stop.check() } else { Ok(()) }
    }
}
