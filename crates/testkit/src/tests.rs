//! The made-up chains check themselves.

use crate::{
    asm::call_data,
    chain::{Era, Size, random_chain},
    contracts,
    heavy::{self, COUNTER, TOKEN, holder},
    model::{Model, logs_of, matches},
};
use alloy_consensus::{Eip658Value, TxType};
use alloy_primitives::{B256, KECCAK256_EMPTY, U256, keccak256};
use alloy_rlp::Decodable;
use archive::{Block, ChainSpec, LogFilter, RootAfter, StateChanges, execute_block};
use chain_builder::{BuiltBlock, MemoryState};
use std::{collections::BTreeSet, convert::Infallible};

/// Roots after each transaction, from a state that is kept beside the one that is executed on.
struct Roots(MemoryState);

impl RootAfter for Roots {
    type Error = Infallible;

    fn root_after(&mut self, changes: &StateChanges) -> Result<B256, Infallible> {
        self.0.apply(changes);
        Ok(self.0.root())
    }
}

/// Executes a chain again from its files, and compares every block with what the builder said.
fn replay(genesis: &str, file: &[u8], built: &[BuiltBlock]) {
    let spec = ChainSpec::from_json(genesis).expect("the genesis is read back");
    let mut state = MemoryState::from_genesis(spec.genesis());
    state.add_block_hash(0, spec.genesis_header().hash_slow());
    let mut rest = file;
    for built in built {
        let block = Block::decode(&mut rest).expect("the block is read back");
        assert_eq!(block, built.block);
        let mut roots = Roots(state.clone());
        let executed =
            execute_block(spec.rules_at(&block.header), &block, &built.senders, &state, &mut roots)
                .expect("the block executes");
        state.apply(&executed.changes);
        let header = &block.header;
        state.add_block_hash(header.number, header.hash_slow());
        assert_eq!(built.hash, header.hash_slow());
        assert_eq!(executed.receipts, built.receipts);
        assert_eq!(executed.receipts_root(), header.receipts_root);
        assert_eq!(executed.gas_used, header.gas_used);
        assert_eq!(executed.state_root, header.state_root);
        assert_eq!(state.root(), header.state_root);
    }
    assert!(rest.is_empty());
}

#[test]
fn a_random_chain_executes_again_from_its_files() {
    for seed in 0..3 {
        let model = random_chain(seed, Size::default());
        replay(&model.genesis_json(), &model.rlp(), model.blocks());
    }
}

#[test]
fn the_same_seed_gives_the_same_chain() {
    let size = Size { blocks_per_fork: 2, transactions_per_block: 6 };
    let head = |seed| random_chain(seed, size).builder().head().hash();
    assert_eq!(head(1), head(1));
    assert_ne!(head(1), head(2));
}

#[test]
fn a_random_chain_has_everything() {
    for seed in 0..8 {
        let model = random_chain(seed, Size::default());
        has_every_fork(&model);
        has_every_transaction(&model);
        has_every_log(&model);
        has_every_fate(&model);
        let uncles = model.blocks().iter().map(|block| block.block.body.ommers.len());
        assert_eq!(uncles.collect::<BTreeSet<_>>(), BTreeSet::from([0, 1, 2]));
        let paid =
            |block: &BuiltBlock| block.block.body.withdrawals.as_ref().is_some_and(|list| !list.is_empty());
        assert!(model.blocks().iter().any(paid));
    }
}

/// Each block has the fields of its fork and no others.
fn has_every_fork(model: &Model) {
    let mut seen = BTreeSet::new();
    for block in model.blocks() {
        let header = &block.block.header;
        let era = Era::of(header.number, Size::default().blocks_per_fork);
        seen.insert(era as usize);
        assert_eq!(header.base_fee_per_gas.is_some(), era >= Era::London);
        assert_eq!(header.difficulty.is_zero(), era >= Era::Paris);
        assert_eq!(header.withdrawals_root.is_some(), era >= Era::Shanghai);
        assert_eq!(header.excess_blob_gas.is_some(), era >= Era::Cancun);
        assert_eq!(header.requests_hash.is_some(), era >= Era::Prague);
        for receipt in &block.receipts {
            let has_root =
                matches!(receipt.as_receipt().expect("a receipt").status, Eip658Value::PostState(_));
            assert_eq!(has_root, era < Era::Byzantium);
        }
    }
    assert_eq!(seen.len(), Era::ALL.len());
}

fn has_every_transaction(model: &Model) {
    let types: BTreeSet<u8> = model.transactions().map(|mined| mined.transaction.tx_type() as u8).collect();
    assert_eq!(
        types.len(),
        [TxType::Legacy, TxType::Eip2930, TxType::Eip1559, TxType::Eip4844, TxType::Eip7702].len()
    );
    let legacy = || model.transactions().filter_map(|mined| mined.transaction.as_legacy());
    assert!(legacy().any(|signed| signed.tx().chain_id.is_some()));
    assert!(legacy().any(|signed| signed.tx().chain_id.is_none()));
    assert!(legacy().any(|signed| signed.tx().to.is_create()));
    for success in [true, false] {
        let is = |value: Eip658Value| value == Eip658Value::Eip658(success);
        assert!(model.transactions().any(|mined| is(mined.receipt.as_receipt().expect("a receipt").status)));
    }
    let mined = model.transactions().last().expect("a transaction");
    let found = model.transaction(*mined.transaction.hash()).expect("it is found");
    assert_eq!((found.block.hash, found.index), (mined.block.hash, mined.index));
}

