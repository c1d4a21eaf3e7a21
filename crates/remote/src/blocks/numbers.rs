//! Which block has a number or a hash, and how far that is verified.

use alloy_primitives::B256;
use archive::ChainSpec;
use methods::{BlockParam, BlockRef, Query, Tag};
use nodes::{Absence, CanonicalChain, Standing};
use resources::AccountId;
use sources::{Failure, Verification};
use tokio::time::Instant;

use super::Blocks;
use crate::block_ids::block_ref;

/// Nodes that a quorum must have to confirm anything.
const CONFIRMING_NODES_MIN: usize = 2;

impl Blocks {
    /// The chain that this is, as the nodes, the operator or the stored blocks say.
    pub(crate) fn chain_id(&self) -> Option<u64> {
        self.pool.chain_id().or_else(|| Some(self.stored.chain_id()?.chain_id))
    }

    /// The public network whose blob parameters are those of this chain: its block 0 is shown. Other chains use the same chain ids.
    pub(crate) fn blob_network(&self) -> Option<u64> {
        let of_nodes = self.pool.canonical_chain().and_then(|chain| chain.genesis());
        let shown = of_nodes.map(|genesis| genesis.hash).or_else(|| self.stored.chain_id()?.genesis)?;
        self.chain_id().filter(|chain_id| ChainSpec::genesis_of_network(*chain_id) == Some(shown))
    }

    /// How far something is verified that a quorum of the nodes has said. One node confirms nothing.
    pub(crate) fn by_quorum(&self) -> Verification {
        match self.pool.quorum() >= CONFIRMING_NODES_MIN {
            true => Verification::Confirmed,
            false => Verification::None,
        }
    }

    /// How far it is verified that the block of this number is on the chain: the head commits to its ancestors, and which
    /// other blocks are older is what nodes say.
    fn number_verified(&self, chain: &CanonicalChain, number: u64) -> Verification {
        if chain.is_linked(number) { Verification::Proven } else { self.by_quorum() }
    }

    /// How far it is verified that these are the blocks that a query means. Of a range, the hash of the last one stands for
    /// all.
    pub(crate) fn blocks_verified(&self, chain: &CanonicalChain, query: &Query<BlockParam>) -> Verification {
        let number = match query.blocks().last() {
            None | Some(BlockParam::Tag(Tag::Latest | Tag::Pending)) => None,
            // Only nodes say that an old block is canonical, if the caller demands that.
            Some(BlockParam::Hash { hash, must_be_canonical }) => {
                chain.by_hash(&hash).filter(|_| must_be_canonical).map(|block| block.number)
            }
            Some(BlockParam::Number(number)) => Some(number),
            Some(BlockParam::Tag(Tag::Earliest)) => Some(0),
            Some(BlockParam::Tag(Tag::Safe)) => chain.safe().map(|block| block.number),
            Some(BlockParam::Tag(Tag::Finalized)) => chain.finalized().map(|block| block.number),
        };
        number.map_or(Verification::Proven, |number| self.number_verified(chain, number))
    }

    /// How far it is verified that an answer about a transaction belongs to the chain.
    pub(crate) fn place_verified(&self, chain: &CanonicalChain, block: Option<BlockRef>) -> Verification {
        block.map_or(Verification::Proven, |block| self.number_verified(chain, block.number))
    }

    /// Whether a number, if it is known which block has it, need not be asked for again. Watchers ask for the marks all the time.
    pub(crate) fn is_good_number(&self, chain: &CanonicalChain, number: u64) -> bool {
        let stands = |trust| self.pool.standing(trust) == Standing::Good;
        let is_mark =
            |mark: Option<nodes::BlockId>| mark.is_some_and(|mark| chain.by_number(number) == Some(mark));
        chain.trust(number).is_none_or(stands) || is_mark(chain.safe()) || is_mark(chain.finalized())
    }

