//! The reader of configuration keys. It knows no key: each crate asks for its own, with its own defaults, and the program
//! composes what they read.
//!
//! Reading never stops at the first mistake: all are gathered, each with its line, and a configuration with any mistake is
//! none.

mod file; // a whole file, and what is wrong with it
mod section; // one table of it, read key by key

pub use file::{Mistake, Mistakes, known_keys, read, read_empty};
pub use section::{KnownKey, Section, ZeroMeaning};
