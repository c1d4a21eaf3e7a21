//! One budget for the memory of request bodies and replies, shared fairly between accounts.
//!
//! A body is charged to its account before memory for it is allocated. A reply is charged while it grows or, if it was
//! made on the thread of its connection, when it is done. Both stay charged until their last byte has been used or sent.
//! Small ones are not charged, so a call with a small body and a small answer is never refused for lack of memory; their
//! number is bounded by the number of connections, and of their streams on HTTP/2.

use std::collections::HashMap;
use std::sync::{Arc, Weak};

use bytes::Bytes;
use parking_lot::Mutex;

use crate::callers::AccountId;
use crate::fair_share::is_within_share;

/// Smaller buffers are not charged. As many of them as there can be HTTP/1 connections take less than the budget itself.
pub(crate) const CHARGED_BYTES_MIN: usize = 16 << 10;

/// The memory that bodies and replies of all accounts may take together.
#[derive(Clone, Debug)]
pub(crate) struct MemoryBudget {
    bytes_max: usize,
    shared: Arc<Mutex<MemoryUse>>,
}

/// What is in use. Behind a lock, because it is touched only for large bodies and replies.
#[derive(Debug, Default)]
struct MemoryUse {
    bytes: usize,
    by_account: HashMap<AccountId, usize>,
    refused: u64,
}

/// The account has used up its share of the budget.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct OverBudget;

impl MemoryBudget {
    pub(crate) fn new(bytes_max: usize) -> Self {
        Self { bytes_max, shared: Arc::default() }
    }

    /// The budget as one account may use it.
    pub(crate) fn of(&self, account: AccountId) -> AccountMemory<'_> {
        AccountMemory { budget: self, account }
    }

    pub(crate) fn bytes_max(&self) -> usize {
        self.bytes_max
    }

    pub(crate) fn bytes(&self) -> usize {
        self.shared.lock().bytes
    }

    /// How often memory was refused.
    pub(crate) fn refused(&self) -> u64 {
        self.shared.lock().refused
    }
}

/// One account's access to the budget.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AccountMemory<'a> {
    budget: &'a MemoryBudget,
    account: AccountId,
}

impl AccountMemory<'_> {
    /// Makes `charge` cover a buffer of `bytes`, or leaves it as it is if that exceeds the account's share.
    pub(crate) fn grow(self, charge: &mut MemoryCharge, bytes: usize) -> Result<(), OverBudget> {
        if bytes < CHARGED_BYTES_MIN || bytes <= charge.bytes {
            return Ok(());
        }
        self.take(bytes - charge.bytes)?;
        charge.bytes = bytes;
        charge.holder.get_or_insert_with(|| (self.budget.clone(), self.account));
        Ok(())
    }

    /// The same bytes, charged until the last clone of them is dropped.
    pub(crate) fn hold(self, bytes: Bytes) -> Result<Bytes, OverBudget> {
        let mut charge = MemoryCharge::default();
        self.grow(&mut charge, bytes.len())?;
        Ok(charge.attach(bytes))
    }

    /// Bytes that are kept or shared, for one more reader. All readers of one account are charged once.
    pub(crate) fn lend(self, bytes: &Bytes, readers: &Readers) -> Result<Bytes, OverBudget> {
        if bytes.len() < CHARGED_BYTES_MIN {
            return Ok(bytes.clone());
        }
        let mut readers = readers.0.lock();
        readers.retain(|reader| reader.bytes.strong_count() > 0);
        let own = readers.iter().find(|reader| reader.account == self.account);
        if let Some(charged) = own.and_then(|reader| reader.bytes.upgrade()) {
            return Ok(Bytes::from_owner(ChargedRef(charged)));
        }
        let mut charge = MemoryCharge::default();
        self.grow(&mut charge, bytes.len())?;
        let charged = Arc::new(ChargedBytes { bytes: bytes.clone(), _charge: charge });
        readers.push(Reader { account: self.account, bytes: Arc::downgrade(&charged) });
        Ok(Bytes::from_owner(ChargedRef(charged)))
    }

    fn take(self, bytes: usize) -> Result<(), OverBudget> {
        let mut shared = self.budget.shared.lock();
        let own = shared.by_account.get(&self.account).copied().unwrap_or(0);
        if !is_within_share(own, bytes, shared.bytes, self.budget.bytes_max) {
            shared.refused += 1;
            return Err(OverBudget);
        }
        shared.bytes += bytes;
        shared.by_account.insert(self.account, own + bytes);
        Ok(())
    }
}

/// Memory that an account is charged for until this is dropped.
#[derive(Debug, Default)]
pub(crate) struct MemoryCharge {
    bytes: usize,
    holder: Option<(MemoryBudget, AccountId)>,
}

impl MemoryCharge {
    /// The charge for several owners, the last of which ends it; `None` if nothing is charged.
    pub(crate) fn into_shared(self) -> Option<Arc<Self>> {
        (self.bytes > 0).then(|| Arc::new(self))
    }

    /// The charge belongs to `bytes` from now on, and ends with the last clone of them.
    pub(crate) fn attach(self, bytes: Bytes) -> Bytes {
        if self.bytes == 0 { bytes } else { Bytes::from_owner(ChargedBytes { bytes, _charge: self }) }
    }
}

impl Drop for MemoryCharge {
    fn drop(&mut self) {
        let Some((budget, account)) = self.holder.take() else { return };
        let mut shared = budget.shared.lock();
        shared.bytes -= self.bytes;
        if let Some(own) = shared.by_account.get_mut(&account) {
            *own -= self.bytes;
            if *own == 0 {
                shared.by_account.remove(&account);
            }
        }
    }
}

/// Who reads an answer that is kept or shared, by account.
#[derive(Clone, Debug, Default)]
pub(crate) struct Readers(Arc<Mutex<Vec<Reader>>>);

#[derive(Debug)]
struct Reader {
    account: AccountId,
    bytes: Weak<ChargedBytes>,
}

#[derive(Debug)]
struct ChargedBytes {
    bytes: Bytes,
    _charge: MemoryCharge,
}

impl AsRef<[u8]> for ChargedBytes {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

struct ChargedRef(Arc<ChargedBytes>);

impl AsRef<[u8]> for ChargedRef {
    fn as_ref(&self) -> &[u8] {
        &self.0.bytes
    }
}

/// A buffer that is charged to an account before it grows.
#[derive(Debug, Default)]
pub(crate) struct ChargedBuffer {
    bytes: Vec<u8>,
    charge: MemoryCharge,
}

impl ChargedBuffer {
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Makes room for `more` bytes. The capacity doubles, but does not exceed `bytes_max` for that.
    pub(crate) fn reserve(
        &mut self,
        memory: AccountMemory<'_>,
        more: usize,
        bytes_max: usize,
    ) -> Result<(), OverBudget> {
        let (len, capacity) = (self.bytes.len(), self.bytes.capacity());
        if more <= capacity - len {
            return Ok(());
        }
        let grown = capacity.saturating_mul(2).min(bytes_max).max(len.saturating_add(more));
        memory.grow(&mut self.charge, grown)?;
        self.bytes.reserve_exact(grown - len);
        Ok(())
    }

    /// The bytes, to be appended to within the room that was made.
    pub(crate) fn bytes_mut(&mut self) -> &mut Vec<u8> {
        &mut self.bytes
    }

    pub(crate) fn into_parts(self) -> (Vec<u8>, MemoryCharge) {
        (self.bytes, self.charge)
    }
}

#[cfg(test)]
mod tests;
