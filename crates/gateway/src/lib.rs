//! The product.

pub mod cli; // what can be said on the command line
