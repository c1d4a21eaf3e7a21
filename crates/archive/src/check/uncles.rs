//! Uncles, as geth's `VerifyUncles` checks them, without their seals.

use super::{Ancestry, BlockFault, UncleFault, header};
use crate::chain::{Block, ChainSpec};
use alloy_consensus::Header;
use alloy_primitives::B256;

/// The yellow paper's limit.
const UNCLES_MAX: u64 = 2;

/// Checks the uncles of a block and gives their hashes.
///
/// After the merge a block has none, which its uncles hash has to say.
pub(super) fn check_uncles(
    chain: &ChainSpec,
    ancestry: &Ancestry,
    block: &Block,
) -> Result<Vec<B256>, BlockFault> {
    let uncles = &block.body.ommers;
    let max = if chain.rules_at(&block.header).merged() { 0 } else { UNCLES_MAX };
    header::at_most("uncles", max, uncles.len() as u64)?;
    let mut hashes = Vec::with_capacity(uncles.len());
    for (index, uncle) in uncles.iter().enumerate() {
        let hash = uncle.hash_slow();
        check_uncle(chain, ancestry, &hashes, uncle, hash)
            .map_err(|fault| BlockFault::Uncle { index, fault })?;
        hashes.push(hash);
    }
    Ok(hashes)
}

fn check_uncle(
    chain: &ChainSpec,
    ancestry: &Ancestry,
    before: &[B256],
    uncle: &Header,
    hash: B256,
) -> Result<(), UncleFault> {
    let included = |uncle_hashes: &[B256]| uncle_hashes.contains(&hash);
    if included(before) || ancestry.generations().any(|ancestor| included(&ancestor.uncle_hashes)) {
        return Err(UncleFault::Duplicate { found: hash });
    }
    if ancestry.generations().any(|ancestor| ancestor.header.hash() == hash) {
        return Err(UncleFault::Ancestor { found: hash });
    }
    // A brother of the block itself would be the next block's uncle, so its parent does not count.
    let parent = ancestry.generations().skip(1).find(|ancestor| ancestor.header.hash() == uncle.parent_hash);
    let Some(parent) = parent else {
        return Err(UncleFault::Dangling { found: uncle.parent_hash });
    };
    let total = ancestry.total_difficulty();
    header::check_link(&parent.header, uncle)
        .and_then(|()| header::check_merge(chain, total, uncle))
        .and_then(|()| header::check_header(chain, &parent.header, uncle))
        .map_err(|fault| UncleFault::Header(Box::new(fault)))
}
