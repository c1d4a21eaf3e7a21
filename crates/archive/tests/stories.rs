//! The archive from outside: one module per story.
#![allow(clippy::unwrap_used, clippy::print_stderr, reason = "tests say what went wrong by failing")]

mod stories {
    mod corpora;
    mod random_chains;
}
