//! A log of the deposit contract has the one layout that the real contract gives it, or its block is refused
//! (EIP-6110).

use super::{
    TestWriter,
    writer::{call, contract, funded_sender},
};
use crate::{asm::words, contracts};
use alloy_eips::{
    eip6110::{DEPOSIT_REQUEST_TYPE, MAINNET_DEPOSIT_CONTRACT_ADDRESS},
    eip7685::Requests,
};
use alloy_genesis::GenesisAccount;
use alloy_primitives::{Address, B256, Bytes, U256, b256};
use archive::Block;
use chain_builder::{BlockPlan, system_contracts};
use serde_json::{Map, Value};

const DEPOSIT_EVENT: B256 = b256!("649bbc62d0e31342afea4e5cd82d4049e7e1ee912fc0889aa790803be39038c5");

const NETWORK: &str = "Prague";

/// Where each of the five fields stands in the log, and its length.
const FIELDS: [(usize, usize); 5] = [(160, 48), (256, 32), (320, 8), (384, 96), (512, 8)];

const LAYOUT: &str = "BlockException.INVALID_DEPOSIT_EVENT_LAYOUT";

pub(super) fn tests() -> Map<String, Value> {
    let with_word = |at: usize, value: u64| {
        let mut log = deposit_log();
        log[at..at + 32].copy_from_slice(&U256::from(value).to_be_bytes::<32>());
        log
    };
    let too_long = [deposit_log(), vec![0; 32]].concat();
    let mut tests = Map::from_iter([accepted()]);
    let refused = [
        ("deposit_log_too_long", "A longer log is no deposit, although an ABI decoder reads it.", too_long),
        (
            "deposit_log_with_another_offset",
            "A log whose first two fields share their place is no deposit, although an ABI decoder reads it.",
            with_word(32, 160),
        ),
        (
            "deposit_log_with_another_size",
            "A log whose index has seven bytes is no deposit, although an ABI decoder reads it.",
            with_word(512, 7),
        ),
    ];
    for (name, comment, log) in refused {
        tests.extend([refused_log(name, comment, log)]);
    }
    tests
}

fn accounts() -> impl Iterator<Item = (Address, GenesisAccount)> {
    let logger = contract(MAINNET_DEPOSIT_CONTRACT_ADDRESS, contracts::logger());
    system_contracts().into_iter().chain([logger, funded_sender()])
}

fn plan(log: &[u8]) -> BlockPlan {
    let input = contracts::log(&[DEPOSIT_EVENT], log);
    let transactions = vec![call(0, MAINNET_DEPOSIT_CONTRACT_ADDRESS, input)];
    BlockPlan { transactions, ..BlockPlan::default() }
}

fn accepted() -> (String, Value) {
    let mut test = TestWriter::new(NETWORK, accounts());
    let built = test.accept(plan(&deposit_log()));
    assert_eq!(built.block.header.requests_hash, Some(requests_hash(&deposit_log())));
    test.finish("deposit_log", "A log of the deposit contract is a deposit request.")
}

fn refused_log(name: &str, comment: &str, log: Vec<u8>) -> (String, Value) {
    let mut test = TestWriter::new(NETWORK, accounts());
    let block = block_of_lenient_client(&log);
    test.refuse(&block, LAYOUT);
    test.finish(name, comment)
}

/// The block of a client that decodes deposits by the ABI. Only the hash of its requests differs from a block on a chain
/// with another deposit contract.
fn block_of_lenient_client(log: &[u8]) -> Block {
    let mut other = TestWriter::with(NETWORK, accounts(), |genesis| {
        genesis.config.deposit_contract_address = Some(Address::repeat_byte(1));
    });
    let mut block = other.accept(plan(log)).block;
    block.header.requests_hash = Some(requests_hash(log));
    block
}

/// The hash of the deposit request whose five fields are found by the offsets and sizes in the log.
fn requests_hash(log: &[u8]) -> B256 {
    let number = |at: usize| U256::from_be_slice(&log[at..at + 32]).to::<usize>();
    let fields = (0..FIELDS.len()).flat_map(|field| {
        let offset = number(field * 32);
        log[offset + 32..][..number(offset)].to_vec()
    });
    let mut requests = Requests::default();
    requests.push_request_with_type(DEPOSIT_REQUEST_TYPE, Bytes::from_iter(fields));
    requests.requests_hash()
}

/// The data of a log as the deposit contract emits it.
fn deposit_log() -> Vec<u8> {
    let mut log = words(&FIELDS.map(|(offset, _)| U256::from(offset))).to_vec();
    for (index, (offset, size)) in FIELDS.into_iter().enumerate() {
        log.resize(offset, 0);
        log.extend(U256::from(size).to_be_bytes::<32>());
        log.extend(vec![index as u8 + 1; size]);
    }
    log.resize(576, 0);
    log
}
