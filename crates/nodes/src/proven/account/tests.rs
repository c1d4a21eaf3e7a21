//! Whatever is changed in a proof, it proves what the state root commits to or nothing.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use alloy_primitives::hex;
use alloy_trie::HashBuilder;
use alloy_trie::proof::{ProofRetainer, verify_proof};
use proptest::prelude::*;
use proptest::sample::Index;
use serde_json::{Value, json};

use super::*;

type Storage = BTreeMap<B256, U256>;

/// The state of the property tests, and its root.
static WORLD: LazyLock<(SampleState, B256)> = LazyLock::new(|| {
    let state = state();
    let root = state.root();
    (state, root)
});

/// Accounts with their storage, and the code of all contracts.
#[derive(Clone, Debug)]
struct SampleState(BTreeMap<Address, (u64, U256, Storage)>);

/// A state with accounts of every kind: without code or storage, with one slot, with many.
fn state() -> SampleState {
    let number = |seed: u64| U256::from_be_bytes(keccak256(seed.to_be_bytes()).0);
    let account = |seed: u64| {
        let slots = match seed % 4 {
            0 => 0,
            1 => 1,
            2 => 3,
            _ => 40,
        };
        let storage = (0..slots).map(|slot| (position(slot), number(slot) >> (seed % 250)));
        (seed, number(seed) >> 170, storage.collect())
    };
    SampleState((0..60).map(|seed| (address(seed), account(seed))).collect())
}

fn address(seed: u64) -> Address {
    Address::from_word(keccak256(seed.to_be_bytes()))
}

fn position(slot: u64) -> B256 {
    B256::left_padding_from(&slot.to_be_bytes())
}

/// The root of a trie with these leaves, and the nodes on the way to a key.
fn trie(leaves: &BTreeMap<B256, Vec<u8>>, key: B256) -> (B256, Vec<Bytes>) {
    let target = Nibbles::unpack(key);
    let mut builder = HashBuilder::default().with_proof_retainer(<ProofRetainer>::new(vec![target]));
    leaves.iter().for_each(|(key, leaf)| builder.add_leaf(Nibbles::unpack(key), leaf));
    let root = builder.root();
    let nodes = builder.take_proof_nodes().into_nodes_sorted().into_iter().map(|(_, node)| node);
    // The nodes of short children stand in their parents, and geth does not send them once more.
    let mut nodes: Vec<_> = nodes.collect();
    let first = nodes.first().cloned();
    nodes.retain(|node| node.len() >= 32 || first.as_ref() == Some(node));
    (root, nodes)
}

impl SampleState {
    fn storage_trie(&self, address: Address, slot: B256) -> (B256, Vec<Bytes>) {
        let Some((_, _, storage)) = self.0.get(&address).filter(|account| !account.2.is_empty()) else {
            return (EMPTY_ROOT_HASH, Vec::new());
        };
        let leaves = storage.iter().map(|(slot, value)| (keccak256(slot), alloy_rlp::encode(value)));
        trie(&leaves.collect(), keccak256(slot))
    }

    fn leaf(&self, address: Address) -> Vec<u8> {
        let (nonce, balance, _) = self.0[&address];
        let storage_root = self.storage_trie(address, B256::ZERO).0;
        alloy_rlp::encode(TrieAccount { nonce, balance, storage_root, code_hash: code_hash(address) })
    }

    fn account_trie(&self, address: Address) -> (B256, Vec<Bytes>) {
        trie(
            &self.0.keys().map(|address| (keccak256(address), self.leaf(*address))).collect(),
            keccak256(address),
        )
    }

    /// The reply of an honest node.
    fn reply(&self, address: Address, slots: &[B256]) -> Value {
        let slots = slots.iter().map(|slot| {
            let (_, proof) = self.storage_trie(address, *slot);
            json!({"key": slot, "value": self.slot(address, *slot), "proof": proof})
        });
        json!({
            "address": address,
            "accountProof": self.account_trie(address).1,
            "balance": self.0.get(&address).map_or(U256::ZERO, |account| account.1),
            "nonce": "0x0",
            "storageProof": slots.collect::<Vec<_>>(),
        })
    }

    fn slot(&self, address: Address, slot: B256) -> U256 {
        let account = self.0.get(&address);
        account.and_then(|(_, _, storage)| storage.get(&slot)).copied().unwrap_or_default()
    }

    /// The accounts of the state.
    fn truth(&self, address: Address, slots: &[B256]) -> AccountProof {
        let account = self.0.get(&address).map(|(nonce, balance, _)| ProvenAccount {
            nonce: *nonce,
            balance: *balance,
            storage_root: self.storage_trie(address, B256::ZERO).0,
            code_hash: code_hash(address),
        });
        AccountProof { account, slots: slots.iter().map(|slot| self.slot(address, *slot)).collect() }
    }

    fn root(&self) -> B256 {
        self.account_trie(Address::ZERO).0
    }
}

fn code_hash(address: Address) -> B256 {
    if address[0].is_multiple_of(2) { KECCAK_EMPTY } else { keccak256(address) }
}

