//! Whether an answer can be true.
