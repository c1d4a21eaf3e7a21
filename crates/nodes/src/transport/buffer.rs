//! Memory for replies.
//!
//! All replies of a pool's nodes that are being read, inflated or checked share one budget of bytes. A reply that does not
//! fit waits on the wire, and fails when its time is over; the node is not blamed for that. A checked answer leaves the budget
//! with [`ReplyBuffers::hand_over`] when it goes to its caller, because a caller may read slowly.
//!
//! A node may use half of the budget, or all of it if it is the only one. A reply whose length is known may be as large as
//! that. One that grows while it is read is copied to larger buffers, and both are counted meanwhile, so it may only be half
//! as large.
//!
//! Fresh memory from the system takes as long as reading into it, so a few large buffers are kept for the next replies.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use parking_lot::Mutex;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, timeout_at};

use super::http_reply::COPIED_BYTES_MAX;
use crate::call::Fault;

/// Bytes of unused buffers that are kept.
const SPARE_BYTES_MAX: usize = 32 << 20;

/// Unused buffers that are kept.
const SPARE_MAX: usize = 64;

/// The budget is counted in steps of this size. Smaller buffers are not counted: there is at most one on each connection.
const STEP_BYTES: usize = 64 << 10;

/// How long a reply that holds memory waits for more. Replies of unknown length may all wait for each other, and the first that
/// gives up frees memory for the others.
const GROWTH_PATIENCE: Duration = Duration::from_secs(1);

/// Bytes that are copied before other tasks get their turn: under 100 µs.
const COPIED_AT_ONCE_BYTES: usize = 256 << 10;

/// The memory that all endpoints of a pool share.
pub struct ReplyBuffers {
    budget: Arc<Semaphore>,
    budget_steps: usize,
    spare: Mutex<SpareBuffers>,
    /// Frozen buffers that are counted, by the address of their first byte.
    counted: Mutex<BTreeMap<usize, CountedBuffer>>,
}

impl fmt::Debug for ReplyBuffers {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "ReplyBuffers({} bytes used)", self.used_bytes())
    }
}

/// A frozen buffer, as long as its bytes are counted.
struct CountedBuffer {
    capacity: usize,
    permits: Permits,
}

/// The share of one endpoint.
#[derive(Clone, Debug)]
pub(super) struct EndpointMemory {
    shared: Arc<ReplyBuffers>,
    /// Bounds the endpoint, so that it cannot use up the memory of the others.
    share: Arc<Semaphore>,
    share_steps: usize,
}

/// Steps of the endpoint's share and of the budget.
struct Permits {
    share: OwnedSemaphorePermit,
    _budget: OwnedSemaphorePermit,
}

impl ReplyBuffers {
    pub fn new(bytes_max: usize) -> Arc<Self> {
        let budget_steps = bytes_max.div_ceil(STEP_BYTES).clamp(1, Semaphore::MAX_PERMITS);
        Arc::new(Self {
            budget: Arc::new(Semaphore::new(budget_steps)),
            budget_steps,
            spare: Mutex::default(),
            counted: Mutex::default(),
        })
    }

    /// Bytes of the budget that are in use.
    pub fn used_bytes(&self) -> usize {
        (self.budget_steps - self.budget.available_permits()) * STEP_BYTES
    }

    /// The share of one endpoint: half of the budget, or all of it if there is no other endpoint.
    pub(super) fn for_endpoint(self: &Arc<Self>, is_only: bool) -> EndpointMemory {
        let share_steps = if is_only { self.budget_steps } else { self.budget_steps.div_ceil(2) };
        EndpointMemory { shared: Arc::clone(self), share: Arc::new(Semaphore::new(share_steps)), share_steps }
    }

    /// How much a whole reply takes of its endpoint's share.
    fn steps_of(&self, reply: &Bytes) -> usize {
        let counted = self.counted.lock();
        counted.get(&(reply.as_ptr() as usize)).map_or(0, |buffer| buffer.permits.share.num_permits())
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
        counted.remove(&start);
        result
    }
}

impl EndpointMemory {
    /// A buffer for `length` bytes. Waits for memory until `until`.
    pub(super) async fn buffer(&self, length: usize, until: Instant) -> Result<Buffer, Fault> {
        self.buffer_within(self.share_steps, length, until).await
    }

