//! Why a node is excluded.

use std::fmt;

use alloy_primitives::B256;
use resources::counted;

use crate::BlockId;

/// Why a node is excluded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ExclusionReason {
    OtherChain {
        theirs: u64,
        ours: u64,
    },
    OtherGenesis {
        theirs: B256,
        ours: B256,
    },
    /// Its chain has another block than the configured checkpoint.
    OtherCheckpoint {
        theirs: B256,
        ours: BlockId,
    },
    Syncing,
    /// Fewer nodes than a quorum have reported their chain.
    TooFew {
        answered: usize,
        quorum: usize,
    },
    /// No quorum of the nodes agrees on a chain. `nodes` lists what each has reported.
    Undecided {
        nodes: String,
    },
}

impl ExclusionReason {
    /// The name in metrics.
    pub fn name(&self) -> &'static str {
        match self {
            Self::OtherChain { .. } => "other_chain",
            Self::OtherGenesis { .. } => "other_genesis",
            Self::OtherCheckpoint { .. } => "checkpoint",
            Self::Syncing => "syncing",
            Self::TooFew { .. } => "too_few",
            Self::Undecided { .. } => "undecided",
        }
    }
}

impl fmt::Display for ExclusionReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::OtherChain { theirs, ours } => {
                write!(f, "its chain id is {theirs}, not {ours}: correct its url, or chain_id in [network]")
            }
            Self::OtherGenesis { theirs, ours } => {
                write!(
                    f,
                    "its block 0 is {theirs}, not {ours}: it is a node of another chain, correct its url"
                )
            }
            Self::OtherCheckpoint { theirs, ours: BlockId { number, hash } } => {
                write!(
                    f,
                    "its block {number} is {theirs}, and the checkpoint in [network] is {hash}: its chain is forged, or the \
                     checkpoint is wrong"
                )
            }
            Self::Syncing => write!(f, "it is syncing, and will be used when it has finished"),
            Self::TooFew { answered, quorum } => {
                write!(
                    f,
                    "only {} reported a chain, and the quorum is {quorum}: find out why the others do not answer, or set quorum in \
                     [pool]",
                    counted(*answered as u64, "node")
                )
            }
            Self::Undecided { nodes } => {
                write!(
                    f,
                    "the nodes do not agree on a chain ({nodes}): set chain_id and genesis_hash in [network], or remove those of \
                     another chain"
                )
            }
        }
    }
}
