//! Lies of nodes against mixes of nodes: what a gateway in front of them answers, compared with what is true.

mod calls;
mod cell;
mod judge;
mod lie;
mod mix;

pub use calls::{AnswerKind, KnownCall, TrueChain};
pub use cell::{CellReport, MethodFigures, RunningGateway, StartGateway, run_cell, run_honest};
pub use judge::StateTrust;
pub use lie::{Course, NodeLie};
pub use mix::NodeMix;
