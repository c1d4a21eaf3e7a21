//! Proofs of state, as nodes give them, and lies about it.

use std::collections::{BTreeMap, HashMap};
use std::sync::OnceLock;

use alloy_consensus::Header;
use alloy_genesis::Genesis;
use alloy_primitives::{Address, B256, Bytes, U256, keccak256};
use alloy_rpc_types_eth::TransactionRequest;
use alloy_trie::{
    EMPTY_ROOT_HASH, HashBuilder, Nibbles, TrieAccount, proof::ProofRetainer, root::storage_root,
};
use archive::{AccountState, CallLimits, ChainSpec, ContractCode, KnownState, Overrides, PartialState};
use chain_builder::{BuiltBlock, MemoryState, StoredAccount};
use serde_json::{Value, json};

/// Every state of a chain.
#[derive(Debug)]
pub struct ProvableStates {
    chain: ChainSpec,
    /// By the hash of the block.
    states: HashMap<B256, BlockState>,
    code: BTreeMap<B256, Bytes>,
    genesis: B256,
    has_hints: bool,
}

/// The state after one block.
#[derive(Debug)]
struct BlockState {
    header: Header,
    accounts: AccountsByAddress,
    /// The leaves of its trie. They take long to compute, and most blocks are never asked about.
    leaves: OnceLock<Leaves>,
}

type AccountsByAddress = BTreeMap<Address, StoredAccount>;

/// The leaves of a trie, by their hashed keys.
type Leaves = BTreeMap<B256, Vec<u8>>;

/// How a node lies about proofs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProofLie {
    /// The proof is right, and of a state in which everyone has more of everything.
    OtherState,
    /// The values beside the proof are others.
    Values,
    /// The last node of each proof is missing.
    Cut,
    /// The proof is that of another account.
    OtherAccount,
    /// The proof is that of the genesis block.
    OtherBlock,
    /// There are no nodes, as if nothing were there.
    NoNodes,
    /// The nodes are no nodes.
    Garbage,
}

impl ProofLie {
    pub const ALL: [Self; 7] = [
        Self::OtherState,
        Self::Values,
        Self::Cut,
        Self::OtherAccount,
        Self::OtherBlock,
        Self::NoNodes,
        Self::Garbage,
    ];
}

impl ProvableStates {
    /// The states of a chain that was built here.
    pub fn of(genesis: &Genesis, blocks: &[BuiltBlock]) -> Self {
        Self::of_newest(genesis, blocks, blocks.len())
    }

    /// The states after the genesis and after so many of the newest blocks.
    pub fn of_newest(genesis: &Genesis, blocks: &[BuiltBlock], newest: usize) -> Self {
        let chain = ChainSpec::from_genesis(genesis.clone()).expect("a genesis that holds together");
        let mut state = MemoryState::from_genesis(genesis);
        let header = chain.genesis_header();
        let genesis = header.hash_slow();
        let mut states = HashMap::from([(genesis, BlockState::new(&header, &state))]);
        for (above, built) in blocks.iter().enumerate() {
            state.apply(&built.changes);
            if blocks.len() - above <= newest {
                states.insert(built.hash, BlockState::new(&built.block.header, &state));
            }
        }
        let hashes = states.values().flat_map(|state| state.accounts.values());
        let hashes = hashes.map(|stored| stored.account.code_hash);
        let code = hashes.filter_map(|hash| Some((hash, state.code(hash)?))).collect();
        Self { chain, states, code, genesis, has_hints: false }
    }

    /// Answers `eth_createAccessList`, too.
    pub fn with_hints(self) -> Self {
        Self { has_hints: true, ..self }
    }

    /// The result of `eth_getProof` or `eth_createAccessList`; `None` for other calls, and for blocks of other chains.
    pub fn answer(&self, call: &Value, lie: Option<ProofLie>) -> Option<Value> {
        match call["method"].as_str()? {
            "eth_getProof" => self.proof(call, lie),
            "eth_createAccessList" if self.has_hints && lie.is_some() => Some(wrong_hint()),
            "eth_createAccessList" if self.has_hints => self.access_list(call),
            _ => None,
        }
    }

