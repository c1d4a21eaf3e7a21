//! Puts the demo chain together, transaction by transaction and block by block.

use super::{
    accounts::{CAROL, DemoAccount, FRANK},
    contracts::{LOAD, abi},
    schedule::{CHAIN_ID, era_of, genesis, timestamp},
};
use alloy_consensus::{Header, TxEip1559, TxEip2930, TxEip4844, TxEip7702, TxLegacy, transaction::Recovered};
use alloy_eips::{
    eip2930::AccessList,
    eip4895::Withdrawal,
    eip7702::{Authorization, SignedAuthorization},
};
use alloy_primitives::{Address, B256, Bytes, TxKind, U256, keccak256};
use alloy_sol_types::SolCall;
use archive::{GenesisError, Transaction};
use chain_builder::{BlockPlan, BuildError, BuiltBlock, ChainBuilder, Era};
use std::collections::BTreeMap;

const GWEI: u128 = 1_000_000_000;

/// The gas price of transactions before there was a base fee.
const GAS_PRICE: u128 = 20 * GWEI;

/// The tip on top of the base fee.
const TIP: u128 = GWEI / 10;

/// Far more than a blob costs here.
const BLOB_FEE_MAX: u128 = GWEI;

/// Gas for a plain payment.
const PAYMENT_GAS: u64 = 21_000;

/// Gas for every call whose gas is not the point.
const CALL_GAS: u64 = 200_000;

/// Gas for every creation.
const CREATION_GAS: u64 = 2_500_000;

/// Gas that the load of a block uses, block by block in turn: 8 million, the target, on average with the empty
/// blocks, so that base fees move without running away.
const LOAD_GAS: [u64; 6] = [0, 9_000_000, 8_000_000, 12_500_000, 7_000_000, 12_000_000];

/// An upper bound of the gas that a load needs besides its memory.
const LOAD_GAS_BESIDES: u64 = 60_000;

/// The recipient, value, data and gas of a transaction, whatever its type.
#[derive(Debug, Clone)]
pub(super) struct TransactionAction {
    to: TxKind,
    value: U256,
    data: Bytes,
    gas: u64,
}

impl TransactionAction {
    /// Ether for somebody.
    pub(super) fn pay(to: &DemoAccount, wei: U256) -> Self {
        Self { to: to.address.into(), value: wei, data: Bytes::new(), gas: PAYMENT_GAS }
    }

    /// A call of a contract's function.
    pub(super) fn call(to: Address, call: &impl SolCall) -> Self {
        Self::raw(to, call.abi_encode().into())
    }

    /// A call with any data.
    pub(super) fn raw(to: Address, data: Bytes) -> Self {
        Self { to: to.into(), value: U256::ZERO, data, gas: CALL_GAS }
    }

    /// A creation.
    pub(super) fn create(init_code: Bytes) -> Self {
        Self { to: TxKind::Create, value: U256::ZERO, data: init_code, gas: CREATION_GAS }
    }

    pub(super) fn with_value(self, wei: U256) -> Self {
        Self { value: wei, ..self }
    }

    pub(super) fn with_gas(self, gas: u64) -> Self {
        Self { gas, ..self }
    }
}

/// The type of a transaction.
#[derive(Debug, Clone)]
pub(super) enum Envelope {
    /// Legacy, for any chain.
    Unprotected,
    /// Legacy, for this chain (EIP-155).
    Protected,
    /// EIP-2930.
    AccessList(AccessList),
    /// EIP-1559.
    DynamicFee,
    /// EIP-4844, with that many blobs. Calls only.
    Blobs(u64),
    /// EIP-7702. Calls only.
    Delegating(Vec<SignedAuthorization>),
}

impl Envelope {
    /// The usual type of an era.
    fn usual(era: Era) -> Self {
        match era {
            _ if era < Era::SpuriousDragon => Self::Unprotected,
            _ if era < Era::London => Self::Protected,
            _ => Self::DynamicFee,
        }
    }
}

/// A block or transaction worth looking at.
#[derive(Debug, Clone, Copy)]
pub(super) struct Landmark {
    pub(super) name: &'static str,
    pub(super) about: &'static str,
    pub(super) block: u64,
    /// Its place in the block, for a transaction.
    pub(super) index: Option<usize>,
}

/// The chain under construction, and the block that is being put together.
#[derive(Debug)]
pub(super) struct Writer {
    chain: ChainBuilder,
    blocks: Vec<BuiltBlock>,
    marks: Vec<Landmark>,
    transactions: Vec<Recovered<Transaction>>,
    uncles: Vec<Header>,
    withdrawals: Vec<Withdrawal>,
    withdrawals_so_far: u64,
    blobs_so_far: u64,
    /// The next nonce of each account, after the transactions so far.
    nonces: BTreeMap<Address, u64>,
}

