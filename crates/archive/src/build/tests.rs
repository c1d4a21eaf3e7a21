//! Chains that others made, executed here: the first proof of execution.

mod conformance;
