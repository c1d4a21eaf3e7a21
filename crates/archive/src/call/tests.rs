//! Calls over a small world in memory.
#![expect(clippy::unwrap_used, reason = "a test that meets a surprise fails")]

mod limits;
mod overrides;
mod random;
mod semantics;
mod speed;
pub(crate) mod support;
mod texts;
