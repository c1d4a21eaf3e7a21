//! The reader of configuration files. It knows no keys: each crate reads its own, with its own defaults, and the program
//! composes the results.
//!
//! Reading does not stop at the first error. All errors are collected, each with its line, and a file with any error is
//! rejected.
//!
//! Every crate with settings reads them from a [`Section`]:
//!
//! ```
//! let port = settings::read("port = 8545", |root| root.number("port", 80)).unwrap();
//! assert_eq!(port, 8545);
//! let errors = settings::read("prot = 8545", |root| root.number("port", 80)).unwrap_err();
//! assert!(errors.to_string().starts_with("line 1: "), "no reader knows this key");
//! ```

mod file; // a whole file
mod nearest_key; // the key that was probably meant
mod reference; // values that are kept elsewhere
mod section; // one table of the file

pub use file::{ConfigErrors, FileValue, file_values, known_keys, read, read_empty};
pub use section::{KnownKey, Section, ZeroMeaning};
