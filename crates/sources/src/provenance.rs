//! An answer, and where it came from.

use bytes::Bytes;
use methods::BlockRef;
use nodes::NodeId;

/// Where an answer came from and at which block it was computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Provenance {
    pub origin: Origin,
    pub block: Option<BlockRef>,
    pub verified: Verification,
    /// The node or partner that has answered, or that delivered the last part of the answer. `None` if none was asked.
    pub node: Option<NodeId>,
}

impl Provenance {
    /// Every block of the archive is proven before it is stored.
    pub fn archive(block: Option<BlockRef>) -> Self {
        Self { origin: Origin::Archive, block, verified: Verification::Proven, node: None }
    }
}

/// How far an answer was verified, as `Chaingate-Verified` names it; the least first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Verification {
    /// One node said so.
    None,
    /// A quorum of the nodes said so.
    Confirmed,
    /// The hash of a block commits to it.
    Proven,
}

impl Verification {
    pub fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Confirmed => "confirmed",
            Self::Proven => "proven",
        }
    }
}

/// The kinds of sources.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    Cache,
    /// Blocks of the nodes' chain that are stored here, in memory or in the file.
    Stored,
    Archive,
    Node,
    Partner,
}

/// An answer. Without `shared`, the result was written into the reply already.
#[derive(Clone, Debug)]
pub struct Answer {
    pub provenance: Provenance,
    pub shared: Option<Bytes>,
}

impl Answer {
    /// The same answer, of which something else is verified no further than this.
    pub fn verified_at_most(mut self, most: Verification) -> Self {
        self.provenance.verified = self.provenance.verified.min(most);
        self
    }
}
