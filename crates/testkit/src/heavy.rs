//! Two big chains for benchmarks: one full of transactions, one full of logs. Both are the same each time.
//!
//! All forks are in force from the start, so there is no proof of work. The contracts that keep a ring of beacon roots
//! and of block hashes are left out: each block would write to them, and the builder computes the whole root of what
//! was written to.

use crate::{asm::call_data, chain::signer, contracts};
use alloy_consensus::{TxEip1559, transaction::Recovered};
use alloy_eips::{eip2935::HISTORY_STORAGE_ADDRESS, eip4788::BEACON_ROOTS_ADDRESS};
use alloy_genesis::{ChainConfig, Genesis, GenesisAccount};
use alloy_primitives::{Address, B256, Bytes, U256, address, keccak256};
use archive::{LogFilter, Transaction};
use chain_builder::{BlockPlan, BuiltBlock, ChainBuilder, Signer, system_contracts, write_blocks};
use std::{num::NonZero, thread};

/// Where the [`contracts::token`] of [`transaction_heavy`] is.
pub const TOKEN: Address = address!("0000000000000000000000000000000000002001");

/// Where the [`contracts::counter`] of [`log_heavy`] is: it emits every log.
pub const COUNTER: Address = address!("0000000000000000000000000000000000002002");

/// Few, because only their nonces matter.
const SENDERS: u64 = 8;

/// Accounts that receive coins and tokens.
const HOLDERS: u64 = 2000;

const CHAIN_ID: u64 = 1338;

/// A finished chain.
#[derive(Debug, Clone)]
pub struct HeavyChain {
    /// The genesis.
    pub genesis: Genesis,
    /// All blocks but the genesis.
    pub blocks: Vec<BuiltBlock>,
}

impl HeavyChain {
    /// The genesis as `genesis.json` has it.
    pub fn genesis_json(&self) -> String {
        serde_json::to_string(&self.genesis).expect("a genesis is JSON")
    }

    /// All blocks but the genesis, as a file of RLP has them.
    pub fn rlp(&self) -> Vec<u8> {
        let mut file = Vec::new();
        write_blocks(&self.blocks, &mut file).expect("memory takes any bytes");
        file
    }

    /// The hash of the newest block.
    pub fn head_hash(&self) -> B256 {
        self.blocks.last().expect("a heavy chain has blocks").hash
    }
}

/// Transfers in the last block of [`log_heavy`].
pub const TRANSFERS: u64 = 400;

/// The chain of [`log_heavy`], and filters over its whole range with their number of hits.
#[derive(Debug, Clone)]
pub struct LogHeavyChain {
    /// The chain.
    pub chain: HeavyChain,
    /// Finds exactly one log.
    pub one: LogFilter,
    /// Finds exactly 100 logs.
    pub hundred: LogFilter,
    /// Finds exactly 10,000 logs.
    pub ten_thousand: LogFilter,
    /// Finds every log.
    pub all: LogFilter,
}

/// A chain of transfers: every other transaction moves coins, the rest move tokens, which writes two slots and emits
/// a log. The usual size for a benchmark is 200 blocks of 300.
pub fn transaction_heavy(blocks: u64, transactions_per_block: u64) -> HeavyChain {
    transfers(genesis([(TOKEN, contracts::token())]), HOLDERS, blocks, transactions_per_block)
}

/// A [`transaction_heavy`] chain with `accounts` accounts from the start, over all of which the transfers are spread.
pub fn account_heavy(accounts: u64, blocks: u64, transactions_per_block: u64) -> HeavyChain {
    let holders = (0..accounts)
        .map(|number| (holder(number), GenesisAccount { balance: U256::from(1), ..Default::default() }));
    let genesis = genesis([(TOKEN, contracts::token())]).extend_accounts(holders);
    transfers(genesis, accounts, blocks, transactions_per_block)
}

fn transfers(genesis: Genesis, holders: u64, blocks: u64, transactions_per_block: u64) -> HeavyChain {
    let mut sending = Sending::new(&genesis);
    let blocks = (0..blocks).map(|block| {
        let first = block * transactions_per_block;
        let numbers = first..first + transactions_per_block;
        sending.block(numbers.map(|number| {
            let to = holder(number.wrapping_mul(31) % holders);
            if number % 2 == 0 {
                return PlainAction { to, value: U256::from(number + 1), data: Bytes::new(), gas: 21_000 };
            }
            transfer(to, U256::from(number % 1000 + 1))
        }))
    });
    let blocks = blocks.collect();
    HeavyChain { genesis, blocks }
}

/// One of the accounts that receive coins and tokens.
pub fn holder(number: u64) -> Address {
    Address::from_word(keccak256([b"holder".as_slice(), &number.to_be_bytes()].concat()))
}

