//! The blocks, transactions, slots and topics of the demo chain worth looking at, by name, for documents and tests.

use super::{
    accounts::{ALICE, ERIN},
    contracts::{self, CHATTER, Contract, TOKEN, TOUR, abi as events},
    story,
    writer::Landmark,
};
use alloy_primitives::{Address, B256, U256, keccak256};
use alloy_sol_types::SolEvent as _;
use chain_builder::BuiltBlock;
use std::ops::RangeInclusive;

/// The blocks that together have more than 10,000 logs.
pub const CHATTER_BLOCKS: RangeInclusive<u64> = story::CHATTER_BLOCKS;

/// The blocks that have raw records.
pub const RAW_BLOCKS: RangeInclusive<u64> = story::RAW_BLOCKS;

/// A block or transaction worth looking at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Point {
    /// Its name here and in the documents.
    pub name: &'static str,
    /// Its description.
    pub about: &'static str,
    /// Number of the block.
    pub block: u64,
    /// Hash of the block.
    pub block_hash: B256,
    /// The transaction, if the point is one.
    pub transaction: Option<PointTransaction>,
}

/// The transaction of a [`Point`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PointTransaction {
    /// Its place in the block.
    pub index: u64,
    /// Its hash.
    pub hash: B256,
}

/// Every block and transaction worth looking at, oldest first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Facts {
    /// In chain order.
    pub points: Vec<Point>,
}

impl Facts {
    pub(super) fn new(blocks: &[BuiltBlock], marks: &[Landmark]) -> Self {
        Self { points: marks.iter().filter_map(|mark| point(blocks, mark)).collect() }
    }

    /// The point with this name.
    pub fn point(&self, name: &str) -> Option<&Point> {
        self.points.iter().find(|point| point.name == name)
    }

    /// Hash of the transaction with this name.
    pub fn transaction(&self, name: &str) -> Option<B256> {
        self.point(name)?.transaction.map(|transaction| transaction.hash)
    }

    /// Number of the block with this name, or of the transaction's block.
    pub fn block(&self, name: &str) -> Option<u64> {
        self.point(name).map(|point| point.block)
    }
}

fn point(blocks: &[BuiltBlock], mark: &Landmark) -> Option<Point> {
    let block = blocks.get(usize::try_from(mark.block).ok()?.checked_sub(1)?)?;
    let transaction = match mark.index {
        None => None,
        Some(index) => {
            let hash = *block.block.body.transactions.get(index)?.tx_hash();
            Some(PointTransaction { index: index as u64, hash })
        }
    };
    Some(Point { name: mark.name, about: mark.about, block: mark.block, block_hash: block.hash, transaction })
}

/// A storage slot worth reading.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Slot {
    /// Its description.
    pub about: &'static str,
    /// The contract.
    pub contract: Contract,
    /// Its key in the storage of the contract.
    pub position: B256,
    /// The formula of the position.
    pub rule: &'static str,
    /// The value at the head, if no later block changes it. `None` marks a slot whose value is worth comparing between blocks.
    pub constant: Option<u64>,
}

/// The storage slots worth reading.
pub fn slots() -> [Slot; 5] {
    let simple = |position: u64| B256::from(U256::from(position));
    let slot = |about, contract, position, rule, constant| Slot { about, contract, position, rule, constant };
    [
        slot("answer, a simple variable", TOUR, simple(0), "0", Some(1234)),
        slot(
            "points of Erin",
            TOUR,
            mapping_slot(ERIN.address, 1),
            "keccak(LeftPad32(Erin), LeftPad32(1))",
            Some(5678),
        ),
        slot(
            "points of Alice",
            TOUR,
            mapping_slot(ALICE.address, 1),
            "keccak(LeftPad32(Alice), LeftPad32(1))",
            None,
        ),
        slot("count, which grows", TOUR, simple(2), "2", None),
        slot(
            "balance of Alice",
            TOKEN,
            mapping_slot(ALICE.address, 0),
            "keccak(LeftPad32(Alice), LeftPad32(0))",
            None,
        ),
    ]
}

/// The slot of a key in the mapping at `position`: the hash of both, each padded to 32 bytes.
pub fn mapping_slot(key: Address, position: u64) -> B256 {
    keccak256([key.into_word().as_slice(), &U256::from(position).to_be_bytes::<32>()].concat())
}

/// The first topic of an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Topic {
    /// The event's signature.
    pub signature: &'static str,
    /// A contract that emits it.
    pub contract: Contract,
    /// The hash of the signature.
    pub hash: B256,
}

/// The events that are not anonymous.
pub fn topics() -> [Topic; 8] {
    use events::{Chatter, Early, Token, Tour, Wallet};
    let topic = |signature, contract, hash| Topic { signature, contract, hash };
    [
        topic(Early::Counted::SIGNATURE, contracts::EARLY, Early::Counted::SIGNATURE_HASH),
        topic(Tour::One::SIGNATURE, TOUR, Tour::One::SIGNATURE_HASH),
        topic(Tour::Two::SIGNATURE, TOUR, Tour::Two::SIGNATURE_HASH),
        topic(Tour::Three::SIGNATURE, TOUR, Tour::Three::SIGNATURE_HASH),
        topic(Tour::Four::SIGNATURE, TOUR, Tour::Four::SIGNATURE_HASH),
        topic(Token::Transfer::SIGNATURE, TOKEN, Token::Transfer::SIGNATURE_HASH),
        topic(Chatter::Said::SIGNATURE, CHATTER, Chatter::Said::SIGNATURE_HASH),
        topic(Wallet::Executed::SIGNATURE, contracts::WALLET, Wallet::Executed::SIGNATURE_HASH),
    ]
}
