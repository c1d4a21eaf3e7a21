//! Puts a message into a transaction of each type that the fork has, in turn.

use super::{Era, Generator, LOGGER, VESSEL};
use alloy_consensus::{TxEip1559, TxEip2930, TxEip4844, TxEip7702, TxLegacy, TxType};
use alloy_eips::{
    eip2930::{AccessList, AccessListItem},
    eip7702::{Authorization, SignedAuthorization},
};
use alloy_primitives::{Address, B256, Bytes, TxKind, U256};
use chain_builder::Signer;
use rand::{Rng, seq::IndexedRandom};

/// As many blobs as the first fork that has them allows in a block.
const BLOBS_PER_BLOCK_MAX: u64 = 6;

/// The recipient, value, data and gas of a transaction, whatever its type.
#[derive(Debug, Clone)]
pub(super) struct TestAction {
    pub(super) to: TxKind,
    pub(super) value: U256,
    pub(super) data: Bytes,
    pub(super) gas: u64,
}

impl TestAction {
    /// A call with enough gas for everything that the contracts here do.
    pub(super) fn call(to: Address, data: Bytes) -> Self {
        Self { to: to.into(), value: U256::ZERO, data, gas: 1_000_000 }
    }

    pub(super) fn create(init: Bytes) -> Self {
        Self { to: TxKind::Create, value: U256::ZERO, data: init, gas: 1_000_000 }
    }

    pub(super) fn with_value(self, wei: u64) -> Self {
        Self { value: U256::from(wei), ..self }
    }

    pub(super) fn with_gas(self, gas: u64) -> Self {
        Self { gas, ..self }
    }
}

impl Generator {
    /// Adds a message from a random sender to the draft.
    pub(super) fn send(&mut self, message: TestAction) {
        let sender = self.senders.choose(&mut self.rng).expect("there are senders").clone();
        self.send_from(&sender, message);
    }

    pub(super) fn send_from(&mut self, sender: &Signer, message: TestAction) {
        self.draft.gas += message.gas;
        let nonce = self.take_nonce(sender.address());
        let transaction = match (self.next_type(&message.to), message.to) {
            (TxType::Eip1559, _) => sender.sign(self.with_fees(nonce, message)),
            (TxType::Eip2930, _) => sender.sign(self.with_access_list(nonce, message)),
            (TxType::Eip4844, TxKind::Call(to)) => sender.sign(self.with_blobs(nonce, to, message)),
            (TxType::Eip7702, TxKind::Call(to)) => sender.sign(self.with_authorizations(nonce, to, message)),
            _ => sender.sign(self.legacy(nonce, message)),
        };
        self.draft.transactions.push(transaction);
    }

    fn legacy(&mut self, nonce: u64, message: TestAction) -> TxLegacy {
        let TestAction { to, value, data: input, gas: gas_limit } = message;
        let protected = self.draft.era >= Era::SpuriousDragon && self.rng.random_bool(0.7);
        let chain_id = protected.then(|| self.chain_id());
        TxLegacy { chain_id, nonce, gas_price: self.gas_price(), gas_limit, to, value, input }
    }

    fn with_access_list(&mut self, nonce: u64, message: TestAction) -> TxEip2930 {
        let TestAction { to, value, data: input, gas: gas_limit } = message;
        let (chain_id, gas_price, access_list) = (self.chain_id(), self.gas_price(), self.access_list());
        TxEip2930 { chain_id, nonce, gas_price, gas_limit, to, value, access_list, input }
    }

    fn with_fees(&mut self, nonce: u64, message: TestAction) -> TxEip1559 {
        let max_priority_fee_per_gas = self.rng.random_range(0..1000);
        TxEip1559 {
            chain_id: self.chain_id(),
            nonce,
            gas_limit: message.gas,
            max_fee_per_gas: self.draft.base_fee * 2 + max_priority_fee_per_gas,
            max_priority_fee_per_gas,
            to: message.to,
            value: message.value,
            access_list: self.access_list(),
            input: message.data,
        }
    }