impl Writer {
    pub(super) fn new() -> Result<Self, GenesisError> {
        Ok(Self {
            chain: ChainBuilder::new(genesis())?,
            blocks: Vec::new(),
            marks: Vec::new(),
            transactions: Vec::new(),
            uncles: Vec::new(),
            withdrawals: Vec::new(),
            withdrawals_so_far: 0,
            blobs_so_far: 0,
            nonces: BTreeMap::new(),
        })
    }

    /// Number of the block that is being put together.
    pub(super) fn number(&self) -> u64 {
        self.chain.head().number + 1
    }

    /// The rules of the block that is being put together.
    pub(super) fn era(&self) -> Era {
        era_of(self.number())
    }

    /// Sends a message in a transaction of the usual type of the era.
    pub(super) fn send(&mut self, from: &DemoAccount, message: TransactionAction) -> &mut Self {
        self.send_in(Envelope::usual(self.era()), from, message)
    }

    /// Sends a message in a transaction of a certain type.
    pub(super) fn send_in(
        &mut self,
        envelope: Envelope,
        from: &DemoAccount,
        message: TransactionAction,
    ) -> &mut Self {
        let nonce = self.take_nonce(from);
        let fees = GasOffer::over(self.base_fee());
        let signer = from.signer();
        let transaction = match (envelope, message.to) {
            (Envelope::Unprotected, _) => signer.sign(legacy(None, nonce, fees, message)),
            (Envelope::AccessList(list), _) => signer.sign(with_list(list, nonce, fees, message)),
            (Envelope::DynamicFee, _) => signer.sign(dynamic(nonce, fees, message)),
            (Envelope::Blobs(count), TxKind::Call(to)) => {
                let blobs = self.blobs(count);
                signer.sign(with_blobs(blobs, to, nonce, fees, message))
            }
            (Envelope::Delegating(authorizations), TxKind::Call(to)) => {
                signer.sign(delegating(authorizations, to, nonce, fees, message))
            }
            _ => signer.sign(legacy(Some(CHAIN_ID), nonce, fees, message)),
        };
        self.transactions.push(transaction);
        self
    }

    /// Notes that the transaction just sent is worth looking at.
    pub(super) fn mark(&mut self, name: &'static str, about: &'static str) -> &mut Self {
        let index = self.transactions.len().checked_sub(1);
        self.marks.push(Landmark { name, about, block: self.number(), index });
        self
    }

    /// Notes that the block that is being put together is worth looking at.
    pub(super) fn mark_block(&mut self, name: &'static str, about: &'static str) -> &mut Self {
        self.marks.push(Landmark { name, about, block: self.number(), index: None });
        self
    }

    /// An account's authorization to run a contract's code as its own (EIP-7702). Another account has to send it.
    pub(super) fn authorize(&mut self, who: &DemoAccount, contract: Address) -> SignedAuthorization {
        let nonce = self.take_nonce(who);
        let chain_id = U256::from(CHAIN_ID);
        who.signer().authorize(Authorization { chain_id, address: contract, nonce })
    }

    /// Adds an uncle: a child of the block that many generations before this one.
    pub(super) fn uncle(&mut self, generations: u64) -> &mut Self {
        let parent = self.number().saturating_sub(generations);
        let salt = self.uncles.len() as u64;
        self.uncles.extend(self.chain.uncle_of(parent, salt));
        self
    }

    /// Adds a payment by the consensus layer.
    pub(super) fn withdraw(&mut self, to: &DemoAccount, gwei: u64) -> &mut Self {
        let index = self.withdrawals_so_far;
        self.withdrawals_so_far += 1;
        let validator_index = 100 + index % 7;
        self.withdrawals.push(Withdrawal { index, validator_index, address: to.address, amount: gwei });
        self
    }

    /// Ends the block as it is. Nothing is added to a block without transactions; others are filled up.
    pub(super) fn seal(&mut self) -> Result<(), BuildError> {
        if self.era() >= Era::London && !self.transactions.is_empty() {
            self.fill_up();
        }
        let plan = BlockPlan {
            transactions: std::mem::take(&mut self.transactions),
            uncles: std::mem::take(&mut self.uncles),
            withdrawals: std::mem::take(&mut self.withdrawals),
            ..self.plan()
        };
        self.nonces.clear();
        self.blocks.push(self.chain.build(plan)?);
        Ok(())
    }

    /// The blocks, and the landmarks in them.
    pub(super) fn finish(self) -> (Vec<BuiltBlock>, Vec<Landmark>) {
        (self.blocks, self.marks)
    }

