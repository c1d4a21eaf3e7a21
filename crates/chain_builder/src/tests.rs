//! The builder itself, and chains that others made.

mod builder;
mod conformance;
