//! Answers about the state that a block's hash commits to.

use alloy_consensus::constants::EMPTY_ROOT_HASH;
use alloy_primitives::{Address, B256, U256};
use bytes::Bytes;
use methods::{BlockRef, StateQuery, StateValue};
use sources::{Failure, Verification};

use super::State;
use super::execution::Simulation;
use super::proofs::{ProofAttempt, ProvenAt};
use crate::call_context::CallContext;
use crate::chain_query::ChainQuery;
use crate::fetched::{Fetched, written};
use crate::settings::StateMode;

impl State {
    /// The answer with its proof; `None` where another way to answer is left: questions that are not about the state, and
    /// those that no node proves but a quorum may confirm.
    pub(crate) async fn answer_proven(
        &self,
        context: CallContext<'_>,
        query: ChainQuery<'_>,
    ) -> Option<Result<Fetched, Failure>> {
        if self.mode != StateMode::Prove {
            return None;
        }
        self.prove_state(context, query).await
    }

    /// Answers from proven state in any mode.
    pub(super) async fn prove_state(
        &self,
        context: CallContext<'_>,
        query: ChainQuery<'_>,
    ) -> Option<Result<Fetched, Failure>> {
        if !self.blocks.are_proven() {
            return None;
        }
        let is_of_partner = context.partner_quota(&self.pool).is_some();
        let answered = match query {
            ChainQuery::Simulation(query) => Box::pin(Simulation::run(self, context, query)).await,
            ChainQuery::State(query) => Box::pin(self.read_state(context, query)).await,
            ChainQuery::Fees(_)
            | ChainQuery::Block(_)
            | ChainQuery::Transaction(_)
            | ChainQuery::RawTransactions(_) => return None,
        };
        match answered {
            Ok(ProofAttempt::Done(result)) => Some(Ok(Fetched::proven(result, query.block()))),
            Ok(ProofAttempt::NotProvable) => None,
            // The operator lets partners answer, and the reply says how far.
            Err(Failure::StateNotProven) if is_of_partner || self.is_confirmable() => None,
            // The proofs of a partner may have failed, so an unproven answer of it is not used.
            Err(Failure::Unavailable) if !is_of_partner && self.is_confirmable() => None,
            Err(failure) => Some(Err(failure)),
        }
    }

    /// Whether an answer may be delivered without its proof. One node alone could refuse proofs and then say what it likes.
    fn is_confirmable(&self) -> bool {
        self.blocks.by_quorum() > Verification::None
    }

    /// The proven value where nodes contradict each other; `None` if no node proves it, or the query is not for a value.
    pub(super) async fn settle_by_proof(
        &self,
        context: CallContext<'_>,
        query: ChainQuery<'_>,
    ) -> Option<Bytes> {
        if !self.blocks.are_proven() {
            return None;
        }
        match query {
            ChainQuery::State(query) => match self.read_state(context, query).await {
                Ok(ProofAttempt::Done(result)) => Some(result),
                Ok(ProofAttempt::NotProvable) | Err(_) => None,
            },
            ChainQuery::Simulation(_)
            | ChainQuery::Fees(_)
            | ChainQuery::Block(_)
            | ChainQuery::Transaction(_)
            | ChainQuery::RawTransactions(_) => None,
        }
    }

    /// The state after a block whose hash is canonical. `None` if its root proves nothing: nodes for development leave their
    /// accounts out of the state root of their first block. An empty one is believed if the genesis file has no accounts either.
    pub(super) async fn provable_at<'a>(
        &self,
        context: CallContext<'a>,
        block: BlockRef,
    ) -> Result<Option<ProvenAt<'a>>, Failure> {
        let at = self.proofs.at(context, block).await?;
        let is_empty = block.number == 0 && at.header.state_root == EMPTY_ROOT_HASH;
        Ok((!is_empty || self.rules.has_genesis(block.hash)).then_some(at))
    }

    async fn read_state(
        &self,
        context: CallContext<'_>,
        query: StateQuery<BlockRef>,
    ) -> Result<ProofAttempt, Failure> {
        let StateQuery { address, at, value } = query;
        let Some(at) = self.provable_at(context, at).await? else { return Ok(ProofAttempt::NotProvable) };
        let result = match value {
            StateValue::Balance => self.balance(&at, address).await,
            StateValue::TransactionCount => self.transaction_count(&at, address).await,
            StateValue::Code => self.code(&at, address).await,
            StateValue::Storage { position } => self.storage_at(&at, address, position).await,
        };
        result.map(ProofAttempt::Done)
    }

    async fn balance(&self, at: &ProvenAt<'_>, address: Address) -> Result<Bytes, Failure> {
        let account = self.proofs.account(at, address, Vec::new()).await?.account;
        let balance = account.map_or(U256::ZERO, |account| account.balance);
        Ok(written(|json| json.quantity_u256(balance)))
    }

    async fn transaction_count(&self, at: &ProvenAt<'_>, address: Address) -> Result<Bytes, Failure> {
        let account = self.proofs.account(at, address, Vec::new()).await?.account;
        Ok(written(|json| json.quantity(account.map_or(0, |account| account.nonce))))
    }

    async fn code(&self, at: &ProvenAt<'_>, address: Address) -> Result<Bytes, Failure> {
        let account = self.proofs.account(at, address, Vec::new()).await?.account;
        let code = match account.filter(|account| account.has_code()) {
            Some(account) => self.proofs.code(at, address, account.code_hash).await?.bytes(),
            None => alloy_primitives::Bytes::new(),
        };
        Ok(written(|json| json.data(&code)))
    }

    async fn storage_at(
        &self,
        at: &ProvenAt<'_>,
        address: Address,
        position: B256,
    ) -> Result<Bytes, Failure> {
        let proof = self.proofs.account(at, address, vec![position]).await?;
        let value = proof.slots.first().copied().unwrap_or_default();
        Ok(written(|json| json.data(&value.to_be_bytes::<32>())))
    }
}
