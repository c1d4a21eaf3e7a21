//! Keeps a run within its limits: time, memory, and whether anyone still wants the answer.
//!
//! The interpreter is not interrupted from outside; it looks at the clock itself. Gas is what paces the looks:
//! every instruction costs some, and the costly ones cost much of it.

use revm::interpreter::InstructionResult;
use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

/// Gas that may be spent between two looks. A unit of it buys 50 ns at most, so that a look comes every millisecond,
/// or after one instruction: over all the memory that 600 million gas pay for, that takes 50 ms. Small calls, such as
/// reading a token balance, end before the first look.
const LOOK_EVERY_GAS: u64 = 20_000;

/// State reads between two looks. Before EIP-150 a read cost 20 gas, and one from a cold disk takes 0.1 ms.
const LOOK_EVERY_READS: u32 = 16;

/// The same under a strict deadline, which may be a fraction of a millisecond away.
const LOOK_EVERY_GAS_STRICT: u64 = 4_000;
const LOOK_EVERY_READS_STRICT: u32 = 3;

/// Looks between two full counts of the storage slots that a run holds, which walk over all its accounts.
const COUNT_SLOTS_EVERY_LOOKS: u32 = 64;

/// Time that a precompile may always take while the deadline has not passed, so that real work (checking a proof
/// takes a few milliseconds) is not refused just because the deadline is near.
const PRECOMPILE_TIME_ALWAYS: Duration = Duration::from_millis(30);

/// Time that one precompile may take at most where there is no deadline. Nothing stops it once it runs.
const PRECOMPILE_TIME_MAX: Duration = Duration::from_secs(3);

/// How long a run goes on after its state has begun to guess. In this time it comes to most of what it will read, and it may
/// be in a loop that only a guess leads to.
const GUESSING_TIME_MAX: Duration = Duration::from_millis(5);

/// A longer time makes no difference, and the clock cannot count to all of them.
const TIMEOUT_MAX: Duration = Duration::from_secs(365 * 24 * 60 * 60);

/// What one call may use.
#[derive(Debug, Clone)]
pub struct CallLimits {
    /// Gas above this is lowered to it.
    pub gas_cap: u64,
    /// Bytes of EVM memory over all frames; and again as many for state, journal and logs together. The stacks of
    /// a thousand nested frames come on top with 33 MB at most.
    pub memory_bytes_max: u64,
    /// When to give up.
    pub deadline: Option<Deadline>,
    /// Set by someone else once the answer is not wanted any more.
    pub cancel: Option<Arc<AtomicBool>>,
}

/// A moment to stop at, and how long that was from the start, for whoever is told about it.
#[derive(Debug, Clone, Copy)]
pub struct Deadline {
    at: Instant,
    timeout: Duration,
    strict: bool,
}

impl Deadline {
    /// The deadline of work that starts now.
    pub fn after(timeout: Duration) -> Self {
        Self::at(Instant::now() + timeout.min(TIMEOUT_MAX), timeout)
    }

    /// The deadline of work that started some time ago, such as when it was queued, and that has this long in all.
    pub fn at(at: Instant, timeout: Duration) -> Self {
        Self { at, timeout, strict: false }
    }

    /// The same, but nothing is begun that cannot be stopped and may outlast it; and the clock is looked at more often.
    pub fn strict(at: Instant, timeout: Duration) -> Self {
        Self { at, timeout, strict: true }
    }
}

/// Why a run was stopped from outside.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Stop {
    /// The deadline passed, or would surely pass.
    #[error("execution aborted (timeout = {timeout:?})")]
    Timeout {
        /// The time that it was given.
        timeout: Duration,
    },
    /// Nobody wants the answer any more.
    #[error("execution aborted (cancelled)")]
    Cancelled,
    /// It would have used too much memory.
    #[error("execution aborted (memory limit = {bytes_max} bytes)")]
    Memory {
        /// The limit.
        bytes_max: u64,
    },
    /// A single precompiled contract would have run for too long.
    #[error("execution aborted (precompile timeout = {timeout:?})")]
    Precompile {
        /// The time that it may take.
        timeout: Duration,
    },
}

/// Where a frame broke a rule, as far as the error texts need it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Fault {
    pub(super) result: InstructionResult,
    pub(super) opcode: u8,
    pub(super) stack_len: usize,
}

/// Counts what a run uses.
#[derive(Debug)]
pub(super) struct Watch<'l> {
    limits: &'l CallLimits,
    look_every_gas: u64,
    look_every_reads: u32,
    gas_to_look: u64,
    reads_to_look: u32,
    looks: u32,
    code_bytes: u64,
    /// When a run ends whose state guesses.
    ends_soon: Option<Instant>,
    stopped: Option<Stop>,
    fault: Option<Fault>,
}

