//! The thread ahead of the import: decodes blocks, hashes them, and recovers their senders.

use crate::{
    blockfile::BlockFileError,
    chain::{Block, ChainSpec, Transaction},
};
use alloy_consensus::transaction::SignerRecoverable;
use alloy_hardforks::EthereumHardforks;
use alloy_primitives::{Address, B256};
use alloy_rlp::Encodable;
use std::{collections::VecDeque, sync::mpsc::SyncSender};

/// A block as a source gave it.
#[derive(Debug)]
pub(super) struct SourceBlock {
    pub(super) block: Block,
    /// How far the source was read when the block was complete.
    pub(super) bytes_read: u64,
}

/// A block with its hash, size and senders, which need no state.
#[derive(Debug)]
pub(super) struct RecoveredBlock {
    pub(super) block: Block,
    pub(super) bytes_read: u64,
    pub(super) size: u32,
    pub(super) hash: B256,
    pub(super) senders: Vec<Address>,
    /// Whether it is one of the last blocks of its source, which a reorganisation may replace.
    pub(super) is_replaceable: bool,
}

/// Why the source gives no further block.
#[derive(Debug)]
pub(super) enum RecoveryFault {
    Source(BlockFileError),
    Signature { number: u64, hash: B256, index: usize },
}

/// Which blocks can be replaced later.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ReplaceableBlocks {
    /// The number of last blocks of the source that are replaceable; the source is read ahead by as many.
    pub(super) last: u64,
    /// The newest finalized block, if it is known; all blocks after it are replaceable.
    pub(super) after: Option<u64>,
}

/// Fills the queue until the source is empty, a block is invalid, or the receiver is dropped. Marks replaceable blocks.
pub(super) fn run(
    chain: &ChainSpec,
    mut blocks: impl Iterator<Item = Result<SourceBlock, BlockFileError>>,
    replaceable: ReplaceableBlocks,
    queue: &SyncSender<Result<RecoveredBlock, RecoveryFault>>,
) {
    let mut ahead = VecDeque::new();
    let fault = loop {
        let Some(block) = blocks.next() else { break None };
        match block.map_err(RecoveryFault::Source).and_then(|read| recover(chain, read)) {
            Ok(recovered) => ahead.push_back(recovered),
            Err(fault) => break Some(fault),
        }
        if ahead.len() as u64 > replaceable.last
            && let Some(recovered) = ahead.pop_front()
        {
            let number = recovered.block.header.number;
            let is_replaceable = replaceable.after.is_some_and(|finalized| number > finalized);
            if queue.send(Ok(RecoveredBlock { is_replaceable, ..recovered })).is_err() {
                return;
            }
        }
    };
    let last = ahead.into_iter().map(|recovered| Ok(RecoveredBlock { is_replaceable: true, ..recovered }));
    for block in last.chain(fault.map(Err)) {
        if queue.send(block).is_err() {
            return;
        }
    }
}

fn recover(chain: &ChainSpec, read: SourceBlock) -> Result<RecoveredBlock, RecoveryFault> {
    let SourceBlock { block, bytes_read } = read;
    let header = &block.header;
    let hash = header.hash_slow();
    let homestead = chain.rules_at(header).is_homestead_active_at_block(header.number);
    let transactions = block.body.transactions.iter().enumerate();
    let senders = transactions
        .map(|(index, transaction)| {
            sender(transaction, homestead).ok_or(RecoveryFault::Signature {
                number: header.number,
                hash,
                index,
            })
        })
        .collect::<Result<_, _>>()?;
    let size = u32::try_from(block.length()).unwrap_or(u32::MAX);
    Ok(RecoveredBlock { block, bytes_read, size, hash, senders, is_replaceable: false })
}

/// Before Homestead the upper half of the signatures was as good as the lower one (EIP-2).
fn sender(transaction: &Transaction, homestead: bool) -> Option<Address> {
    if homestead { transaction.recover_signer().ok() } else { transaction.recover_signer_unchecked().ok() }
}