    /// The block of the chain that a transaction was found in before.
    pub(crate) fn known_place(&self, chain: &CanonicalChain, hash: B256) -> Option<BlockRef> {
        let known = self.cached.place(&hash);
        let known = known.filter(|block| chain.by_number(block.number).map(block_ref) == Some(*block));
        known.or_else(|| self.stored_chain()?.place(chain, &hash))
    }

    /// Asks again which blocks have the numbers below the window that a query is about, because nobody has those blocks: a
    /// quorum of the nodes may have reported wrong ones. A transaction that was found before is about its block.
    pub(crate) async fn correct_numbers(
        &self,
        account: AccountId,
        chain: &CanonicalChain,
        query: &Query<BlockRef>,
        deadline: Instant,
    ) {
        let may_be_another =
            |block: &BlockRef| block.number < chain.lowest() && chain.side_block(&block.hash).is_none();
        let place = query.transaction().and_then(|query| self.known_place(chain, query.hash));
        for block in query.blocks().chain(place).filter(may_be_another) {
            let look_up = || async {
                let learned = self.pool.learn_number(account, chain, block.number, deadline).await;
                learned.map(|()| self.by_quorum()).map_err(|_| Failure::Unavailable)
            };
            let key = (account, chain.epoch(), BlockParam::Number(block.number));
            // Where too few nodes can say, the number keeps its block.
            let _unknown = self.lookups.share(key, deadline, look_up).await;
        }
    }

    /// Makes sure that the view can say which blocks a query means. Returns how far it is verified that those do not exist that
    /// it does not have then.
    pub(crate) async fn learn_all(
        &self,
        account: AccountId,
        chain: &CanonicalChain,
        query: &Query<BlockParam>,
        deadline: Instant,
    ) -> Result<Verification, Failure> {
        let mut absence_verified = self.by_quorum();
        for block in query.blocks() {
            if !self.has_side_block(chain, block, query)? {
                absence_verified = absence_verified.min(self.learn(account, chain, block, deadline).await?);
            }
        }
        Ok(absence_verified)
    }

    /// How far it is verified that there is no such block.
    fn absence_verified(&self, absence: Absence) -> Verification {
        match absence {
            Absence::Confirmed => self.by_quorum(),
            Absence::Unconfirmed | Absence::Open => Verification::None,
        }
    }

    /// Makes sure that the view can say what block is meant, if there is such a block. Equal questions of an account share one
    /// look-up, from which all views of an epoch learn. What nodes have said before is asked again when it has expired, and
    /// holds on where they cannot be asked. Returns how far it is verified that there is no such block, if the view does not have it
    /// then.
    pub(crate) async fn learn(
        &self,
        account: AccountId,
        chain: &CanonicalChain,
        block: BlockParam,
        deadline: Instant,
    ) -> Result<Verification, Failure> {
        if self.knows(chain, block) || self.learn_stored(chain, block, Standing::Good) {
            return Ok(self.by_quorum());
        }
        let look_up = || async {
            let learned = match block {
                BlockParam::Number(number) => {
                    self.pool.learn_number(account, chain, number, deadline).await.map(|()| None)
                }
                BlockParam::Hash { hash, .. } => self.pool.learn_hash(account, chain, hash, deadline).await,
                BlockParam::Tag(_) => Ok(None),
            };
            let verified = |absence: Option<Absence>| {
                absence.map_or(self.by_quorum(), |absence| self.absence_verified(absence))
            };
            learned.map(verified).map_err(|_| Failure::Unavailable)
        };
        let looked_up = self.lookups.share((account, chain.epoch(), block), deadline, look_up).await;
        match looked_up {
            Err(Failure::Unavailable) if self.keeps(chain, block) => Ok(self.by_quorum()),
            looked_up => looked_up,
        }
    }

    /// Whether the view can say what canonical block is meant, without asking anyone.
    pub(crate) fn knows(&self, chain: &CanonicalChain, block: BlockParam) -> bool {
        match block {
            BlockParam::Number(number) => chain.knows_number(number) && self.is_good_number(chain, number),
            BlockParam::Hash { hash, .. } => {
                chain.by_hash(&hash).is_some_and(|block| self.is_good_number(chain, block.number))
            }
            BlockParam::Tag(_) => true,
        }
    }

