//! Accounts, storage slots and code, fetched from nodes with their proofs and cached.

use std::sync::Arc;

use alloy_consensus::Header;
use alloy_primitives::{Address, B256};
use archive::ContractCode;
use bytes::Bytes;
use methods::BlockRef;
use nodes::NotFetched;
use nodes::proven::{AccountProof, prove_code, prove_header};
use resources::AccountId;
use sources::{Failure, Flights};

use super::store::{AccountKey, StateKey, StatePart, StateStore};
use crate::blocks::Blocks;
use crate::call_context::CallContext;
use crate::call_key::CallKey;
use crate::{encode, node_failures};

/// The state after one block.
#[derive(Clone)]
pub(super) struct ProvenAt<'a> {
    pub(super) context: CallContext<'a>,
    pub(super) block: BlockRef,
    pub(super) header: Arc<Header>,
}

/// The outcome of an attempt to prove an answer.
pub(super) enum ProofAttempt {
    Done(Bytes),
    /// Nobody can prove it, whatever nodes give: the root of the state says nothing, or nobody knows by which rules the block
    /// runs.
    NotProvable,
}

/// The proven state of any block: in memory, or fetched from nodes.
pub(super) struct StateProofs {
    blocks: Arc<Blocks>,
    pub(super) store: Arc<StateStore>,
    headers: Flights<CallKey, Arc<Header>>,
    accounts: Flights<CallKey<AccountKey>, Arc<AccountProof>>,
    code: Flights<CallKey, ContractCode>,
}

impl StateProofs {
    /// Caches nothing where `cache_bytes_max` is 0.
    pub(super) fn new(blocks: Arc<Blocks>, cache_bytes_max: u64) -> Self {
        Self {
            blocks,
            store: Arc::new(StateStore::new(cache_bytes_max)),
            headers: Flights::default(),
            accounts: Flights::default(),
            code: Flights::default(),
        }
    }

    /// The state after a block whose hash is canonical.
    pub(super) async fn at<'a>(
        &self,
        context: CallContext<'a>,
        block: BlockRef,
    ) -> Result<ProvenAt<'a>, Failure> {
        if let Some(header) = self.store.header(block.hash) {
            return Ok(ProvenAt { context, block, header });
        }
        let fetch = CallKey::of_block(context, block, block.hash);
        let pays = fetch.pays();
        let fetch_header = || self.fetch_header(pays, context, block);
        let header = self.headers.share(fetch, context.deadline, fetch_header).await?;
        Ok(ProvenAt { context, block, header })
    }

    async fn fetch_header(
        &self,
        pays: AccountId,
        context: CallContext<'_>,
        block: BlockRef,
    ) -> Result<Arc<Header>, Failure> {
        let header = match self.blocks.known_body(context.account, block).await? {
            Some(body) => body.header().clone(),
            None => {
                let prove = |delivery: &Bytes| {
                    let delivery = delivery.clone();
                    self.blocks
                        .workers
                        .proving(pays, delivery.len(), move || prove_header(&delivery, block.hash))
                };
                let call = encode::header_of_hash(&block).for_account(context.caller);
                let fetched = self.blocks.pool.fetch(context.only, &call, &prove, context.deadline).await;
                fetched.map_err(not_proven)?
            }
        };
        let header = Arc::new(header);
        self.store.insert(StateKey::Header(block.hash), StatePart::Header(Arc::clone(&header)));
        Ok(header)
    }

    /// An account with these slots, in the order in which they are named.
    pub(super) async fn account(
        &self,
        at: &ProvenAt<'_>,
        address: Address,
        slots: Vec<B256>,
    ) -> Result<Arc<AccountProof>, Failure> {
        let state_root = at.header.state_root;
        if let Some(known) = self.store.whole(state_root, address, &slots) {
            return Ok(Arc::new(known));
        }
        let fetch = CallKey::of_block(at.context, at.block, AccountKey { state_root, address, slots });
        let (pays, key) = (fetch.pays(), fetch.key.clone());
        self.accounts.share(fetch, at.context.deadline, || self.fetch_account(pays, at, &key)).await
    }

    async fn fetch_account(
        &self,
        pays: AccountId,
        at: &ProvenAt<'_>,
        key: &AccountKey,
    ) -> Result<Arc<AccountProof>, Failure> {
        let call = encode::account_proof(key.address, &key.slots, &at.block).for_account(at.context.caller);
        let prove = |delivery: &Bytes| {
            let (delivery, key) = (delivery.clone(), key.clone());
            self.blocks.workers.proving(pays, delivery.len(), move || {
                AccountProof::prove(&delivery, key.state_root, key.address, &key.slots)
            })
        };
        let CallContext { only, deadline, .. } = at.context;
        let proof = self.blocks.pool.fetch(only, &call, &prove, deadline).await.map_err(not_proven)?;
        self.store.insert_proof(key, &proof);
        Ok(Arc::new(proof))
    }

    /// The code of an account.
    pub(super) async fn code(
        &self,
        at: &ProvenAt<'_>,
        address: Address,
        hash: B256,
    ) -> Result<ContractCode, Failure> {
        if let Some(code) = self.store.code(hash) {
            return Ok(code);
        }
        let fetch = CallKey::of_block(at.context, at.block, hash);
        let pays = fetch.pays();
        let work = || async move {
            let prove = |delivery: &Bytes| {
                let delivery = delivery.clone();
                self.blocks
                    .workers
                    .proving(pays, delivery.len(), move || prove_code(&delivery, hash).map(ContractCode::new))
            };
            let call = encode::code(address, &at.block).for_account(at.context.caller);
            let CallContext { only, deadline, .. } = at.context;
            let code = self.blocks.pool.fetch(only, &call, &prove, deadline).await.map_err(not_proven)?;
            self.store.insert(StateKey::Code(hash), StatePart::Code(code.clone()));
            Ok(code)
        };
        self.code.share(fetch, at.context.deadline, work).await
    }
}

fn not_proven(reason: NotFetched) -> Failure {
    match reason {
        NotFetched::Lacking => Failure::StateNotProven,
        other => node_failures::of_fetch(other),
    }
}
