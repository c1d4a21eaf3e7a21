//! Memory for replies.
//!
//! All replies of a pool's nodes that are being read, inflated or checked share one budget of bytes, and each account has its
//! share of it ([`is_within_share`]): some calls hold a reply while they wait for the next one. A reply that does not
//! fit waits on the wire, and fails when its time is over; the node is not blamed for that. Smaller replies that fit do not
//! wait behind it. A checked answer leaves the budget with [`ReplyBuffers::hand_over`] when it goes to its caller, because a
//! caller may read slowly.
//!
//! A node may use a part of the budget, such that with up to eight nodes those that may lie do not use all of it together, or
//! all of it if it is the only one. A reply whose length is known may be as large as that. It gets its memory when its first
//! 32 KiB have arrived, because a node may announce what it never sends. A reply that grows while it is read is copied to
//! larger buffers, and both are counted meanwhile, so it may only be half as large.
//!
//! Fresh memory from the system takes as long as reading into it, so a few large buffers stay allocated for the next replies.

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use parking_lot::Mutex;
use resources::{AccountId, is_within_share};
use tokio::sync::Notify;
use tokio::time::{Instant, timeout_at};

use super::http_reply::COPIED_BYTES_MAX;
use crate::call::Fault;

/// Bytes of unused buffers that stay allocated.
const SPARE_BYTES_MAX: usize = 32 << 20;

/// Unused buffers that stay allocated.
const SPARE_MAX: usize = 64;

/// The budget is counted in steps of this size. Smaller buffers are not counted: there is at most one for each exchange.
const STEP_BYTES: usize = 64 << 10;

/// How long a reply that holds memory waits for more. Replies of unknown length, and compressed ones, may all wait for each
/// other, and the first that gives up frees memory for the others. A reply over HTTP/2 waits no longer, either, because it uses
/// up the window of its connection.
pub(super) const GROWTH_TIMEOUT: Duration = Duration::from_secs(1);

/// The part of a large reply that is read before the reply gets memory for the rest. It is not counted, so that replies of
/// known length hold nothing while they wait, and do not wait for each other.
pub(super) const FIRST_BYTES: usize = 32 << 10;

/// Into how many parts the budget is divided at most. More would not leave enough for the largest replies.
const PARTS_MAX: usize = 4;

/// Bytes that are copied before other tasks get their turn: under 100 µs.
const COPIED_AT_ONCE_BYTES: usize = 256 << 10;

/// The memory that all endpoints of a pool share.
pub struct ReplyBuffers {
    budget_steps: usize,
    used: Mutex<UsedSteps>,
    /// Notified when something is given back.
    given_back: Notify,
    spare: Mutex<SpareBuffers>,
    /// Frozen buffers that are counted, by the address of their first byte.
    counted: Mutex<BTreeMap<usize, CountedBuffer>>,
}

impl fmt::Debug for ReplyBuffers {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "ReplyBuffers({} bytes used)", self.used_bytes())
    }
}

/// Steps of the budget that are in use.
#[derive(Default)]
struct UsedSteps {
    total: usize,
    by_endpoint: Vec<usize>,
    /// Only accounts that use some.
    by_account: HashMap<AccountId, usize>,
}

impl UsedSteps {
    fn give_back(&mut self, memory: &EndpointMemory, count: usize) {
        self.total -= count;
        self.by_endpoint[memory.endpoint] -= count;
        if let Some(own) = self.by_account.get_mut(&memory.account) {
            *own -= count;
            if *own == 0 {
                self.by_account.remove(&memory.account);
            }
        }
    }
}

/// A frozen buffer, as long as its bytes are counted.
struct CountedBuffer {
    capacity: usize,
    steps: ReservedSteps,
}

/// The share of one endpoint, for replies to one account.
#[derive(Clone, Debug)]
pub(super) struct EndpointMemory {
    shared: Arc<ReplyBuffers>,
    account: AccountId,
    /// The index of the endpoint in [`UsedSteps`].
    endpoint: usize,
    /// The most that the endpoint may use, so that it cannot use up the memory of the others.
    share_steps: usize,
}

