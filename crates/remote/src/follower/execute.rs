//! The executed chain is kept at the head of the view: new blocks are fetched, proven and executed, on threads of their own.

mod branch; // which blocks the archive lacks
mod live; // new blocks
mod worker; // the thread that executes

pub(super) use live::start;
