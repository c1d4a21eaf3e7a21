//! State and everything else that no block proves: how far one node is believed.

mod access_hints; // what calls read
mod chain_rules; // by which rules a block runs
mod confirmations; // what became of answers that a quorum must confirm
mod store; // accounts, slots and code that were proven

mod confirm; // a quorum of the nodes must agree
mod unverified; // one node is believed
mod decision; // who said what → what is true
mod statement; // what a node says → what it means

mod proven; // answers that a block's hash commits to
mod proofs; // accounts, slots and code with their proofs
mod execution; // calls and estimates, run here on proven state

use std::sync::Arc;

use bytes::Bytes;
use methods::{BlockParam, BlockRef, Method};
use nodes::{CallFailure, CanonicalChain, NodeId, Pool};
use resources::AccountId;
use tokio::time::Instant;

use super::block_ids::block_ref;
use super::blocks::Blocks;
use super::encode;
use super::fetched::Fetched;
use super::settings::StateMode;
use super::simulation_gas::{GasLimits, SimulationGas};
use crate::call_context::CallContext;
use crate::chain_query::ChainQuery;

use access_hints::AccessHints;
pub(super) use chain_rules::ChainRules;
pub(super) use confirm::ConfirmedLogs;
pub use confirmations::Confirmations;
use proofs::StateProofs;
use sources::{Cache, CurrentLimits, Failure};
pub(super) use unverified::UnverifiedAnswer;

/// The state of the nodes' chain, and everything else that no block proves.
pub(super) struct State {
    pub(super) pool: Arc<Pool>,
    pub(super) blocks: Arc<Blocks>,
    proofs: StateProofs,
    hints: AccessHints,
    rules: ChainRules,
    pub(super) mode: StateMode,
    pub(super) confirmations: Confirmations,
    /// Where earlier answers are.
    cache: Arc<Cache>,
    pub(super) gas: GasLimits,
    limits: CurrentLimits,
}

impl State {
    pub(super) fn new(
        blocks: Arc<Blocks>,
        rules: ChainRules,
        mode: StateMode,
        cache: Arc<Cache>,
        limits: impl Into<CurrentLimits>,
    ) -> Self {
        let limits = limits.into();
        let pool = Arc::clone(&blocks.pool);
        let proofs = StateProofs::new(Arc::clone(&blocks), limits.now().state_bytes_max);
        let gas = GasLimits::new(Arc::clone(&pool), limits.clone());
        let (hints, confirmations) = (AccessHints::default(), Confirmations::default());
        Self { pool, blocks, proofs, hints, rules, mode, confirmations, cache, gas, limits }
    }

    /// Asks nodes until one gives an answer that can be passed on.
    pub(super) async fn forward(
        &self,
        context: CallContext<'_>,
        method: &Method,
        query: ChainQuery<'_>,
    ) -> Result<Fetched, Failure> {
        let ask = |gas| self.forward_with_gas(context, method, query, gas);
        self.gas.with_granted(context.chain, query, context.deadline, ask).await
    }

    async fn forward_with_gas(
        &self,
        context: CallContext<'_>,
        method: &Method,
        query: ChainQuery<'_>,
        gas: SimulationGas,
    ) -> Result<Fetched, Failure> {
        let CallContext { account, chain, deadline, .. } = context;
        let call = encode::call(method, query, Some(gas)).for_account(context.caller);
        let unverified = UnverifiedAnswer::new(self, account, Some(chain), query);
        let judge = |node: NodeId, result: &Bytes| unverified.judge(node, result);
        // An answer that names a deep block of which nothing is known makes it known: who named another one is found out the
        // next time. Each node may have named another one.
        let tries = if context.only.is_some() { 1 } else { self.pool.nodes().len() + 1 };
        for _ in 0..tries {
            let trust = Some(self.pool.trust_mark());
            let answered = self.pool.ask(context.only, &call, &judge, deadline).await.answer;
            if matches!(answered, Err(CallFailure::Lacking)) && self.pool.all_lack(&call) {
                return Err(Failure::Lacking);
            }
            let fetched = unverified.settle(answered).await?;
            if self.is_canonical(context.caller, chain, fetched.block, deadline).await? {
                return Ok(Fetched { trust, ..fetched });
            }
        }
        Err(Failure::Unavailable)
    }

    /// Whether the block that an answer hangs on is on the chain, or was and was named by its hash. Those below the window are
    /// asked for, once.
    async fn is_canonical(
        &self,
        account: AccountId,
        chain: &CanonicalChain,
        block: Option<BlockRef>,
        deadline: Instant,
    ) -> Result<bool, Failure> {
        let may_be_another =
            |block: &BlockRef| block.number < chain.lowest() && chain.side_block(&block.hash).is_none();
        let Some(deep) = block.filter(may_be_another) else { return Ok(true) };
        Box::pin(self.blocks.learn(account, chain, BlockParam::Number(deep.number), deadline)).await?;
        Ok(chain.by_number(deep.number).map(block_ref) == Some(deep))
    }
}
