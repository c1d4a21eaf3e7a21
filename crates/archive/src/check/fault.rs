//! Why a block is invalid. Each message names the expected and the found value.
//!
//! A root or a hash that sums up the body or the execution is expected to be what the header says, and found
//! to be what the body or the execution gives. Everything else is found in the block.

use alloy_primitives::{B64, B256, Bloom, Bytes, U256};

/// Why a block is not the next one of the chain. The field is named as in the prose of the yellow paper and
/// the EIPs.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[allow(missing_docs, reason = "every variant has the same three or four fields, and its text names them")]
pub enum BlockFault {
    /// A hash or root differs.
    #[error("{field}: expected {expected}, found {found}")]
    Hash { field: &'static str, expected: B256, found: B256 },
    /// A number differs.
    #[error("{field}: expected {expected}, found {found}")]
    Number { field: &'static str, expected: u64, found: u64 },
    /// A number is out of its bounds.
    #[error("{field}: expected between {min} and {max}, found {found}")]
    Range { field: &'static str, min: u64, max: u64, found: u64 },
    /// A number is too large.
    #[error("{field}: expected at most {max}, found {found}")]
    AtMost { field: &'static str, max: u64, found: u64 },
    /// A number does not grow.
    #[error("{field}: expected more than the parent's {parent}, found {found}")]
    Above { field: &'static str, parent: u64, found: u64 },
    /// A number is not made of whole units.
    #[error("{field}: expected a multiple of {unit}, found {found}")]
    Multiple { field: &'static str, unit: u64, found: u64 },
    /// A field that the fork demands is not there.
    #[error("{field}: expected since {fork}, found none")]
    Missing { field: &'static str, fork: &'static str },
    /// A field is there before its fork.
    #[error("{field}: expected none before {fork}, found one")]
    TooEarly { field: &'static str, fork: &'static str },
    /// Proof of work after its end.
    #[error(
        "difficulty: expected 0, because the total difficulty before this block is {total} and proof of work ends \
         at {terminal}, found {found}"
    )]
    Merged { total: U256, terminal: U256, found: U256 },
    /// Proof of stake before the end of proof of work.
    #[error(
        "difficulty: expected above 0, because the total difficulty before this block is {total}, found 0"
    )]
    NotMerged { total: U256 },
    /// A fork of proof of stake is due, but the chain is still at proof of work.
    #[error("difficulty: expected 0 since {fork} at time {time}, found {found}")]
    ForkBeforeMerge { fork: &'static str, time: u64, found: U256 },
    /// A nonce without proof of work.
    #[error("nonce: expected {expected} after the merge, found {found}", expected = B64::ZERO)]
    Nonce { found: B64 },
    /// A block of the chain that supports the DAO fork does not say so.
    #[error("extra data: expected {expected} at the DAO fork and for nine blocks after it, found {found}")]
    DaoSupport { expected: Bytes, found: Bytes },
    /// A block of the chain that refuses the DAO fork claims to support it.
    #[error(
        "extra data: expected anything but {found} at the DAO fork, which this chain refuses, found {found}"
    )]
    DaoRefusal { found: Bytes },
    /// The logs' bloom filter differs.
    #[error(
        "logs bloom: expected {} bits set, found {}, and {} differ", 
        ones(expected), ones(found), ones(&(**expected ^ **found))
    )]
    Bloom { expected: Box<Bloom>, found: Box<Bloom> },
    /// A transaction that cannot be in this block.
    #[error("transaction {index}: {fault}")]
    Transaction { index: usize, fault: TransactionFault },
    /// An uncle that cannot be in this block.
    #[error("uncle {index}: {fault}")]
    Uncle { index: usize, fault: UncleFault },
}

/// Why a transaction cannot be in a block.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[allow(missing_docs, reason = "every variant has the same fields, and its text names them")]
pub enum TransactionFault {
    /// The type is younger than the block.
    #[error("type: expected at most {} before {fork}, found {found}", found.saturating_sub(1))]
    Type { fork: &'static str, found: u8 },
    /// It was signed for another chain.
    #[error("chain id: expected {expected}, found {found}")]
    ChainId { expected: u64, found: u64 },
    /// It is signed in a way that did not exist yet.
    #[error("chain id: expected none before EIP-155, found {found}")]
    Protected { found: u64 },
}

/// Why an uncle cannot be in a block.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[allow(missing_docs, reason = "every variant has the same field, and its text names it")]
pub enum UncleFault {
    /// A block of the chain itself.
    #[error("expected a block beside the chain, found {found}, which is a block of it")]
    Ancestor { found: B256 },
    /// The same uncle twice, here or in an earlier block.
    #[error("expected an uncle that was not included before, found {found}, which was")]
    Duplicate { found: B256 },
    /// Its parent is not where an uncle's parent may be.
    #[error("parent hash: expected a block from 2 to 7 generations back, found {found}")]
    Dangling { found: B256 },
    /// Its header does not follow from its own parent.
    #[error("{0}")]
    Header(Box<BlockFault>),
}

fn ones(bloom: &Bloom) -> u32 {
    bloom.iter().map(|byte| byte.count_ones()).sum()
}
