//! Recorded chains, executed one block after another on a state in memory. Every value that a header commits to
//! must come out the same.

use crate::{header, memory::MemoryState};
use alloy_consensus::{Header, transaction::SignerRecoverable};
use alloy_primitives::{B256, Sealable, b256};
use alloy_rlp::Decodable;
use archive::{Block, ChainSpec, execute_block};
use std::{fs, path::PathBuf};

/// The folder of a recorded chain, if it is there.
fn corpus(name: &str) -> Option<PathBuf> {
    Some(testkit::skip::recorded_chains()?.join(name))
}

/// Executes a recorded chain up to `blocks`, and expects its last block to be `head`.
fn replay(name: &str, blocks: u64, head: B256) {
    let Some(folder) = corpus(name) else { return };
    let genesis = fs::read_to_string(folder.join("genesis.json")).expect("a genesis");
    let spec = ChainSpec::from_json(&genesis).expect("a valid genesis");
    let chain = fs::read(folder.join("chain.rlp")).expect("a chain");

    let mut state = MemoryState::from_genesis(spec.genesis());
    let mut parent = spec.genesis_header().seal_slow();
    assert_eq!(state.root(), parent.state_root, "state of the genesis");
    state.add_block_hash(0, parent.hash());
    let mut rest = chain.as_slice();
    while !rest.is_empty() && parent.number < blocks {
        let block = Block::decode(&mut rest).expect("a block");
        assert_eq!(block.header.parent_hash, parent.hash(), "parent of block {}", block.header.number);
        check_derived(&spec, &parent, &block.header);
        execute(&spec, &block, &mut state);
        parent = block.header.seal_slow();
        state.add_block_hash(parent.number, parent.hash());
    }
    assert_eq!(parent.hash(), head, "head of {name}");
}

/// Checks the values of a header that follow from its parent.
fn check_derived(spec: &ChainSpec, parent: &Header, header: &Header) {
    let number = header.number;
    let rules = spec.rules_at(header);
    assert_eq!(header::base_fee(rules, parent), header.base_fee_per_gas, "base fee of {number}");
    let excess = header::excess_blob_gas(spec, parent, header.timestamp);
    assert_eq!(excess, header.excess_blob_gas, "excess blob gas of {number}");
    if !rules.merged() {
        let difficulty = header::difficulty(rules, parent, header.timestamp);
        assert_eq!(difficulty, header.difficulty, "difficulty of {number}");
    }
}

fn execute(spec: &ChainSpec, block: &Block, state: &mut MemoryState) {
    let header = &block.header;
    let number = header.number;
    let transactions = block.body.transactions.iter();
    let senders: Vec<_> =
        transactions.map(|transaction| transaction.recover_signer().expect("a signature")).collect();
    let executed = execute_block(spec.rules_at(header), block, &senders, &*state, &mut state.trial())
        .expect("a valid block");
    state.apply(&executed.changes);

    assert_eq!(executed.gas_used, header.gas_used, "gas used by {number}");
    assert_eq!(executed.logs_bloom(), header.logs_bloom, "bloom of {number}");
    assert_eq!(executed.receipts_root(), header.receipts_root, "receipts of {number}");
    assert_eq!(executed.state_root, header.state_root, "state after {number}");
    if let Some(blob_gas_used) = header.blob_gas_used {
        assert_eq!(executed.blob_gas_used, blob_gas_used, "blob gas used by {number}");
    }
    if let Some(hash) = header.requests_hash {
        assert_eq!(executed.requests.requests_hash(), hash, "requests of {number}");
    }
}

#[test]
fn every_fork_of_the_execution_apis_chain_executes() {
    let head = b256!("d226371d0b1551adb03fb52b71f08e3e11247fe9b1af994768af8cdaa8e7dcd7");
    replay("execution-apis", 54, head);
}

#[test]
fn the_first_blocks_of_mainnet_execute() {
    let head = b256!("165f73c83ca0393c988c8b4bbc2c62db6052ddd97697dbeb49c61c979a38a7e4");
    replay("mainnet-0-8191", 500, head);
}

#[test]
fn two_uncles_of_london_are_rewarded() {
    let head = b256!("af92db7991c1bf179e927f9579878fbdee2c180b9dd9ad607d15cb0d10eac005");
    replay("twoUncle_London", 3, head);
}

#[test]
fn an_uncle_from_frontier_is_rewarded_in_homestead() {
    let head = b256!("603ef9dd1e196f4af5c1c3a0d4b1a5bc66689010addfb3dc6af8221eb3f3e353");
    replay("UncleFromFrontierInHomestead", 6, head);
}

#[test]
fn uncles_from_both_sides_of_london_are_rewarded() {
    let head = b256!("de223ef8a1f7df4371662da8e2deb8596c8c31369c8a766c180ea1c4a0bc4dda");
    replay("londonUncles_BerlinToLondonAt5", 11, head);
}
