//! Memory for replies.
//!
//! All replies of a pool's nodes that are being read, inflated or checked share one budget of bytes. A reply that does not
//! fit waits on the wire, and fails when its time is over; the node is not blamed for that. A checked answer leaves the budget
//! with [`ReplyBuffers::hand_over`] when it goes to its caller, because a caller may read slowly.
//!
//! A node may use a part of the budget, such that those that may lie do not use all of it together, or all of it if it is the
//! only one. A reply whose length is known may be as large as that. It is counted as its bytes arrive, because a node may
//! announce what it never sends. A reply that grows while it is read is copied to larger buffers, and both are counted
//! meanwhile, so it may only be half as large.
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

/// What is counted of a reply of known length before its first byte. After that it is twice what has arrived.
const FIRST_STEPS: usize = (1 << 20) / STEP_BYTES;

/// Into how many parts the budget is divided at most. More would not leave enough for the largest replies.
const PARTS_MAX: usize = 4;

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
    budget: OwnedSemaphorePermit,
}

impl Permits {
    fn merge(&mut self, more: Self) {
        self.share.merge(more.share);
        self.budget.merge(more.budget);
    }
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

    /// The share of one of so many endpoints. A minority of them, which may lie, does not get all of the budget.
    pub(super) fn for_endpoint(self: &Arc<Self>, endpoints: usize) -> EndpointMemory {
        let minority = endpoints.saturating_sub(1) / 2;
        let parts = if endpoints <= 1 { 1 } else { (minority + 1).clamp(2, PARTS_MAX) };
        let share_steps = self.budget_steps.div_ceil(parts);
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
    /// A buffer for a reply of `length` bytes, which are counted as they are reserved. Waits for memory until `until`.
    pub(super) async fn buffer(&self, length: usize, until: Instant) -> Result<Buffer, Fault> {
        if length < STEP_BYTES {
            return Ok(Buffer::small(length, self));
        }
        let needed = length.div_ceil(STEP_BYTES);
        if needed > self.share_steps {
            return Err(Fault::LargerThanMemory);
        }
        let granted = self.granted(needed, self.share_steps);
        let permits = self.acquire(granted.min(FIRST_STEPS), until).await?;
        Ok(self.filled_later(needed, granted, permits))
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
            return Ok(Buffer::small(length, self));
        }
        let needed = length.div_ceil(STEP_BYTES);
        if needed > steps_max {
            return Err(Fault::LargerThanMemory);
        }
        self.allocate(needed, self.granted(needed, steps_max), until).await
    }

    /// What a buffer of `needed` steps may take. A spare buffer may be a little larger than needed.
    fn granted(&self, needed: usize, steps_max: usize) -> usize {
        (needed + needed / 8).min(steps_max)
    }

    /// A buffer of at least `needed` and at most `granted` steps.
    async fn allocate(&self, needed: usize, granted: usize, until: Instant) -> Result<Buffer, Fault> {
        let permits = self.acquire(granted, until).await?;
        Ok(self.filled_later(needed, granted, permits))
    }

    /// A buffer of at least `needed` and at most `granted` steps, of which some are counted already. The system provides the
    /// memory of a new one only as it is written.
    fn filled_later(&self, needed: usize, granted: usize, permits: Permits) -> Buffer {
        let spare = self.shared.spare.lock().take(needed * STEP_BYTES, granted * STEP_BYTES);
        let bytes = spare.unwrap_or_else(|| Vec::with_capacity(needed * STEP_BYTES));
        Buffer { bytes, permits: Some(permits), granted, memory: self.clone() }
    }

    async fn acquire(&self, steps: usize, until: Instant) -> Result<Permits, Fault> {
        let count = u32::try_from(steps).map_err(|_| Fault::LargerThanMemory)?;
        let acquire = async {
            let share = Arc::clone(&self.share).acquire_many_owned(count).await.ok()?;
            let budget = Arc::clone(&self.shared.budget).acquire_many_owned(count).await.ok()?;
            Some(Permits { share, budget })
        };
        timeout_at(until, acquire).await.ok().flatten().ok_or(Fault::NoMemory)
    }
}

/// A reply that is being read.
pub(super) struct Buffer {
    bytes: Vec<u8>,
    permits: Option<Permits>,
    /// How many steps it may be counted with when it is full. 0 if it is not counted.
    granted: usize,
    memory: EndpointMemory,
}

impl Buffer {
    /// A buffer that is not counted.
    fn small(length: usize, memory: &EndpointMemory) -> Self {
        Self { bytes: Vec::with_capacity(length), permits: None, granted: 0, memory: memory.clone() }
    }

    pub(super) fn bytes(&mut self) -> &mut Vec<u8> {
        &mut self.bytes
    }