    fn with_blobs(&mut self, nonce: u64, to: Address, message: TestAction) -> TxEip4844 {
        let plain = self.with_fees(nonce, message);
        TxEip4844 {
            chain_id: plain.chain_id,
            nonce,
            gas_limit: plain.gas_limit,
            max_fee_per_gas: plain.max_fee_per_gas,
            max_priority_fee_per_gas: plain.max_priority_fee_per_gas,
            to,
            value: plain.value,
            access_list: plain.access_list,
            blob_versioned_hashes: self.blobs(),
            max_fee_per_blob_gas: 1_000_000_000,
            input: plain.input,
        }
    }

    fn with_authorizations(&mut self, nonce: u64, to: Address, message: TestAction) -> TxEip7702 {
        let plain = self.with_fees(nonce, message);
        TxEip7702 {
            chain_id: plain.chain_id,
            nonce,
            gas_limit: plain.gas_limit,
            max_fee_per_gas: plain.max_fee_per_gas,
            max_priority_fee_per_gas: plain.max_priority_fee_per_gas,
            to,
            value: plain.value,
            access_list: plain.access_list,
            authorization_list: self.authorizations(plain.chain_id),
            input: plain.input,
        }
    }

    fn chain_id(&self) -> u64 {
        self.model.builder().spec().chain_id()
    }

    /// The types take turns, so that each of them is met early.
    fn next_type(&mut self, to: &TxKind) -> TxType {
        let era = self.draft.era;
        let mut types = vec![TxType::Legacy];
        types.extend((era >= Era::Berlin).then_some(TxType::Eip2930));
        types.extend((era >= Era::London).then_some(TxType::Eip1559));
        let blobs_left = self.draft.blobs < BLOBS_PER_BLOCK_MAX;
        types.extend((era >= Era::Cancun && to.is_call() && blobs_left).then_some(TxType::Eip4844));
        types.extend((era >= Era::Prague && to.is_call()).then_some(TxType::Eip7702));
        self.envelopes += 1;
        types[self.envelopes % types.len()]
    }

    /// Now and then nothing, where the protocol allows it: then the beneficiary is touched and gets nothing.
    fn gas_price(&mut self) -> u128 {
        let tip = if self.rng.random_bool(0.2) { 0 } else { self.rng.random_range(1..1000) };
        self.draft.base_fee + tip
    }

    pub(super) fn nonce(&mut self, address: Address) -> &mut u64 {
        let state = self.model.builder().state();
        let before = || state.account(address).map_or(0, |account| account.nonce);
        self.draft.nonces.entry(address).or_insert_with(before)
    }

    fn take_nonce(&mut self, address: Address) -> u64 {
        let nonce = self.nonce(address);
        *nonce += 1;
        *nonce - 1
    }

    fn access_list(&mut self) -> AccessList {
        let count = self.rng.random_range(0..3);
        let items = (0..count).map(|_| {
            let address = *self.vessels.choose(&mut self.rng).expect("one is there from the start");
            let storage_keys = (0..self.rng.random_range(0..3)).map(B256::with_last_byte).collect();
            AccessListItem { address, storage_keys }
        });
        AccessList(items.collect())
    }

    fn blobs(&mut self) -> Vec<B256> {
        let count = self.rng.random_range(1..=(BLOBS_PER_BLOCK_MAX - self.draft.blobs).min(3));
        self.draft.blobs += count;
        (0..count)
            .map(|_| {
                let mut hash: [u8; 32] = self.rng.random();
                // The version of a hash that commits by KZG.
                hash[0] = 1;
                B256::new(hash)
            })
            .collect()
    }

    /// One or two, of which some do not hold: those for another chain or of another nonce.
    fn authorizations(&mut self, chain: u64) -> Vec<SignedAuthorization> {
        let count = self.rng.random_range(1..=2);
        (0..count)
            .map(|_| {
                let signers = [&self.authorities[..], &self.senders[..]].concat();
                let signer = signers.choose(&mut self.rng).expect("there are signers");
                let address = *[VESSEL, LOGGER, Address::ZERO].choose(&mut self.rng).expect("three");
                let chain_id = *[0, chain, chain, chain + 1].choose(&mut self.rng).expect("four");
                let ahead = u64::from(self.rng.random_bool(0.1));
                let nonce = *self.nonce(signer.address());
                if ahead == 0 && chain_id != chain + 1 {
                    *self.nonce(signer.address()) += 1;
                }
                let chain_id = U256::from(chain_id);
                signer.authorize(Authorization { chain_id, address, nonce: nonce + ahead })
            })
            .collect()
    }
}
