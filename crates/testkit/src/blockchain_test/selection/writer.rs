//! Writes a test while its chain is built.

use super::super::network;
use alloy_consensus::{Header, TxLegacy};
use alloy_eips::eip7685::EMPTY_REQUESTS_HASH;
use alloy_genesis::{Genesis, GenesisAccount};
use alloy_primitives::{Address, Bytes, TxKind, U256, hex};
use archive::{Block, Transaction};
use chain_builder::{BlockPlan, BuiltBlock, ChainBuilder, Signer, StoredAccount};
use serde_json::{Map, Value, json};

const GAS_LIMIT: u64 = 30_000_000;
const BASE_FEE: u64 = 1_000;
const DIFFICULTY: u64 = 131_072;

/// A test under construction.
pub(super) struct TestWriter {
    pub(super) builder: ChainBuilder,
    network: &'static str,
    pre: Value,
    blocks: Vec<Value>,
}

impl TestWriter {
    /// A chain of a network that has only its genesis with these accounts.
    pub(super) fn new(
        network: &'static str,
        accounts: impl IntoIterator<Item = (Address, GenesisAccount)>,
    ) -> Self {
        Self::with(network, accounts, |_| ())
    }

    /// Like [`new`](Self::new), with changes to the genesis. Those to `config` stay unknown to the runner of the test.
    pub(super) fn with(
        network: &'static str,
        accounts: impl IntoIterator<Item = (Address, GenesisAccount)>,
        change: impl FnOnce(&mut Genesis),
    ) -> Self {
        let config = network::chain_config(network, &Map::new()).expect("a network that is known");
        let merged = config.terminal_total_difficulty.is_some();
        let mut genesis = Genesis {
            base_fee_per_gas: config.london_block.map(|_| u128::from(BASE_FEE)),
            config,
            gas_limit: GAS_LIMIT,
            difficulty: U256::from(if merged { 0 } else { DIFFICULTY }),
            timestamp: 1_000,
            ..Genesis::default()
        }
        .extend_accounts(accounts);
        change(&mut genesis);
        let builder = ChainBuilder::new(genesis).expect("a genesis that holds together");
        let pre = state(&builder);
        Self { builder, network, pre, blocks: Vec::new() }
    }

    /// Builds the next block, which must be accepted.
    pub(super) fn accept(&mut self, plan: BlockPlan) -> BuiltBlock {
        let built = self.builder.build(plan).expect("a block that is valid");
        self.add_accepted(&built);
        built
    }

    /// Adds a block that was built already.
    pub(super) fn add_accepted(&mut self, built: &BuiltBlock) {
        let header = header(&built.block.header);
        self.blocks.push(json!({"rlp": hex::encode_prefixed(built.rlp()), "blockHeader": header}));
    }

    /// Adds a block that must be refused.
    pub(super) fn refuse(&mut self, block: &Block, exception: &str) {
        let rlp = hex::encode_prefixed(alloy_rlp::encode(block));
        self.blocks.push(json!({"rlp": rlp, "expectException": exception}));
    }

    /// A block without transactions that leaves the state as it is, whatever the rules say about that.
    pub(super) fn idle_block(&self) -> Block {
        let mut header = self.builder.next_header(&BlockPlan::default());
        header.state_root = self.builder.head().state_root;
        header.requests_hash = header.requests_hash.map(|_| EMPTY_REQUESTS_HASH);
        header.withdrawals_root =
            header.withdrawals_root.map(|_| alloy_consensus::proofs::calculate_withdrawals_root(&[]));
        let withdrawals = header.withdrawals_root.map(|_| Default::default());
        Block { header, body: alloy_consensus::BlockBody { withdrawals, ..Default::default() } }
    }

    /// The test with a sentence about what it is for.
    pub(super) fn finish(self, name: &str, comment: &str) -> (String, Value) {
        let test = json!({
            "_info": {"comment": comment},
            "network": self.network,
            "sealEngine": "NoProof",
            "genesisBlockHeader": header(self.builder.header(0).expect("block 0")),
            "pre": self.pre,
            "blocks": self.blocks,
            "lastblockhash": self.builder.head().hash(),
            "postState": state(&self.builder),
        });
        (name.to_owned(), test)
    }
}

/// Somebody with much ether.
pub(super) fn sender() -> Signer {
    crate::chain::signer(1)
}

pub(super) fn funded_sender() -> (Address, GenesisAccount) {
    let balance = U256::from(10).pow(U256::from(24));
    (sender().address(), GenesisAccount { balance, ..GenesisAccount::default() })
}

pub(super) fn contract(address: Address, code: Bytes) -> (Address, GenesisAccount) {
    (address, GenesisAccount { nonce: Some(1), code: Some(code), ..GenesisAccount::default() })
}

/// A call by the sender.
pub(super) fn call(
    nonce: u64,
    to: Address,
    input: Bytes,
) -> alloy_consensus::transaction::Recovered<Transaction> {
    let gas_price = 10_000_000_000;
    let to = TxKind::Call(to);
    sender().sign(TxLegacy { nonce, gas_price, gas_limit: 1_000_000, to, input, ..TxLegacy::default() })
}

fn state(builder: &ChainBuilder) -> Value {
    let accounts = builder.state().accounts().iter();
    let accounts = accounts.map(|(address, stored)| (address.to_string(), account(builder, stored)));
    Value::Object(accounts.collect())
}

fn account(builder: &ChainBuilder, stored: &StoredAccount) -> Value {
    let code = builder.state().code(stored.account.code_hash).unwrap_or_default();
    let slots = stored.storage.iter();
    let storage: Map<String, Value> =
        slots.map(|(slot, value)| (format!("{slot:#x}"), format!("{value:#x}").into())).collect();
    json!({
        "nonce": format!("{:#x}", stored.account.nonce),
        "balance": format!("{:#x}", stored.account.balance),
        "code": code,
        "storage": storage,
    })
}

fn header(header: &Header) -> Value {
    let number = |value: u64| Value::from(format!("{value:#x}"));
    let mut json = json!({
        "parentHash": header.parent_hash,
        "uncleHash": header.ommers_hash,
        "coinbase": header.beneficiary,
        "stateRoot": header.state_root,
        "transactionsTrie": header.transactions_root,
        "receiptTrie": header.receipts_root,
        "bloom": header.logs_bloom,
        "difficulty": format!("{:#x}", header.difficulty),
        "number": number(header.number),
        "gasLimit": number(header.gas_limit),
        "gasUsed": number(header.gas_used),
        "timestamp": number(header.timestamp),
        "extraData": header.extra_data,
        "mixHash": header.mix_hash,
        "nonce": header.nonce,
        "hash": header.hash_slow(),
    });
    let optional = [
        ("baseFeePerGas", header.base_fee_per_gas.map(number)),
        ("withdrawalsRoot", header.withdrawals_root.map(|root| json!(root))),
        ("blobGasUsed", header.blob_gas_used.map(number)),
        ("excessBlobGas", header.excess_blob_gas.map(number)),
        ("parentBeaconBlockRoot", header.parent_beacon_block_root.map(|root| json!(root))),
        ("requestsHash", header.requests_hash.map(|hash| json!(hash))),
    ];
    for (key, value) in optional {
        if let Some(value) = value {
            json[key] = value;
        }
    }
    json
}
