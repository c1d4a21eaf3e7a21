//! A block against its parent, before it is executed, and against what its execution gave.
//!
//! Pure functions: nothing is read and nothing is stored. The rules are geth's. Two of geth's checks are left
//! out on purpose, because an import trusts the origin of its files that far: seals (the proof of work, the
//! signatures of the beacon chain) and the formula of the difficulty. Of the difficulty only this is checked:
//! it is above zero exactly as long as the chain's total difficulty has not reached the terminal one.

mod ancestry; // the newest blocks of the chain
mod body; // transactions, withdrawals, size
mod fault; // what can be wrong, as sentences
mod header; // a header against its parent
mod execution; // a header against the execution of its block
mod uncles; // as geth's VerifyUncles

#[cfg(test)]
mod tests;

use crate::chain::{Block, ChainSpec};
use alloy_primitives::{B256, U256};

pub use ancestry::Ancestry;
pub(crate) use ancestry::GENERATIONS;
pub(crate) use execution::{ExecutionSummary, check_execution};
pub use fault::BlockFault;
pub(crate) use fault::{TransactionFault, UncleFault};

/// Proof that a block follows the rules as far as they can be checked without executing it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CheckedBlock {
    pub hash: B256,
    /// The hashes of its uncles, in their order.
    pub uncle_hashes: Vec<B256>,
    /// The difficulty of the chain up to and with this block.
    pub total_difficulty: U256,
}

/// Checks a block that claims to be the next one after an ancestry.
pub fn check_block(
    chain: &ChainSpec,
    ancestry: &Ancestry,
    block: &Block,
) -> Result<CheckedBlock, BlockFault> {
    let header = &block.header;
    header::check_link(ancestry.parent(), header)?;
    header::check_merge(chain, ancestry.total_difficulty(), header)?;
    header::check_header(chain, ancestry.parent(), header)?;
    body::check_body(chain, block)?;
    Ok(CheckedBlock {
        hash: header.hash_slow(),
        uncle_hashes: uncles::check_uncles(chain, ancestry, block)?,
        total_difficulty: ancestry.total_difficulty().saturating_add(header.difficulty),
    })
}
