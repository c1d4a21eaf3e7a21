//! A memory budget for request bodies and replies, shared fairly between accounts.
//!
//! A body is charged to its account before memory is allocated for it. A reply is charged while it grows or, if it was
//! computed on the thread of its connection, when it is complete. Both stay charged until their last byte was used or sent.
//!
//! Small buffers are not charged, and take no lock. An HTTP/1 connection has at most one small body and one small reply. On
//! HTTP/2, where a hundred requests share a connection, all small buffers of a connection together may hold the same amount
//! without a charge; everything beyond that is charged from the first byte. The state of an HTTP/2 request counts as a buffer.
//!
//! On HTTP/1, a call with a small body and a small answer is therefore never refused for lack of memory. On HTTP/2 the same is
//! true of a call that is alone on its connection, if its head, body and reply have less than about 20 KiB together.
//!
//! The state of an HTTP/2 request that is refused before its body is read is not charged. Requests of an account without
//! memory, preflights, and requests beyond the rate limit for requests without a valid key are answered at once. Other refused
//! requests, whose rate is limited, wait up to a second for their body.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Weak};

use bytes::Bytes;
use parking_lot::Mutex;

use crate::account_id::AccountId;
use crate::fair_share::is_within_share;

/// Smaller buffers are not charged.
pub const CHARGED_BYTES_MIN: usize = 16 << 10;

/// Uncharged bytes of one HTTP/2 connection: as much as an HTTP/1 connection holds with one body and one reply. All
/// connections together hold less than the budget.
const UNCHARGED_BYTES_MAX: usize = 2 * CHARGED_BYTES_MIN;

/// The memory that bodies and replies of all accounts may take together.
#[derive(Clone, Debug)]
pub struct MemoryBudget {
    bytes_max: usize,
    shared: Arc<Mutex<MemoryUse>>,
}

/// The memory in use. A mutex is enough, because only large bodies and replies change it.
#[derive(Debug, Default)]
struct MemoryUse {
    bytes: usize,
    by_account: HashMap<AccountId, usize>,
    refused: u64,
}

/// An account has used up its share of the budget.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OverBudget;

impl MemoryBudget {
    pub fn new(bytes_max: usize) -> Self {
        Self { bytes_max, shared: Arc::default() }
    }

    /// The budget as one account uses it.
    pub fn of(&self, account: AccountId) -> AccountMemory<'_> {
        AccountMemory { budget: self, account, uncharged: None }
    }

    pub fn bytes_max(&self) -> usize {
        self.bytes_max
    }

    pub fn bytes(&self) -> usize {
        self.shared.lock().bytes
    }

    fn give_back(&self, account: AccountId, bytes: usize) {
        let mut shared = self.shared.lock();
        shared.bytes -= bytes;
        if let Some(own) = shared.by_account.get_mut(&account) {
            *own -= bytes;
            if *own == 0 {
                shared.by_account.remove(&account);
            }
        }
    }

    /// The number of refused requests for memory.
    pub fn refused(&self) -> u64 {
        self.shared.lock().refused
    }
}

/// One account's access to the budget.
#[derive(Clone, Copy, Debug)]
pub struct AccountMemory<'a> {
    budget: &'a MemoryBudget,
    account: AccountId,
    /// Counts small buffers; `None` if their number is bounded by other means.
    uncharged: Option<&'a Arc<UnchargedBytes>>,
}

impl<'a> AccountMemory<'a> {
    /// This access, on a connection that counts small buffers.
    pub fn counting_small(self, uncharged: Option<&'a Arc<UnchargedBytes>>) -> Self {
        Self { uncharged, ..self }
    }

    pub fn counts_small(self) -> bool {
        self.uncharged.is_some()
    }

    /// Raises `charge` to a buffer of `bytes`, or leaves it unchanged if that exceeds the account's share.
    pub fn grow(self, charge: &mut MemoryCharge, bytes: usize) -> Result<(), OverBudget> {
        if bytes <= charge.bytes {
            return Ok(());
        }
        let is_free = match self.uncharged {
            None => bytes < CHARGED_BYTES_MIN,
            Some(uncharged) => bytes < CHARGED_BYTES_MIN && charge.grow_uncharged(uncharged, bytes),
        };
        if is_free {
            return Ok(());
        }
        let paid = charge.bytes_paid_by_account();
        self.take(bytes - paid)?;
        if paid > 0 {
            charge.bytes = bytes;
        } else {
            // The assignment drops the old charge, which returns the uncharged bytes to the connection.
            *charge = MemoryCharge { bytes, payer: Some(Payer::Account(self.budget.clone(), self.account)) };
        }
        Ok(())
    }