/// Steps that are in use until this value is dropped.
struct ReservedSteps {
    memory: EndpointMemory,
    count: usize,
}

impl Drop for ReservedSteps {
    fn drop(&mut self) {
        let shared = &self.memory.shared;
        shared.used.lock().give_back(&self.memory, self.count);
        shared.given_back.notify_waiters();
    }
}

impl ReplyBuffers {
    pub fn new(bytes_max: usize) -> Arc<Self> {
        Arc::new(Self {
            budget_steps: bytes_max.div_ceil(STEP_BYTES).max(1),
            used: Mutex::default(),
            given_back: Notify::new(),
            spare: Mutex::default(),
            counted: Mutex::default(),
        })
    }

    /// Bytes of the budget that are in use.
    pub fn used_bytes(&self) -> usize {
        self.used.lock().total * STEP_BYTES
    }

    /// The share of one of so many endpoints. A minority of up to eight, which may lie, does not get all of the budget.
    pub(super) fn for_endpoint(self: &Arc<Self>, endpoints: usize) -> EndpointMemory {
        let minority = endpoints.saturating_sub(1) / 2;
        let parts = if endpoints <= 1 { 1 } else { (minority + 1).clamp(2, PARTS_MAX) };
        let mut used = self.used.lock();
        used.by_endpoint.push(0);
        EndpointMemory {
            shared: Arc::clone(self),
            account: AccountId::GATEWAY,
            endpoint: used.by_endpoint.len() - 1,
            share_steps: self.budget_steps.div_ceil(parts),
        }
    }

    /// How much a whole reply takes of its endpoint's share.
    fn steps_of(&self, reply: &Bytes) -> usize {
        let counted = self.counted.lock();
        counted.get(&(reply.as_ptr() as usize)).map_or(0, |buffer| buffer.steps.count)
    }

    /// Takes a result out of the budget, because its receiver counts it from now on. A small part of a large buffer is copied,
    /// because it would keep the whole buffer alive.
    pub fn hand_over(&self, result: Bytes) -> Bytes {
        // Smaller results were copied out of their buffers already.
        if result.len() <= COPIED_BYTES_MAX {
            return result;
        }
        let address = result.as_ptr() as usize;
        let mut counted = self.counted.lock();
        let Some((&start, buffer)) = counted.range(..=address).next_back() else { return result };
        if address - start >= buffer.capacity {
            return result;
        }
        if result.len() < buffer.capacity / 2 {
            drop(counted);
            return Bytes::copy_from_slice(&result);
        }
        let handed_over = counted.remove(&start);
        drop(counted);
        // Wakes all replies that wait for memory.
        drop(handed_over);
        result
    }
}

impl EndpointMemory {
    /// The same for replies to this account.
    pub(super) fn for_account(&self, account: AccountId) -> Self {
        Self { account, ..self.clone() }
    }

    /// A buffer for a reply of `length` bytes. If that is large, [`Buffer::reserve`] gets its memory when its first part has
    /// arrived.
    pub(super) fn buffer(&self, length: usize) -> Result<Buffer, Fault> {
        if length.div_ceil(STEP_BYTES) > self.share_steps {
            return Err(Fault::LargerThanMemory);
        }
        let first = if length < STEP_BYTES { length } else { FIRST_BYTES };
        let mut buffer = Buffer::uncounted(first, self);
        buffer.length = length;
        Ok(buffer)
    }

