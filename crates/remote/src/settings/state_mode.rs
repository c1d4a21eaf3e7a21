//! How far nodes are believed about the state.

use settings::Section;

/// How far nodes are believed about the state: storage, balances, nonces, code, calls and estimates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StateMode {
    /// Everything is proven by the state root of its block. What no node proves is confirmed.
    Prove,
    /// A quorum of the configured nodes must give the same answer.
    Confirm,
    /// One node's answer is passed on.
    Trust,
}

/// With fewer nodes, a quorum is all of them: one that is down would make every answer fail.
const CONFIRMED_NODES_MIN: usize = 3;

impl StateMode {
    /// The mode for so many nodes, unless the operator has chosen one.
    pub(super) fn default_for(nodes: usize) -> Self {
        if nodes >= CONFIRMED_NODES_MIN { Self::Confirm } else { Self::Trust }
    }

    pub(super) fn read(section: &mut Section<'_>, nodes: usize) -> Self {
        let usual = Self::default_for(nodes);
        match section.optional_text("state").as_deref() {
            None => usual,
            Some("prove") => Self::Prove,
            Some("confirm") => Self::Confirm,
            Some("trust") => Self::Trust,
            Some(other) => {
                section.error("state", &format!("unknown mode `{other}`; must be prove, confirm or trust"));
                usual
            }
        }
    }

    pub fn name(self) -> &'static str {
        match self {
            Self::Prove => "prove",
            Self::Confirm => "confirm",
            Self::Trust => "trust",
        }
    }
}
