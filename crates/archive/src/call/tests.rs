//! Calls over a small world in memory.

mod limits;
mod overrides;
mod random;
mod semantics;
mod speed;
pub(crate) mod support;
mod texts;
