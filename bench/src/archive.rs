//! The speed of the archive, without a network in between.
//!
//! Chains are made anew each time, and are the same each time. Reads are spread over the whole history; each
//! figure is the median of several rounds over the same questions, after one round to warm up.

use alloy_primitives::{Address, Bytes, TxKind, U256};
use archive::{Archive, BlockFile, CallLimits, LogFilter, LogLimits, Overrides, Snapshot, StateSource};
use std::{
    hint::black_box,
    ops::ControlFlow,
    path::{Path, PathBuf},
    time::Instant,
};
use testkit::{contracts, heavy};

const ROUNDS: usize = 7;
const QUESTIONS: usize = 20_000;

/// Prints all figures. `corpora` is a folder that holds `mainnet-0-8191`.
pub(crate) fn run(corpora: Option<PathBuf>) {
    println!("archive, one thread asks; median of {ROUNDS} rounds");
    match corpora {
        Some(corpora) => import_mainnet(&corpora.join("mainnet-0-8191")),
        None => println!("import of mainnet-0-8191: left out, no folder was given"),
    }
    transactions();
    logs();
}

fn import_mainnet(corpus: &Path) {
    let genesis = std::fs::read_to_string(corpus.join("genesis.json")).expect("the corpus has a genesis");
    let directory = tempfile::tempdir().expect("a directory for the archive");
    let started = Instant::now();
    let archive = Archive::open_or_create(directory.path(), &genesis).expect("a new archive");
    let file = BlockFile::open(corpus.join("chain.rlp")).expect("the corpus has blocks");
    let progress = archive.import(file, &mut archive::NoProgress).expect("real blocks are valid");
    let seconds = started.elapsed().as_secs_f64();
    let rate = progress.blocks as f64 / seconds;
    println!(
        "import mainnet-0-8191, verified:        {seconds:>9.2} s   {rate:>12.0} blocks/s   {}",
        memory()
    );
}

fn transactions() {
    const BLOCKS: u64 = 400;
    let chain = heavy::transaction_heavy(BLOCKS, 300);
    let directory = tempfile::tempdir().expect("a directory for the archive");
    let archive = Archive::open_or_create(directory.path(), &chain.genesis_json()).expect("a new archive");
    let blocks: Vec<_> = chain.blocks.iter().map(|built| built.block.clone()).collect();
    let before = memory_bytes();
    let started = Instant::now();
    let progress = archive.import_blocks(blocks, &mut archive::NoProgress).expect("built blocks are valid");
    let seconds = started.elapsed().as_secs_f64();
    let (gas, count) = (progress.gas as f64 / seconds / 1e6, progress.transactions as f64 / seconds);
    println!(
        "import {} transactions, verified:  {seconds:>9.2} s   {gas:>7.1} Mgas/s   {count:>7.0} tx/s   {}, {} MB more than before",
        progress.transactions,
        memory(),
        memory_bytes().saturating_sub(before) >> 20,
    );
    let snapshot = archive.snapshot();
    storage_reads(&snapshot, BLOCKS);
    receipts(&snapshot);
    calls(&snapshot);
}

fn storage_reads(snapshot: &Snapshot, blocks: u64) {
    let questions: Vec<_> = (0..QUESTIONS as u64)
        .map(|n| (contracts::token_balance_slot(token_holder(n * 7919)), n * 104_729 % (blocks + 1)))
        .collect();
    let nanoseconds = median(|| {
        for (slot, number) in &questions {
            let value = snapshot.state_at(*number).storage(heavy::TOKEN, *slot);
            black_box(value.expect("a readable archive"));
        }
        questions.len()
    });
    figure("storage read at a random historic block", nanoseconds, "reads/s");
}

fn receipts(snapshot: &Snapshot) {
    let summary = snapshot.summary(snapshot.head()).expect("a readable archive").expect("a head");
    let hashes = snapshot.transaction_hashes(&summary).expect("a readable archive");
    let nanoseconds = median(|| {
        for hash in &hashes {
            black_box(snapshot.receipt(*hash).expect("a readable archive"));
        }
        hashes.len()
    });
    figure("receipt by hash, without its logs", nanoseconds, "reads/s");
}