    /// The result of `eth_createAccessList`: the accounts and slots that a message reads.
    fn access_list(&self, call: &Value) -> Option<Value> {
        let request: TransactionRequest = serde_json::from_value(call["params"][0].clone()).ok()?;
        let BlockState { header, accounts, .. } = self.states.get(&block_of(&call["params"][1])?)?;
        let known = PartialState::new(WholeState { state: accounts, code: &self.code });
        let limits =
            CallLimits { gas_cap: 30_000_000, memory_bytes_max: 64 << 20, deadline: None, cancel: None };
        let rules = self.chain.rules_at(header);
        // A call that fails reads something, too.
        let _outcome = archive::call(&known, rules, header, request, Overrides::default(), &limits);
        let found = known.into_reads().found;
        let item = |address: &Address| {
            let slots = found.slots.iter().filter(|(of, _)| of == address);
            let slots: Vec<B256> = slots.map(|(_, slot)| (*slot).into()).collect();
            json!({"address": address, "storageKeys": slots})
        };
        let list: Vec<_> = found.accounts.iter().map(item).collect();
        Some(json!({"accessList": list, "gasUsed": "0x5208"}))
    }

    fn proof(&self, call: &Value, lie: Option<ProofLie>) -> Option<Value> {
        let mut address: Address = serde_json::from_value(call["params"][0].clone()).ok()?;
        let slots: Vec<B256> = serde_json::from_value(call["params"][1].clone()).ok()?;
        let mut state = self.states.get(&block_of(&call["params"][2])?)?;
        let richer;
        match lie {
            Some(ProofLie::OtherState) => {
                richer = state.enriched();
                state = &richer;
            }
            Some(ProofLie::OtherBlock) => state = &self.states[&self.genesis],
            Some(ProofLie::OtherAccount) => {
                address = state.accounts.keys().copied().find(|other| *other != address).unwrap_or_default();
            }
            _ => {}
        }
        let mut reply = state.reply(address, &slots);
        lie.into_iter().for_each(|lie| spoil(&mut reply, lie));
        Some(reply)
    }
}

fn block_of(parameter: &Value) -> Option<B256> {
    serde_json::from_value(parameter["blockHash"].clone()).ok()
}

/// Accounts and slots that nobody needs.
fn wrong_hint() -> Value {
    let items: Vec<_> = (1..=200_u8)
        .map(|byte| json!({"address": Address::repeat_byte(byte), "storageKeys": [B256::repeat_byte(byte)]}))
        .collect();
    json!({"accessList": items, "gasUsed": "0x1"})
}

/// A state of which everything is known but the hashes of earlier blocks.
struct WholeState<'a> {
    state: &'a AccountsByAddress,
    code: &'a BTreeMap<B256, Bytes>,
}

impl KnownState for WholeState<'_> {
    fn account(&self, address: Address) -> Option<Option<AccountState>> {
        Some(self.state.get(&address).map(|stored| stored.account))
    }

    fn storage(&self, address: Address, slot: U256) -> Option<U256> {
        let stored = self.state.get(&address);
        Some(stored.and_then(|stored| stored.storage.get(&slot)).copied().unwrap_or_default())
    }

    fn code(&self, hash: B256) -> Option<ContractCode> {
        self.code.get(&hash).cloned().map(ContractCode::new)
    }

    fn block_hash(&self, _: u64) -> Option<B256> {
        None
    }
}

impl BlockState {
    fn new(header: &Header, state: &MemoryState) -> Self {
        Self { header: header.clone(), accounts: state.accounts().clone(), leaves: OnceLock::new() }
    }

    /// This state, in which everyone has more of everything.
    fn enriched(&self) -> Self {
        let mut accounts = self.accounts.clone();
        for stored in accounts.values_mut() {
            stored.account.balance += U256::ONE;
            stored.account.nonce += 1;
            stored.storage.values_mut().for_each(|value| *value ^= U256::from(2));
        }
        Self { header: self.header.clone(), accounts, leaves: OnceLock::new() }
    }

    fn leaves(&self) -> &Leaves {
        let leaf = |(address, stored): (&Address, &StoredAccount)| (keccak256(address), leaf(stored));
        self.leaves.get_or_init(|| self.accounts.iter().map(leaf).collect())
    }

