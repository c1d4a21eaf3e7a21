//! The archive from outside: one module per story.
#![allow(clippy::unwrap_used, clippy::print_stderr, reason = "tests say what went wrong by failing")]

mod stories {
    mod corpora; // real chains to their stated heads
    mod execution; // blocks on a state in memory
    mod random_chains; // every read against a naive model
}
