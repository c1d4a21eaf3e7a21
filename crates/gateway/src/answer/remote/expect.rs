//! What the answer to a query must fit to be believed.

use std::sync::Arc;

use nodes::BlockId;
use nodes::check::{Expect, FeesAsked, LogQuery};

use crate::params::{Blocks, LogFilter, Query};
use crate::resolve::BlockRef;

/// `logs_max` is how many logs one answer may have.
pub(super) fn expect(query: &Query<BlockRef>, logs_max: u64) -> Expect {
    match query {
        Query::GasPrice
        | Query::MaxPriorityFeePerGas
        | Query::Balance { .. }
        | Query::TransactionCount { .. }
        | Query::EstimateGas { .. } => Expect::Quantity,
        Query::StorageAt { .. } => Expect::Word,
        Query::Code { .. } | Query::Call { .. } => Expect::Data,
        Query::BlockTransactionCount { .. } | Query::UncleCount { .. } => Expect::Count,
        Query::Block { block, full } => {
            Expect::Block { hash: Some(block.hash), number: Some(block.number), full: *full }
        }
        Query::BlockReceipts { block } => Expect::Receipts { block: id(*block), header: None },
        Query::Uncle { block, .. } => Expect::Uncle { block: id(*block), hash: None },
        Query::TransactionByIndex { block, index } => {
            Expect::Transaction { hash: None, block: Some(id(*block)), index: Some(*index) }
        }
        Query::TransactionByHash { hash } => {
            Expect::Transaction { hash: Some(*hash), block: None, index: None }
        }
        Query::TransactionReceipt { hash } => Expect::Receipt { transaction: *hash },
        Query::RawBlockTransactions { .. } => Expect::RawRecords,
        Query::FeeHistory { blocks, newest, percentiles } => Expect::FeeHistory(FeesAsked {
            count: *blocks,
            newest: newest.number,
            percentiles: percentiles.len(),
        }),
        Query::ChainId | Query::NetVersion | Query::BlockNumber | Query::Syncing | Query::ClientVersion => {
            Expect::Anything
        }
        Query::Logs { filter, blocks } => logs(filter, *blocks, logs_max),
    }
}

/// What the logs of a range, or of one block, must fit.
pub(super) fn logs(filter: &LogFilter, blocks: Blocks<BlockRef>, results_max: u64) -> Expect {
    let (from, to, block_hash) = match blocks {
        Blocks::One(block) => (block.number, block.number, Some(block.hash)),
        Blocks::Range { from, to } => (from.number, to.number, None),
    };
    let most = usize::try_from(results_max).unwrap_or(usize::MAX);
    let query = LogQuery::new(from, to, filter.addresses.clone(), filter.topics.clone(), most);
    Expect::Logs(Arc::new(match block_hash {
        Some(hash) => query.of_block(hash),
        None => query,
    }))
}

pub(super) fn id(block: BlockRef) -> BlockId {
    BlockId { number: block.number, hash: block.hash }
}

pub(super) fn block_ref(id: BlockId) -> BlockRef {
    BlockRef { number: id.number, hash: id.hash }
}