    /// One more buffer of a reply that holds `held` in memory meanwhile.
    pub(super) async fn buffer_beside(
        &self,
        held: &Bytes,
        length: usize,
        until: Instant,
    ) -> Result<Buffer, Fault> {
        let held_steps = self.shared.steps_of(held);
        let free = self.share_steps.saturating_sub(held_steps);
        // Replies that each hold memory and wait for more of it must not wait for each other.
        let until = if held_steps > 0 { until.min(Instant::now() + GROWTH_TIMEOUT) } else { until };
        let needed = length.div_ceil(STEP_BYTES);
        let mut buffer = if length < STEP_BYTES {
            Buffer::uncounted(length, self)
        } else if needed > free {
            return Err(Fault::LargerThanMemory);
        } else {
            self.allocate(needed, with_spare_room(needed).min(free), held_steps, until).await?
        };
        buffer.beside_steps = held_steps;
        Ok(buffer)
    }

    /// A buffer of at least `needed` and at most `granted` steps, which are counted. The same reply holds `held` steps, too.
    async fn allocate(
        &self,
        needed: usize,
        granted: usize,
        held: usize,
        until: Instant,
    ) -> Result<Buffer, Fault> {
        let steps = self.reserve_steps(granted, held, until).await?;
        let spare = self.shared.spare.lock().take(needed * STEP_BYTES, granted * STEP_BYTES);
        let bytes = spare.unwrap_or_else(|| Vec::with_capacity(needed * STEP_BYTES));
        Ok(Buffer { bytes, steps: Some(steps), length: 0, beside_steps: 0, memory: self.clone() })
    }

    /// Waits until so much is free, for a reply that holds `held` steps already.
    async fn reserve_steps(&self, count: usize, held: usize, until: Instant) -> Result<ReservedSteps, Fault> {
        loop {
            // Created first, so that nothing that is given back from now on is missed.
            let given_back = self.shared.given_back.notified();
            if let Some(steps) = self.try_reserve_steps(count, held) {
                return Ok(steps);
            }
            timeout_at(until, given_back).await.map_err(|_| Fault::NoMemory)?;
        }
    }

    fn try_reserve_steps(&self, count: usize, held: usize) -> Option<ReservedSteps> {
        let (mut used, budget) = (self.shared.used.lock(), self.shared.budget_steps);
        let (total, of_endpoint) = (used.total + count, used.by_endpoint[self.endpoint] + count);
        let of_account = used.by_account.get(&self.account).copied().unwrap_or_default();
        // A single reply may use everything, so what it holds itself does not count against its account.
        let others_of_account = of_account.saturating_sub(held);
        let is_within_share = is_within_share(others_of_account, count, used.total - held, budget);
        if total > budget || of_endpoint > self.share_steps || !is_within_share {
            return None;
        }
        used.total = total;
        used.by_endpoint[self.endpoint] = of_endpoint;
        used.by_account.insert(self.account, of_account + count);
        Some(ReservedSteps { memory: self.clone(), count })
    }
}

/// The most steps that a buffer of `needed` steps may take: a spare buffer may be a little larger.
fn with_spare_room(needed: usize) -> usize {
    if needed * STEP_BYTES > SPARE_BYTES_MAX { needed } else { needed + needed / 8 }
}

/// A reply that is being read.
pub(super) struct Buffer {
    bytes: Vec<u8>,
    /// `None`: it is not counted.
    steps: Option<ReservedSteps>,
    /// The length of the reply; 0 if it is unknown.
    length: usize,
    /// Steps of another buffer of the same reply.
    beside_steps: usize,
    memory: EndpointMemory,
}

impl Buffer {
    /// A small buffer, which is not counted.
    fn uncounted(capacity: usize, memory: &EndpointMemory) -> Self {
        Self {
            bytes: Vec::with_capacity(capacity),
            steps: None,
            length: 0,
            beside_steps: 0,
            memory: memory.clone(),
        }
    }

    pub(super) fn bytes(&mut self) -> &mut Vec<u8> {
        &mut self.bytes
    }