impl<'l> Watch<'l> {
    pub(super) fn new(limits: &'l CallLimits) -> Self {
        let strict = limits.deadline.is_some_and(|deadline| deadline.strict);
        let (look_every_gas, look_every_reads) = match strict {
            true => (LOOK_EVERY_GAS_STRICT, LOOK_EVERY_READS_STRICT),
            false => (LOOK_EVERY_GAS, LOOK_EVERY_READS),
        };
        Self {
            limits,
            look_every_gas,
            look_every_reads,
            gas_to_look: look_every_gas,
            reads_to_look: look_every_reads,
            looks: 0,
            code_bytes: 0,
            ends_soon: None,
            stopped: None,
            fault: None,
        }
    }

    /// Starts a run. What earlier runs held is gone, but for the code; the deadline is the same.
    pub(super) fn start(&mut self) -> Result<(), Stop> {
        *self = Self { code_bytes: self.code_bytes, ends_soon: self.ends_soon, ..Self::new(self.limits) };
        self.look()
    }

    /// What stopped the run, if something did.
    pub(super) fn stopped(&self) -> Option<Stop> {
        self.stopped
    }

    /// Where the frame that failed last did so.
    pub(super) fn fault(&self) -> Option<Fault> {
        self.fault
    }

    pub(super) fn set_fault(&mut self, fault: Fault) {
        self.fault = Some(fault);
    }

    /// Lets this run, and further ones, go on for a moment only.
    pub(super) fn end_soon(&mut self) {
        self.ends_soon.get_or_insert_with(|| Instant::now() + GUESSING_TIME_MAX);
    }

    /// Looks at the clock and at the cancellation.
    pub(super) fn look(&mut self) -> Result<(), Stop> {
        let cancelled = self.limits.cancel.as_ref().is_some_and(|cancel| cancel.load(Ordering::Relaxed));
        if cancelled || self.ends_soon.is_some_and(|end| Instant::now() >= end) {
            return Err(self.stop(Stop::Cancelled));
        }
        match self.limits.deadline {
            Some(deadline) if Instant::now() >= deadline.at => Err(self.time_out(deadline)),
            _ => Ok(()),
        }
    }

    /// Gas that may be spent between two looks.
    pub(super) fn look_every_gas(&self) -> u64 {
        self.look_every_gas
    }

    /// Gas that may still be spent before the next look.
    pub(super) fn gas_to_look(&self) -> u64 {
        self.gas_to_look
    }

    /// Says how much gas may still be spent before the next look.
    pub(super) fn set_gas_to_look(&mut self, gas: u64) {
        self.gas_to_look = gas;
    }

    /// Counts a state read.
    pub(super) fn read(&mut self) -> Result<(), Stop> {
        self.reads_to_look -= 1;
        if self.reads_to_look == 0 {
            self.reads_to_look = self.look_every_reads;
            self.look()?;
        }
        Ok(())
    }

    /// Counts code that a run now holds.
    pub(super) fn code_read(&mut self, bytes: usize) -> Result<(), Stop> {
        self.code_bytes = self.code_bytes.saturating_add(bytes as u64);
        self.holds(0)
    }

    /// Whether this is a look at which everything is counted.
    pub(super) fn counts_slots(&mut self) -> bool {
        self.looks = self.looks.wrapping_add(1);
        self.looks.is_multiple_of(COUNT_SLOTS_EVERY_LOOKS)
    }

    /// Stops a run that holds more than it may, beside its EVM memory.
    pub(super) fn holds(&mut self, bytes: u64) -> Result<(), Stop> {
        if self.code_bytes.saturating_add(bytes) > self.limits.memory_bytes_max {
            return Err(self.stop_for_memory());
        }
        Ok(())
    }

    pub(super) fn stop_for_memory(&mut self) -> Stop {
        self.stop(Stop::Memory { bytes_max: self.limits.memory_bytes_max })
    }

    /// The time that a precompile may take now.
    pub(super) fn precompile_time(&mut self) -> Result<Duration, Stop> {
        self.look()?;
        let Some(deadline) = self.limits.deadline else { return Ok(PRECOMPILE_TIME_MAX) };
        let left = deadline.at.saturating_duration_since(Instant::now());
        let always = if deadline.strict { Duration::ZERO } else { PRECOMPILE_TIME_ALWAYS };
        Ok(left.max(always))
    }

    /// Whether nothing may be begun that could outlast the deadline.
    pub(super) fn is_strict(&self) -> bool {
        self.limits.deadline.is_some_and(|deadline| deadline.strict)
    }

    /// Stops a run whose precompile could take more time than it may.
    pub(super) fn stop_precompile(&mut self) -> Stop {
        match self.limits.deadline {
            Some(deadline) => self.time_out(deadline),
            None => self.stop(Stop::Precompile { timeout: PRECOMPILE_TIME_MAX }),
        }
    }

    fn time_out(&mut self, deadline: Deadline) -> Stop {
        self.stop(Stop::Timeout { timeout: deadline.timeout })
    }

    fn stop(&mut self, stop: Stop) -> Stop {
        self.stopped = Some(stop);
        stop
    }
}
