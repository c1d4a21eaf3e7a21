//! Block 0: the state that the genesis file allots, and the block that follows from it.

use super::{
    group::{BlockTables, NewBlock, StateTables},
    roots::Tries,
};
use crate::{
    chain::{Block, ChainSpec},
    execute::RootAfter,
    logs::LogIndexer,
    state::{AccountChange, AccountState, StateChanges},
    store::StoreError,
};
use alloy_genesis::{Genesis, GenesisAccount};
use alloy_primitives::{KECCAK256_EMPTY, U256, keccak256};
use alloy_rlp::Encodable;
use alloy_trie::EMPTY_ROOT_HASH;
use redb::WriteTransaction;
use revm::state::Bytecode;

/// Writes the genesis block and its state into an empty archive.
pub(crate) fn store_genesis(transaction: &WriteTransaction, chain: &ChainSpec) -> Result<(), StoreError> {
    let mut blocks = BlockTables::open(transaction)?;
    let mut state = StateTables::open(transaction)?;
    let header = chain.genesis_header();
    let changes = allocated(chain.genesis());

    let mut tries = Tries::with_root(EMPTY_ROOT_HASH);
    let mut block_tries = tries.begin(&state.trie_nodes, &state.accounts);
    let root = block_tries.root_after(&changes)?;
    if root != header.state_root {
        return Err(StoreError::Trie(format!("genesis: expected {}, found {root}", header.state_root)));
    }
    let changed = block_tries.finish();
    state.store(header.number, &changes, &changed.storage_roots)?;
    tries.accept(changed);
    tries.flush(&mut state.trie_nodes)?;

    let block = genesis_block(chain);
    let new = NewBlock {
        hash: header.hash_slow(),
        size: block.length() as u32,
        total_difficulty: header.difficulty,
        block: &block,
        senders: &[],
        receipts: &[],
        blob_gas_price: 0,
    };
    blocks.store(&new, None, &mut LogIndexer::default())?;
    Ok(())
}

fn genesis_block(chain: &ChainSpec) -> Block {
    let header = chain.genesis_header();
    let withdrawals = header.withdrawals_root.map(|_| Default::default());
    Block {
        header,
        body: alloy_consensus::BlockBody { transactions: Vec::new(), ommers: Vec::new(), withdrawals },
    }
}

/// The state that a genesis file allots, as changes to nothing.
pub(crate) fn allocated(genesis: &Genesis) -> StateChanges {
    let mut changes = StateChanges::default();
    for (address, allocated) in &genesis.alloc {
        let code = allocated.code.as_ref().filter(|code| !code.is_empty());
        let code_hash = code.map_or(KECCAK256_EMPTY, keccak256);
        if let Some(code) = code {
            changes.code.insert(code_hash, Bytecode::new_legacy(code.clone()));
        }
        let account =
            AccountState { nonce: allocated.nonce.unwrap_or(0), balance: allocated.balance, code_hash };
        let change =
            AccountChange { account: Some(account), wiped: false, storage: allotted_storage(allocated) };
        changes.accounts.insert(*address, change);
    }
    changes
}

fn allotted_storage(account: &GenesisAccount) -> std::collections::BTreeMap<U256, U256> {
    let slots = account.storage.iter().flatten();
    slots.map(|(slot, value)| (U256::from_be_bytes(slot.0), U256::from_be_bytes(value.0))).collect()
}
