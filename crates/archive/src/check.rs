//! A block against its parent, before it is executed, and against what its execution gave.
//!
//! Pure functions: nothing is read and nothing is kept. The rules are geth's. Two of geth's checks are left
//! out on purpose, because an import trusts the origin of its files that far: seals (the proof of work, the
//! signatures of the beacon chain) and the formula of the difficulty. Of the difficulty only this is checked:
//! it is above zero exactly as long as the chain's total difficulty has not reached the terminal one.

mod ancestry; // what a block is checked against
mod body; // transactions, withdrawals, size
mod fault; // what can be wrong, as sentences
mod fees; // base fee and blob gas that follow from the parent
mod header; // a header against its parent
mod outcome; // a header against the execution of its block
mod uncles; // as geth's VerifyUncles

#[cfg(test)]
mod tests;

use crate::chain::{Block, ChainSpec};
use alloy_primitives::{B256, U256};

pub(crate) use ancestry::{Ancestry, GENERATIONS};
pub use fault::{BlockFault, TransactionFault, UncleFault};
pub use fees::next_base_fee;
pub(crate) use fees::{expected_base_fee, expected_excess_blob_gas};
pub(crate) use outcome::{Outcome, check_outcome};

/// Proof that a block follows the rules as far as they can be checked without executing it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Checked {
    /// The block's own hash.
    pub(crate) hash: B256,
    /// The hashes of its uncles, in their order.
    pub(crate) uncle_hashes: Vec<B256>,
    /// The difficulty of the chain up to and with this block.
    pub(crate) total_difficulty: U256,
}

/// Checks a block that claims to be the next one after an ancestry.
pub(crate) fn check_block(
    chain: &ChainSpec,
    ancestry: &Ancestry,
    block: &Block,
) -> Result<Checked, BlockFault> {
    let header = &block.header;
    header::check_link(ancestry.parent(), header)?;
    header::check_merge(chain, ancestry.total_difficulty(), header)?;
    header::check_header(chain, ancestry.parent(), header)?;
    body::check_body(chain, block)?;
    Ok(Checked {
        hash: header.hash_slow(),
        uncle_hashes: uncles::check_uncles(chain, ancestry, block)?,
        total_difficulty: ancestry.total_difficulty().saturating_add(header.difficulty),
    })
}
