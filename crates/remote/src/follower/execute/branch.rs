//! Where the archive and the view part, and which blocks lead from there to the head.

use std::collections::VecDeque;

use archive::Snapshot;
use methods::{BlockParam, BlockRef};
use nodes::CanonicalChain;
use resources::AccountId;
use sources::Failure;
use tokio::time::Instant;

use crate::block_ids::block_ref;
use crate::blocks::Blocks;
use crate::call_context::CallContext;

/// Blocks below the window whose headers are fetched at once, from a block that a quorum confirms downwards.
const SPAN_BLOCKS: u64 = 1_024;

/// The blocks that the archive lacks.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct MissingBranch {
    /// The newest block of the archive that is canonical.
    pub(super) ancestor: u64,
    /// Canonical blocks after it, upwards; more may follow.
    pub(super) blocks: Vec<BlockRef>,
}

/// Why there is no branch.
#[derive(Debug)]
pub(super) enum NoBranch {
    /// Nobody can say now.
    Unknown,
    /// None of the blocks that can be replaced is canonical.
    TooDeep,
    /// The archive cannot be read.
    Archive(Failure),
}

impl From<archive::StoreError> for NoBranch {
    fn from(cause: archive::StoreError) -> Self {
        Self::Archive(cause.into())
    }
}

/// Finds what an archive lacks to be at the head of the view. `lowest` is the lowest block of the archive whose successors
/// can be replaced.
pub(super) async fn branch_of(
    blocks: &Blocks,
    context: CallContext<'_>,
    snapshot: &Snapshot,
    lowest: u64,
) -> Result<MissingBranch, NoBranch> {
    let chain = context.chain;
    let head = snapshot.head();
    let mut canonical: VecDeque<BlockRef> = chain
        .window()
        .iter()
        .map(|block| block_ref(block.id))
        .skip_while(|block| block.number < lowest)
        .collect();
    // The window leads to the archive only if both have a block in common there.
    if let Some(branch) = part(snapshot, &canonical)? {
        return Ok(branch);
    }
    if lowest >= chain.lowest() {
        return Err(NoBranch::TooDeep);
    }
    let top = deep_top(blocks, head, chain, context.deadline).await?;
    if top.number + 1 < chain.lowest() {
        canonical.clear();
    }
    let headers = blocks.headers_down(context, top, lowest).await.map_err(|_| NoBranch::Unknown)?;
    headers.iter().for_each(|header| canonical.push_front(block_ref(header.id)));
    part(snapshot, &canonical)?.ok_or(NoBranch::TooDeep)
}

/// The block below the window from which headers are fetched downwards.
async fn deep_top(
    blocks: &Blocks,
    head: u64,
    chain: &CanonicalChain,
    deadline: Instant,
) -> Result<BlockRef, NoBranch> {
    let below_window = chain.lowest().saturating_sub(1);
    if head + SPAN_BLOCKS >= below_window {
        let lowest = chain.window().first().ok_or(NoBranch::Unknown)?;
        return Ok(BlockRef { number: below_window, hash: lowest.parent });
    }
    let number = head + SPAN_BLOCKS;
    blocks
        .learn(AccountId::GATEWAY, chain, BlockParam::Number(number), deadline)
        .await
        .map_err(|_| NoBranch::Unknown)?;
    chain.by_number(number).map(block_ref).ok_or(NoBranch::Unknown)
}

/// The newest block of the archive among these, and those that follow it. They go upwards without gaps.
fn part(
    snapshot: &Snapshot,
    canonical: &VecDeque<BlockRef>,
) -> Result<Option<MissingBranch>, archive::StoreError> {
    for (index, block) in canonical.iter().enumerate().rev() {
        let ours = snapshot.summary(block.number)?;
        if ours.is_some_and(|summary| summary.hash == block.hash) {
            let blocks = canonical.range(index + 1..).copied().collect();
            return Ok(Some(MissingBranch { ancestor: block.number, blocks }));
        }
    }
    Ok(None)
}