    /// Charges for these bytes until their last clone is dropped.
    pub fn hold(self, bytes: Bytes) -> Result<Bytes, OverBudget> {
        let mut charge = MemoryCharge::default();
        self.grow(&mut charge, bytes.len())?;
        Ok(charge.attach(bytes))
    }

    /// Cached or shared bytes for one more reader. All readers of one account are charged once.
    pub fn lend(self, bytes: &Bytes, readers: &ChargedReaders) -> Result<Bytes, OverBudget> {
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
        readers.push(ChargedReader { account: self.account, bytes: Arc::downgrade(&charged) });
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

/// The small buffers of one HTTP/2 connection, which are not charged to an account.
#[derive(Debug, Default)]
pub struct UnchargedBytes(AtomicUsize);

impl UnchargedBytes {
    /// Counts `bytes` and returns `true`, or returns `false` if they exceed what is uncharged.
    fn take(&self, bytes: usize) -> bool {
        let more = |held: usize| held.checked_add(bytes).filter(|&held| held <= UNCHARGED_BYTES_MAX);
        self.0.fetch_update(Relaxed, Relaxed, more).is_ok()
    }
}

/// Memory that is charged to an account, or counted for a connection, until this value is dropped.
#[derive(Debug, Default)]
pub struct MemoryCharge {
    bytes: usize,
    payer: Option<Payer>,
}

/// Where the bytes of a charge are counted.
#[derive(Debug)]
enum Payer {
    Account(MemoryBudget, AccountId),
    Connection(Arc<UnchargedBytes>),
}

impl MemoryCharge {
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    fn bytes_paid_by_account(&self) -> usize {
        if matches!(self.payer, Some(Payer::Account(..))) { self.bytes } else { 0 }
    }

    /// Raises the charge to `bytes` for the connection and returns `true`, or returns `false` if the connection has no room.
    fn grow_uncharged(&mut self, uncharged: &Arc<UnchargedBytes>, bytes: usize) -> bool {
        if self.bytes_paid_by_account() > 0 || !uncharged.take(bytes - self.bytes) {
            return false;
        }
        self.bytes = bytes;
        self.payer.get_or_insert_with(|| Payer::Connection(Arc::clone(uncharged)));
        true
    }

    /// Shares the charge between several owners; `None` if nothing is charged.
    pub fn into_shared(self) -> Option<Arc<Self>> {
        (self.bytes > 0).then(|| Arc::new(self))
    }

    /// Attaches the charge to `bytes`; it ends when their last clone is dropped.
    pub fn attach(self, bytes: Bytes) -> Bytes {
        if self.bytes == 0 { bytes } else { Bytes::from_owner(ChargedBytes { bytes, _charge: self }) }
    }
}

impl Drop for MemoryCharge {
    fn drop(&mut self) {
        match &self.payer {
            None => {}
            Some(Payer::Connection(uncharged)) => {
                uncharged.0.fetch_sub(self.bytes, Relaxed);
            }
            Some(Payer::Account(budget, account)) => budget.give_back(*account, self.bytes),
        }
    }
}

/// The accounts that are charged for reading the same cached or shared bytes.
#[derive(Clone, Debug, Default)]
pub struct ChargedReaders(Arc<Mutex<Vec<ChargedReader>>>);

#[derive(Debug)]
struct ChargedReader {
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
pub struct ChargedBuffer {
    bytes: Vec<u8>,
    charge: MemoryCharge,
}

impl ChargedBuffer {
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Reserves room for `more` bytes. The capacity at least doubles, but the doubling stops at `bytes_max`.
    pub fn reserve(
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

    /// The bytes, for appending within the reserved capacity.
    pub fn bytes_mut(&mut self) -> &mut Vec<u8> {
        &mut self.bytes
    }

    pub fn into_parts(self) -> (Vec<u8>, MemoryCharge) {
        (self.bytes, self.charge)
    }
}

#[cfg(test)]
mod tests;