    /// Makes room for `more` bytes, and counts them. Waits for memory until `until`.
    pub(super) async fn reserve(&mut self, more: usize, until: Instant) -> Result<(), Fault> {
        let length = self.bytes.len() + more;
        if length <= self.bytes.capacity() {
            return Ok(());
        }
        let mut larger = if length <= self.length {
            let needed = self.length.div_ceil(STEP_BYTES);
            let granted = with_spare_room(needed).min(self.memory.share_steps);
            self.memory.allocate(needed, granted, 0, until).await?
        } else {
            let doubled = length.max(2 * self.bytes.len());
            if doubled < STEP_BYTES {
                self.bytes.reserve_exact(doubled - self.bytes.len());
                return Ok(());
            }
            self.allocate_larger(length, doubled, until).await?
        };
        for part in self.bytes.chunks(COPIED_AT_ONCE_BYTES) {
            larger.bytes.extend_from_slice(part);
            tokio::task::yield_now().await;
        }
        larger.beside_steps = self.beside_steps;
        *self = larger;
        Ok(())
    }

    /// A buffer of `doubled` bytes, or of what its endpoint may still use if that is less but enough for `length`.
    async fn allocate_larger(&self, length: usize, doubled: usize, until: Instant) -> Result<Self, Fault> {
        let own = self.beside_steps + self.steps.as_ref().map_or(0, |steps| steps.count);
        let (needed, free) = (length.div_ceil(STEP_BYTES), self.memory.share_steps.saturating_sub(own));
        if needed > free {
            return Err(Fault::LargerThanMemory);
        }
        let steps = doubled.div_ceil(STEP_BYTES).min(free);
        let until = if own > 0 { until.min(Instant::now() + GROWTH_TIMEOUT) } else { until };
        self.memory.allocate(steps, steps, own, until).await
    }

    /// The bytes. They are counted until the last reference is dropped or they are handed over.
    pub(super) fn freeze(mut self) -> Bytes {
        let bytes = std::mem::take(&mut self.bytes);
        let Some(steps) = self.steps.take() else { return bytes.into() };
        let shared = Arc::clone(&self.memory.shared);
        let counted = CountedBuffer { capacity: bytes.capacity(), steps };
        shared.counted.lock().insert(bytes.as_ptr() as usize, counted);
        Bytes::from_owner(FrozenBuffer { bytes, shared })
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        self.memory.shared.spare.lock().give(std::mem::take(&mut self.bytes));
    }
}

/// A reply that was read.
struct FrozenBuffer {
    bytes: Vec<u8>,
    shared: Arc<ReplyBuffers>,
}

impl AsRef<[u8]> for FrozenBuffer {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

impl Drop for FrozenBuffer {
    fn drop(&mut self) {
        let counted = self.shared.counted.lock().remove(&(self.bytes.as_ptr() as usize));
        self.shared.spare.lock().give(std::mem::take(&mut self.bytes));
        drop(counted);
    }
}

/// Unused buffers, the one that was given back last at the end.
#[derive(Default)]
struct SpareBuffers {
    buffers: Vec<Vec<u8>>,
    bytes: usize,
}

impl SpareBuffers {
    /// A buffer that is large enough, but not larger than was granted.
    fn take(&mut self, length: usize, granted: usize) -> Option<Vec<u8>> {
        let fits = |bytes: &Vec<u8>| (length..=granted).contains(&bytes.capacity());
        let place = self.buffers.iter().rposition(fits)?;
        let bytes = self.buffers.remove(place);
        self.bytes -= bytes.capacity();
        Some(bytes)
    }

    /// Leaves a large buffer allocated for another reply. The buffers that were unused for longest make room for it.
    fn give(&mut self, mut bytes: Vec<u8>) {
        if bytes.capacity() < STEP_BYTES {
            return;
        }
        bytes.clear();
        self.bytes += bytes.capacity();
        self.buffers.push(bytes);
        while self.bytes > SPARE_BYTES_MAX || self.buffers.len() > SPARE_MAX {
            self.bytes -= self.buffers.remove(0).capacity();
        }
    }
}
