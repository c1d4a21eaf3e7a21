//! Memory for large replies.
//!
//! A buffer of megabytes that comes fresh from the system costs as much time as the bytes that are read into it, so a few
//! are kept. What all of them take together is held down: a reply waits on the wire until there is room for it, though
//! not for long. The hard limit is that on answers which wait to be read, and it is not here.

use std::time::Duration;

use parking_lot::{Mutex, const_mutex};
use tokio::sync::{Semaphore, SemaphorePermit};
use tokio::time::timeout;

/// What buffers that nobody uses may take,
const SPARE_BYTES_MAX: usize = 32 << 20;

/// and how many they may be.
const SPARE_MAX: usize = 64;

/// Buffers from this size on are counted.
const COUNTED_BYTES_MIN: usize = 1 << 20;

/// What those in use take before replies have to wait: some twenty answers of ten thousand logs.
const ROOM_BYTES: usize = 128 << 20;

/// How long a reply waits for room. Slow readers may hold all of it, and must not hold up everyone else.
const PATIENCE: Duration = Duration::from_secs(1);

/// Buffers are of such steps, so that replies of about the same size can use the same ones. Room is counted in them.
const STEP_BYTES: usize = 64 << 10;

/// Smaller ones are made as they are needed, and not kept.
const KEPT_BYTES_MIN: usize = 16 << 10;

static SPARE: Mutex<Spare> = const_mutex(Spare { buffers: Vec::new(), bytes: 0 });
static ROOM: Semaphore = Semaphore::const_new(ROOM_BYTES / STEP_BYTES);

/// A buffer that is kept for the next one when nobody needs its bytes any more.
pub(super) struct Buffer {
    bytes: Vec<u8>,
    _room: Option<SemaphorePermit<'static>>,
}

impl Buffer {
    /// Room for this many bytes.
    pub(super) async fn of(length: usize) -> Self {
        let room = if length < COUNTED_BYTES_MIN { None } else { room(length).await };
        if length < KEPT_BYTES_MIN {
            return Self { bytes: Vec::with_capacity(length), _room: room };
        }
        let spare = SPARE.lock().take(length);
        let bytes = spare.unwrap_or_else(|| Vec::with_capacity(length.next_multiple_of(STEP_BYTES)));
        Self { bytes, _room: room }
    }

    pub(super) fn bytes(&mut self) -> &mut Vec<u8> {
        &mut self.bytes
    }

    /// Room for this many more bytes, of which nobody knew beforehand.
    pub(super) async fn reserve(&mut self, more: usize) {
        let length = self.bytes.len() + more;
        if length > self.bytes.capacity() {
            // Else those who grow would wait for each other.
            self._room = None;
            let mut larger = Self::of(length.max(2 * self.bytes.len())).await;
            larger.bytes.extend_from_slice(&self.bytes);
            *self = larger;
        }
    }
}

async fn room(length: usize) -> Option<SemaphorePermit<'static>> {
    let steps = length.min(ROOM_BYTES).div_ceil(STEP_BYTES);
    let steps = u32::try_from(steps).unwrap_or(u32::MAX);
    timeout(PATIENCE, ROOM.acquire_many(steps)).await.ok()?.ok()
}

impl AsRef<[u8]> for Buffer {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        let bytes = std::mem::take(&mut self.bytes);
        if bytes.capacity() >= STEP_BYTES {
            let _too_many = SPARE.lock().give(bytes);
        }
    }
}

/// Buffers that nobody uses, the one that was given back last at the end.
struct Spare {
    buffers: Vec<Vec<u8>>,
    bytes: usize,
}

impl Spare {
    /// One that is large enough, but not much too large.
    fn take(&mut self, length: usize) -> Option<Vec<u8>> {
        let fits = |bytes: &Vec<u8>| (length..=2 * length + STEP_BYTES).contains(&bytes.capacity());
        let place = self.buffers.iter().rposition(fits)?;
        let bytes = self.buffers.remove(place);
        self.bytes -= bytes.capacity();
        Some(bytes)
    }

    /// Keeps one, and returns those that nobody has wanted for longest, to be freed when the lock is free.
    fn give(&mut self, mut bytes: Vec<u8>) -> Vec<Vec<u8>> {
        bytes.clear();
        self.bytes += bytes.capacity();
        self.buffers.push(bytes);
        let mut too_many = Vec::new();
        while self.bytes > SPARE_BYTES_MAX || self.buffers.len() > SPARE_MAX {
            let oldest = self.buffers.remove(0);
            self.bytes -= oldest.capacity();
            too_many.push(oldest);
        }
        too_many
    }
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

        let mut growing = Buffer::of(5).await;
        for part in 0..400_u32 {
            growing.reserve(9_000).await;
            growing.bytes.extend_from_slice(&[part as u8; 9_000]);
        }
        let parts: Vec<u8> = growing.as_ref().chunks(9_000).map(|part| part[8_999]).collect();
        assert_eq!(parts, (0..400_u32).map(|part| part as u8).collect::<Vec<_>>());
        drop(growing);
        assert_eq!(ROOM.available_permits(), ROOM_BYTES / STEP_BYTES, "what was outgrown was given back");
        assert!(SPARE.lock().bytes <= SPARE_BYTES_MAX);
    }
}
