//! Accounts, storage slots and code, proven by the state root of a block (EIP-1186).
//!
//! Only the nodes of the tries are read. Other members of a reply (balance, nonce, hashes, values, keys) are ignored.

use alloy_consensus::constants::{EMPTY_ROOT_HASH, KECCAK_EMPTY};
use alloy_primitives::map::B256Map;
use alloy_primitives::{Address, B256, Bytes, U256, keccak256};
use alloy_rlp::{Decodable, EMPTY_STRING_CODE};
use alloy_trie::nodes::{RlpNode, TrieNode};
use alloy_trie::{Nibbles, TrieAccount};
use serde::Deserialize;

use super::{ProofFailure, Unproven};
use crate::raw::hex::Hex;

#[cfg(test)]
mod tests;

/// The first byte of a hash in a node. A child of 32 bytes or more is replaced by its hash.
const HASH_PREFIX: u8 = EMPTY_STRING_CODE + 32;

/// The most nodes between the root of a trie and a leaf: one for each digit of a key, and the leaf.
const PATH_NODES_MAX: usize = 65;

/// The most other texts in a reply, for the account and for each slot: names of members, keys and values. Nodes send twelve
/// and five.
const TEXTS_MAX: usize = 16;

/// An account, as the state root of a block commits to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProvenAccount {
    pub nonce: u64,
    pub balance: U256,
    pub storage_root: B256,
    pub code_hash: B256,
}

/// An account and some of its storage slots, proven by the state root of a block.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AccountProof {
    /// `None` if the state has no such account.
    pub account: Option<ProvenAccount>,
    /// The values of the slots, in the order in which they were asked for.
    pub slots: Vec<U256>,
}

impl AccountProof {
    /// Proves what a node delivered as the proof of an account and of these storage slots.
    pub fn prove(json: &[u8], state_root: B256, address: Address, slots: &[B256]) -> Result<Self, Unproven> {
        if json.trim_ascii() == b"null" {
            return Err(Unproven::NotThere);
        }
        if has_too_many_texts(json, slots.len()) {
            return Err(ProofFailure::Malformed.into());
        }
        let raw: RawProof = serde_json::from_slice(json).map_err(|_| ProofFailure::Malformed)?;
        let nodes = TrieNodes::of(&raw);
        let leaf = nodes.value(state_root, keccak256(address)).ok_or(ProofFailure::StateRoot)?;
        let account = leaf.map(|leaf| account(&leaf)).transpose()?;
        let storage_root = account.map_or(EMPTY_ROOT_HASH, |account| account.storage_root);
        let slots = slots.iter().map(|slot| nodes.slot(storage_root, *slot)).collect::<Result<_, _>>()?;
        Ok(Self { account, slots })
    }
}

impl ProvenAccount {
    pub fn has_code(&self) -> bool {
        self.code_hash != KECCAK_EMPTY
    }
}

/// Proves what a node delivered as the code with this hash.
pub fn prove_code(json: &[u8], hash: B256) -> Result<Bytes, Unproven> {
    if json.trim_ascii() == b"null" {
        return Err(Unproven::NotThere);
    }
    let Hex(code): Hex<Bytes> = serde_json::from_slice(json).map_err(|_| ProofFailure::Malformed)?;
    if keccak256(&code) == hash { Ok(code) } else { Err(ProofFailure::CodeHash.into()) }
}

/// Whether a reply has more texts than the proofs of an account and so many slots can have. A short text takes many times its
/// size in memory once it is read.
fn has_too_many_texts(json: &[u8], slots: usize) -> bool {
    let texts_max = (slots + 1).saturating_mul(PATH_NODES_MAX + TEXTS_MAX);
    memchr::memchr_iter(b'"', json).count() > 2 * texts_max
}

/// The members of a reply that are read.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct RawProof {
    account_proof: Option<Vec<Hex<Bytes>>>,
    storage_proof: Option<Vec<RawStorageProof>>,
}

#[derive(Deserialize)]
struct RawStorageProof {
    proof: Option<Vec<Hex<Bytes>>>,
}

/// Nodes of tries by their hashes, in whatever list and order they were delivered.
struct TrieNodes<'a>(B256Map<&'a [u8]>);

impl<'a> TrieNodes<'a> {
    fn of(raw: &'a RawProof) -> Self {
        let of_storage = raw.storage_proof.iter().flatten().flat_map(|slot| &slot.proof);
        let nodes = raw.account_proof.iter().chain(of_storage).flatten();
        Self(nodes.map(|Hex(node)| (keccak256(node), &node[..])).collect())
    }

    fn slot(&self, storage_root: B256, slot: B256) -> Result<U256, ProofFailure> {
        let value = self.value(storage_root, keccak256(slot)).ok_or(ProofFailure::StorageRoot)?;
        let number = |value: Vec<u8>| alloy_rlp::decode_exact(value).map_err(|_| ProofFailure::StorageRoot);
        value.map_or(Ok(U256::ZERO), number)
    }

    /// The value of a key in the trie with this root: `Some(None)` if the trie has no value there, and `None` if these nodes do not
    /// prove either.
    fn value(&self, root: B256, key: B256) -> Option<Option<Vec<u8>>> {
        if root == EMPTY_ROOT_HASH {
            return Some(None);
        }
        let key = Nibbles::unpack_array(&key.0);
        let mut node = self.node(root)?;
        let mut walked = 0;
        loop {
            let child = match node {
                TrieNode::Branch(branch) => {
                    let nibble = key.get(walked)?;
                    walked += 1;
                    match branch.as_ref().children().find(|(at, _)| *at == nibble)?.1 {
                        Some(child) => child.clone(),
                        None => return Some(None),
                    }
                }
                TrieNode::Extension(extension) => {
                    if extension.key.is_empty() {
                        return None;
                    }
                    if !key.slice(walked..).starts_with(&extension.key) {
                        return Some(None);
                    }
                    walked += extension.key.len();
                    extension.child
                }
                TrieNode::Leaf(leaf) => return Some((key.slice(walked..) == leaf.key).then_some(leaf.value)),
                // Only an empty trie has this node, and its root is known.
                TrieNode::EmptyRoot => return None,
            };
            node = self.child(&child)?;
        }
    }

    fn node(&self, hash: B256) -> Option<TrieNode> {
        let mut node = *self.0.get(&hash)?;
        TrieNode::decode(&mut node).ok()
    }

    /// The node of a child, which is given by its hash, or inline if it is short.
    fn child(&self, child: &RlpNode) -> Option<TrieNode> {
        match child.as_slice() {
            [HASH_PREFIX, hash @ ..] => self.node(B256::try_from(hash).ok()?),
            mut short => TrieNode::decode(&mut short).ok(),
        }
    }
}

fn account(leaf: &[u8]) -> Result<ProvenAccount, ProofFailure> {
    let TrieAccount { nonce, balance, storage_root, code_hash } =
        alloy_rlp::decode_exact(leaf).map_err(|_| ProofFailure::StateRoot)?;
    Ok(ProvenAccount { nonce, balance, storage_root, code_hash })
}
