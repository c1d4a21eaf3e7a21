//! Reads the JSON of a test. Hexadecimal values may lack their `0x`, as in the oldest ones.

use super::quantity;
use alloy_consensus::EMPTY_ROOT_HASH;
use alloy_genesis::{ChainConfig, Genesis, GenesisAccount};
use alloy_primitives::{Address, B256, Bytes, U256, hex};
use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// A test as its file states it.
#[derive(Debug, Clone)]
pub struct BlockchainTest {
    /// Its key in the file.
    pub name: String,
    /// The network that it is for, such as `Prague` or `BerlinToLondonAt5`.
    pub network: String,
    /// Blocks in the order in which they are imported.
    pub blocks: Vec<TestBlock>,
    /// Hash of block 0.
    pub genesis_hash: B256,
    /// Hash of the head after all blocks.
    pub last_block_hash: B256,
    /// Accounts after all blocks.
    pub post_state: BTreeMap<Address, ExpectedAccount>,
    /// State root after all blocks, where the test states it in place of the accounts.
    pub post_state_root: Option<B256>,
    /// The settings of the network that the test states beside its name.
    pub(super) config: Map<String, Value>,
    genesis_header: Map<String, Value>,
    pre: BTreeMap<Address, ExpectedAccount>,
}

/// A block of a test.
#[derive(Debug, Clone)]
pub struct TestBlock {
    /// The block, or what claims to be one.
    pub rlp: Bytes,
    /// The exception for which it must be refused; none if it must be accepted.
    pub refused_for: Option<String>,
}

/// An account of a test's state.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[allow(missing_docs, reason = "the fields are those of an account")]
pub struct ExpectedAccount {
    pub nonce: u64,
    pub balance: U256,
    pub code: Bytes,
    pub storage: BTreeMap<U256, U256>,
}

impl BlockchainTest {
    /// Reads a test. `default_network` is for tests that name none.
    pub fn from_json(name: &str, test: &Value, default_network: &str) -> Result<Self, String> {
        let header = object(test, "genesisBlockHeader")?.clone();
        let network = test.get("network").and_then(Value::as_str).unwrap_or(default_network);
        let blocks = test.get("blocks").and_then(Value::as_array).ok_or("blocks is missing")?;
        let optional_hash = |key| test.get(key).map(|_| hash(test, key)).transpose();
        Ok(Self {
            name: name.to_owned(),
            network: network.to_owned(),
            blocks: blocks.iter().map(block).collect::<Result<_, _>>()?,
            genesis_hash: hash(&header.clone().into(), "hash")?,
            last_block_hash: hash(test, "lastblockhash")?,
            post_state: accounts(test.get("postState"))?,
            post_state_root: optional_hash("postStateHash")?,
            config: test.get("config").and_then(Value::as_object).cloned().unwrap_or_default(),
            genesis_header: header,
            pre: accounts(test.get("pre"))?,
        })
    }

    /// Whether block 0 has something that no genesis file can state.
    pub(super) fn has_strange_genesis(&self) -> bool {
        let number = |key: &str| self.genesis_header.get(key).and_then(Value::as_str).map(quantity);
        let stated = |key: &str| number(key).is_some_and(|number| number != Ok(U256::ZERO));
        let root = |key: &str| number(key).and_then(Result::ok).map(B256::from);
        let empty_roots =
            [root("transactionsTrie"), root("receiptTrie")].iter().all(|root| *root == Some(EMPTY_ROOT_HASH));
        stated("gasUsed") || stated("number") || stated("bloom") || !empty_roots
    }