fn calls(snapshot: &Snapshot) {
    let head = snapshot.header(snapshot.head()).expect("a readable archive").expect("a head");
    let rules = snapshot.chain().rules_at(&head);
    let limits =
        CallLimits { gas_cap: head.gas_limit * 10, memory_bytes_max: 64 << 20, deadline: None, cancel: None };
    let requests: Vec<_> = (0..1000).map(|n| balance_of(token_holder(n))).collect();
    let nanoseconds = median(|| {
        for request in &requests {
            let state = snapshot.state_at(head.number);
            let called = archive::call(state, rules, &head, request.clone(), Overrides::default(), &limits);
            let balance = U256::from_be_slice(&called.expect("balanceOf answers"));
            assert!(!balance.is_zero(), "every holder has tokens");
        }
        requests.len()
    });
    figure("balanceOf-like call at the head", nanoseconds, "calls/s");
}

/// Tokens go to every other holder.
fn token_holder(number: u64) -> Address {
    heavy::holder(number % 1000 * 2 + 1)
}

fn balance_of(holder: Address) -> alloy_rpc_types_eth::TransactionRequest {
    let data: Bytes = testkit::asm::call_data("balanceOf(address)", &[holder.into_word().into()]);
    alloy_rpc_types_eth::TransactionRequest {
        to: Some(TxKind::Call(heavy::TOKEN)),
        input: data.into(),
        ..Default::default()
    }
}

fn logs() {
    let chain = heavy::log_heavy(2000, 50);
    let directory = tempfile::tempdir().expect("a directory for the archive");
    let archive =
        Archive::open_or_create(directory.path(), &chain.chain.genesis_json()).expect("a new archive");
    let blocks: Vec<_> = chain.chain.blocks.iter().map(|built| built.block.clone()).collect();
    let started = Instant::now();
    archive.import_blocks(blocks, &mut archive::NoProgress).expect("built blocks are valid");
    println!("import 2000 blocks with 100000 logs:    {:>9.2} s", started.elapsed().as_secs_f64());
    let snapshot = archive.snapshot();
    for (filter, hits) in [(&chain.one, 1), (&chain.hundred, 100), (&chain.ten_thousand, 10_000)] {
        log_query(&snapshot, filter, hits);
    }
}

fn log_query(snapshot: &Snapshot, filter: &LogFilter, hits: u64) {
    let repeat = (20_000 / hits).clamp(5, 2000) as usize;
    let nanoseconds = median(|| {
        for _ in 0..repeat {
            let found = snapshot.logs(0..=snapshot.head(), filter, LogLimits::NONE).expect("an answer");
            assert_eq!(found.len(), hits);
            let flow = found.read(|log| {
                black_box((log.data(), log.block_hash()));
                ControlFlow::<()>::Continue(())
            });
            assert!(flow.expect("a readable archive").is_continue());
        }
        repeat
    });
    figure(&format!("logs: {hits} of 100000 over 2000 blocks"), nanoseconds, "queries/s");
}

/// Nanoseconds per question: the median over the rounds. `ask` runs a round and returns its number of questions.
fn median(mut ask: impl FnMut() -> usize) -> f64 {
    ask();
    let mut rounds: Vec<f64> = (0..ROUNDS)
        .map(|_| {
            let started = Instant::now();
            let questions = ask();
            started.elapsed().as_nanos() as f64 / questions as f64
        })
        .collect();
    rounds.sort_by(f64::total_cmp);
    rounds[ROUNDS / 2]
}

fn figure(what: &str, nanoseconds: f64, unit: &str) {
    println!("{what:<40}{:>8.2} µs   {:>12.0} {unit}", nanoseconds / 1e3, 1e9 / nanoseconds);
}

fn memory() -> String {
    format!("{} MB resident", memory_bytes() >> 20)
}

/// Resident memory of this process, from `/proc`; zero where there is none.
fn memory_bytes() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kilobytes = line.and_then(|line| line.trim().trim_end_matches(" kB").parse::<u64>().ok());
    kilobytes.unwrap_or(0) << 10
}
