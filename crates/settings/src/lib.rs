//! The reader of configuration files. It knows no keys: each crate reads its own, with its own defaults, and the program
//! composes the results.
//!
//! Reading does not stop at the first error. All errors are collected, each with its line, and a file with any error is
//! rejected.

mod file; // a whole file
mod nearest_key; // the key that was probably meant
mod section; // one table of the file

pub use file::{ConfigErrors, FileValue, file_values, known_keys, read, read_empty};
pub use section::{KnownKey, Section, ZeroMeaning};