    /// The genesis of the test's chain, under these rules.
    pub(super) fn genesis(&self, config: ChainConfig) -> Result<Genesis, String> {
        let header = &self.genesis_header;
        let text = |key: &str| header.get(key).and_then(Value::as_str);
        let number = |key: &str| text(key).map(quantity).transpose();
        let small = |key: &str| number(key).map(|number| number.map(|number| number.saturating_to::<u64>()));
        let word = |key: &str| text(key).map(quantity).transpose().map(|word| word.map(B256::from));
        let accounts = self.pre.iter().map(|(address, account)| (*address, allocated(account)));
        let genesis = Genesis {
            config,
            nonce: small("nonce")?.unwrap_or_default(),
            timestamp: small("timestamp")?.unwrap_or_default(),
            extra_data: bytes(text("extraData").unwrap_or_default())?,
            gas_limit: small("gasLimit")?.unwrap_or_default(),
            difficulty: number("difficulty")?.unwrap_or_default(),
            mix_hash: word("mixHash")?.unwrap_or_default(),
            coinbase: Address::from_word(word("coinbase")?.unwrap_or_default()),
            base_fee_per_gas: number("baseFeePerGas")?.map(|fee| fee.saturating_to()),
            excess_blob_gas: small("excessBlobGas")?,
            blob_gas_used: small("blobGasUsed")?,
            parent_hash: word("parentHash")?,
            ..Genesis::default()
        };
        Ok(genesis.extend_accounts(accounts))
    }
}

fn allocated(account: &ExpectedAccount) -> GenesisAccount {
    let slots = account.storage.iter();
    GenesisAccount {
        nonce: Some(account.nonce),
        balance: account.balance,
        code: Some(account.code.clone()),
        storage: Some(slots.map(|(slot, value)| (B256::from(*slot), B256::from(*value))).collect()),
        ..GenesisAccount::default()
    }
}

/// Reads a block. One that must be accepted is there in decoded form, too, and names no exception.
fn block(block: &Value) -> Result<TestBlock, String> {
    let text = block.get("rlp").and_then(Value::as_str).ok_or("a block has no rlp")?;
    // Some tests of invalid RLP are not even hexadecimal; their text is as good as any other wrong bytes.
    let rlp = bytes(text).unwrap_or_else(|_| text.as_bytes().to_vec().into());
    let members = block.as_object().into_iter().flatten();
    let mut exceptions = members.filter(|(key, _)| key.starts_with("expectException"));
    let named = exceptions.next().map(|(_, exception)| exception.as_str().unwrap_or_default().to_owned());
    let unnamed = block.get("blockHeader").is_none().then(String::new);
    Ok(TestBlock { rlp, refused_for: named.or(unnamed) })
}

fn accounts(state: Option<&Value>) -> Result<BTreeMap<Address, ExpectedAccount>, String> {
    let state = state.and_then(Value::as_object).into_iter().flatten();
    state
        .map(|(address, value)| Ok((Address::from_word(quantity(address)?.into()), account(value)?)))
        .collect()
}

fn account(value: &Value) -> Result<ExpectedAccount, String> {
    let text = |key: &str| value.get(key).and_then(Value::as_str).unwrap_or_default();
    let slots = value.get("storage").and_then(Value::as_object).into_iter().flatten();
    let storage = slots
        .map(|(slot, value)| Ok((quantity(slot)?, quantity(value.as_str().unwrap_or_default())?)))
        .collect::<Result<_, String>>()?;
    Ok(ExpectedAccount {
        nonce: quantity(text("nonce"))?.saturating_to(),
        balance: quantity(text("balance"))?,
        code: bytes(text("code"))?,
        storage,
    })
}

fn object<'a>(value: &'a Value, key: &str) -> Result<&'a Map<String, Value>, String> {
    value.get(key).and_then(Value::as_object).ok_or(format!("{key} is missing"))
}

fn hash(value: &Value, key: &str) -> Result<B256, String> {
    let text = value.get(key).and_then(Value::as_str).ok_or(format!("{key} is missing"))?;
    quantity(text).map(B256::from)
}

fn bytes(text: &str) -> Result<Bytes, String> {
    hex::decode(text).map(Bytes::from).map_err(|error| format!("{text:?} is not hexadecimal: {error}"))
}
