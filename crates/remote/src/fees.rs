//! Fee suggestions and fee histories from proven blocks.

use std::pin::Pin;
use std::sync::Arc;

use alloy_consensus::Transaction as _;
use bytes::Bytes;
use futures_util::StreamExt;
use futures_util::stream::FuturesOrdered;
use methods::{BlockParam, BlockRef, FeeQuery, NextBlockFee, Percentile};
use nodes::proven::{FeeFields, ProvenBody, ProvenHeader};
use sources::{
    BlockFees, Failure, FeeHistory, HISTORY_BLOCKS_MAX, Json, Reward, SUGGESTION_BLOCKS, Suggested,
    rewards_at, suggested_priority_fee,
};

use super::block_ids::{block_ref, head};
use super::blocks::Blocks;
use super::fetched::{CacheDecision, Fetched};
use super::mined::{blob_params, knows_blob_params};
use crate::call_context::CallContext;

/// Blocks that a history with rewards may span: each of them is fetched whole, with its receipts.
const REWARD_BLOCKS_MAX: u64 = 128;

/// Blocks whose headers must follow Ethereum's rule for the base fee before it is used on a chain that is not known to have
/// it: two blocks may follow it by chance.
const RULE_BLOCKS_MIN: u64 = SUGGESTION_BLOCKS;

/// Blocks that are fetched at the same time.
const BLOCKS_AT_ONCE: usize = 8;

/// Transactions of which the rewards of a block are sorted at once: some 100 µs.
const REWARDS_AT_ONCE_MAX: usize = 2_048;

type Rewarding<'a> = Pin<Box<dyn Future<Output = Result<BlockRewards, Failure>> + Send + 'a>>;

/// The fees of a block, and the rewards that its transactions paid.
struct BlockRewards {
    fees: FeeFields,
    rewards: Vec<Reward>,
}

/// The base fee of the block after the newest one of a history.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct NextBaseFee {
    base_fee: u64,
    /// Whether it follows from the newest block. If not, the next block alone says it, which may be reorganised away.
    is_of_newest: bool,
}

/// Suggested fees of the next block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct SuggestedFees {
    /// `None` if the chain has a rule of its own.
    next_base_fee: Option<u64>,
    priority_fee: u128,
}

/// The fees of the nodes' chain.
pub(super) struct Fees {
    blocks: Arc<Blocks>,
    suggested: Suggested<SuggestedFees>,
}

impl Fees {
    pub(super) fn new(blocks: Arc<Blocks>) -> Self {
        Self { blocks, suggested: Suggested::default() }
    }

    /// The answer to a question about fees. `None` if proven blocks do not give it: the chain may have a rule of its own for
    /// the base fee, which its headers show, or parameters for blobs that its headers do not tell.
    pub(super) async fn answer(
        &self,
        context: CallContext<'_>,
        query: &FeeQuery<BlockRef>,
    ) -> Option<Result<Fetched, Failure>> {
        match query {
            FeeQuery::NextBlock(fee) => {
                let fee = self.next_block_fee(context, *fee).await;
                let fetched = |fee| Fetched::proven(quantity(fee), Some(head(context.chain)));
                fee.map(|fee| fee.map(fetched)).transpose()
            }
            FeeQuery::History { blocks, newest, percentiles } => {
                self.fee_history(context, *blocks, *newest, percentiles).await.transpose()
            }
        }
    }

    /// A fee of the block after the head of the view; `None` if proven blocks do not give it.
    async fn next_block_fee(
        &self,
        context: CallContext<'_>,
        fee: NextBlockFee,
    ) -> Result<Option<u128>, Failure> {
        match fee {
            NextBlockFee::GasPrice => {
                let fees = self.suggested_fees(context).await?;
                Ok(fees.next_base_fee.map(|base_fee| fees.priority_fee.saturating_add(base_fee.into())))
            }
            NextBlockFee::PriorityFee => Ok(Some(self.suggested_fees(context).await?.priority_fee)),
        }
    }

