//! Step 8: an answer within limits.
//!
//! The answer of a single call has no limit on its bytes: answers of 21 MB exist, and callers need them. The answers of one
//! batch together have one, because a thousand of those would not fit into any memory. Limits on results and time are
//! enforced where the work is done, so that it stops.

use bytes::Bytes;
use parking_lot::Mutex;
use resources::{AccountMemory, MemoryCharge, OverBudget};

/// Why an answer is left out of its batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReplyRefused {
    /// It does not fit into what its batch has left.
    TooLarge,
    /// The account has no memory left for it.
    OverCapacity,
}

/// How many bytes the answers to a request may have together.
#[derive(Debug)]
pub(crate) struct ReplyLimit<'m> {
    batch: Option<BatchLimit<'m>>,
}

#[derive(Debug)]
struct BatchLimit<'m> {
    bytes_max: usize,
    memory: AccountMemory<'m>,
    used: Mutex<BatchUse>,
}

/// Bytes that the answers of a batch take so far, including those that wait to be copied into the reply.
#[derive(Debug, Default)]
struct BatchUse {
    bytes: usize,
    charge: MemoryCharge,
}

/// A vector that grows by doubling may be this many times as large as what is in it.
const BUFFER_SLACK: usize = 2;

impl<'m> ReplyLimit<'m> {
    pub(crate) fn for_single() -> Self {
        Self { batch: None }
    }

    pub(crate) fn is_for_batch(&self) -> bool {
        self.batch.is_some()
    }

    pub(crate) fn for_batch(bytes_max: usize, memory: AccountMemory<'m>) -> Self {
        Self { batch: Some(BatchLimit { bytes_max, memory, used: Mutex::default() }) }
    }

    /// Takes the bytes of one answer, before it is copied into the reply.
    pub(crate) fn take(&self, bytes: usize) -> Result<(), ReplyRefused> {
        let Some(batch) = &self.batch else { return Ok(()) };
        let mut used = batch.used.lock();
        let total = used.bytes.saturating_add(bytes);
        if total > batch.bytes_max {
            return Err(ReplyRefused::TooLarge);
        }
        let grown = batch.memory.grow(&mut used.charge, total.saturating_mul(BUFFER_SLACK));
        grown.map_err(|_| ReplyRefused::OverCapacity)?;
        used.bytes = total;
        Ok(())
    }

    /// The whole reply of a batch, with what the account is charged for it.
    pub(crate) fn into_charged(self, reply: Vec<u8>) -> Result<Bytes, OverBudget> {
        let Some(batch) = self.batch else { return Ok(reply.into()) };
        let mut charge = batch.used.into_inner().charge;
        batch.memory.grow(&mut charge, reply.capacity())?;
        Ok(charge.attach(reply.into()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use resources::AccountId;
    use resources::MemoryBudget;

    #[test]
    fn a_batch_takes_no_more_than_its_limit_and_is_charged_while_it_grows() {
        let budget = MemoryBudget::new(1 << 20);
        let limit = ReplyLimit::for_batch(100_000, budget.of(AccountId::unique()));
        assert_eq!(limit.take(60_000), Ok(()));
        assert_eq!(limit.take(60_000), Err(ReplyRefused::TooLarge));
        assert_eq!(limit.take(40_000), Ok(()), "a smaller answer still fits");
        assert_eq!(budget.bytes(), 200_000);
        let reply = limit.into_charged(vec![0; 100_000]).unwrap();
        assert_eq!(budget.bytes(), 200_000);
        drop(reply);
        assert_eq!(budget.bytes(), 0);
    }

    #[test]
    fn a_batch_without_memory_is_over_capacity_and_a_small_one_is_not() {
        let budget = MemoryBudget::new(1);
        let limit = ReplyLimit::for_batch(100_000, budget.of(AccountId::unique()));
        assert_eq!(limit.take(1_000), Ok(()));
        assert_eq!(limit.take(60_000), Err(ReplyRefused::OverCapacity));
        assert_eq!(ReplyLimit::for_single().take(usize::MAX), Ok(()));
    }
}