    /// One more buffer of a reply that keeps `held` meanwhile.
    pub(super) async fn buffer_beside(
        &self,
        held: &Bytes,
        length: usize,
        until: Instant,
    ) -> Result<Buffer, Fault> {
        let held_steps = self.shared.steps_of(held);
        let free = self.share_steps.saturating_sub(held_steps);
        // Replies that each hold memory and wait for more of it must not wait for each other.
        let until = if held_steps > 0 { until.min(Instant::now() + GROWTH_PATIENCE) } else { until };
        self.buffer_within(free, length, until).await
    }

    async fn buffer_within(&self, steps_max: usize, length: usize, until: Instant) -> Result<Buffer, Fault> {
        if length < STEP_BYTES {
            return Ok(Buffer { bytes: Vec::with_capacity(length), permits: None, memory: self.clone() });
        }
        let needed = length.div_ceil(STEP_BYTES);
        if needed > steps_max {
            return Err(Fault::LargerThanMemory);
        }
        // A spare buffer may be a little larger than needed.
        self.allocate(needed, (needed + needed / 8).min(steps_max), until).await
    }

    /// A buffer of at least `needed` and at most `granted` steps.
    async fn allocate(&self, needed: usize, granted: usize, until: Instant) -> Result<Buffer, Fault> {
        let permits = self.acquire(granted, until).await?;
        let spare = self.shared.spare.lock().take(needed * STEP_BYTES, granted * STEP_BYTES);
        let bytes = spare.unwrap_or_else(|| Vec::with_capacity(needed * STEP_BYTES));
        Ok(Buffer { bytes, permits: Some(permits), memory: self.clone() })
    }

    async fn acquire(&self, steps: usize, until: Instant) -> Result<Permits, Fault> {
        let count = u32::try_from(steps).map_err(|_| Fault::LargerThanMemory)?;
        let acquire = async {
            let share = Arc::clone(&self.share).acquire_many_owned(count).await.ok()?;
            let budget = Arc::clone(&self.shared.budget).acquire_many_owned(count).await.ok()?;
            Some(Permits { share, _budget: budget })
        };
        timeout_at(until, acquire).await.ok().flatten().ok_or(Fault::NoMemory)
    }
}

/// A reply that is being read.
pub(super) struct Buffer {
    bytes: Vec<u8>,
    permits: Option<Permits>,
    memory: EndpointMemory,
}

impl Buffer {
    pub(super) fn bytes(&mut self) -> &mut Vec<u8> {
        &mut self.bytes
    }

    /// Makes room for `more` bytes of a reply of unknown length. The buffer doubles, or takes what its endpoint may still use if
    /// that is less.
    pub(super) async fn reserve(&mut self, more: usize, until: Instant) -> Result<(), Fault> {
        let length = self.bytes.len() + more;
        if length <= self.bytes.capacity() {
            return Ok(());
        }
        let doubled = length.max(2 * self.bytes.len());
        if doubled < STEP_BYTES {
            self.bytes.reserve_exact(doubled - self.bytes.len());
            return Ok(());
        }
        let own = self.permits.as_ref().map_or(0, |permits| permits.share.num_permits());
        let (needed, free) = (length.div_ceil(STEP_BYTES), self.memory.share_steps - own);
        if needed > free {
            return Err(Fault::LargerThanMemory);
        }
        let steps = doubled.div_ceil(STEP_BYTES).min(free);
        let until = if own > 0 { until.min(Instant::now() + GROWTH_PATIENCE) } else { until };
        let mut larger = self.memory.allocate(steps, steps, until).await?;
        for part in self.bytes.chunks(COPIED_AT_ONCE_BYTES) {
            larger.bytes.extend_from_slice(part);
            tokio::task::yield_now().await;
        }
        *self = larger;
        Ok(())
    }

