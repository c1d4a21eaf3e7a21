//! A slow reference for the answers of the archive: every state of a chain in full, every block, and a search through
//! all of it for each question.

use alloy_consensus::{Header, Sealed};
use alloy_genesis::Genesis;
use alloy_primitives::{Address, B256, Bytes, KECCAK256_EMPTY, Log, U256};
use archive::{AccountState, LogFilter, Receipt, Transaction};
use chain_builder::{BlockPlan, BuildError, BuiltBlock, ChainBuilder, StoredAccount, write_blocks};
use std::{
    collections::{BTreeMap, BTreeSet},
    ops::RangeInclusive,
};

/// A chain and all that was ever true on it.
#[derive(Debug, Clone)]
pub struct Model {
    builder: ChainBuilder,
    /// By block number.
    states: Vec<BTreeMap<Address, StoredAccount>>,
    /// Without the genesis, so the one with number `n` is at `n - 1`.
    blocks: Vec<BuiltBlock>,
}

/// A transaction in its place.
#[derive(Debug, Clone, Copy)]
pub struct ModelTransaction<'a> {
    /// The block.
    pub block: &'a BuiltBlock,
    /// Where in the block.
    pub index: usize,
    /// The transaction.
    pub transaction: &'a Transaction,
    /// Its sender.
    pub sender: Address,
    /// Its receipt.
    pub receipt: &'a Receipt,
}

/// A log in its place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MinedLog {
    /// The block's number.
    pub block_number: u64,
    /// The block's hash.
    pub block_hash: B256,
    /// The transaction's hash.
    pub transaction_hash: B256,
    /// The transaction's place in the block.
    pub transaction_index: u64,
    /// The log's place in the block.
    pub log_index: u64,
    /// The log.
    pub log: Log,
}

/// Whether a filter wants a log, checked in the most obvious way.
pub fn matches(filter: &LogFilter, log: &Log) -> bool {
    let any_of = |wanted: &[B256], found: B256| wanted.is_empty() || wanted.contains(&found);
    (filter.addresses.is_empty() || filter.addresses.contains(&log.address))
        && filter.topics.len() <= log.topics().len()
        && filter.topics.iter().zip(log.topics()).all(|(wanted, found)| any_of(wanted, *found))
}

impl Model {
    /// A chain that has only its genesis.
    pub fn new(genesis: Genesis) -> Self {
        let builder = ChainBuilder::new(genesis).expect("a genesis that holds together");
        let states = vec![builder.state().accounts().clone()];
        Self { builder, states, blocks: Vec::new() }
    }

    /// Builds the next block and remembers everything about it.
    pub fn build(&mut self, plan: BlockPlan) -> Result<&BuiltBlock, BuildError> {
        let block = self.builder.build(plan)?;
        self.states.push(self.builder.state().accounts().clone());
        self.blocks.push(block);
        Ok(&self.blocks[self.blocks.len() - 1])
    }

    /// The chain, to ask for the next header or for an uncle.
    pub fn builder(&self) -> &ChainBuilder {
        &self.builder
    }

    /// The genesis as `genesis.json` has it.
    pub fn genesis_json(&self) -> String {
        serde_json::to_string(self.builder.spec().genesis()).expect("a genesis is JSON")
    }

    /// All blocks but the genesis, as a file of RLP has them.
    pub fn rlp(&self) -> Vec<u8> {
        let mut file = Vec::new();
        write_blocks(&self.blocks, &mut file).expect("memory takes any bytes");
        file
    }

    /// The number of the newest block.
    pub fn head(&self) -> u64 {
        self.builder.head().number
    }

    /// All blocks but the genesis.
    pub fn blocks(&self) -> &[BuiltBlock] {
        &self.blocks
    }

    /// A block; `None` for the genesis.
    pub fn block(&self, number: u64) -> Option<&BuiltBlock> {
        self.blocks.get(usize::try_from(number.checked_sub(1)?).ok()?)
    }

