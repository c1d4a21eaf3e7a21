//! Answers that wait to be read by their callers, counted in bytes.
//!
//! An answer is in memory until its caller has read it, and a caller may take its time, within the limits on that. How
//! many answers there are is bounded by the number of connections, which is no bound at all for answers of megabytes.

use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Weak};

use bytes::Bytes;
use parking_lot::Mutex;

/// Smaller answers are not counted: as many as there can be connections hardly matter.
pub(crate) const COUNTED_BYTES_MIN: usize = 16 << 10;

/// How much is held, and how much may be.
#[derive(Clone, Debug)]
pub(crate) struct Held {
    bytes: Arc<AtomicUsize>,
    most: usize,
}

impl Held {
    pub(crate) fn new(most: usize) -> Self {
        Self { bytes: Arc::default(), most }
    }

    pub(crate) fn bytes(&self) -> usize {
        self.bytes.load(Relaxed)
    }

    /// Whether the next large answer has to be refused.
    pub(crate) fn is_full(&self) -> bool {
        self.bytes() >= self.most
    }

    /// The answer as bytes that are counted until the last one who has them lets go.
    pub(crate) fn hold(&self, answer: Vec<u8>) -> Bytes {
        if answer.capacity() < COUNTED_BYTES_MIN {
            return answer.into();
        }
        Bytes::from_owner(Reading(self.count(answer.capacity(), answer.into())))
    }

    /// The same for an answer that is bytes already.
    pub(super) fn hold_bytes(&self, answer: Bytes) -> Bytes {
        if answer.len() < COUNTED_BYTES_MIN {
            return answer;
        }
        Bytes::from_owner(Reading(self.count(answer.len(), answer)))
    }

    /// An answer that is kept, for one more reader. All its readers count as one, for as long as there are any, even
    /// when it is not kept any more. `None` if there is no room for another large answer.
    pub(super) fn lend(&self, answer: &Bytes, readers: &Readers) -> Option<Bytes> {
        if answer.len() < COUNTED_BYTES_MIN {
            return Some(answer.clone());
        }
        let mut readers = readers.0.lock();
        let counted = match readers.upgrade() {
            Some(counted) => counted,
            None if self.is_full() => return None,
            None => self.count(answer.len(), answer.clone()),
        };
        *readers = Arc::downgrade(&counted);
        Some(Bytes::from_owner(Reading(counted)))
    }

    fn count(&self, size: usize, answer: Bytes) -> Arc<Counted> {
        self.bytes.fetch_add(size, Relaxed);
        Arc::new(Counted { answer, size, bytes: Arc::clone(&self.bytes) })
    }
}

/// Those who read an answer that is kept.
#[derive(Clone, Debug, Default)]
pub(super) struct Readers(Arc<Mutex<Weak<Counted>>>);

struct Reading(Arc<Counted>);

impl AsRef<[u8]> for Reading {
    fn as_ref(&self) -> &[u8] {
        &self.0.answer
    }
}

#[derive(Debug)]
struct Counted {
    answer: Bytes,
    size: usize,
    bytes: Arc<AtomicUsize>,
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.bytes.fetch_sub(self.size, Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_counts_until_the_last_one_lets_go_of_it() {
        let held = Held::new(40_000);
        let first = held.hold(vec![0; 20_000]);
        let shared = first.slice(5..10);
        assert!(!held.is_full());
        let second = held.hold(vec![0; 20_000]);
        assert_eq!((held.bytes(), held.is_full()), (40_000, true));
        drop(first);
        assert!(held.is_full());
        drop(shared);
        assert_eq!((held.bytes(), held.is_full()), (20_000, false));
        drop(second);
        assert_eq!(held.bytes(), 0);
    }

    #[test]
    fn all_readers_of_what_is_kept_count_as_one() {
        let (held, kept, readers) = (Held::new(20_000), Bytes::from(vec![7; 20_000]), Readers::default());
        let first = held.lend(&kept, &readers).unwrap();
        let second = held.lend(&kept, &readers).unwrap();
        assert_eq!((held.bytes(), held.is_full()), (20_000, true));
        assert!(held.lend(&kept, &Readers::default()).is_none(), "another answer has no place");
        drop((first, kept));
        assert_eq!((held.bytes(), second.len()), (20_000, 20_000));
        drop(second);
        assert_eq!(held.bytes(), 0);
    }

    #[test]
    fn small_answers_do_not_count() {
        let held = Held::new(1);
        let small = held.hold(vec![0; 100]);
        assert_eq!((small.len(), held.bytes()), (100, 0));
    }
}
