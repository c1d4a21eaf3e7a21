//! Memory for large replies.
//!
//! A buffer of megabytes that comes fresh from the system costs as much time as the bytes that are read into it, so a few
//! are kept. What all of them take together is held down: a reply waits on the wire until there is room for it, though
//! not for long. The hard limit is that on answers which wait to be read, and it is not here.

use std::time::Duration;

use parking_lot::{Mutex, const_mutex};
use tokio::sync::{Semaphore, SemaphorePermit};
use tokio::time::timeout;

/// Smaller ones come from the allocator at no price.
pub(super) const LARGE_BYTES_MIN: usize = 128 << 10;

/// What buffers that nobody uses may take.
const SPARE_BYTES_MAX: usize = 32 << 20;

/// What buffers in use take before replies have to wait: some twenty answers of ten thousand logs.
const ROOM_BYTES: usize = 128 << 20;

/// How long a reply waits for room. Slow readers may hold all of it, and must not hold up everyone else.
const PATIENCE: Duration = Duration::from_secs(1);

/// Buffers are of such steps, so that replies of about the same size can use the same ones. Room is counted in them.
const STEP_BYTES: usize = 256 << 10;

static SPARE: Mutex<Vec<Vec<u8>>> = const_mutex(Vec::new());
static ROOM: Semaphore = Semaphore::const_new(ROOM_BYTES / STEP_BYTES);

/// A buffer that is kept for the next one when nobody needs its bytes any more.
pub(super) struct Buffer {
    bytes: Vec<u8>,
    _room: Option<SemaphorePermit<'static>>,
}

impl Buffer {
    /// Room for this many bytes.
    pub(super) async fn of(length: usize) -> Self {
        let steps = length.div_ceil(STEP_BYTES);
        let permits = u32::try_from(steps.min(ROOM_BYTES / STEP_BYTES)).unwrap_or(u32::MAX);
        let room = timeout(PATIENCE, ROOM.acquire_many(permits)).await.ok().and_then(Result::ok);
        let bytes = spare(length).unwrap_or_else(|| Vec::with_capacity(steps * STEP_BYTES));
        Self { bytes, _room: room }
    }

    pub(super) fn bytes(&mut self) -> &mut Vec<u8> {
        &mut self.bytes
    }
}

impl AsRef<[u8]> for Buffer {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        let mut bytes = std::mem::take(&mut self.bytes);
        bytes.clear();
        let mut spare = SPARE.lock();
        spare.push(bytes);
        // Those that nobody has wanted for longest go.
        while spare.iter().map(Vec::capacity).sum::<usize>() > SPARE_BYTES_MAX {
            spare.remove(0);
        }
    }
}

/// The last one that was given back and is large enough, but not much too large.
fn spare(length: usize) -> Option<Vec<u8>> {
    let mut spare = SPARE.lock();
    let fits = |bytes: &Vec<u8>| (length..=2 * length + STEP_BYTES).contains(&bytes.capacity());
    let place = spare.iter().rposition(fits)?;
    Some(spare.remove(place))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One test, because all buffers of the process are the same.
    #[tokio::test(start_paused = true)]
    async fn buffers_are_used_again_and_wait_for_room() {
        let mut first = Buffer::of(3 << 20).await;
        first.bytes().extend_from_slice(b"some");
        let place = first.as_ref().as_ptr();
        drop(first);
        let again = Buffer::of((3 << 20) - 5).await;
        assert_eq!((again.as_ref().len(), again.bytes.as_ptr()), (0, place));

        let began = tokio::time::Instant::now();
        let all = Buffer::of(ROOM_BYTES * 2).await;
        assert_eq!(began.elapsed(), PATIENCE, "it goes on without");
        drop((all, again));
        let all = Buffer::of(ROOM_BYTES).await;
        assert_eq!(began.elapsed(), PATIENCE, "there is room at once");
        drop(all);
        assert!(SPARE.lock().iter().map(Vec::capacity).sum::<usize>() <= SPARE_BYTES_MAX);
    }
}
