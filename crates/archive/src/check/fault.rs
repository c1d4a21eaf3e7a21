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
    #[error("{field}: expected {expected}, found {found}")]
    Hash { field: &'static str, expected: B256, found: B256 },
    #[error("{field}: expected {expected}, found {found}")]
    Number { field: &'static str, expected: u64, found: u64 },
    #[error("{field}: expected between {min} and {max}, found {found}")]
    Range { field: &'static str, min: u64, max: u64, found: u64 },
    #[error("{field}: expected at most {max}, found {found}")]
    AtMost { field: &'static str, max: u64, found: u64 },
    #[error("{field}: expected more than the parent's {parent}, found {found}")]
    Above { field: &'static str, parent: u64, found: u64 },
    #[error("{field}: expected a multiple of {unit}, found {found}")]
    Multiple { field: &'static str, unit: u64, found: u64 },
    #[error("{field}: expected since {fork}, found none")]
    Missing { field: &'static str, fork: &'static str },
    #[error("{field}: expected none before {fork}, found one")]
    TooEarly { field: &'static str, fork: &'static str },
    #[error(
        "difficulty: expected 0, because the total difficulty before this block is {total} and proof of work ends \
         at {terminal}, found {found}"
    )]
    Merged { total: U256, terminal: U256, found: U256 },
    #[error(
        "difficulty: expected above 0, because the total difficulty before this block is {total}, found 0"
    )]
    NotMerged { total: U256 },
    /// A fork of proof of stake is due, but the chain is still at proof of work.
    #[error("difficulty: expected 0 since {fork} at time {time}, found {found}")]
    ForkBeforeMerge { fork: &'static str, time: u64, found: U256 },
    #[error("nonce: expected {expected} after the merge, found {found}", expected = B64::ZERO)]
    Nonce { found: B64 },
    #[error("extra data: expected {expected} at the DAO fork and for nine blocks after it, found {found}")]
    DaoSupport { expected: Bytes, found: Bytes },
    #[error(
        "extra data: expected anything but {found} at the DAO fork, which this chain refuses, found {found}"
    )]
    DaoRefusal { found: Bytes },
    #[error(
        "logs bloom: expected {} bits set, found {}, and {} differ", 
        ones(expected), ones(found), ones(&(**expected ^ **found))
    )]
    Bloom { expected: Box<Bloom>, found: Box<Bloom> },
    #[error("transaction {index}: {fault}")]
    Transaction { index: usize, fault: TransactionFault },
    #[error("uncle {index}: {fault}")]
    Uncle { index: usize, fault: UncleFault },
}

/// Why a transaction cannot be in a block.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[allow(missing_docs, reason = "every variant has the same fields, and its text names them")]
pub enum TransactionFault {
    #[error("type: expected at most {} before {fork}, found {found}", found.saturating_sub(1))]
    Type { fork: &'static str, found: u8 },
    #[error("chain id: expected {expected}, found {found}")]
    ChainId { expected: u64, found: u64 },
    #[error("chain id: expected none before EIP-155, found {found}")]
    Protected { found: u64 },
}

/// Why an uncle cannot be in a block.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[allow(missing_docs, reason = "every variant has the same field, and its text names it")]
pub enum UncleFault {
    #[error("expected a block beside the chain, found {found}, which is a block of it")]
    Ancestor { found: B256 },
    #[error("expected an uncle that was not included before, found {found}, which was")]
    Duplicate { found: B256 },
    #[error("parent hash: expected a block from 2 to 7 generations back, found {found}")]
    Dangling { found: B256 },
    #[error("{0}")]
    Header(Box<BlockFault>),
}

fn ones(bloom: &Bloom) -> u32 {
    bloom.iter().map(|byte| byte.count_ones()).sum()
}
