//! The console over real sockets: who may do what, and what other sites cannot do.
#![allow(clippy::unwrap_used)]

#[path = "stories/browser.rs"]
mod browser; // a browser that a test controls
#[path = "stories/console_under_test.rs"]
mod console_under_test; // a console on a store of its own
#[path = "stories/access.rs"]
mod access; // every route as everybody
#[path = "stories/attacks.rs"]
mod attacks; // attacks by other sites and guessers
#[path = "stories/pages.rs"]
mod pages; // the pages as people use them
