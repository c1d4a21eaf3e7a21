//! Why an import stopped.

use super::recover::{RecoveredBlock, RecoveryFault};
use crate::{blockfile::BlockFileError, check::BlockFault, execute::ExecutionFault, store::StoreError};
use alloy_primitives::B256;

/// Why an import stopped.
#[derive(Debug, thiserror::Error)]
pub enum ImportError {
    /// The source cannot be read any further.
    #[error(transparent)]
    Source(#[from] BlockFileError),
    #[error("block {number} ({hash}) is not valid: {fault}")]
    BadBlock { number: u64, hash: B256, fault: Box<BadBlock> },
    #[error(
        "the source goes on with block {number}, but {} missing; import the files that hold {} first",
        MissingRange(*first, *last), if first == last { "it" } else { "them" }
    )]
    MissingBlocks {
        /// The block that cannot be stored yet.
        number: u64,
        first: u64,
        last: u64,
    },
    #[error(
        "the blocks of the source build on the genesis {found}, but the genesis file makes {genesis}; \
         use the genesis file of the chain that the blocks belong to"
    )]
    OtherGenesis { found: B256, genesis: B256 },
    #[error(
        "block {number} of the source is {found}, but the archive has {stored}; \
         the source belongs to another chain or another fork of it"
    )]
    OtherChain { number: u64, stored: B256, found: B256 },
    #[error(
        "the chain was reorganised down to block {ancestor}, but the archive can only be taken back to {}, because older \
         and imported blocks are taken for final; make a new one with `chaingate import`",
        LowestBlock(*lowest)
    )]
    TooDeep {
        /// The newest block that stays.
        ancestor: u64,
        /// The lowest block that the archive can be taken back to, if there is one.
        lowest: Option<u64>,
    },
    #[error("the archive: {0}")]
    Store(#[from] StoreError),
}

/// Names a block that an archive can be taken back to.
struct LowestBlock(Option<u64>);

impl std::fmt::Display for LowestBlock {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.0 {
            Some(lowest) => write!(f, "block {lowest}"),
            None => f.write_str("its head"),
        }
    }
}

/// Names one or more blocks.
struct MissingRange(u64, u64);

impl std::fmt::Display for MissingRange {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self(first, last) if first == last => write!(f, "block {first} is"),
            Self(first, last) => write!(f, "blocks {first} to {last} are"),
        }
    }
}

/// Why a block is not valid.
#[derive(Debug, thiserror::Error)]
pub enum BadBlock {
    /// A statement of its header does not hold.
    #[error(transparent)]
    Check(BlockFault),
    #[error("transaction {0} has an invalid signature")]
    Signature(usize),
    /// It cannot be executed.
    #[error(transparent)]
    Execution(ExecutionFault),
}

impl ImportError {
    pub(super) fn bad_block(recovered: &RecoveredBlock, fault: BadBlock) -> Self {
        let number = recovered.block.header.number;
        Self::BadBlock { number, hash: recovered.hash, fault: Box::new(fault) }
    }

    /// A failing store shows up in the middle of execution, and is not the block's fault.
    pub(super) fn execution(
        recovered: &RecoveredBlock,
        fault: ExecutionFault,
        failure: Option<StoreError>,
    ) -> Self {
        match (failure, fault.into_store_error()) {
            (Some(cause), _) | (None, Ok(cause)) => Self::Store(cause),
            (None, Err(fault)) => Self::bad_block(recovered, BadBlock::Execution(fault)),
        }
    }
}

impl From<RecoveryFault> for ImportError {
    fn from(fault: RecoveryFault) -> Self {
        match fault {
            RecoveryFault::Source(cause) => Self::Source(cause),
            RecoveryFault::Signature { number, hash, index } => {
                Self::BadBlock { number, hash, fault: Box::new(BadBlock::Signature(index)) }
            }
        }
    }
}