    fn plan(&self) -> BlockPlan {
        let number = self.number();
        BlockPlan {
            timestamp: Some(timestamp(number)),
            beneficiary: FRANK.address,
            extra_data: format!("{:?}", era_of(number)).into_bytes().into(),
            ..BlockPlan::default()
        }
    }

    fn base_fee(&self) -> Option<u128> {
        self.chain.next_header(&self.plan()).base_fee_per_gas.map(u128::from)
    }

    fn fill_up(&mut self) {
        let turn = usize::try_from(self.number() % LOAD_GAS.len() as u64).unwrap_or_default();
        let gas = LOAD_GAS[turn];
        if gas == 0 {
            return;
        }
        // Memory of n words costs 3 n + n² / 512, solved for n.
        let words = (512 * gas + 768 * 768).isqrt() - 768;
        let call = abi::Load::consumeCall { memoryBytes: U256::from(32 * words) };
        self.send(&CAROL, TransactionAction::call(LOAD.address(), &call).with_gas(gas + LOAD_GAS_BESIDES));
    }

    fn take_nonce(&mut self, who: &DemoAccount) -> u64 {
        let state = self.chain.state();
        let before = || state.account(who.address).map_or(0, |account| account.nonce);
        let next = self.nonces.entry(who.address).or_insert_with(before);
        *next += 1;
        *next - 1
    }

    /// Invented hashes of blobs. Blocks contain only the hashes, so no blob is needed.
    fn blobs(&mut self, count: u64) -> Vec<B256> {
        let first = self.blobs_so_far;
        self.blobs_so_far += count;
        (first..self.blobs_so_far)
            .map(|blob| {
                let mut hash = keccak256(format!("blob {blob} of the demo chain"));
                // The version of a hash that commits by KZG.
                hash[0] = 1;
                hash
            })
            .collect()
    }
}

/// The price that a transaction offers per gas.
#[derive(Debug, Clone, Copy)]
struct GasOffer {
    price: u128,
    max: u128,
    tip: u128,
}

impl GasOffer {
    fn over(base_fee: Option<u128>) -> Self {
        let price = base_fee.map_or(GAS_PRICE, |fee| fee + TIP);
        Self { price, max: base_fee.unwrap_or_default() * 2 + TIP, tip: TIP }
    }
}

fn legacy(chain_id: Option<u64>, nonce: u64, fees: GasOffer, message: TransactionAction) -> TxLegacy {
    let TransactionAction { to, value, data: input, gas: gas_limit } = message;
    TxLegacy { chain_id, nonce, gas_price: fees.price, gas_limit, to, value, input }
}

fn with_list(access_list: AccessList, nonce: u64, fees: GasOffer, message: TransactionAction) -> TxEip2930 {
    let TransactionAction { to, value, data: input, gas: gas_limit } = message;
    let (chain_id, gas_price) = (CHAIN_ID, fees.price);
    TxEip2930 { chain_id, nonce, gas_price, gas_limit, to, value, access_list, input }
}

fn dynamic(nonce: u64, fees: GasOffer, message: TransactionAction) -> TxEip1559 {
    let TransactionAction { to, value, data: input, gas: gas_limit } = message;
    TxEip1559 {
        chain_id: CHAIN_ID,
        nonce,
        gas_limit,
        max_fee_per_gas: fees.max,
        max_priority_fee_per_gas: fees.tip,
        to,
        value,
        access_list: AccessList::default(),
        input,
    }
}

fn with_blobs(
    blobs: Vec<B256>,
    to: Address,
    nonce: u64,
    fees: GasOffer,
    message: TransactionAction,
) -> TxEip4844 {
    TxEip4844 {
        chain_id: CHAIN_ID,
        nonce,
        gas_limit: message.gas,
        max_fee_per_gas: fees.max,
        max_priority_fee_per_gas: fees.tip,
        to,
        value: message.value,
        access_list: AccessList::default(),
        blob_versioned_hashes: blobs,
        max_fee_per_blob_gas: BLOB_FEE_MAX,
        input: message.data,
    }
}

fn delegating(
    authorization_list: Vec<SignedAuthorization>,
    to: Address,
    nonce: u64,
    fees: GasOffer,
    message: TransactionAction,
) -> TxEip7702 {
    TxEip7702 {
        chain_id: CHAIN_ID,
        nonce,
        gas_limit: message.gas,
        max_fee_per_gas: fees.max,
        max_priority_fee_per_gas: fees.tip,
        to,
        value: message.value,
        access_list: AccessList::default(),
        authorization_list,
        input: message.data,
    }
}
