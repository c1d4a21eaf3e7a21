//! The store on real databases. The same stories run on SQLite and on PostgreSQL.
#![allow(
    clippy::unwrap_used,
    clippy::print_stderr,
    reason = "tests say what went wrong by failing, and measurements print"
)]

#[path = "stories/databases.rs"]
mod databases; // a database of either kind
#[path = "stories/changes.rs"]
mod changes; // changes and how others follow them
#[path = "stories/versions.rs"]
mod versions; // tables of earlier and later versions
#[path = "stories/usage.rs"]
mod usage; // usage is counted once, reported and deleted
#[path = "stories/usage_scale.rs"]
mod usage_scale; // no statement reads all usage of a day
#[path = "stories/people.rs"]
mod people; // users, sessions and links
#[path = "stories/lists.rs"]
mod lists; // lists for people
#[path = "stories/outages.rs"]
mod outages; // databases that end and come back
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