/// Slots that are there and some that are not.
fn slots() -> Vec<B256> {
    [0, 1, 2, 3, 39, 40, 1 << 60].map(position).to_vec()
}

#[test]
fn accounts_slots_and_their_absence_are_proven() {
    let (state, slots) = (state(), slots());
    let root = state.root();
    // Those above 59 are not there.
    for address in (0..70).map(address) {
        let reply = state.reply(address, &slots).to_string();
        let proven = AccountProof::prove(reply.as_bytes(), root, address, &slots).unwrap();
        assert_eq!(proven, state.truth(address, &slots));
        // Our walk through the nodes and that of the library agree.
        let leaf = state.0.contains_key(&address).then(|| state.leaf(address));
        verify_proof(root, Nibbles::unpack(keccak256(address)), leaf, &state.account_trie(address).1)
            .unwrap();
    }
}

#[test]
fn an_empty_state_has_nothing_and_needs_no_nodes() {
    let none = AccountProof { account: None, slots: vec![U256::ZERO] };
    for reply in ["{}", r#"{"accountProof":[],"storageProof":[]}"#, r#"{"accountProof":["0x80"]}"#] {
        let proven = AccountProof::prove(reply.as_bytes(), EMPTY_ROOT_HASH, Address::ZERO, &[B256::ZERO]);
        assert_eq!(proven.unwrap(), none);
    }
}

#[test]
fn a_state_of_one_account_is_proven() {
    let mut state = state();
    state.0.retain(|other, _| *other == address(2));
    for address in [address(2), address(3)] {
        let reply = state.reply(address, &slots()).to_string();
        let proven = AccountProof::prove(reply.as_bytes(), state.root(), address, &slots()).unwrap();
        assert_eq!(proven, state.truth(address, &slots()));
    }
}

#[test]
fn what_is_missing_or_of_another_state_is_named() {
    let (state, address, slots) = (state(), address(3), [position(1)]);
    let prove =
        |reply: &Value, root| AccountProof::prove(reply.to_string().as_bytes(), root, address, &slots);
    let reply = state.reply(address, &slots);
    assert_eq!(prove(&Value::Null, state.root()), Err(Unproven::NotThere));
    assert_eq!(prove(&json!("0x1"), state.root()), Err(ProofFailure::Malformed.into()));
    assert_eq!(prove(&reply, B256::repeat_byte(1)), Err(ProofFailure::StateRoot.into()));
    let mut without = reply.clone();
    without["storageProof"] = json!([]);
    assert_eq!(prove(&without, state.root()), Err(ProofFailure::StorageRoot.into()));
    let mut cut = reply;
    cut["accountProof"].as_array_mut().unwrap().pop();
    assert_eq!(prove(&cut, state.root()), Err(ProofFailure::StateRoot.into()));
    // The same account of a state in which it has one wei more.
    let mut richer = state.clone();
    richer.0.get_mut(&address).unwrap().1 += U256::ONE;
    assert_eq!(prove(&richer.reply(address, &slots), state.root()), Err(ProofFailure::StateRoot.into()));
}

/// Which members a reply has beside the nodes, and in which order the nodes come, makes no difference.
#[test]
fn nothing_but_the_nodes_is_read() {
    let (state, address, slots) = (state(), address(7), slots());
    let mut reply = state.reply(address, &slots);
    for (member, lie) in [("balance", "0x1"), ("nonce", "0x9"), ("codeHash", "no hash"), ("address", "")] {
        reply[member] = json!(lie);
    }
    reply["accountProof"].as_array_mut().unwrap().reverse();
    reply["accountProof"].as_array_mut().unwrap().push(json!("0x00"));
    reply["storageProof"].as_array_mut().unwrap().reverse();
    reply["storageProof"][0]["value"] = json!("0x7");
    let proven = AccountProof::prove(reply.to_string().as_bytes(), state.root(), address, &slots);
    assert_eq!(proven.unwrap(), state.truth(address, &slots));
}

/// A reply of 64 MiB with millions of short texts took a gigabyte once it was read.
#[test]
fn more_texts_than_a_proof_can_have_are_not_read() {
    let (state, address, slots) = (state(), address(7), slots());
    let prove = |nodes: usize| {
        let mut reply = state.reply(address, &slots);
        reply["accountProof"].as_array_mut().unwrap().extend((0..nodes).map(|_| json!("0x00")));
        AccountProof::prove(reply.to_string().as_bytes(), state.root(), address, &slots)
    };
    assert!(prove(60).is_ok());
    assert_eq!(prove((slots.len() + 1) * 100), Err(ProofFailure::Malformed.into()));
}

#[test]
fn code_is_proven_by_its_hash() {
    let code = Bytes::from_static(&hex!("60006000fd"));
    let hash = keccak256(&code);
    assert_eq!(prove_code(b"\"0x60006000fd\"", hash), Ok(code));
    assert_eq!(prove_code(b"\"0x60006000fe\"", hash), Err(ProofFailure::CodeHash.into()));
    assert_eq!(prove_code(b"\"0x\"", hash), Err(ProofFailure::CodeHash.into()));
    assert_eq!(prove_code(b"{}", hash), Err(ProofFailure::Malformed.into()));
    assert_eq!(prove_code(b"null", hash), Err(Unproven::NotThere));
    assert_eq!(prove_code(b"\"0x\"", KECCAK_EMPTY), Ok(Bytes::new()));
}

