//! The archive from outside: one module per story.
#![allow(clippy::unwrap_used, clippy::print_stderr, reason = "tests say what went wrong by failing")]

mod stories {
    mod bad_blocks;
    mod block_files;
    mod blockchain_tests;
    mod constantinople;
    mod copies;
    mod corpora;
    mod damage;
    mod execution;
    mod failing_disks;
    mod file_size;
    mod blocks_file;
    mod malformed_delegation;
    mod memory_disk;
    mod opening;
    mod overridden_blocks;
    mod random_chains;
    mod readers;
    mod reorganised;
    mod setup;
}