    /// The suggestion at the head of the view. The blocks are fetched once for each head.
    async fn suggested_fees(&self, context: CallContext<'_>) -> Result<SuggestedFees, Failure> {
        let newest = head(context.chain);
        if let Some(known) = self.suggested.at(newest.hash) {
            return Ok(known);
        }
        let oldest = newest.number.saturating_sub(SUGGESTION_BLOCKS - 1);
        let blocks = self.chain_down(context, newest, oldest).await?;
        let blocks = self.of_each(blocks, |block| Box::pin(self.paid(context, block))).await?;
        let fields: Vec<_> = blocks.iter().map(|block| block.fees).collect();
        let paid: Vec<_> =
            blocks.into_iter().flat_map(|block| block.rewards).map(|(reward, _)| reward).collect();
        let (transactions, suggest) = (paid.len(), move || suggested_priority_fee(paid));
        let suggested = SuggestedFees {
            next_base_fee: next_base_fee(&fields),
            priority_fee: self
                .blocks
                .workers
                .run_sized(context.account, transactions, REWARDS_AT_ONCE_MAX, suggest)
                .await?,
        };
        self.suggested.remember(newest.hash, suggested);
        Ok(suggested)
    }

    async fn fee_history(
        &self,
        context: CallContext<'_>,
        count: u64,
        newest: BlockRef,
        percentiles: &[Percentile],
    ) -> Result<Option<Fetched>, Failure> {
        let most = if percentiles.is_empty() { HISTORY_BLOCKS_MAX } else { REWARD_BLOCKS_MAX };
        let count = count.min(most).min(newest.number + 1);
        let oldest = newest.number + 1 - count;
        let (fields, rewards) = if percentiles.is_empty() || count == 0 {
            let rewards = (!percentiles.is_empty()).then(Vec::new);
            (self.fee_fields(context, newest, count).await?, rewards)
        } else {
            let blocks = self.chain_down(context, newest, oldest).await?;
            let blocks = self.of_each(blocks, |block| Box::pin(self.rewards(context, block))).await?;
            let fields = blocks.iter().map(|block| block.fees).collect();
            let percentiles = percentiles.to_vec();
            let transactions = blocks.iter().map(|block| block.rewards.len()).sum();
            let at =
                move || blocks.into_iter().map(|block| rewards_at(block.rewards, &percentiles)).collect();
            (
                fields,
                Some(
                    self.blocks
                        .workers
                        .run_sized(context.account, transactions, REWARDS_AT_ONCE_MAX, at)
                        .await?,
                ),
            )
        };
        if fields.iter().any(|fields| fields.has_gap) {
            return Ok(None);
        }
        let chain_id = self.blocks.blob_network();
        if !knows_blob_params(chain_id) && fields.iter().any(has_blobs) {
            return Ok(None);
        }
        let Some(NextBaseFee { base_fee, is_of_newest }) =
            self.base_fee_after(context, newest, &fields).await?
        else {
            return Ok(None);
        };
        let next = (base_fee, fields.last().map_or(0, |last| next_blob_fee(chain_id, last)));
        let blocks = fields.iter().map(|fields| block_fees(chain_id, fields)).collect();
        let mut out = Vec::new();
        FeeHistory { oldest, blocks, next, rewards }.write(&mut Json(&mut out));
        let fetched = Fetched::proven(out.into(), Some(newest));
        Ok(Some(match is_of_newest {
            true => fetched,
            false => Fetched { cache: CacheDecision::No, ..fetched },
        }))
    }

    /// The base fee of the block after `newest`, of a history of blocks with these fields: what that block says, or what the
    /// rule of Ethereum gives where there is no such block. `None` if the chain has a rule of its own.
    async fn base_fee_after(
        &self,
        context: CallContext<'_>,
        newest: BlockRef,
        fields: &[FeeFields],
    ) -> Result<Option<NextBaseFee>, Failure> {
        let Some(last) = fields.last() else {
            return Ok(Some(NextBaseFee { base_fee: 0, is_of_newest: true }));
        };
        let has_rule = knows_blob_params(self.blocks.blob_network());
        // Public networks follow the rule, once their blocks have base fees.
        if (!has_rule || last.base_fee.is_none())
            && let Some(next) = self.header_after(context, newest).await?
        {
            let base_fee = next.fees.base_fee.unwrap_or(0);
            let is_of_newest = next_base_fee(&[*last]) == Some(base_fee);
            return Ok(Some(NextBaseFee { base_fee, is_of_newest }));
        }
        let base_fee = match !has_rule && (fields.len() as u64) < RULE_BLOCKS_MIN {
            true => next_base_fee(&self.fee_fields(context, newest, RULE_BLOCKS_MIN).await?),
            false => next_base_fee(fields),
        };
        Ok(base_fee.map(|base_fee| NextBaseFee { base_fee, is_of_newest: true }))
    }