    /// Keeps an expired block for some seconds more, because too few nodes can say whether it is right. Returns whether there
    /// is one. A block of an earlier trust epoch is forgotten.
    fn keeps(&self, chain: &CanonicalChain, block: BlockParam) -> bool {
        let known = match block {
            BlockParam::Number(number) => chain.by_number(number),
            BlockParam::Hash { hash, .. } => chain.by_hash(&hash),
            BlockParam::Tag(_) => None,
        };
        let Some((known, trust)) = known.and_then(|known| Some((known, chain.trust(known.number)?))) else {
            return self.learn_stored(chain, block, Standing::Expired);
        };
        if self.pool.standing(trust) == Standing::Void {
            chain.forget_reported_block(known.number);
            return false;
        }
        chain.add_reported_block(known, self.pool.prolonged(trust));
        true
    }

    /// Makes the view know a block below its window that is stored. Says whether that succeeded. Of blocks that are only known
    /// to be canonical because nodes have said so, `worst` is what their word must be worth.
    fn learn_stored(&self, chain: &CanonicalChain, block: BlockParam, worst: Standing) -> bool {
        let Some(stored) = self.stored_chain() else { return false };
        let found = match block {
            BlockParam::Number(number) => stored.by_number(chain, number),
            BlockParam::Hash { hash, .. } => stored.by_hash(chain, &hash),
            BlockParam::Tag(_) => None,
        };
        let Some((BlockRef { number, hash }, trust)) = found else { return false };
        let block = nodes::BlockId { number, hash };
        match trust {
            None => chain.add_linked_block(block),
            Some(trust) if self.pool.standing(trust) == Standing::Good => {
                chain.add_reported_block(block, trust);
            }
            Some(trust) if self.pool.standing(trust) == worst => {
                chain.add_reported_block(block, self.pool.prolonged(trust));
            }
            Some(_) => return false,
        }
        chain.knows_number(number)
    }

    /// Whether a query names a side block and can be answered about it. One whose data is not in memory is forgotten: its hash is
    /// as unknown as any other.
    fn has_side_block(
        &self,
        chain: &CanonicalChain,
        block: BlockParam,
        query: &Query<BlockParam>,
    ) -> Result<bool, Failure> {
        let BlockParam::Hash { hash, must_be_canonical } = block else { return Ok(false) };
        let Some(side_block) = chain.side_block(&hash).map(block_ref) else { return Ok(false) };
        // That it is not canonical is all that such a caller is told.
        if must_be_canonical {
            return Ok(true);
        }
        if query.reads_state() {
            return Err(Failure::SideStateGone);
        }
        let is_in_memory = self.is_in_memory(side_block);
        if !is_in_memory {
            chain.forget_side_block(&hash);
        }
        Ok(is_in_memory)
    }

    fn is_in_memory(&self, block: BlockRef) -> bool {
        self.stored.recent(block).is_some() || self.cached.body(block.hash).is_some()
    }
}

#[cfg(test)]
mod tests {
    use archive::StoredChainId;

    use super::*;
    use crate::test_blocks::TestBlocks;

    /// Before any node had shown its block 0, a private chain with the id of mainnet got the blob fees of mainnet.
    #[test]
    fn the_blob_fees_of_a_public_network_are_for_the_chain_with_its_block_0() {
        let mainnet = ChainSpec::genesis_of_network(1);
        for (genesis, network) in [(None, None), (Some(B256::repeat_byte(7)), None), (mainnet, Some(1))] {
            let test = TestBlocks::of_chain(1, Some(1));
            assert_eq!(test.blocks.blob_network(), None, "nobody has shown anything");
            let chain = StoredChainId { chain_id: 1, genesis };
            let stored = test.blocks.stored_chain().unwrap();
            stored.put_blocks(Some(chain), &[]).unwrap();
            assert_eq!(test.blocks.blob_network(), network, "{genesis:?}");
        }
    }
}
