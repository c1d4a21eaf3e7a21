//! The lies of nodes, and the times at which the honest nodes are there.

use std::net::SocketAddr;

use crate::forgery::{ForgedSubject, Forgery};
use crate::proofs::ProofLie;
use crate::proxy::Mood;

/// The lie that all liars of a cell tell.
#[derive(Clone, Debug)]
pub struct NodeLie {
    pub name: String,
    pub(super) mood: Mood,
    /// The lie about proofs of state, and with it about all state.
    pub(super) proof: Option<ProofLie>,
    /// Whether the liars may move the head with it where the honest nodes cannot outvote them.
    pub(super) about_heads: bool,
    /// The node of the chain that liars pretend to be of.
    pub(super) other: Option<SocketAddr>,
    pub course: Course,
}

/// The times at which honest nodes are there. At the end all are, and the liars are honest, too, except in `OnlyLiars`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Course {
    /// The honest nodes are there all the time.
    Beside,
    /// The liars are there first.
    LiarsFirst,
    /// The honest nodes die, and come back later.
    OnlyLiarsLeft,
    /// The honest nodes are never there.
    OnlyLiars,
}

/// A part of a course.
#[derive(Clone, Copy, Debug)]
pub(super) struct Phase {
    pub(super) name: &'static str,
    pub(super) honest_are_there: bool,
    pub(super) liars_lie: bool,
}

const ONLY_LIARS: Phase = Phase { name: "only liars", honest_are_there: false, liars_lie: true };
const LYING: Phase = Phase { name: "lying", honest_are_there: true, liars_lie: true };
const AFTER: Phase = Phase { name: "after", honest_are_there: true, liars_lie: false };

impl Course {
    pub(super) fn phases(self) -> &'static [Phase] {
        match self {
            Self::Beside => &[LYING, AFTER],
            Self::LiarsFirst | Self::OnlyLiarsLeft => &[ONLY_LIARS, LYING, AFTER],
            Self::OnlyLiars => &[ONLY_LIARS],
        }
    }
}

impl From<Forgery> for NodeLie {
    fn from(forgery: Forgery) -> Self {
        Self {
            name: format!("{forgery:?}"),
            mood: Mood::Forging(forgery),
            proof: None,
            // The block before the one that was asked for is also another one than the final block.
            about_heads: forgery.subject() == ForgedSubject::Heads || forgery == Forgery::BlockBefore,
            other: None,
            course: Course::Beside,
        }
    }
}

impl From<ProofLie> for NodeLie {
    fn from(lie: ProofLie) -> Self {
        Self {
            name: format!("Proof{lie:?}"),
            mood: Mood::Honest,
            proof: Some(lie),
            about_heads: false,
            other: None,
            course: Course::Beside,
        }
    }
}

impl NodeLie {
    /// Liars are of the chain of another node.
    pub fn other_chain(name: &str, node: SocketAddr) -> Self {
        Self {
            name: name.to_owned(),
            mood: Mood::Impostor(node),
            proof: None,
            about_heads: true,
            other: Some(node),
            course: Course::Beside,
        }
    }

    /// Liars say that the blocks below a number are those of another node.
    pub fn other_depths(name: &str, node: SocketAddr, below: u64) -> Self {
        let mood = Mood::OtherDepths { node, below };
        Self { mood, ..Self::other_chain(name, node) }
    }

    pub fn during(self, course: Course) -> Self {
        let name = match course {
            Course::Beside => self.name,
            Course::LiarsFirst => format!("{}, liars first", self.name),
            Course::OnlyLiarsLeft => format!("{}, only liars left", self.name),
            Course::OnlyLiars => format!("{}, only liars", self.name),
        };
        Self { name, course, ..self }
    }
}