/// All nodes of a reply, in their lists.
fn nodes(reply: &mut Value) -> Vec<&mut Value> {
    let Value::Object(members) = reply else { return Vec::new() };
    let mut found = Vec::new();
    for (name, list) in members.iter_mut() {
        match (name.as_str(), list) {
            ("accountProof", Value::Array(list)) => found.extend(list),
            ("storageProof", Value::Array(list)) => {
                let proofs = list.iter_mut().filter_map(|slot| slot["proof"].as_array_mut());
                found.extend(proofs.flatten());
            }
            _ => {}
        }
    }
    found
}

/// A byte of a node, with another value.
fn change_byte(node: &mut Value, at: Index, flip: u8) {
    let mut bytes = hex::decode(node.as_str().unwrap()).unwrap();
    if !bytes.is_empty() {
        let at = at.index(bytes.len());
        bytes[at] ^= flip;
    }
    *node = json!(hex::encode_prefixed(bytes));
}

#[test]
fn no_bit_of_any_node_can_be_changed() {
    let (state, address, slots) = (state(), address(2), [position(0), position(9)]);
    let (root, truth) = (state.root(), state.truth(address, &slots));
    let reply = state.reply(address, &slots);
    let count = nodes(&mut reply.clone()).len();
    let mut proven = 0;
    for node in 0..count {
        let length = nodes(&mut reply.clone())[node].as_str().unwrap().len() / 2 - 1;
        for byte in 0..length {
            let mut changed = reply.clone();
            let mut list = nodes(&mut changed);
            let mut bytes = hex::decode(list[node].as_str().unwrap()).unwrap();
            bytes[byte] ^= 1 << (byte % 8);
            *list[node] = json!(hex::encode_prefixed(bytes));
            let outcome = AccountProof::prove(changed.to_string().as_bytes(), root, address, &slots);
            // A node that is there twice may still be there once.
            if let Ok(outcome) = outcome {
                assert_eq!(outcome, truth);
                proven += 1;
            }
        }
    }
    assert!(count >= 4 && proven < 1_000, "{count} nodes, {proven}");
}

proptest! {
    #[test]
    fn a_changed_reply_never_proves_another_value(
        seed in 0_u64..70,
        other in 0_u64..70,
        changes in proptest::collection::vec((0..5_u8, any::<Index>(), any::<Index>(), 1..=255_u8), 1..4),
    ) {
        let ((state, root), slots) = (&*WORLD, slots());
        let address = address(seed);
        let mut reply = state.reply(address, &slots);
        let foreign = state.reply(self::address(other), &slots);
        for (kind, one, two, flip) in changes {
            let mut list = nodes(&mut reply);
            if list.is_empty() {
                continue;
            }
            let (from, to) = (one.index(list.len()), two.index(list.len()));
            match kind {
                0 => change_byte(list[from], two, flip),
                1 => *list[to] = list[from].clone(),
                2 => *list[from] = json!("0x"),
                3 => reply["accountProof"] = foreign["accountProof"].clone(),
                _ => reply["storageProof"] = foreign["storageProof"].clone(),
            }
        }
        let outcome = AccountProof::prove(reply.to_string().as_bytes(), *root, address, &slots);
        if let Ok(outcome) = outcome {
            prop_assert_eq!(outcome, state.truth(address, &slots));
        }
    }

    #[test]
    fn a_changed_text_never_proves_another_value(seed in 0_u64..70, at: Index, byte: u8) {
        let ((state, root), slots) = (&*WORLD, slots());
        let mut text = state.reply(address(seed), &slots).to_string().into_bytes();
        let at = at.index(text.len());
        text[at] = byte;
        if let Ok(outcome) = AccountProof::prove(&text, *root, address(seed), &slots) {
            prop_assert_eq!(outcome, state.truth(address(seed), &slots));
        }
    }

    /// Nodes that hash to the root may be anything.
    #[test]
    fn no_node_panics(node: Vec<u8>, key: [u8; 32]) {
        let raw = RawProof {
            account_proof: Some(vec![Hex(node.clone().into())]),
            storage_proof: None,
        };
        let _value = TrieNodes::of(&raw).value(keccak256(&node), B256::from(key));
    }

    #[test]
    fn no_list_of_nodes_panics(items in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 0..40), 0..18), key: [u8; 32]) {
        let items: Vec<Bytes> = items.into_iter().map(Bytes::from).collect();
        let node = alloy_rlp::encode(&items);
        let raw = RawProof { account_proof: Some(vec![Hex(node.clone().into())]), storage_proof: None };
        let _value = TrieNodes::of(&raw).value(keccak256(&node), B256::from(key));
    }
}