/// A chain of logs, all of them by [`COUNTER`], and one more block of [`TRANSFERS`] transfers of [`TOKEN`]. The usual size
/// for a benchmark is 2,000 blocks of 50.
///
/// # Panics
///
/// If the number of logs is not a multiple of 10,000, because then the filters would not hold what they promise.
pub fn log_heavy(blocks: u64, logs_per_block: u64) -> LogHeavyChain {
    let total = blocks * logs_per_block;
    assert!(total > 0 && total.is_multiple_of(10_000), "{total} logs are not a multiple of 10,000");
    let counter = contracts::counter(total / 100, total / 10_000);
    let genesis = genesis([(COUNTER, counter), (TOKEN, contracts::token())]);
    let mut sending = Sending::new(&genesis);
    let count = || {
        let data = crate::asm::words(&[U256::from(logs_per_block)]);
        PlainAction { to: COUNTER, value: U256::ZERO, data, gas: 100_000 + logs_per_block * 4000 }
    };
    let mut blocks: Vec<_> = (0..blocks).map(|_| sending.block([count()])).collect();
    blocks.push(sending.block((0..TRANSFERS).map(|number| transfer(holder(number), U256::from(number + 1)))));
    let at = |position: usize, value: u64| {
        let mut topics = vec![Vec::new(); position + 1];
        topics[0] = vec![contracts::counter_topic()];
        topics[position] = vec![U256::from(value).into()];
        LogFilter { addresses: vec![COUNTER], topics }
    };
    LogHeavyChain {
        chain: HeavyChain { genesis, blocks },
        one: at(3, total / 2),
        hundred: at(1, 0),
        ten_thousand: at(2, 0),
        all: LogFilter { addresses: vec![COUNTER], topics: Vec::new() },
    }
}

/// Moves tokens, which emits one log.
fn transfer(to: Address, amount: U256) -> PlainAction {
    let data = call_data("transfer(address,uint256)", &[to.into_word().into(), amount]);
    PlainAction { to: TOKEN, value: U256::ZERO, data, gas: 100_000 }
}

struct PlainAction {
    to: Address,
    value: U256,
    data: Bytes,
    gas: u64,
}

/// A chain together with those who write on it.
struct Sending {
    builder: ChainBuilder,
    senders: Vec<Signer>,
    sent: u64,
}

impl Sending {
    fn new(genesis: &Genesis) -> Self {
        let builder = ChainBuilder::new(genesis.clone()).expect("a genesis that holds together");
        Self { builder, senders: (0..SENDERS).map(signer).collect(), sent: 0 }
    }

    fn block(&mut self, messages: impl IntoIterator<Item = PlainAction>) -> BuiltBlock {
        let unsigned: Vec<_> = messages.into_iter().map(|message| self.address(message)).collect();
        let plan =
            BlockPlan { beneficiary: holder(0), transactions: signed(&unsigned), ..BlockPlan::default() };
        self.builder.build(plan).expect("a valid block")
    }

    /// The senders take turns, so the nonce of each is known without looking.
    fn address(&mut self, message: PlainAction) -> (Signer, TxEip1559) {
        let sender = self.senders[(self.sent % SENDERS) as usize].clone();
        let nonce = self.sent / SENDERS;
        self.sent += 1;
        let transaction = TxEip1559 {
            chain_id: CHAIN_ID,
            nonce,
            gas_limit: message.gas,
            max_fee_per_gas: 100_000_000_000,
            max_priority_fee_per_gas: 1_000_000_000,
            to: message.to.into(),
            value: message.value,
            input: message.data,
            ..TxEip1559::default()
        };
        (sender, transaction)
    }
}

/// Signing takes longer than all the rest, so it uses every core.
fn signed(unsigned: &[(Signer, TxEip1559)]) -> Vec<Recovered<Transaction>> {
    let sign = |part: &[(Signer, TxEip1559)]| -> Vec<Recovered<Transaction>> {
        part.iter().map(|(sender, transaction)| sender.sign(transaction.clone())).collect()
    };
    let cores = thread::available_parallelism().map_or(1, NonZero::get);
    let part_size = unsigned.len().div_ceil(cores).max(1);
    thread::scope(|scope| {
        let parts: Vec<_> = unsigned.chunks(part_size).map(|part| scope.spawn(move || sign(part))).collect();
        parts.into_iter().flat_map(|part| part.join().expect("signing does not panic")).collect()
    })
}

fn genesis(contracts: impl IntoIterator<Item = (Address, Bytes)>) -> Genesis {
    let start = Some(0);
    let config = ChainConfig {
        chain_id: CHAIN_ID,
        homestead_block: start,
        eip150_block: start,
        eip155_block: start,
        eip158_block: start,
        byzantium_block: start,
        constantinople_block: start,
        petersburg_block: start,
        istanbul_block: start,
        berlin_block: start,
        london_block: start,
        terminal_total_difficulty: Some(U256::ZERO),
        shanghai_time: start,
        cancun_time: start,
        prague_time: start,
        osaka_time: start,
        ..ChainConfig::default()
    };
    let rich = U256::from(10).pow(U256::from(27));
    let senders = (0..SENDERS)
        .map(|number| (signer(number).address(), GenesisAccount { balance: rich, ..Default::default() }));
    let contracts = contracts
        .into_iter()
        .map(|(address, code)| (address, GenesisAccount { code: Some(code), ..Default::default() }));
    let rings = [BEACON_ROOTS_ADDRESS, HISTORY_STORAGE_ADDRESS];
    let system = system_contracts().into_iter().filter(|(address, _)| !rings.contains(address));
    Genesis { config, gas_limit: 60_000_000, timestamp: 1_700_000_000, ..Genesis::default() }
        .extend_accounts(senders.chain(contracts).chain(system))
}
