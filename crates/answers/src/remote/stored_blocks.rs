//! Proven blocks that are stored: recent ones in memory, older ones in a file. Those need no node.

use std::sync::Arc;

use archive::StoredBody;
use methods::{BlockParam, BlockRef};
use nodes::CanonicalChain;
use nodes::proven::{ProvenBody, ProvenHeader, ProvenReceipts, ProvenUncles};
use resources::AccountId;

use super::followed_chain::FollowedChain;
use super::pool_source::PoolSource;
use super::recent_blocks::RecentBlock;
use crate::failure::Failure;
use crate::provenance::Origin;

/// Rows up to this size are decoded at once: decompressing and hashing them takes less than 200 µs.
const DECODED_AT_ONCE_BYTES_MAX: usize = 16 << 10;

impl PoolSource {
    pub fn followed_chain(&self) -> Option<&Arc<FollowedChain>> {
        self.followed.as_ref()
    }

    /// The chain that this is, as the nodes, the operator or the stored blocks say.
    pub(super) fn chain_id(&self) -> Option<u64> {
        let of_stored = || Some(self.followed.as_ref()?.snapshot().chain()?.chain_id);
        self.pool.chain_id().or_else(of_stored)
    }

    /// Where an answer about these blocks comes from.
    pub(super) fn origin_of(&self, blocks: impl IntoIterator<Item = BlockRef>) -> Origin {
        let is_followed = |followed: &Arc<FollowedChain>| {
            let mut blocks = blocks.into_iter().peekable();
            blocks.peek().is_some() && blocks.all(|block| followed.has(block))
        };
        if self.followed.as_ref().is_some_and(is_followed) { Origin::Cache } else { Origin::Node }
    }

    pub(super) fn recent_block(&self, block: BlockRef) -> Option<RecentBlock> {
        self.followed.as_ref()?.recent(&block.hash)
    }

    /// Header, transactions and withdrawals of a block, if they are stored.
    pub(super) async fn stored_body(
        &self,
        account: AccountId,
        block: BlockRef,
    ) -> Result<Option<Arc<ProvenBody>>, Failure> {
        if let Some(recent) = self.recent_block(block) {
            return Ok(Some(recent.body));
        }
        Ok(self.read_block(account, block).await?.map(|(body, _)| body))
    }

    /// Uncles of a block, if they are stored.
    pub(super) async fn stored_uncles(
        &self,
        account: AccountId,
        block: BlockRef,
    ) -> Result<Option<Arc<ProvenUncles>>, Failure> {
        if let Some(recent) = self.recent_block(block) {
            return Ok(Some(recent.uncles));
        }
        Ok(self.read_block(account, block).await?.map(|(_, uncles)| uncles))
    }

    /// Receipts of a block, if they are stored.
    pub(super) async fn stored_receipts(
        &self,
        account: AccountId,
        block: BlockRef,
    ) -> Result<Option<Arc<ProvenReceipts>>, Failure> {
        if let Some(recent) = self.recent_block(block) {
            return Ok(Some(recent.receipts));
        }
        let Some(followed) = &self.followed else { return Ok(None) };
        let Some(row) = followed.read(block, |snapshot| snapshot.receipts(block.number)) else {
            return Ok(None);
        };
        let bytes = row.bytes();
        let decode = move || row.decode().map(|receipts| Arc::new(ProvenReceipts::restored(receipts)));
        match self.run_sized(account, bytes, DECODED_AT_ONCE_BYTES_MAX, decode).await? {
            Ok(receipts) => {
                self.blocks.insert_receipts(block.hash, &receipts);
                Ok(Some(receipts))
            }
            Err(cause) => {
                followed.read_failed(&cause);
                Ok(None)
            }
        }
    }

    /// Header of a block that is stored in the file. Whole blocks are decoded for it, because the rows of headers do not have
    /// all that fees need.
    pub(super) async fn stored_header(
        &self,
        account: AccountId,
        block: BlockRef,
    ) -> Result<Option<Arc<ProvenHeader>>, Failure> {
        let Some(followed) = &self.followed else { return Ok(None) };
        let Some(row) = followed.read(block, |snapshot| snapshot.body(block.number)) else { return Ok(None) };
        let bytes = row.bytes();
        let decode = move || row.decode().map(|decoded| ProvenHeader::of(block.hash, &decoded.header));
        match self.run_sized(account, bytes, DECODED_AT_ONCE_BYTES_MAX, decode).await? {
            Ok(header) => {
                let header = Arc::new(header);
                self.blocks.insert_header(Arc::clone(&header));
                Ok(Some(header))
            }
            Err(cause) => {
                followed.read_failed(&cause);
                Ok(None)
            }
        }
    }

    async fn read_block(
        &self,
        account: AccountId,
        block: BlockRef,
    ) -> Result<Option<(Arc<ProvenBody>, Arc<ProvenUncles>)>, Failure> {
        let Some(followed) = &self.followed else { return Ok(None) };
        let Some(row) = followed.read(block, |snapshot| snapshot.body(block.number)) else { return Ok(None) };
        let (bytes, decode) = (row.bytes(), move || decoded(&row, block));
        match self.run_sized(account, bytes, DECODED_AT_ONCE_BYTES_MAX, decode).await? {
            Ok((body, uncles)) => {
                self.blocks.insert_body(&body);
                self.blocks.insert_uncles(block.hash, &uncles);
                Ok(Some((body, uncles)))
            }
            Err(cause) => {
                followed.read_failed(&cause);
                Ok(None)
            }
        }
    }

    /// Makes the view know a block below its window that is stored. Says whether that succeeded.
    pub(super) fn learn_stored(&self, chain: &CanonicalChain, block: BlockParam) -> bool {
        let Some(followed) = &self.followed else { return false };
        let found = match block {
            BlockParam::Number(number) => followed.by_number(chain, number),
            BlockParam::Hash { hash, .. } => followed.by_hash(chain, &hash),
            BlockParam::Tag(_) => None,
        };
        let Some(BlockRef { number, hash }) = found else { return false };
        chain.add_deep_block(nodes::BlockId { number, hash });
        chain.knows_number(number)
    }
}

fn decoded(
    row: &StoredBody,
    block: BlockRef,
) -> Result<(Arc<ProvenBody>, Arc<ProvenUncles>), archive::CorruptRow> {
    let decoded = row.decode()?;
    let content = decoded.body;
    let body = ProvenBody::restored(block.hash, decoded.header, content.transactions, content.withdrawals);
    Ok((Arc::new(body), Arc::new(ProvenUncles::restored(content.ommers))))
}
