//! Accounts and keys of a store, changed while a directory follows it.
#![allow(clippy::unwrap_used)]

#[path = "stories/administration.rs"]
mod administration; // the rules for changes
#[path = "stories/people.rs"]
mod people; // users, sessions and links
#[path = "stories/feed.rs"]
mod feed; // how changes reach a directory
#[path = "stories/place.rs"]
mod place; // a store in a temporary folder
#[path = "stories/million.rs"]
mod million; // what a million keys cost