    /// The bytes. They are counted until the last reference is dropped or they are handed over.
    pub(super) fn freeze(mut self) -> Bytes {
        let bytes = std::mem::take(&mut self.bytes);
        let Some(permits) = self.permits.take() else { return bytes.into() };
        let shared = Arc::clone(&self.memory.shared);
        let counted = CountedBuffer { capacity: bytes.capacity(), permits };
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
        let permits = self.shared.counted.lock().remove(&(self.bytes.as_ptr() as usize));
        self.shared.spare.lock().give(std::mem::take(&mut self.bytes));
        drop(permits);
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

    /// Keeps a large buffer. The buffers that were unused for longest make room for it.
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

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: usize = 1 << 20;

    fn soon() -> Instant {
        Instant::now() + Duration::from_secs(5)
    }

    fn memory(bytes: usize) -> EndpointMemory {
        ReplyBuffers::new(bytes).for_endpoint(true)
    }

    #[tokio::test(start_paused = true)]
    async fn buffers_are_used_again() {
        let memory = memory(16 * MIB);
        let mut first = memory.buffer(3 * MIB, soon()).await.unwrap();
        first.bytes().extend_from_slice(b"some");
        let bytes = first.freeze();
        let address = bytes.as_ptr();
        drop(bytes);
        let again = memory.buffer(3 * MIB - 5, soon()).await.unwrap();
        assert_eq!((again.bytes.len(), again.bytes.as_ptr()), (0, address));
    }

    /// A compressed reply waited for memory that it held itself, until its call was over.
    #[tokio::test(start_paused = true)]
    async fn a_reply_does_not_wait_for_memory_that_it_holds_itself() {
        let memory = memory(8 * MIB);
        let mut compressed = memory.buffer(2 * MIB, soon()).await.unwrap();
        compressed.bytes().extend_from_slice(b"some");
        let compressed = compressed.freeze();
        let began = Instant::now();
        let too_large = memory.buffer_beside(&compressed, 7 * MIB, soon()).await;
        assert_eq!((too_large.err(), began.elapsed()), (Some(Fault::LargerThanMemory), Duration::ZERO));
        // Together with its compressed form it takes all that there is.
        memory.buffer_beside(&compressed, 5 * MIB + MIB / 2, soon()).await.unwrap();
        assert_eq!(began.elapsed(), Duration::ZERO);
        // Others hold the rest, and may wait for this one as it does for them.
        let _others = memory.buffer(4 * MIB, soon()).await.unwrap();
        let waited = memory.buffer_beside(&compressed, 5 * MIB, soon()).await;
        assert_eq!((waited.err(), began.elapsed()), (Some(Fault::NoMemory), GROWTH_PATIENCE));
    }

    /// A reply that had waited for a second went on without a permit, so there was no bound at all.
    #[tokio::test(start_paused = true)]
    async fn what_does_not_fit_waits_and_then_fails() {
        let memory = memory(8 * MIB);
        let held = memory.buffer(5 * MIB, soon()).await.unwrap().freeze();
        let began = Instant::now();
        assert_eq!(memory.buffer(5 * MIB, soon()).await.err(), Some(Fault::NoMemory));
        assert_eq!(began.elapsed(), Duration::from_secs(5), "it waits as long as it may");
        assert_eq!(
            memory.buffer(80 * MIB, soon()).await.err(),
            Some(Fault::LargerThanMemory),
            "and not for what cannot be"
        );
        assert_eq!(began.elapsed(), Duration::from_secs(5));
        let waiting = tokio::spawn({
            let memory = memory.clone();
            async move { memory.buffer(5 * MIB, soon()).await.is_ok() }
        });
        tokio::task::yield_now().await;
        drop(held);
        assert!(waiting.await.unwrap(), "it gets what others give back");
        assert_eq!(memory.shared.used_bytes(), 0);
    }

    #[tokio::test(start_paused = true)]
    async fn one_endpoint_leaves_half_to_the_others() {
        let shared = ReplyBuffers::new(8 * MIB);
        let (greedy, other) = (shared.for_endpoint(false), shared.for_endpoint(false));
        let _held = greedy.buffer(3 * MIB, soon()).await.unwrap();
        let began = Instant::now();
        assert!(greedy.buffer(3 * MIB, soon()).await.is_err());
        assert!(other.buffer(3 * MIB, soon()).await.is_ok());
        assert_eq!(began.elapsed(), Duration::from_secs(5));
    }

    /// Reads a reply of unknown length in pieces of 10,000 bytes.
    async fn grow_to(memory: &EndpointMemory, bytes: usize) -> Result<Buffer, Fault> {
        let mut growing = memory.buffer(0, soon()).await?;
        while growing.bytes.len() < bytes {
            let piece = 10_000.min(bytes - growing.bytes.len());
            growing.reserve(piece, soon()).await?;
            growing.bytes.resize(growing.bytes.len() + piece, 7);
        }
        Ok(growing)
    }

    /// A reply of known length had 8/9 of what its node may use, and one of unknown length between a third and two thirds;
    /// where it ended, it waited for memory that it had itself.
    #[tokio::test(start_paused = true)]
    async fn a_reply_may_use_the_share_of_its_node_or_half_of_it_if_its_length_is_unknown() {
        for mib in 1..=20 {
            let shared = ReplyBuffers::new(2 * mib * MIB);
            let (memory, began) = (shared.for_endpoint(false), Instant::now());
            assert!(memory.buffer(mib * MIB, soon()).await.is_ok());
            assert_eq!(memory.buffer(mib * MIB + 1, soon()).await.err(), Some(Fault::LargerThanMemory));
            let grown = grow_to(&memory, mib * MIB / 2).await.unwrap();
            assert!(grown.bytes.iter().all(|byte| *byte == 7) && shared.used_bytes() <= mib * MIB);
            drop(grown);
            assert_eq!(grow_to(&memory, mib * MIB).await.err(), Some(Fault::LargerThanMemory));
            assert_eq!((began.elapsed(), shared.used_bytes()), (Duration::ZERO, 0));
        }
    }

    /// Copying 32 MiB takes ten milliseconds, in which nobody else on the thread was served.
    #[tokio::test(start_paused = true)]
    async fn others_get_their_turn_while_a_growing_reply_is_copied() {
        let memory = memory(64 * MIB);
        let mut growing = memory.buffer(8 * MIB, soon()).await.unwrap();
        growing.bytes.resize(growing.bytes.capacity(), 7);
        let turns = Arc::new(std::sync::atomic::AtomicUsize::new(0));
        let counted = Arc::clone(&turns);
        let other = tokio::spawn(async move {
            loop {
                counted.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
                tokio::task::yield_now().await;
            }
        });
        growing.reserve(1, soon()).await.unwrap();
        other.abort();
        let turns = turns.load(std::sync::atomic::Ordering::Relaxed);
        assert!(turns >= 8 * MIB / COPIED_AT_ONCE_BYTES - 1, "{turns} turns");
    }

    #[tokio::test(start_paused = true)]
    async fn growing_keeps_the_bytes_and_gives_back_what_was_outgrown() {
        let memory = memory(16 * MIB);
        let mut growing = memory.buffer(5, soon()).await.unwrap();
        for part in 0..400_u32 {
            growing.reserve(9_000, soon()).await.unwrap();
            growing.bytes.extend_from_slice(&[part as u8; 9_000]);
        }
        let parts: Vec<u8> = growing.bytes.chunks(9_000).map(|part| part[8_999]).collect();
        assert_eq!(parts, (0..400_u32).map(|part| part as u8).collect::<Vec<_>>());
        drop(growing);
        assert_eq!(memory.shared.used_bytes(), 0);
        assert!(memory.shared.spare.lock().bytes <= SPARE_BYTES_MAX);
    }

    /// Replies that all have something and want more would wait for each other until their time is over.
    #[tokio::test(start_paused = true)]
    async fn growing_replies_do_not_wait_for_each_other_for_long() {
        let memory = memory(8 * MIB);
        let began = Instant::now();
        let grow = |memory: EndpointMemory| async move {
            let mut growing = memory.buffer(3 * MIB, soon()).await?;
            growing.bytes.extend_from_slice(&[7; 3 * MIB]);
            tokio::task::yield_now().await;
            growing.reserve(3 * MIB, soon()).await
        };
        let (one, other) = tokio::join!(grow(memory.clone()), grow(memory.clone()));
        assert!(one.is_err() || other.is_err());
        assert!(began.elapsed() <= GROWTH_PATIENCE);
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_handed_over_is_not_counted_any_more() {
        let memory = memory(8 * MIB);
        let buffer = || async {
            let mut buffer = memory.buffer(4 * MIB, soon()).await.unwrap();
            buffer.bytes().resize(4 * MIB, 7);
            buffer.freeze()
        };
        let large = buffer().await;
        let result = memory.shared.hand_over(large.slice(10..));
        assert_eq!((result.len(), memory.shared.used_bytes()), (4 * MIB - 10, 0));
        let whole = buffer().await;
        let part = memory.shared.hand_over(whole.slice(100..5_000));
        assert!(memory.shared.used_bytes() > 0, "a part is copied");
        drop(whole);
        assert_eq!((part.len(), memory.shared.used_bytes()), (4_900, 0));
        drop((large, result));
        assert!(memory.shared.counted.lock().is_empty());
        assert_eq!(memory.shared.hand_over(Bytes::from(vec![1; 9_000])), vec![1; 9_000]);
    }
}