fn has_every_log(model: &Model) {
    let logs = model.logs(&LogFilter::default(), 0..=model.head());
    let counts: BTreeSet<usize> = logs.iter().map(|mined| mined.log.topics().len()).collect();
    assert_eq!(counts, BTreeSet::from([0, 1, 2, 3, 4]));
    let zero = LogFilter { addresses: Vec::new(), topics: vec![Vec::new(), vec![B256::ZERO]] };
    let found = model.logs(&zero, 0..=model.head());
    assert!(!found.is_empty() && found.iter().all(|mined| mined.log.topics()[1] == B256::ZERO));
    assert!(model.topics().len() >= 5);
}

/// Accounts that come, go, come back, and stand there empty; slots that are cleared.
fn has_every_fate(model: &Model) {
    let addresses = model.addresses();
    let exists = |address, number| model.account_at(address, number).is_some();
    let vessel = keccak256(contracts::vessel());
    let (mut gone, mut back, mut empty, mut delegated) = (0, 0, 0, 0);
    for address in addresses {
        let mut was_gone = false;
        for number in 1..=model.head() {
            let before = model.account_at(address, number - 1);
            if before.is_some_and(|account| account.code_hash == vessel) && !exists(address, number) {
                gone += 1;
                was_gone = true;
            }
            back += usize::from(was_gone && before.is_none() && exists(address, number));
            let account = model.account_at(address, number).unwrap_or_default();
            empty += usize::from(exists(address, number) && account == archive::AccountState::default());
            delegated += usize::from(model.code_at(address, number).starts_with(&[0xef, 0x01, 0x00]));
            assert!(account.code_hash == KECCAK256_EMPTY || !model.code_at(address, number).is_empty());
        }
    }
    assert!(gone > 0 && back > 0 && empty > 0 && delegated > 0, "{gone} {back} {empty} {delegated}");
    let remade_at_once = model.blocks().iter().any(|block| {
        let parent = block.block.header.number - 1;
        block.changes.accounts.iter().any(|(address, change)| {
            let was = model.account_at(*address, parent).map(|account| account.code_hash);
            change.wiped && was == Some(vessel) && change.account.is_some_and(|now| now.code_hash == vessel)
        })
    });
    assert!(remade_at_once);
    let cleared = model.slots().into_iter().any(|(address, slot)| {
        (1..=model.head()).any(|number| {
            exists(address, number)
                && !model.storage_at(address, slot, number - 1).is_zero()
                && model.storage_at(address, slot, number).is_zero()
        })
    });
    assert!(cleared);
}

#[test]
fn token_transfers_move_balances_and_tell_so() {
    let chain = heavy::transaction_heavy(3, 20);
    replay(&chain.genesis_json(), &chain.rlp(), &chain.blocks);
    let logs: Vec<_> = chain.blocks.iter().flat_map(logs_of).collect();
    assert_eq!(logs.len(), 30);
    let last = logs.last().expect("a log");
    assert_eq!((last.log.address, last.log.topics()[0]), (TOKEN, contracts::transfer_topic()));
    let to = holder(59 * 31);
    assert_eq!(last.log.topics()[2], to.into_word());
    let change = &chain.blocks[2].changes.accounts[&TOKEN];
    assert_eq!(change.storage[&contracts::token_balance_slot(to)], U256::from(60));
    assert_eq!(call_data("transfer(address,uint256)", &[])[..], [0xa9, 0x05, 0x9c, 0xbb]);
}

#[test]
fn log_filters_find_as_many_as_they_say() {
    let heavy = heavy::log_heavy(100, 200);
    let logs: Vec<_> = heavy.chain.blocks.iter().flat_map(logs_of).collect();
    let hits = |filter: &LogFilter| logs.iter().filter(|mined| matches(filter, &mined.log)).count();
    assert_eq!(hits(&heavy.one), 1);
    assert_eq!(hits(&heavy.hundred), 100);
    assert_eq!(hits(&heavy.ten_thousand), 10_000);
    assert_eq!(hits(&heavy.all), 20_000);
    let transfers = logs.iter().filter(|mined| mined.log.address != COUNTER).count();
    assert_eq!(transfers as u64, heavy::TRANSFERS);
}

/// How long the chains of the benchmark take. Run it in release, where it takes seconds:
/// `cargo nextest run --release -p chaingate-testkit --run-ignored only --no-capture`.
#[test]
#[ignore = "only says how long it takes"]
#[allow(clippy::print_stderr, reason = "saying it is the point")]
fn generation_times() {
    let timed = |name: &str, work: &dyn Fn()| {
        let start = std::time::Instant::now();
        work();
        eprintln!("{name}: {:.1} s", start.elapsed().as_secs_f64());
    };
    timed("transaction-heavy, 200 blocks of 300", &|| drop(heavy::transaction_heavy(200, 300)));
    timed("log-heavy, 2,000 blocks of 50", &|| drop(heavy::log_heavy(2000, 50)));
    timed("random, 4 blocks per fork", &|| drop(random_chain(0, Size::default())));
}
