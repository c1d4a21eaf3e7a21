//! Texts that are read, and texts that are refused.

pub(crate) mod corpora; // recorded chains and exchanges
mod logs; // logs
pub(crate) mod sample; // a block of our own
#[path = "../../../testkit/src/skip.rs"]
#[allow(unreachable_pub, reason = "the file belongs to another crate, where others use it")]
mod skip; // tests that leave themselves out
mod transactions; // transactions
mod walk; // one walk over bytes that nobody has looked at
