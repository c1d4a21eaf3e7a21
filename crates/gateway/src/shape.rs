//! Step 7: an answer within limits.
//!
//! The answer of a single call has no limit on its bytes: answers of 21 MB exist, and callers need them. The answers of one
//! batch together have one, because a thousand of those would not fit into any memory. Limits on results and time are
//! enforced where the work is done, so that it stops.

use bytes::Bytes;
use parking_lot::Mutex;
use resources::{AccountMemory, CHARGED_BYTES_MIN, MemoryCharge, OverBudget};

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
    memory: AccountMemory<'m>,
    /// `None` for a single call.
    batch: Option<BatchLimit>,
    used: Mutex<ReplyUse>,
}

#[derive(Debug)]
struct BatchLimit {
    bytes_max: usize,
    /// Bytes of the elements if all of them are refused, which are charged from the beginning.
    refusals_bytes: usize,
}

/// Bytes that the answers take so far, including those that wait to be copied into the reply of a batch.
#[derive(Debug, Default)]
struct ReplyUse {
    bytes: usize,
    charge: MemoryCharge,
}

/// A vector that grows by doubling may be this many times as large as what is in it.
const BUFFER_SLACK: usize = 2;

/// Bytes of an element of a batch that only says why there is no answer, without its id.
pub(crate) const REFUSAL_BYTES: usize = 90;

impl<'m> ReplyLimit<'m> {
    pub(crate) fn for_single(memory: AccountMemory<'m>) -> Self {
        Self { memory, batch: None, used: Mutex::default() }
    }

    /// Reserves room for a reply in which every call is refused.
    pub(crate) fn for_batch(
        bytes_max: usize,
        refusals_bytes: usize,
        memory: AccountMemory<'m>,
    ) -> Result<Self, OverBudget> {
        let batch = Some(BatchLimit { bytes_max, refusals_bytes });
        let limit = Self { memory, batch, used: Mutex::default() };
        memory.grow(&mut limit.used.lock().charge, limit.buffer_bytes(0))?;
        Ok(limit)
    }

    pub(crate) fn is_for_batch(&self) -> bool {
        self.batch.is_some()
    }

    /// Takes the bytes of one result: those that are the call's own, and those that it shares with others.
    pub(crate) fn take_result(&self, own: usize, shared: usize) -> Result<(), ReplyRefused> {
        // A single call sends a large shared result as it is, and it was charged when it was lent.
        let is_lent = !self.is_for_batch() && shared >= CHARGED_BYTES_MIN;
        self.take(own + if is_lent { 0 } else { shared })
    }

    /// Takes the bytes of one answer, before it is copied into the reply.
    pub(crate) fn take(&self, bytes: usize) -> Result<(), ReplyRefused> {
        let mut used = self.used.lock();
        let total = used.bytes.saturating_add(bytes);
        if self.batch.as_ref().is_some_and(|batch| total > batch.bytes_max) {
            return Err(ReplyRefused::TooLarge);
        }
        let grown = self.memory.grow(&mut used.charge, self.buffer_bytes(total));
        grown.map_err(|_| ReplyRefused::OverCapacity)?;
        used.bytes = total;
        Ok(())
    }

    /// Bytes of the buffer for answers of so many bytes.
    fn buffer_bytes(&self, bytes: usize) -> usize {
        let Some(batch) = &self.batch else { return bytes };
        bytes.saturating_add(batch.refusals_bytes).saturating_mul(BUFFER_SLACK)
    }

    /// The whole reply of a batch, with what the account is charged for it.
    pub(crate) fn into_charged(self, mut reply: Vec<u8>) -> Bytes {
        let charge = self.into_charge();
        // An answer that was refused after it was written leaves its room behind, which is not charged.
        if reply.capacity() > charge.bytes().max(CHARGED_BYTES_MIN) {
            reply.shrink_to_fit();
        }
        charge.attach(reply.into())
    }

    /// The memory of the reply, charged to the account.
    pub(crate) fn into_charge(self) -> MemoryCharge {
        self.used.into_inner().charge
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::errors::ErrorReply;
    use jsonrpc::Id;
    use resources::AccountId;
    use resources::MemoryBudget;

    #[test]
    fn a_batch_takes_no_more_than_its_limit_and_is_charged_while_it_grows() {
        let budget = MemoryBudget::new(1 << 20);
        let limit = ReplyLimit::for_batch(100_000, 0, budget.of(AccountId::unique())).unwrap();
        assert_eq!(limit.take(60_000), Ok(()));
        assert_eq!(limit.take(60_000), Err(ReplyRefused::TooLarge));
        assert_eq!(limit.take(40_000), Ok(()), "a smaller answer still fits");
        assert_eq!(budget.bytes(), 200_000);
        let reply = limit.into_charged(vec![0; 100_000]);
        assert_eq!(budget.bytes(), 200_000);
        drop(reply);
        assert_eq!(budget.bytes(), 0);
    }

    #[test]
    fn a_batch_without_memory_is_over_capacity_and_a_small_one_is_not() {
        let budget = MemoryBudget::new(1);
        let memory = budget.of(AccountId::unique());
        let limit = ReplyLimit::for_batch(100_000, 1_000, memory).unwrap();
        assert_eq!(limit.take(1_000), Ok(()));
        assert_eq!(limit.take(60_000), Err(ReplyRefused::OverCapacity));
        assert!(ReplyLimit::for_batch(100_000, 10_000, memory).is_err(), "not even for refusals");
    }

    /// The buffer of a batch still had the capacity for a large answer that was refused, could not be charged for it at the
    /// end, and the whole batch was 503 after its calls were billed.
    #[test]
    fn the_reply_of_a_batch_is_not_refused_at_its_end() {
        let budget = MemoryBudget::new(100_000);
        let limit = ReplyLimit::for_batch(10_000, 10_000, budget.of(AccountId::unique())).unwrap();
        let mut reply = Vec::with_capacity(1 << 20);
        reply.extend_from_slice(b"[]");
        assert_eq!(limit.into_charged(reply), "[]");
    }

    #[test]
    fn a_single_reply_is_charged_for_what_is_its_own() {
        let budget = MemoryBudget::new(1 << 20);
        let limit = ReplyLimit::for_single(budget.of(AccountId::unique()));
        assert_eq!(limit.take_result(20_000, 40_000), Ok(()), "what is lent has a charge of its own");
        assert_eq!(budget.bytes(), 20_000);
        assert_eq!(limit.take_result(20_000, 1_000), Ok(()));
        assert_eq!(budget.bytes(), 41_000);
        assert_eq!(limit.take(2 << 20), Err(ReplyRefused::OverCapacity));
        drop(limit.into_charge());
        assert_eq!(budget.bytes(), 0);
    }

    #[test]
    fn every_refusal_has_the_bytes_that_are_charged_for_it() {
        for refused in [ReplyRefused::TooLarge, ReplyRefused::OverCapacity] {
            let (mut out, id) = (Vec::new(), "\"an id\"");
            assert!(ErrorReply::from(refused).write(&mut out, Id::from_raw(id)).is_none());
            assert!(out.len() + ",".len() <= REFUSAL_BYTES + id.len(), "{}", out.len());
        }
    }
}
