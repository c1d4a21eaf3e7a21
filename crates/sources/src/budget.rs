//! Time and memory that one answer may take while it is made.

use std::cell::RefCell;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Instant;

use resources::{AccountId, MemoryBudget, MemoryCharge, OverBudget};

use crate::failure::Failure;

/// How long work may take. Asking costs a clock reading, so ask once in a thousand steps rather than in each.
#[derive(Debug, Default)]
pub struct AnswerBudget {
    pub deadline: Option<Instant>,
    pub abandoned: Option<Arc<AtomicBool>>,
    pub brief: bool,
    pub reply: Option<ReplyCharge>,
}

impl AnswerBudget {
    /// Whether the deadline has passed, or nobody waits for the answer any more.
    pub fn stopped(&self) -> bool {
        let abandoned = self.abandoned.as_ref().is_some_and(|flag| flag.load(Relaxed));
        abandoned || self.deadline.is_some_and(|deadline| Instant::now() >= deadline)
    }

    pub fn deadline(&self) -> Option<Instant> {
        self.deadline
    }

    /// Charges the account for a reply buffer of this capacity. Pooled work calls it while its reply grows, and ends
    /// with the error it gives.
    pub fn charge_reply(&self, capacity: usize) -> Result<(), Failure> {
        self.reply.as_ref().map_or(Ok(()), |reply| Ok(reply.grow(capacity)?))
    }

    /// Ends work that has no time left, or no memory for a reply buffer of this capacity.
    pub fn proceed(&self, capacity: usize) -> Result<(), Failure> {
        self.charge_reply(capacity)?;
        if self.stopped() { Err(Failure::QueryTimeout) } else { Ok(()) }
    }

    /// Whether this is only a try: a timeout is no answer, and the work will start over with another budget.
    pub fn is_brief(&self) -> bool {
        self.brief
    }

    /// Becomes true when nobody waits for the answer any more.
    pub fn abandoned(&self) -> Option<&Arc<AtomicBool>> {
        self.abandoned.as_ref()
    }
}

/// The charge to an account for the reply that a job writes.
#[derive(Debug)]
pub struct ReplyCharge {
    memory: MemoryBudget,
    account: AccountId,
    pub charge: RefCell<MemoryCharge>,
}

impl ReplyCharge {
    pub fn new(memory: MemoryBudget, account: AccountId) -> Self {
        Self { memory, account, charge: RefCell::default() }
    }

    pub fn grow(&self, capacity: usize) -> Result<(), OverBudget> {
        self.memory.of(self.account).grow(&mut self.charge.borrow_mut(), capacity)
    }
}
