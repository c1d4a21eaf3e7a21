//! The limits of a run: time, memory and cancellation.
//!
//! The interpreter is not interrupted from outside; it checks the limits itself. Gas determines when: every instruction
//! costs gas, and slow ones cost much of it.

use revm::interpreter::InstructionResult;
use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

/// Gas that may be spent between two checks. A unit of gas buys at most 50 ns, so a check comes every millisecond or after
/// one instruction; the slowest, over all the memory that 600 million gas pay for, takes 50 ms. Small calls, such as
/// reading a token balance, end before the first check.
const CHECK_EVERY_GAS: u64 = 20_000;

/// State reads between two checks. Before EIP-150 a read cost 20 gas, and one from a cold disk takes 0.1 ms.
const CHECK_EVERY_READS: u32 = 16;

/// Gas between two checks under a strict deadline, which may be a fraction of a millisecond away.
const CHECK_EVERY_GAS_STRICT: u64 = 4_000;

/// State reads between two checks under a strict deadline.
const CHECK_EVERY_READS_STRICT: u32 = 3;

/// Checks between two counts of what a run holds in its accounts; counting walks over all of them.
const COUNT_ACCOUNTS_EVERY_CHECKS: u32 = 64;

/// Time that a precompile may always take while the deadline has not passed, so that real work (checking a proof
/// takes a few milliseconds) is not refused just because the deadline is near.
const PRECOMPILE_TIME_ALWAYS: Duration = Duration::from_millis(30);

/// The longest time that one precompile may take without a deadline, because it cannot be stopped.
const PRECOMPILE_TIME_MAX: Duration = Duration::from_secs(3);

/// How long a run continues after its state has guessed a value. This is enough to find most of what it reads, and bounds a
/// loop that only a wrong guess leads to.
const GUESSING_TIME_MAX: Duration = Duration::from_millis(5);

/// Longer timeouts are lowered to this, because adding them to an `Instant` could overflow.
const TIMEOUT_MAX: Duration = Duration::from_secs(365 * 24 * 60 * 60);

#[derive(Debug, Clone)]
pub struct CallLimits {
    /// Gas above this is lowered to it.
    pub gas_cap: u64,
    /// Bytes of EVM memory over all frames, and separately of state, journal and logs together. One instruction can log as much
    /// as EVM memory may hold before it is counted. The stacks of a thousand nested frames add at most 33 MB.
    pub memory_bytes_max: u64,
    pub deadline: Option<Deadline>,
    /// Stops the call once another thread sets it.
    pub cancel: Option<Arc<AtomicBool>>,
}

/// The time at which a run is stopped, and the timeout that its error message names.
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

    /// The deadline of work that started earlier, for example when it was queued.
    pub fn at(at: Instant, timeout: Duration) -> Self {
        Self { at, timeout, strict: false }
    }

    /// A deadline for which no precompile is started that may outlast it, and that is checked more often.
    pub fn strict(at: Instant, timeout: Duration) -> Self {
        Self { at, timeout, strict: true }
    }
}

/// Why a run was stopped from outside.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum StopReason {
    #[error("execution aborted (timeout = {timeout:?})")]
    Timeout { timeout: Duration },
    #[error("execution aborted (cancelled)")]
    Cancelled,
    #[error("execution aborted (memory limit = {bytes_max} bytes)")]
    Memory { bytes_max: u64 },
    #[error("execution aborted (precompile timeout = {timeout:?})")]
    Precompile { timeout: Duration },
}

/// The instruction at which a frame halted, for error messages.
#[derive(Debug, Clone, Copy)]
pub(super) struct FrameFault {
    pub(super) result: InstructionResult,
    pub(super) opcode: u8,
    pub(super) stack_len: usize,
}

/// Counts what a run uses and stops it at its limits.
#[derive(Debug)]
pub(super) struct LimitTracker<'l> {
    limits: &'l CallLimits,
    check_every_gas: u64,
    check_every_reads: u32,
    gas_to_next_check: u64,
    reads_to_next_check: u32,
    checks: u32,
    code_bytes: u64,
    /// When the run ends because its state has guessed a value.
    ends_soon: Option<Instant>,
    stopped: Option<StopReason>,
    fault: Option<FrameFault>,
}

impl<'l> LimitTracker<'l> {
    pub(super) fn new(limits: &'l CallLimits) -> Self {
        let strict = limits.deadline.is_some_and(|deadline| deadline.strict);
        let (check_every_gas, check_every_reads) = match strict {
            true => (CHECK_EVERY_GAS_STRICT, CHECK_EVERY_READS_STRICT),
            false => (CHECK_EVERY_GAS, CHECK_EVERY_READS),
        };
        Self {
            limits,
            check_every_gas,
            check_every_reads,
            gas_to_next_check: check_every_gas,
            reads_to_next_check: check_every_reads,
            checks: 0,
            code_bytes: 0,
            ends_soon: None,
            stopped: None,
            fault: None,
        }
    }