    /// The header of the block after `newest`; `None` at the head, and where too few nodes say which block it is.
    async fn header_after(
        &self,
        context: CallContext<'_>,
        newest: BlockRef,
    ) -> Result<Option<Arc<ProvenHeader>>, Failure> {
        let (chain, number) = (context.chain, newest.number + 1);
        if number > head(chain).number {
            return Ok(None);
        }
        let _unknown =
            self.blocks.learn(context.caller, chain, BlockParam::Number(number), context.deadline).await;
        let is_child =
            |block: &BlockRef| chain.block(block.number).is_none_or(|seen| seen.parent == newest.hash);
        let Some(next) = chain.by_number(number).map(block_ref).filter(is_child) else { return Ok(None) };
        let headers = self.blocks.headers_down(context, next, number).await?;
        Ok(headers.into_iter().next().filter(|header| header.parent == newest.hash))
    }

    /// The fee fields of the headers of the `count` blocks up to `newest`, upwards.
    async fn fee_fields(
        &self,
        context: CallContext<'_>,
        newest: BlockRef,
        count: u64,
    ) -> Result<Vec<FeeFields>, Failure> {
        let Some(more) = count.checked_sub(1) else { return Ok(Vec::new()) };
        let lowest = newest.number.saturating_sub(more);
        let headers = self.blocks.headers_down(context, newest, lowest).await?;
        Ok(headers.iter().rev().map(|header| header.fees).collect())
    }

    /// The blocks from `oldest` up to `newest`.
    async fn chain_down(
        &self,
        context: CallContext<'_>,
        newest: BlockRef,
        oldest: u64,
    ) -> Result<Vec<BlockRef>, Failure> {
        let chain = context.chain;
        if oldest >= chain.lowest() {
            return Ok((oldest..=newest.number)
                .filter_map(|number| chain.by_number(number))
                .map(block_ref)
                .collect());
        }
        let headers = self.blocks.headers_down(context, newest, oldest).await?;
        Ok(headers.iter().rev().map(|header| block_ref(header.id)).collect())
    }

    /// Fetches something of each block, a few at the same time.
    async fn of_each<'a>(
        &'a self,
        blocks: Vec<BlockRef>,
        fetch: impl Fn(BlockRef) -> Rewarding<'a>,
    ) -> Result<Vec<BlockRewards>, Failure> {
        let mut blocks = blocks.into_iter();
        let (mut fetching, mut all) = (FuturesOrdered::new(), Vec::with_capacity(blocks.len()));
        loop {
            for block in blocks.by_ref().take(BLOCKS_AT_ONCE - fetching.len()) {
                fetching.push_back(fetch(block));
            }
            match fetching.next().await {
                Some(fetched) => all.push(fetched?),
                None => return Ok(all),
            }
        }
    }

    /// The priority fees that the transactions of a block paid, without the gas that they used.
    async fn paid(&self, context: CallContext<'_>, block: BlockRef) -> Result<BlockRewards, Failure> {
        let body = self.blocks.body(context, block).await?;
        let rewards = tips(&body).map(|tip| (tip, 0)).collect();
        Ok(BlockRewards { fees: body.header().into(), rewards })
    }

    async fn rewards(&self, context: CallContext<'_>, block: BlockRef) -> Result<BlockRewards, Failure> {
        let body = self.blocks.body(context, block).await?;
        let receipts = self.blocks.receipts(context, &body).await?;
        let gas_used = |index: usize| receipts.get(index).map_or(0, |receipt| receipt.gas_used);
        let rewards = tips(&body).enumerate().map(|(index, tip)| (tip, gas_used(index))).collect();
        Ok(BlockRewards { fees: body.header().into(), rewards })
    }
}

/// The priority fee per gas of each transaction of a block.
fn tips(body: &ProvenBody) -> impl Iterator<Item = u128> {
    let base_fee = body.header().base_fee_per_gas;
    let tip = move |price: u128| price.saturating_sub(u128::from(base_fee.unwrap_or(0)));
    body.transactions().iter().map(move |transaction| tip(transaction.effective_gas_price(base_fee)))
}

