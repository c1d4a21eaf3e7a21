//! The raw records of some blocks, as a node of a zkSync layer 2 would keep them.
//!
//! Hashes, senders, nonces, fees, signatures and bytes are those of the transactions in the blocks. Values that only a
//! layer 2 has are invented, and the same on every machine.

use super::story::RAW_BLOCKS;
use crate::facts::Facts;
use alloy_consensus::{Transaction as _, TxType};
use alloy_eips::eip2718::Encodable2718 as _;
use alloy_primitives::{Address, B256, Bytes, U256, address, hex, keccak256};
use archive::Transaction;
use chain_builder::BuiltBlock;
use serde_json::{Value, json};
use std::fmt::LowerHex;

/// The transactions that came from layer 1.
const DEPOSITS: [&str; 2] = ["raw-deposit", "raw-second-deposit"];

/// The block that begins with an upgrade of the protocol.
const UPGRADE: &str = "raw-upgrade";

/// Gas per byte that layer 1 gets to see, as deposits state it.
const DEPOSIT_GAS_PER_PUBDATA: u64 = 800;

/// Gas per byte that layer 1 gets to see, as transactions of layer 2 state it.
const GAS_PER_PUBDATA_MAX: u64 = 50_000;

/// Block of layer 1 with the first deposit.
const LAYER_ONE_BLOCK: u64 = 21_525_000;

/// How long a transaction waited for its block.
const WAIT_MS: u64 = 1_500;

/// The sender of protocol upgrades.
const UPGRADE_SENDER: Address = address!("0000000000000000000000000000000000008007");

/// The contract that executes protocol upgrades.
const UPGRADER: Address = address!("000000000000000000000000000000000000800f");

/// The records as lines of `{"block": …, "records": […]}`.
pub(super) fn lines(blocks: &[BuiltBlock], facts: &Facts) -> String {
    let deposits = DEPOSITS.map(|name| facts.transaction(name));
    let upgraded = facts.block(UPGRADE);
    let mut lines = String::new();
    for block in blocks.iter().filter(|block| RAW_BLOCKS.contains(&block.block.header.number)) {
        let number = block.block.header.number;
        let upgrade = (Some(number) == upgraded).then(|| upgrade_record(block));
        let transactions = (0..block.block.body.transactions.len()).map(|index| {
            let mined = RawTransactionRecord::new(block, index);
            match deposits.iter().position(|deposit| *deposit == Some(mined.hash)) {
                Some(serial) => mined.layer_one_record(serial as u64),
                None => mined.layer_two_record(),
            }
        });
        let records: Vec<Value> = upgrade.into_iter().chain(transactions).collect();
        lines.push_str(&json!({ "block": number, "records": records }).to_string());
        lines.push('\n');
    }
    lines
}

/// A transaction in its block.
struct RawTransactionRecord<'a> {
    transaction: &'a Transaction,
    hash: B256,
    sender: Address,
    received_ms: u64,
    /// The code that it created.
    created: Option<Bytes>,
}

impl<'a> RawTransactionRecord<'a> {
    fn new(block: &'a BuiltBlock, index: usize) -> Self {
        let transaction = &block.block.body.transactions[index];
        let sender = block.senders[index];
        let created =
            transaction.is_create().then(|| created_code(block, sender.create(transaction.nonce())));
        Self {
            transaction,
            hash: *transaction.tx_hash(),
            sender,
            received_ms: received_ms(block, index),
            created: created.flatten(),
        }
    }

    fn layer_one_record(&self, serial: u64) -> Value {
        let fee = U256::from(self.transaction.gas_limit()) * U256::from(self.transaction.max_fee_per_gas());
        json!({
            "common_data": { "L1": {
                "canonicalTxHash": self.hash,
                "deadlineBlock": 0,
                "ethBlock": LAYER_ONE_BLOCK + 3 * serial,
                "ethHash": B256::ZERO,
                "fullFee": "0x0",
                "gasLimit": quantity(self.transaction.gas_limit()),
                "gasPerPubdataLimit": quantity(DEPOSIT_GAS_PER_PUBDATA),
                "layer2TipFee": "0x0",
                "maxFeePerGas": quantity(self.transaction.max_fee_per_gas()),
                "opProcessingType": "Common",
                "priorityQueueType": "Deque",
                "refundRecipient": lower(self.sender),
                "sender": lower(self.sender),
                "serialId": serial,
                "toMint": quantity(self.transaction.value() + fee),
            } },
            "execute": self.execute(),
            "received_timestamp_ms": self.received_ms,
            "raw_bytes": null,
        })
    }

