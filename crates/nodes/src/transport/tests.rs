//! The transport against real sockets: nodes that follow a script, and what is made of them.

pub(crate) mod node; // a node that follows a script

mod alone; // one call at a time
mod together; // batches
mod faults; // nodes that misbehave
mod accounts; // accounts that ask the same node
mod gone; // callers and clients that leave
mod secure; // TLS and HTTP/2
mod splits; // replies in pieces