    /// Makes room for `more` bytes, and counts them. If the length of the reply is unknown, the buffer doubles, or takes what
    /// its endpoint may still use if that is less.
    pub(super) async fn reserve(&mut self, more: usize, until: Instant) -> Result<(), Fault> {
        let length = self.bytes.len() + more;
        if length <= self.bytes.capacity() {
            return self.count(length, until).await;
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

    /// Counts `length` bytes of the buffer, and as many again for those that follow.
    async fn count(&mut self, length: usize, until: Instant) -> Result<(), Fault> {
        let own = self.permits.as_ref().map_or(0, |permits| permits.share.num_permits());
        let needed = length.div_ceil(STEP_BYTES);
        if needed <= own || own >= self.granted {
            return Ok(());
        }
        let until = until.min(Instant::now() + GROWTH_PATIENCE);
        let more = self.memory.acquire(needed.max(2 * own).min(self.granted) - own, until).await?;
        if let Some(permits) = &mut self.permits {
            permits.merge(more);
        }
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
        ReplyBuffers::new(bytes).for_endpoint(1)
    }

    /// A buffer for a reply of this length that has arrived.
    async fn arrived(memory: &EndpointMemory, length: usize) -> Result<Buffer, Fault> {
        let mut buffer = memory.buffer(length, soon()).await?;
        buffer.reserve(length, soon()).await?;
        buffer.bytes.resize(length, 7);
        Ok(buffer)
    }

    /// Nodes that announced large replies and sent nothing held all memory, and two of five nodes had all of it together.
    #[tokio::test(start_paused = true)]
    async fn lying_nodes_do_not_hold_all_memory() {
        let shared = ReplyBuffers::new(120 * MIB);
        let announced = shared.for_endpoint(5).buffer(40 * MIB, soon()).await.unwrap();
        assert_eq!(shared.used_bytes(), MIB, "nothing has arrived");
        let liars = [shared.for_endpoint(5), shared.for_endpoint(5)];
        drop(announced);
        let mut held = Vec::new();
        for liar in &liars {
            held.push(arrived(liar, 40 * MIB).await.unwrap());
            assert_eq!(arrived(liar, MIB).await.err(), Some(Fault::NoMemory));
        }
        arrived(&shared.for_endpoint(5), 40 * MIB).await.unwrap();
        for (endpoints, parts) in [(1, 1), (2, 2), (3, 2), (4, 2), (5, 3), (7, 4), (100, 4)] {
            let share = shared.for_endpoint(endpoints).share_steps;
            assert_eq!(share * parts, shared.budget_steps, "{endpoints} endpoints");
        }
    }

    /// What is counted of a reply is at most twice what has arrived, and all of it at the end.
    #[tokio::test(start_paused = true)]
    async fn a_reply_of_known_length_is_counted_as_it_arrives() {
        let memory = memory(64 * MIB);
        let mut buffer = memory.buffer(20 * MIB, soon()).await.unwrap();
        let address = buffer.bytes.as_ptr();
        while buffer.bytes.len() < 20 * MIB {
            buffer.reserve(10_240, soon()).await.unwrap();
            buffer.bytes.resize(buffer.bytes.len() + 10_240, 7);
            let (used, arrived) = (memory.shared.used_bytes(), buffer.bytes.len());
            assert!(arrived <= used && used <= (2 * arrived).max(MIB) + STEP_BYTES, "{used} of {arrived}");
        }
        assert_eq!(buffer.bytes.as_ptr(), address, "it was never copied");
        drop(buffer);
        assert_eq!(memory.shared.used_bytes(), 0);
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
        let compressed = arrived(&memory, 2 * MIB).await.unwrap().freeze();
        let began = Instant::now();
        let too_large = memory.buffer_beside(&compressed, 7 * MIB, soon()).await;
        assert_eq!((too_large.err(), began.elapsed()), (Some(Fault::LargerThanMemory), Duration::ZERO));
        // Together with its compressed form it takes all that there is.
        memory.buffer_beside(&compressed, 5 * MIB + MIB / 2, soon()).await.unwrap();
        assert_eq!(began.elapsed(), Duration::ZERO);
        // Others hold the rest, and may wait for this one as it does for them.
        let _others = arrived(&memory, 4 * MIB).await.unwrap();
        let waited = memory.buffer_beside(&compressed, 5 * MIB, soon()).await;
        assert_eq!((waited.err(), began.elapsed()), (Some(Fault::NoMemory), GROWTH_PATIENCE));
    }

    /// A reply that had waited for a second went on without a permit, so there was no bound at all.
    #[tokio::test(start_paused = true)]
    async fn what_does_not_fit_waits_and_then_fails() {
        let memory = memory(8 * MIB);
        let held = arrived(&memory, 7 * MIB + MIB / 2).await.unwrap().freeze();
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
            async move { arrived(&memory, 5 * MIB).await.is_ok() }
        });
        tokio::task::yield_now().await;
        drop(held);
        assert!(waiting.await.unwrap(), "it gets what others give back");
        assert_eq!(memory.shared.used_bytes(), 0);
    }

    #[tokio::test(start_paused = true)]
    async fn one_endpoint_leaves_half_to_the_others() {
        let shared = ReplyBuffers::new(8 * MIB);
        let (greedy, other) = (shared.for_endpoint(3), shared.for_endpoint(3));
        let _held = arrived(&greedy, 3 * MIB).await.unwrap();
        let began = Instant::now();
        assert!(arrived(&greedy, 3 * MIB).await.is_err());
        assert!(arrived(&other, 3 * MIB).await.is_ok());
        assert_eq!(began.elapsed(), GROWTH_PATIENCE, "what holds memory does not wait for long");
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
            let (memory, began) = (shared.for_endpoint(2), Instant::now());
            assert!(arrived(&memory, mib * MIB).await.is_ok());
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
        let mut growing = arrived(&memory, 8 * MIB).await.unwrap();
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
            let mut growing = arrived(&memory, 3 * MIB).await?;
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
        let buffer = || async { arrived(&memory, 4 * MIB).await.unwrap().freeze() };
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
