//! Recorded chains and exchanges. They are not part of this repository: `CHAINGATE_CONFORMANCE` names their folder.

use std::fs;
use std::path::{Path, PathBuf};

use alloy_consensus::{Block, EthereumTxEnvelope, Header, TxEip4844};
use alloy_rlp::Decodable;
use serde_json::Value;

use super::sample::rpc_block;
use super::skip;

pub(crate) type Transaction = EthereumTxEnvelope<TxEip4844>;

pub(crate) fn corpora() -> Vec<PathBuf> {
    let Some(folder) = skip::recorded_chains() else { return Vec::new() };
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let found: Vec<_> = entries.filter(|path| path.join("chain.rlp").exists()).collect();
    assert!(!found.is_empty());
    found
}

pub(crate) fn chain(corpus: &Path) -> Vec<Block<Transaction, Header>> {
    let bytes = fs::read(corpus.join("chain.rlp")).unwrap();
    let (mut rest, mut blocks) = (&bytes[..], Vec::new());
    while !rest.is_empty() {
        blocks.push(Block::decode(&mut rest).unwrap());
    }
    blocks
}

/// The block as alloy's types write it, with whole transactions and with hashes.
pub(crate) fn written(block: &Block<Transaction, Header>) -> [String; 2] {
    let uncles = block.body.ommers.iter().map(Header::hash_slow).collect();
    rpc_block(&block.header, &block.body.transactions, uncles, block.body.withdrawals.clone())
}

/// A recorded call with its result. Errors are left out.
pub(crate) struct Exchange {
    pub(crate) method: String,
    pub(crate) result: Value,
}

pub(crate) fn exchanges(corpus: &Path) -> Vec<Exchange> {
    let mut found = Vec::new();
    for folder in fs::read_dir(corpus.join("io")).unwrap() {
        for file in fs::read_dir(folder.unwrap().path()).unwrap() {
            let text = fs::read_to_string(file.unwrap().path()).unwrap();
            let message = |mark: &str| {
                let lines = text.lines().filter_map(move |line| line.strip_prefix(mark));
                lines.map(|line| serde_json::from_str::<Value>(line).unwrap()).collect::<Vec<_>>()
            };
            for (call, reply) in message(">>").into_iter().zip(message("<<")) {
                let Some(result) = reply.get("result").cloned() else { continue };
                let method = call["method"].as_str().unwrap().to_owned();
                found.push(Exchange { method, result });
            }
        }
    }
    found
}