/// The base fee of the block after these. `None` if they contradict the rule of Ethereum.
fn next_base_fee(blocks: &[FeeFields]) -> Option<u64> {
    let next = |block: &FeeFields| {
        block.base_fee.map(|base_fee| archive::next_base_fee(block.gas_used, block.gas_limit, base_fee))
    };
    let follows = |pair: &[FeeFields]| match pair {
        // The first block with a base fee has what its chain says.
        [parent, child] => parent.base_fee.is_none() || next(parent) == child.base_fee,
        _ => true,
    };
    let is_usual = blocks.windows(2).all(follows);
    is_usual.then(|| blocks.last().and_then(next).unwrap_or(0))
}

/// Whether the parameters for blobs matter to the fees of a block, and of the one after it.
fn has_blobs(fields: &FeeFields) -> bool {
    fields.blob_gas_used.unwrap_or(0) > 0 || fields.excess_blob_gas.unwrap_or(0) > 0
}

fn block_fees(chain_id: Option<u64>, fields: &FeeFields) -> BlockFees {
    BlockFees::of(fields, fields.excess_blob_gas.map(|_| blob_params(chain_id, fields)))
}

/// The blob fee per gas in the block after this one, if that has the same parameters.
fn next_blob_fee(chain_id: Option<u64>, fields: &FeeFields) -> u128 {
    let Some(excess) = fields.excess_blob_gas else { return 0 };
    let params = blob_params(chain_id, fields);
    let (used, base_fee) = (fields.blob_gas_used.unwrap_or(0), fields.base_fee.unwrap_or(0));
    params.calc_blob_fee(archive::next_excess_blob_gas(&params, excess, used, base_fee))
}