    /// A header, also that of the genesis.
    pub fn header(&self, number: u64) -> Option<&Sealed<Header>> {
        self.builder.header(number)
    }

    /// Every account after a block; `None` if there is no such block.
    pub fn state(&self, number: u64) -> Option<&BTreeMap<Address, StoredAccount>> {
        self.states.get(usize::try_from(number).ok()?)
    }

    /// An account after a block, if it existed.
    pub fn account_at(&self, address: Address, number: u64) -> Option<AccountState> {
        self.state(number)?.get(&address).map(|stored| stored.account)
    }

    /// The value of a slot after a block.
    pub fn storage_at(&self, address: Address, slot: U256, number: u64) -> U256 {
        let stored = self.state(number).and_then(|state| state.get(&address));
        stored.and_then(|stored| stored.storage.get(&slot)).copied().unwrap_or_default()
    }

    /// The code of an account after a block.
    pub fn code_at(&self, address: Address, number: u64) -> Bytes {
        let hash = self.account_at(address, number).map_or(KECCAK256_EMPTY, |account| account.code_hash);
        self.builder.state().code(hash).unwrap_or_default()
    }

    /// Every transaction, oldest first.
    pub fn transactions(&self) -> impl Iterator<Item = ModelTransaction<'_>> {
        self.blocks.iter().flat_map(|block| {
            let transactions = block.block.body.transactions.iter();
            transactions.enumerate().map(move |(index, transaction)| ModelTransaction {
                block,
                index,
                transaction,
                sender: block.senders[index],
                receipt: &block.receipts[index],
            })
        })
    }

    /// A transaction by its hash.
    pub fn transaction(&self, hash: B256) -> Option<ModelTransaction<'_>> {
        self.transactions().find(|mined| *mined.transaction.tx_hash() == hash)
    }

    /// The logs that a filter wants, oldest first.
    pub fn logs(&self, filter: &LogFilter, range: RangeInclusive<u64>) -> Vec<MinedLog> {
        let blocks = self.blocks.iter().filter(|block| range.contains(&block.block.header.number));
        blocks.flat_map(logs_of).filter(|mined| matches(filter, &mined.log)).collect()
    }

    /// Every address that ever had an account, emitted a log, or was paid.
    pub fn addresses(&self) -> BTreeSet<Address> {
        let accounts = self.states.iter().flat_map(|state| state.keys().copied());
        let changed = self.blocks.iter().flat_map(|block| block.changes.accounts.keys().copied());
        accounts.chain(changed).collect()
    }

    /// Every slot that ever was not zero, or was written.
    pub fn slots(&self) -> BTreeSet<(Address, U256)> {
        let stored = self
            .states
            .iter()
            .flatten()
            .flat_map(|(address, stored)| stored.storage.keys().map(|slot| (*address, *slot)));
        let written = self
            .blocks
            .iter()
            .flat_map(|block| &block.changes.accounts)
            .flat_map(|(address, change)| change.storage.keys().map(|slot| (*address, *slot)));
        stored.chain(written).collect()
    }

    /// Every topic that any log has, at any position.
    pub fn topics(&self) -> BTreeSet<B256> {
        let logs = self.blocks.iter().flat_map(logs_of);
        logs.flat_map(|mined| mined.log.topics().to_vec()).collect()
    }
}

/// The logs of a block, each in its place.
pub(crate) fn logs_of(block: &BuiltBlock) -> Vec<MinedLog> {
    let mut logs = Vec::new();
    for (index, receipt) in block.receipts.iter().enumerate() {
        for log in receipt.logs() {
            logs.push(MinedLog {
                block_number: block.block.header.number,
                block_hash: block.hash,
                transaction_hash: *block.block.body.transactions[index].tx_hash(),
                transaction_index: index as u64,
                log_index: logs.len() as u64,
                log: log.clone(),
            });
        }
    }
    logs
}