    fn layer_two_record(&self) -> Value {
        let encoded = self.transaction.encoded_2718();
        json!({
            "common_data": { "L2": {
                "nonce": self.transaction.nonce(),
                "fee": {
                    "gas_limit": quantity(self.transaction.gas_limit()),
                    "max_fee_per_gas": quantity(self.transaction.max_fee_per_gas()),
                    "max_priority_fee_per_gas": quantity(self.tip_max()),
                    "gas_per_pubdata_limit": quantity(GAS_PER_PUBDATA_MAX),
                },
                "initiatorAddress": lower(self.sender),
                "signature": self.transaction.signature().as_bytes().to_vec(),
                "transactionType": type_name(self.transaction.tx_type()),
                "input": { "hash": self.hash, "data": encoded },
                "paymasterParams": { "paymaster": lower(Address::ZERO), "paymasterInput": [] },
            } },
            "execute": self.execute(),
            "received_timestamp_ms": self.received_ms,
            "raw_bytes": hex::encode_prefixed(&encoded),
        })
    }

    fn execute(&self) -> Value {
        let dependencies: Vec<&[u8]> = self.created.iter().map(|code| &code[..]).collect();
        json!({
            "contractAddress": self.transaction.to().map(lower),
            "calldata": self.transaction.input(),
            "value": quantity(self.transaction.value()),
            "factoryDeps": dependencies,
        })
    }

    /// The highest tip. A transaction without a tip of its own pays everything above the base fee as one.
    fn tip_max(&self) -> u128 {
        self.transaction.max_priority_fee_per_gas().unwrap_or(self.transaction.max_fee_per_gas())
    }
}

/// The record of a protocol upgrade. It is not a transaction of the block, so its hash is invented.
fn upgrade_record(block: &BuiltBlock) -> Value {
    json!({
        "common_data": { "ProtocolUpgrade": {
            "sender": lower(UPGRADE_SENDER),
            "upgradeId": "Version26",
            "maxFeePerGas": "0x0",
            "gasLimit": quantity(72_000_000),
            "gasPerPubdataLimit": quantity(DEPOSIT_GAS_PER_PUBDATA),
            "ethHash": B256::ZERO,
            "ethBlock": LAYER_ONE_BLOCK - 1,
            "canonicalTxHash": keccak256("an upgrade of the demo chain"),
            "toMint": "0x0",
            "refundRecipient": lower(Address::ZERO),
        } },
        "execute": {
            "contractAddress": lower(UPGRADER),
            "calldata": "0x",
            "value": "0x0",
            "factoryDeps": [],
        },
        "received_timestamp_ms": received_ms(block, 0) - 1,
        "raw_bytes": null,
    })
}

fn created_code(block: &BuiltBlock, address: Address) -> Option<Bytes> {
    let account = block.changes.accounts.get(&address)?.account?;
    block.changes.code.get(&account.code_hash).map(|code| code.original_bytes())
}

fn received_ms(block: &BuiltBlock, index: usize) -> u64 {
    block.block.header.timestamp * 1000 - WAIT_MS + index as u64
}

fn type_name(kind: TxType) -> &'static str {
    match kind {
        TxType::Legacy => "LegacyTransaction",
        TxType::Eip2930 => "EIP2930Transaction",
        _ => "EIP1559Transaction",
    }
}

fn quantity(number: impl LowerHex) -> String {
    format!("{number:#x}")
}

/// The address in lower case, without the checksum.
fn lower(address: Address) -> String {
    hex::encode_prefixed(address)
}