    /// Starts another run under the same deadline. Only the code of earlier runs is still held.
    pub(super) fn start(&mut self) -> Result<(), StopReason> {
        *self = Self { code_bytes: self.code_bytes, ends_soon: self.ends_soon, ..Self::new(self.limits) };
        self.check_limits()
    }

    /// Returns why the run was stopped, if it was.
    pub(super) fn stopped(&self) -> Option<StopReason> {
        self.stopped
    }

    /// Returns where the last frame halted.
    pub(super) fn fault(&self) -> Option<FrameFault> {
        self.fault
    }

    pub(super) fn set_fault(&mut self, fault: FrameFault) {
        self.fault = Some(fault);
    }

    /// Ends this run and further ones after [`GUESSING_TIME_MAX`].
    pub(super) fn end_soon(&mut self) {
        self.ends_soon.get_or_insert_with(|| Instant::now() + GUESSING_TIME_MAX);
    }

    /// Checks the deadline and the cancellation.
    pub(super) fn check_limits(&mut self) -> Result<(), StopReason> {
        let cancelled = self.limits.cancel.as_ref().is_some_and(|cancel| cancel.load(Ordering::Relaxed));
        if cancelled || self.ends_soon.is_some_and(|end| Instant::now() >= end) {
            return Err(self.stop(StopReason::Cancelled));
        }
        match self.limits.deadline {
            Some(deadline) if Instant::now() >= deadline.at => Err(self.time_out(deadline)),
            _ => Ok(()),
        }
    }

    /// Returns the gas that may be spent between two checks.
    pub(super) fn check_every_gas(&self) -> u64 {
        self.check_every_gas
    }

    /// Returns the gas that may still be spent before the next check.
    pub(super) fn gas_to_next_check(&self) -> u64 {
        self.gas_to_next_check
    }

    /// Sets the gas that may still be spent before the next check.
    pub(super) fn set_gas_to_next_check(&mut self, gas: u64) {
        self.gas_to_next_check = gas;
    }

    pub(super) fn read(&mut self) -> Result<(), StopReason> {
        self.reads_to_next_check -= 1;
        if self.reads_to_next_check == 0 {
            self.reads_to_next_check = self.check_every_reads;
            self.check_limits()?;
        }
        Ok(())
    }

    /// Counts code that a run now holds.
    pub(super) fn code_read(&mut self, bytes: usize) -> Result<(), StopReason> {
        self.code_bytes = self.code_bytes.saturating_add(bytes as u64);
        self.check_memory(0)
    }

    /// Whether this check counts what the accounts hold, too.
    pub(super) fn is_account_count_due(&mut self) -> bool {
        self.checks = self.checks.wrapping_add(1);
        self.checks.is_multiple_of(COUNT_ACCOUNTS_EVERY_CHECKS)
    }

    /// Stops a run that holds more than its limit outside of EVM memory.
    pub(super) fn check_memory(&mut self, bytes: u64) -> Result<(), StopReason> {
        if self.code_bytes.saturating_add(bytes) > self.limits.memory_bytes_max {
            return Err(self.stop_for_memory());
        }
        Ok(())
    }

    pub(super) fn stop_for_memory(&mut self) -> StopReason {
        self.stop(StopReason::Memory { bytes_max: self.limits.memory_bytes_max })
    }

    /// Returns the time that a precompile may take now.
    pub(super) fn precompile_time(&mut self) -> Result<Duration, StopReason> {
        self.check_limits()?;
        let Some(deadline) = self.limits.deadline else { return Ok(PRECOMPILE_TIME_MAX) };
        let left = deadline.at.saturating_duration_since(Instant::now());
        let always = if deadline.strict { Duration::ZERO } else { PRECOMPILE_TIME_ALWAYS };
        Ok(left.max(always))
    }

    /// Whether no precompile may be started that could outlast the deadline.
    pub(super) fn is_strict(&self) -> bool {
        self.limits.deadline.is_some_and(|deadline| deadline.strict)
    }

    /// Stops a run whose precompile could take more time than it may.
    pub(super) fn stop_precompile(&mut self) -> StopReason {
        match self.limits.deadline {
            Some(deadline) => self.time_out(deadline),
            None => self.stop(StopReason::Precompile { timeout: PRECOMPILE_TIME_MAX }),
        }
    }

    fn time_out(&mut self, deadline: Deadline) -> StopReason {
        self.stop(StopReason::Timeout { timeout: deadline.timeout })
    }

    fn stop(&mut self, stop: StopReason) -> StopReason {
        self.stopped = Some(stop);
        stop
    }
}
