//! Copies into the reply of a batch, in steps between which other connections of the thread get their turn: copying 25 MB takes
//! ten milliseconds.

/// Bytes that are copied at once: under 100 µs, also if their memory is fresh from the system.
const COPIED_AT_ONCE_BYTES: usize = 256 << 10;

/// Bytes that an answer seldom exceeds that is written straight into the reply.
const WRITTEN_BYTES_USUAL: usize = 512 << 10;

/// Appends a result to the reply.
pub(super) async fn append(out: &mut Vec<u8>, result: &[u8]) {
    if out.capacity() - out.len() < result.len() {
        grow(out, result.len()).await;
    }
    copy(out, result).await;
}

/// Makes room in a large reply for the next answer, which would otherwise move all of it at once.
pub(super) async fn make_room(out: &mut Vec<u8>) {
    if out.len() > COPIED_AT_ONCE_BYTES && out.capacity() - out.len() < WRITTEN_BYTES_USUAL.min(out.len()) {
        grow(out, 0).await;
    }
}

/// Doubles the reply, or makes room for `more` bytes if that is more.
async fn grow(out: &mut Vec<u8>, more: usize) {
    let mut larger = Vec::with_capacity(out.len() + more.max(out.len()));
    copy(&mut larger, out).await;
    *out = larger;
}

async fn copy(out: &mut Vec<u8>, bytes: &[u8]) {
    for (index, part) in bytes.chunks(COPIED_AT_ONCE_BYTES).enumerate() {
        if index > 0 {
            tokio::task::yield_now().await;
        }
        out.extend_from_slice(part);
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    /// How often another task has its turn while a result is appended.
    async fn turns_during(out: &mut Vec<u8>, result: &[u8]) -> usize {
        let turns = Cell::new(0);
        let other = async {
            loop {
                turns.set(turns.get() + 1);
                tokio::task::yield_now().await;
            }
        };
        tokio::select! {
            biased;
            () = append(out, result) => {}
            () = other => {}
        }
        turns.get()
    }

    /// All answers of a batch were copied in one go each, and the whole reply whenever it had to grow.
    #[tokio::test]
    async fn large_results_are_copied_in_steps() {
        let (steps, result) = (8, vec![7; 8 * COPIED_AT_ONCE_BYTES]);
        let mut out = vec![b'['];
        assert_eq!(turns_during(&mut out, &[1; 100]).await, 0, "small ones at once");
        out.truncate(1);
        assert_eq!(turns_during(&mut out, &result).await, steps - 1);
        assert_eq!(turns_during(&mut out, &result).await, 2 * steps - 1, "it is moved, and then appended to");
        assert!(
            out[0] == b'[' && out[1..].iter().all(|byte| *byte == 7) && out.len() == 2 * result.len() + 1
        );
    }

    #[tokio::test]
    async fn a_large_reply_has_room_for_the_next_answer() {
        let mut small = vec![7; 100];
        make_room(&mut small).await;
        assert!(small.capacity() < 1_000);
        let mut large = vec![7; 3 * WRITTEN_BYTES_USUAL];
        make_room(&mut large).await;
        assert!(large.capacity() >= 4 * WRITTEN_BYTES_USUAL && large.len() == 3 * WRITTEN_BYTES_USUAL);
    }
}
