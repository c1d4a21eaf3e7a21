//! Proven blocks that are stored: recent ones in memory, older ones in a file. Those need no node.

use std::sync::Arc;

use archive::{ChainSpec, StoredBody};
use methods::{BlockParam, BlockRef};
use nodes::proven::{ProvenBody, ProvenHeader, ProvenReceipts, ProvenUncles};
use nodes::{CanonicalChain, Standing};
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

    /// The public network whose blob parameters are those of this chain: its block 0 is shown. Other chains use the same chain ids.
    pub(super) fn blob_network(&self) -> Option<u64> {
        let of_nodes = self.pool.canonical_chain().and_then(|chain| chain.genesis());
        let of_stored = || self.followed.as_ref()?.snapshot().chain()?.genesis;
        let shown = of_nodes.map(|genesis| genesis.hash).or_else(of_stored)?;
        self.chain_id().filter(|chain_id| ChainSpec::genesis_of_network(*chain_id) == Some(shown))
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

    /// Makes the view know a block below its window that is stored. Says whether that succeeded. Of blocks that are only known
    /// to be canonical because nodes have said so, `worst` is what their word must be worth.
    pub(super) fn learn_stored(&self, chain: &CanonicalChain, block: BlockParam, worst: Standing) -> bool {
        let Some(followed) = &self.followed else { return false };
        let found = match block {
            BlockParam::Number(number) => followed.by_number(chain, number),
            BlockParam::Hash { hash, .. } => followed.by_hash(chain, &hash),
            BlockParam::Tag(_) => None,
        };
        let Some((BlockRef { number, hash }, given_by)) = found else { return false };
        let block = nodes::BlockId { number, hash };
        match given_by {
            None => chain.add_linked_block(block),
            Some(given_by) if self.pool.standing(given_by) == Standing::Good => {
                chain.add_reported_block(block, given_by);
            }
            Some(given_by) if self.pool.standing(given_by) == worst => {
                chain.add_reported_block(block, self.pool.prolonged(given_by));
            }
            Some(_) => return false,
        }
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

#[cfg(test)]
mod tests {
    use alloy_primitives::B256;
    use archive::StoredChainId;

    use super::*;
    use crate::remote::followed_chain::BlockWriter;
    use crate::remote::test_source::TestSource;

    /// Before any node had shown its block 0, a private chain with the id of mainnet got the blob fees of mainnet.
    #[test]
    fn the_blob_fees_of_a_public_network_are_for_the_chain_with_its_block_0() {
        let mainnet = ChainSpec::genesis_of_network(1);
        for (genesis, network) in [(None, None), (Some(B256::repeat_byte(7)), None), (mainnet, Some(1))] {
            let test = TestSource::of_chain(1, Some(1));
            assert_eq!(test.source.blob_network(), None, "nobody has shown anything");
            let chain = StoredChainId { chain_id: 1, genesis };
            let followed = test.source.followed_chain().unwrap();
            followed.put_blocks(BlockWriter::NewBlocks, Some(chain), &[]).unwrap();
            assert_eq!(test.source.blob_network(), network, "{genesis:?}");
        }
    }
}
