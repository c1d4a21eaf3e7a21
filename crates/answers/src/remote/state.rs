//! State and everything else that no block proves: how far one node is believed.

mod confirm; // a quorum of the nodes must agree
mod pass_on; // one node is believed
mod decision; // who said what → what is true
mod statement; // what a node says → what it means

mod proven; // answers that a block's hash commits to
mod proofs; // accounts, slots and code with their proofs
mod execution; // calls and estimates, run here on proven state

pub(super) use confirm::ConfirmedLogs;
pub(super) use pass_on::PassedOn;
