//! Accounts and keys of a store, changed while a directory follows it.
#![allow(clippy::unwrap_used)]

#[path = "stories/administration.rs"]
mod administration; // the rules for changes
#[path = "stories/people.rs"]
mod people; // users, sessions and links
#[path = "stories/feed.rs"]
mod feed; // how changes reach a directory
#[path = "stories/failover.rs"]
mod failover; // stores that lose changes, and connections that hang
#[path = "stories/place.rs"]
mod place; // a store in a temporary folder
#[path = "stories/million.rs"]
mod million; // the cost of a million keys
// Crates below `testkit` cannot depend on it, because it depends on the archive.
#[path = "../../testkit/src/postgres.rs"]
#[allow(dead_code, unreachable_pub, reason = "other tests use the rest")]
mod postgres;
#[path = "../../testkit/src/skip.rs"]
#[allow(dead_code, unreachable_pub, reason = "other tests use the rest")]
mod skip;
#[path = "../../testkit/src/stalling_proxy.rs"]
#[allow(dead_code, unreachable_pub, reason = "other tests use the rest")]
mod stalling_proxy;
