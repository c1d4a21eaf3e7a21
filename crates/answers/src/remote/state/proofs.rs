//! Accounts, storage slots and code, fetched from nodes with their proofs and cached.

use std::sync::Arc;

use alloy_consensus::Header;
use alloy_consensus::constants::EMPTY_ROOT_HASH;
use alloy_primitives::{Address, B256};
use archive::ContractCode;
use bytes::Bytes;
use methods::BlockRef;
use nodes::NotFetched;
use nodes::proven::{AccountProof, prove_code, prove_header};
use resources::AccountId;

use crate::failure::Failure;
use crate::remote::asking::Asking;
use crate::remote::pool_source::PoolSource;
use crate::remote::proven_state::{AccountKey, Fetch, StateKey, StatePart};
use crate::remote::{encode, node_failures};

/// The state after one block.
#[derive(Clone)]
pub(super) struct ProvenAt<'a> {
    pub(super) asking: Asking<'a>,
    pub(super) block: BlockRef,
    pub(super) header: Arc<Header>,
}

impl PoolSource {
    /// The state after a block whose hash is canonical. `None` if its root proves nothing: nodes for development leave their
    /// accounts out of the state root of their first block. An empty one is believed if the genesis file has no accounts either.
    pub(super) async fn provable_at<'a>(
        &self,
        asking: Asking<'a>,
        block: BlockRef,
    ) -> Result<Option<ProvenAt<'a>>, Failure> {
        let at = self.state_at(asking, block).await?;
        let is_empty = block.number == 0 && at.header.state_root == EMPTY_ROOT_HASH;
        Ok((!is_empty || self.rules.has_genesis(block.hash)).then_some(at))
    }

    async fn state_at<'a>(&self, asking: Asking<'a>, block: BlockRef) -> Result<ProvenAt<'a>, Failure> {
        if let Some(header) = self.proven_state.parts.header(block.hash) {
            return Ok(ProvenAt { asking, block, header });
        }
        let fetch = Fetch::of(asking, block, block.hash);
        let pays = fetch.pays();
        let header = self
            .proven_state
            .headers
            .share(fetch, asking.deadline, || self.fetch_header(pays, asking, block))
            .await?;
        Ok(ProvenAt { asking, block, header })
    }

    async fn fetch_header(
        &self,
        pays: AccountId,
        asking: Asking<'_>,
        block: BlockRef,
    ) -> Result<Arc<Header>, Failure> {
        let known = match self.blocks.body(block.hash) {
            Some(body) => Some(body),
            None => self.stored_body(asking.account, block).await?,
        };
        let header = match known {
            Some(body) => body.header().clone(),
            None => {
                let prove = |delivery: &Bytes| {
                    let delivery = delivery.clone();
                    self.proving(pays, delivery.len(), move || prove_header(&delivery, block.hash))
                };
                let call = encode::header_of_hash(&block).for_account(asking.caller);
                let fetched = self.pool.fetch(asking.supplier, &call, &prove, asking.deadline).await;
                fetched.map_err(not_proven)?
            }
        };
        let header = Arc::new(header);
        self.proven_state.parts.insert(StateKey::Header(block.hash), StatePart::Header(Arc::clone(&header)));
        Ok(header)
    }

    /// An account with these slots, in the order in which they are named.
    pub(super) async fn proven_account(
        &self,
        at: &ProvenAt<'_>,
        address: Address,
        slots: Vec<B256>,
    ) -> Result<Arc<AccountProof>, Failure> {
        let state_root = at.header.state_root;
        if let Some(known) = self.proven_state.parts.whole(state_root, address, &slots) {
            return Ok(Arc::new(known));
        }
        let fetch = Fetch::of(at.asking, at.block, AccountKey { state_root, address, slots });
        let (pays, key) = (fetch.pays(), fetch.key.clone());
        self.proven_state
            .accounts
            .share(fetch, at.asking.deadline, || self.fetch_account(pays, at, &key))
            .await
    }

    async fn fetch_account(
        &self,
        pays: AccountId,
        at: &ProvenAt<'_>,
        key: &AccountKey,
    ) -> Result<Arc<AccountProof>, Failure> {
        let call = encode::account_proof(key.address, &key.slots, &at.block).for_account(at.asking.caller);
        let prove = |delivery: &Bytes| {
            let (delivery, key) = (delivery.clone(), key.clone());
            self.proving(pays, delivery.len(), move || {
                AccountProof::prove(&delivery, key.state_root, key.address, &key.slots)
            })
        };
        let Asking { supplier, deadline, .. } = at.asking;
        let proof = self.pool.fetch(supplier, &call, &prove, deadline).await.map_err(not_proven)?;
        self.proven_state.parts.insert_proof(key, &proof);
        Ok(Arc::new(proof))
    }

    /// The code of an account.
    pub(super) async fn proven_code(
        &self,
        at: &ProvenAt<'_>,
        address: Address,
        hash: B256,
    ) -> Result<ContractCode, Failure> {
        if let Some(code) = self.proven_state.parts.code(hash) {
            return Ok(code);
        }
        let fetch = Fetch::of(at.asking, at.block, hash);
        let pays = fetch.pays();
        let work = || async move {
            let prove = |delivery: &Bytes| {
                let delivery = delivery.clone();
                self.proving(pays, delivery.len(), move || prove_code(&delivery, hash).map(ContractCode::new))
            };
            let call = encode::code(address, &at.block).for_account(at.asking.caller);
            let Asking { supplier, deadline, .. } = at.asking;
            let code = self.pool.fetch(supplier, &call, &prove, deadline).await.map_err(not_proven)?;
            self.proven_state.parts.insert(StateKey::Code(hash), StatePart::Code(code.clone()));
            Ok(code)
        };
        self.proven_state.code.share(fetch, at.asking.deadline, work).await
    }
}

fn not_proven(reason: NotFetched) -> Failure {
    match reason {
        NotFetched::Lacking => Failure::StateNotProven,
        other => node_failures::of_fetch(other),
    }
}