fn quantity(fee: u128) -> Bytes {
    format!("\"{fee:#x}\"").into()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use alloy_consensus::Header;
    use alloy_primitives::B256;
    use nodes::CanonicalChain;
    use nodes::view::SeenBlock;
    use resources::AccountId;
    use tokio::time::Instant;

    use super::*;
    use crate::test_blocks::{TestBlocks, chain_of_head, header};

    const BLOCK: FeeFields = FeeFields {
        timestamp: 0,
        gas_used: 15_000_000,
        gas_limit: 30_000_000,
        base_fee: Some(1_000),
        blob_gas_used: None,
        excess_blob_gas: None,
        has_requests: false,
        has_gap: false,
    };

    /// In the days between Osaka and the first change of blob parameters alone, fees were computed by the rules of Prague.
    #[test]
    fn from_osaka_on_the_base_fee_bounds_the_blob_fee_from_below() {
        let block = |timestamp| FeeFields {
            timestamp,
            base_fee: Some(1_000_000_000),
            blob_gas_used: Some(0),
            excess_blob_gas: Some(10_000_000),
            has_requests: true,
            ..BLOCK
        };
        let [prague, osaka, bpo1] = [1_764_798_550, 1_764_798_551, 1_765_290_071].map(|timestamp| {
            let fields = block(timestamp);
            let excess = fields.excess_blob_gas.unwrap_or(0);
            let now = blob_params(Some(1), &fields).calc_blob_fee(excess);
            next_blob_fee(Some(1), &fields) >= now
        });
        assert_eq!(
            (prague, osaka, bpo1),
            (false, true, true),
            "whether an empty block leaves the fee where it is"
        );
    }

    /// A header with such numbers, which a quorum of lying nodes agreed on, made the call panic.
    #[test]
    fn fees_of_headers_with_any_numbers_are_computed() {
        for number in [u64::MAX / 2, u64::MAX] {
            let fields = FeeFields {
                timestamp: number,
                gas_used: number,
                gas_limit: number,
                base_fee: Some(number),
                blob_gas_used: Some(number),
                excess_blob_gas: Some(number),
                has_requests: true,
                has_gap: false,
            };
            for chain_id in [None, Some(1)] {
                assert_eq!(next_blob_fee(chain_id, &fields), u128::MAX);
                assert_eq!(block_fees(chain_id, &fields).blob_fee, u128::MAX);
            }
            assert!(next_base_fee(&[fields]).is_some());
        }
    }

    #[test]
    fn the_next_base_fee_follows_from_the_last_block() {
        let full = FeeFields { gas_used: 30_000_000, ..BLOCK };
        assert_eq!(next_base_fee(&[BLOCK]), Some(1_000));
        assert_eq!(next_base_fee(&[BLOCK, full]), Some(1_125));
        assert_eq!(next_base_fee(&[FeeFields { base_fee: None, ..BLOCK }, BLOCK]), Some(1_000));
        assert_eq!(next_base_fee(&[]), Some(0));
    }

    /// Blocks with these base fees, of which each is full.
    fn full_blocks(test: &TestBlocks, base_fees: impl IntoIterator<Item = u64>) -> BlockRef {
        let (mut newest, mut parent) = (BlockRef { number: 0, hash: B256::ZERO }, B256::ZERO);
        for (number, base_fee) in base_fees.into_iter().enumerate() {
            let block = header(number as u64, parent);
            let block = Header { base_fee_per_gas: Some(base_fee), gas_used: block.gas_limit, ..block };
            parent = block.hash_slow();
            newest = BlockRef { number: number as u64, hash: parent };
            test.blocks.cached.insert_header(Arc::new(ProvenHeader::of(parent, &block)));
        }
        newest
    }

    /// Where a history of one block was asked for, nothing contradicted the rule of Ethereum, and a wrong base fee of the
    /// next block was reported as proven.
    #[tokio::test]
    async fn a_short_history_shows_the_rule_of_a_chain_too() {
        let rule = |base_fee: &u64| Some(archive::next_base_fee(30_000_000, 30_000_000, *base_fee));
        let usual: Vec<_> = std::iter::successors(Some(1_000), rule).take(25).collect();
        let slow: Vec<_> = std::iter::successors(Some(1_000), |fee| Some(fee + fee / 16)).take(25).collect();
        for (base_fees, is_usual) in [(usual, true), (slow, false)] {
            let test = TestBlocks::new(1);
            let newest = full_blocks(&test, base_fees);
            let chain = chain_of_head(newest.number + 1);
            let deadline = Instant::now() + Duration::from_secs(3_600);
            let account = AccountId::unique();
            let context = CallContext { account, caller: account, chain: &chain, deadline, only: None };
            for count in [1, 2, 25] {
                let history = Fees::new(Arc::clone(&test.blocks))
                    .fee_history(context, count, newest, &[])
                    .await
                    .unwrap();
                assert_eq!(history.is_some(), is_usual, "{count} blocks");
            }
        }
    }

    /// After block 0 of anvil, the base fee followed from a rule that anvil does not have. Block 1 says what it is.
    #[tokio::test]
    async fn the_next_block_says_its_base_fee_itself() {
        for (base_fee, is_cached) in [(1_125, true), (1_000, false)] {
            let test = TestBlocks::new(1);
            let newest = full_blocks(&test, [1_000]);
            let next = Header { base_fee_per_gas: Some(base_fee), ..header(1, newest.hash) };
            let hash = next.hash_slow();
            test.blocks.cached.insert_header(Arc::new(ProvenHeader::of(hash, &next)));
            let chain = CanonicalChain::of_head(SeenBlock::restored(hash, &next), None);
            let deadline = Instant::now() + Duration::from_secs(3_600);
            let account = AccountId::unique();
            let context = CallContext { account, caller: account, chain: &chain, deadline, only: None };
            let history = Fees::new(Arc::clone(&test.blocks))
                .fee_history(context, 1, newest, &[])
                .await
                .unwrap()
                .unwrap();
            let written: serde_json::Value = serde_json::from_slice(&history.result).unwrap();
            assert_eq!(written["baseFeePerGas"], serde_json::json!(["0x3e8", format!("{base_fee:#x}")]));
            // Another block may follow, and a history that no rule gives is then another one.
            assert_eq!(matches!(history.cache, CacheDecision::On(_)), is_cached, "{base_fee}");
        }
    }

    /// Polygon and others change the base fee more slowly.
    #[test]
    fn a_chain_with_a_rule_of_its_own_is_recognised() {
        let (full, slow) =
            (FeeFields { gas_used: 30_000_000, ..BLOCK }, FeeFields { base_fee: Some(1_062), ..BLOCK });
        assert_eq!(next_base_fee(&[full, slow]), None);
        assert_eq!(next_base_fee(&[BLOCK, FeeFields { base_fee: None, ..BLOCK }]), None);
    }
}
