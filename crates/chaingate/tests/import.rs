//! `chaingate import` as a user meets it: the real program, on files and directories, with an eye on what it says,
//! what it leaves, and its exit code.
#![cfg(unix)]
#![allow(clippy::unwrap_used, clippy::print_stderr, reason = "tests say what went wrong by failing")]

mod import {
    mod bad_input; // whatever it is, it is refused with a sentence that helps
    mod interrupt; // Ctrl-C
    mod kill; // kill -9, again and again
    mod output; // what is said when all goes well
    mod program; // the program, and where it works
    mod running; // into an archive that a gateway serves
    mod two; // two at once
}