    /// The result of `eth_getProof`.
    fn reply(&self, address: Address, slots: &[B256]) -> Value {
        let stored = self.accounts.get(&address);
        let storage = stored.map(|stored| &stored.storage);
        let leaves: Leaves = storage
            .into_iter()
            .flatten()
            .map(|(slot, value)| (keccak256(slot.to_be_bytes::<32>()), alloy_rlp::encode(value)))
            .collect();
        let slot = |slot: &B256| {
            let value = storage.and_then(|storage| storage.get(&(*slot).into())).copied().unwrap_or_default();
            json!({"key": slot, "value": value, "proof": proof(&leaves, keccak256(slot))})
        };
        let account = stored.map(|stored| stored.account).unwrap_or_default();
        json!({
            "address": address,
            "accountProof": proof(self.leaves(), keccak256(address)),
            "balance": account.balance,
            "nonce": U256::from(account.nonce),
            "codeHash": account.code_hash,
            "storageHash": stored.map_or(EMPTY_ROOT_HASH, root_of),
            "storageProof": slots.iter().map(slot).collect::<Vec<_>>(),
        })
    }
}

fn spoil(reply: &mut Value, lie: ProofLie) {
    let mut proofs = vec![reply["accountProof"].take()];
    let slots = reply["storageProof"].as_array_mut().into_iter().flatten();
    proofs.extend(slots.map(|slot| slot["proof"].take()));
    for proof in proofs.iter_mut().filter_map(Value::as_array_mut) {
        match lie {
            ProofLie::Cut => _ = proof.pop(),
            ProofLie::NoNodes => proof.clear(),
            ProofLie::Garbage => proof.iter_mut().for_each(|node| *node = json!("0xc0ffee")),
            _ => {}
        }
    }
    let mut proofs = proofs.into_iter();
    reply["accountProof"] = proofs.next().unwrap_or_default();
    let slots = reply["storageProof"].as_array_mut().into_iter().flatten();
    slots.zip(proofs).for_each(|(slot, proof)| slot["proof"] = proof);
    if lie == ProofLie::Values {
        for member in ["balance", "nonce", "codeHash", "storageHash"] {
            reply[member] = json!("0x1234");
        }
        let slots = reply["storageProof"].as_array_mut().into_iter().flatten();
        slots.for_each(|slot| slot["value"] = json!("0x1234"));
    }
}

fn root_of(stored: &StoredAccount) -> B256 {
    let leaves: BTreeMap<B256, U256> =
        stored.storage.iter().map(|(slot, value)| (keccak256(slot.to_be_bytes::<32>()), *value)).collect();
    storage_root(leaves)
}

fn leaf(stored: &StoredAccount) -> Vec<u8> {
    let AccountState { nonce, balance, code_hash } = stored.account;
    alloy_rlp::encode(TrieAccount { nonce, balance, storage_root: root_of(stored), code_hash })
}

/// The nodes on the way to a key. Short ones stand in their parents.
fn proof(leaves: &Leaves, key: B256) -> Vec<Bytes> {
    if leaves.is_empty() {
        return Vec::new();
    }
    let retainer = <ProofRetainer>::new(vec![Nibbles::unpack(key)]);
    let mut builder = HashBuilder::default().with_proof_retainer(retainer);
    leaves.iter().for_each(|(key, leaf)| builder.add_leaf(Nibbles::unpack(key), leaf));
    builder.root();
    let nodes = builder.take_proof_nodes().into_nodes_sorted().into_iter().map(|(_, node)| node);
    nodes.enumerate().filter(|(depth, node)| *depth == 0 || node.len() >= 32).map(|(_, node)| node).collect()
}

/// Changes an answer about state that has no proof.
pub(crate) fn lie_about_state(method: &str, reply: &mut Value) {
    let about_state = [
        "eth_getBalance",
        "eth_getCode",
        "eth_getTransactionCount",
        "eth_getStorageAt",
        "eth_call",
        "eth_estimateGas",
    ];
    if !about_state.contains(&method) {
        return;
    }
    let lie = match reply["result"].as_str() {
        Some("0x") => "0x6001".to_owned(),
        Some(result) => {
            let (rest, last) = result.split_at(result.len() - 1);
            let last = if last == "7" { "8" } else { "7" };
            format!("{rest}{last}")
        }
        None => "0x01".to_owned(),
    };
    *reply = json!({"jsonrpc": "2.0", "id": reply["id"], "result": lie});
}
