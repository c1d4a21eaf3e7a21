//! Proven blocks that are stored: recent ones in memory, older ones in a file. Those need no node.

use std::sync::Arc;

use archive::{BlocksFileSnapshot, CorruptRow, StoreError, StoredBody, StoredChainId};
use methods::BlockRef;
use nodes::proven::{ProvenBody, ProvenHeader, ProvenReceipts, ProvenUncles};
use resources::AccountId;
use sources::{Failure, Origin};

use super::cached::CachedBlocks;
use super::recent::RecentBlock;
use super::stored_chain::StoredChain;
use crate::workers::Workers;

/// Rows up to this size are decoded at once: decompressing and hashing them takes less than 200 µs.
const DECODED_AT_ONCE_BYTES_MAX: usize = 16 << 10;

/// Proven blocks that are stored, if blocks are stored at all. What is read from the file is cached.
pub(crate) struct StoredBlocks {
    pub(super) chain: Option<Arc<StoredChain>>,
    cached: Arc<CachedBlocks>,
    workers: Arc<Workers>,
}

impl StoredBlocks {
    pub(super) fn new(
        chain: Option<Arc<StoredChain>>,
        cached: Arc<CachedBlocks>,
        workers: Arc<Workers>,
    ) -> Self {
        Self { chain, cached, workers }
    }

    /// The identity of the chain that the stored blocks are of.
    pub(super) fn chain_id(&self) -> Option<StoredChainId> {
        self.chain.as_ref()?.snapshot().chain()
    }

    /// Where an answer about these blocks comes from.
    pub(crate) fn origin_of(&self, blocks: impl IntoIterator<Item = BlockRef>) -> Origin {
        let is_stored = |chain: &Arc<StoredChain>| {
            let mut blocks = blocks.into_iter().peekable();
            blocks.peek().is_some() && blocks.all(|block| chain.has(block))
        };
        if self.chain.as_ref().is_some_and(is_stored) { Origin::Stored } else { Origin::Node }
    }

    /// A block in memory.
    pub(super) fn recent(&self, block: BlockRef) -> Option<RecentBlock> {
        self.chain.as_ref()?.recent(&block.hash)
    }

    /// Header, transactions and withdrawals of a block, if they are stored.
    pub(super) async fn body(
        &self,
        account: AccountId,
        block: BlockRef,
    ) -> Result<Option<Arc<ProvenBody>>, Failure> {
        if let Some(recent) = self.recent(block) {
            return Ok(Some(recent.body));
        }
        Ok(self.read_block(account, block).await?.map(|(body, _)| body))
    }

    /// Uncles of a block, if they are stored.
    pub(super) async fn uncles(
        &self,
        account: AccountId,
        block: BlockRef,
    ) -> Result<Option<Arc<ProvenUncles>>, Failure> {
        if let Some(recent) = self.recent(block) {
            return Ok(Some(recent.uncles));
        }
        Ok(self.read_block(account, block).await?.map(|(_, uncles)| uncles))
    }

    /// Receipts of a block, if they are stored.
    pub(super) async fn receipts(
        &self,
        account: AccountId,
        block: BlockRef,
    ) -> Result<Option<Arc<ProvenReceipts>>, Failure> {
        if let Some(recent) = self.recent(block) {
            return Ok(Some(recent.receipts));
        }
        let Some(row) = self.row(block, |snapshot| snapshot.receipts(block.number)) else { return Ok(None) };
        let bytes = row.bytes();
        let decode = move || row.decode().map(|receipts| Arc::new(ProvenReceipts::restored(receipts)));
        let receipts = self.decode(account, bytes, decode).await?;
        receipts.iter().for_each(|receipts| self.cached.insert_receipts(block.hash, receipts));
        Ok(receipts)
    }

    /// Header of a block that is stored in the file. Whole blocks are decoded for it, because the rows of headers do not have
    /// all that fees need.
    pub(super) async fn header(
        &self,
        account: AccountId,
        block: BlockRef,
    ) -> Result<Option<Arc<ProvenHeader>>, Failure> {
        let Some(row) = self.row(block, |snapshot| snapshot.body(block.number)) else { return Ok(None) };
        let bytes = row.bytes();
        let decode = move || row.decode().map(|decoded| ProvenHeader::of(block.hash, &decoded.header));
        let header = self.decode(account, bytes, decode).await?.map(Arc::new);
        header.iter().for_each(|header| self.cached.insert_header(Arc::clone(header)));
        Ok(header)
    }

    async fn read_block(
        &self,
        account: AccountId,
        block: BlockRef,
    ) -> Result<Option<(Arc<ProvenBody>, Arc<ProvenUncles>)>, Failure> {
        let Some(row) = self.row(block, |snapshot| snapshot.body(block.number)) else { return Ok(None) };
        let bytes = row.bytes();
        let parts = self.decode(account, bytes, move || decoded(&row, block)).await?;
        if let Some((body, uncles)) = &parts {
            self.cached.insert_body(body);
            self.cached.insert_uncles(block.hash, uncles);
        }
        Ok(parts)
    }

    fn row<T>(
        &self,
        block: BlockRef,
        read: impl FnOnce(&BlocksFileSnapshot) -> Result<Option<T>, StoreError>,
    ) -> Option<T> {
        self.chain.as_ref()?.read(block, read)
    }

    /// Decodes a row of the file; `None` if it is damaged.
    async fn decode<T: Send + 'static>(
        &self,
        account: AccountId,
        bytes: usize,
        decode: impl FnOnce() -> Result<T, CorruptRow> + Send + 'static,
    ) -> Result<Option<T>, Failure> {
        let decoded = self.workers.run_sized(account, bytes, DECODED_AT_ONCE_BYTES_MAX, decode).await?;
        if let (Err(cause), Some(chain)) = (&decoded, &self.chain) {
            chain.read_failed(cause);
        }
        Ok(decoded.ok())
    }
}

fn decoded(row: &StoredBody, block: BlockRef) -> Result<(Arc<ProvenBody>, Arc<ProvenUncles>), CorruptRow> {
    let decoded = row.decode()?;
    let content = decoded.body;
    let body = ProvenBody::restored(block.hash, decoded.header, content.transactions, content.withdrawals);
    Ok((Arc::new(body), Arc::new(ProvenUncles::restored(content.ommers))))
}
