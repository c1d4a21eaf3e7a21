//! The product.

pub mod cli; // what can be said on the command line
pub mod demo; // a small chain of our own, to try everything on
