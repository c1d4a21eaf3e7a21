//! Large futures on the heap.

use std::pin::Pin;

/// Makes a future on the heap. `Box::pin` would make it on the stack first and copy it, which takes a noticeable part of a
/// request for futures of several kilobytes.
#[inline]
pub fn box_future<F: Future>(make: impl FnOnce() -> F) -> Pin<Box<F>> {
    Box::into_pin(Box::write(Box::new_uninit(), make()))
}
