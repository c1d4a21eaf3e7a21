//! Answers about the state that a block's hash commits to.

use alloy_primitives::{Address, B256, U256};
use bytes::Bytes;
use methods::{BlockRef, StateQuery, StateValue};
use nodes::Supplier;

use super::execution::Simulated;
use super::proofs::ProvenAt;
use crate::failure::Failure;
use crate::query_plan::NodeQuery;
use crate::remote::asking::Asking;
use crate::remote::fetched::{Fetched, written};
use crate::remote::pool_source::PoolSource;
use crate::remote::state_mode::StateMode;

/// Nodes that must be able to confirm an answer before it is delivered without its proof. One node alone could refuse proofs
/// and then say what it likes.
const CONFIRMING_NODES_MIN: usize = 2;

impl PoolSource {
    /// The answer with its proof; `None` where another way to answer is left: questions that are not about the state, and
    /// those that no node proves but a quorum may confirm.
    pub(in crate::remote) async fn answer_proven_state(
        &self,
        asking: Asking<'_>,
        query: NodeQuery<'_>,
    ) -> Option<Result<Fetched, Failure>> {
        if self.state != StateMode::Prove {
            return None;
        }
        self.prove_state(asking, query).await
    }

    /// Answers from proven state in any mode.
    pub(super) async fn prove_state(
        &self,
        asking: Asking<'_>,
        query: NodeQuery<'_>,
    ) -> Option<Result<Fetched, Failure>> {
        if !self.proves_blocks() {
            return None;
        }
        let answered = match query {
            NodeQuery::Simulation(query) => Box::pin(self.simulate(asking, query)).await,
            NodeQuery::State(query) => Box::pin(self.read_state(asking, query)).await.map(Simulated::Done),
            NodeQuery::Fees(_)
            | NodeQuery::Block(_)
            | NodeQuery::Transaction(_)
            | NodeQuery::RawTransactions(_) => return None,
        };
        match answered {
            Ok(Simulated::Done(result)) => Some(Ok(Fetched::proven(result, query.block()))),
            Ok(Simulated::NoRules) => None,
            Err(Failure::StateNotProven) if self.can_do_without(asking.supplier) => None,
            // The proofs of a partner may have failed, and then its word is worth nothing.
            Err(Failure::Unavailable)
                if asking.supplier.is_of_pool() && self.can_do_without(asking.supplier) =>
            {
                None
            }
            Err(failure) => Some(Err(failure)),
        }
    }

    /// Whether an answer may be delivered without its proof. The operator lets partners answer, and the reply says how far.
    fn can_do_without(&self, supplier: Supplier) -> bool {
        match supplier {
            Supplier::Nodes | Supplier::Node { .. } => self.pool.quorum() >= CONFIRMING_NODES_MIN,
            Supplier::Partners { .. } => true,
        }
    }

    /// The proven value where nodes contradict each other; `None` if no node proves it, or the query is not for a value.
    pub(super) async fn settle_by_proof(&self, asking: Asking<'_>, query: NodeQuery<'_>) -> Option<Bytes> {
        if !self.proves_blocks() {
            return None;
        }
        match query {
            NodeQuery::State(query) => self.read_state(asking, query).await.ok(),
            NodeQuery::Simulation(_)
            | NodeQuery::Fees(_)
            | NodeQuery::Block(_)
            | NodeQuery::Transaction(_)
            | NodeQuery::RawTransactions(_) => None,
        }
    }

    async fn read_state(&self, asking: Asking<'_>, query: StateQuery<BlockRef>) -> Result<Bytes, Failure> {
        let StateQuery { address, at, value } = query;
        match value {
            StateValue::Balance => self.balance(asking, at, address).await,
            StateValue::TransactionCount => self.transaction_count(asking, at, address).await,
            StateValue::Code => self.code(asking, at, address).await,
            StateValue::Storage { position } => self.storage_at(asking, at, address, position).await,
        }
    }

    async fn balance(&self, asking: Asking<'_>, at: BlockRef, address: Address) -> Result<Bytes, Failure> {
        let at = self.proven_at(asking, at).await?;
        let account = self.proven_account(&at, address, Vec::new()).await?.account;
        let balance = account.map_or(U256::ZERO, |account| account.balance);
        Ok(written(|json| json.quantity_u256(balance)))
    }

    async fn transaction_count(
        &self,
        asking: Asking<'_>,
        at: BlockRef,
        address: Address,
    ) -> Result<Bytes, Failure> {
        let at = self.proven_at(asking, at).await?;
        let account = self.proven_account(&at, address, Vec::new()).await?.account;
        Ok(written(|json| json.quantity(account.map_or(0, |account| account.nonce))))
    }

    async fn code(&self, asking: Asking<'_>, at: BlockRef, address: Address) -> Result<Bytes, Failure> {
        let at = self.proven_at(asking, at).await?;
        let code = self.account_code(&at, address).await?;
        Ok(written(|json| json.data(&code)))
    }

    async fn account_code(
        &self,
        at: &ProvenAt<'_>,
        address: Address,
    ) -> Result<alloy_primitives::Bytes, Failure> {
        let account = self.proven_account(at, address, Vec::new()).await?.account;
        match account.filter(|account| account.has_code()) {
            Some(account) => Ok(self.proven_code(at, address, account.code_hash).await?.bytes()),
            None => Ok(alloy_primitives::Bytes::new()),
        }
    }

    async fn storage_at(
        &self,
        asking: Asking<'_>,
        at: BlockRef,
        address: Address,
        position: B256,
    ) -> Result<Bytes, Failure> {
        let at = self.proven_at(asking, at).await?;
        let proof = self.proven_account(&at, address, vec![position]).await?;
        let value = proof.slots.first().copied().unwrap_or_default();
        Ok(written(|json| json.data(&value.to_be_bytes::<32>())))
    }
}
