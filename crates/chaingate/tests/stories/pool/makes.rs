//! Real nodes of other makes: what callers get from a gateway in front of them, beside what the nodes say themselves.
//!
//! Needs anvil, Hardhat 2, Hardhat 3, Ganache and EthereumJS: `ANVIL`, `HARDHAT2`, `HARDHAT3`, `GANACHE` and `ETHEREUMJS` name them.
//! Every story goes on after a fault, and fails at its end with all of them.

use std::thread;
use std::time::{Duration, Instant};

use serde_json::json;
use testkit::http::get;

use super::front::Front;
use chain::{Chain, Make};
use questions::{Question, tag};
use report::Report;

#[path = "makes/chain.rs"]
mod chain; // the chain that all nodes of a make have
#[path = "makes/questions.rs"]
mod questions; // questions to node and gateway
#[path = "makes/truth.rs"]
mod truth; // the nodes' own answers
#[path = "makes/report.rs"]
mod report; // findings
#[path = "makes/ethereumjs.rs"]
mod ethereumjs; // a make that cannot make blocks

const NETWORK: &str = "[network]\nname = \"dev\"\n";

/// The whole story of a make. `None` where it is not installed.
fn tell(make: Make, nodes: usize) -> Option<Report> {
    let mut chain = Chain::start(make, nodes)?;
    let version = chain.node().ask("web3_clientVersion", json!([]));
    let mut report = Report::new(format!("{nodes} × {} {version}", make.name()));
    let front = Front::unready(&chain.urls(), NETWORK);
    if !report.wait_until_ready(&front) {
        return Some(report);
    }
    for question in questions::all(&chain) {
        report.compare(&chain, &front, &question);
    }
    report.check_refused_methods(&front);
    report.check_fees_beyond_the_head(&front);
    limits_are_shown(&mut report, make, &front);
    new_blocks_reach_callers(&mut report, &mut chain, &front);
    a_reorganisation_reaches_callers(&mut report, &mut chain, &front);
    a_rollback_reaches_callers(&mut report, &mut chain, &front);
    let status = get(front.operator, "/status").json();
    for node in status["nodes"]["each"].as_array().into_iter().flatten() {
        if node["state"] != "up" || !node["not_used_because"].is_null() {
            let (state, because) = (&node["state"], &node["not_used_because"]);
            report.fault(format!("/status: a node is {state}: {because}"));
        }
    }
    Some(report)
}

/// `/status` shows what the nodes have refused.
fn limits_are_shown(report: &mut Report, make: Make, front: &Front) {
    let status = get(front.operator, "/status").json();
    for node in status["nodes"]["each"].as_array().into_iter().flatten() {
        let limits = &node["limits"];
        let is_shown = match make {
            Make::Anvil(_) => true,
            Make::Hardhat2 | Make::Hardhat3 => limits["gas_per_call_max"].is_u64(),
            Make::Ganache => {
                let named = |list: &str, method: &str| {
                    limits[list].as_array().is_some_and(|methods| methods.iter().any(|each| each == method))
                };
                named("methods_by_block_number", "eth_call")
                    && named("missing_methods", "eth_getBlockReceipts")
            }
        };
        if !is_shown {
            report.fault(format!("/status does not show what the node has refused: {limits}"));
        }
    }
}

/// Waits until the gateway's newest block is the node's, and compares what the last blocks, transactions and balances are.
fn follow(report: &mut Report, chain: &Chain, front: &Front, what: &'static str, removed: &[u64]) {
    report.step = what;
    let newest = json!(["latest", false]);
    let head = chain.node().ask("eth_getBlockByNumber", newest.clone());
    let is_followed = report.wait(what, || {
        front.ask("eth_getBlockByNumber", &newest.to_string())["result"]["hash"] == head["hash"]
    });
    if !is_followed {
        let told = front.ask("eth_getBlockByNumber", &newest.to_string());
        let told = (&told["result"]["number"], &told["result"]["hash"], &told["error"]);
        report.fault(format!(
            "the newest block is {told:?}, but the node's is {} {}",
            head["number"], head["hash"]
        ));
    }
    let number = chain.node().head();
    let mut asked: Vec<Question> = vec![("eth_blockNumber", json!([]))];
    for number in (number.saturating_sub(2)..=number).chain(removed.iter().copied()) {
        asked.push(("eth_getBlockByNumber", json!([tag(number), true])));
        asked.push(("eth_getBlockReceipts", json!([tag(number)])));
        asked.push(("eth_getBalance", json!([chain::BOB, tag(number)])));
    }
    for hash in &chain.transactions {
        asked.push(("eth_getTransactionByHash", json!([hash])));
        asked.push(("eth_getTransactionReceipt", json!([hash])));
    }
    asked.push(("eth_getBalance", json!([chain::BOB, "latest"])));
    asked.push(("eth_getTransactionCount", json!([chain::ALICE, "latest"])));
    asked.push(("eth_getLogs", json!([{"fromBlock": "0x0", "toBlock": "latest"}])));
    for question in &asked {
        report.compare(chain, front, question);
    }
}

fn new_blocks_reach_callers(report: &mut Report, chain: &mut Chain, front: &Front) {
    chain.pay();
    follow(report, chain, front, "a new block", &[]);
}

/// A longer branch replaces two blocks with a payment.
fn a_reorganisation_reaches_callers(report: &mut Report, chain: &mut Chain, front: &Front) {
    let before = chain.snapshot();
    chain.pay();
    chain.mine(&[]);
    follow(report, chain, front, "two blocks that will be replaced", &[]);
    chain.revert(before);
    for _ in 0..3 {
        chain.mine(&[]);
    }
    follow(report, chain, front, "a reorganisation", &[]);
}

/// Two blocks with a payment are taken back, and nothing replaces them for a while.
fn a_rollback_reaches_callers(report: &mut Report, chain: &mut Chain, front: &Front) {
    let before = chain.snapshot();
    chain.pay();
    chain.mine(&[]);
    let head = chain.node().head();
    follow(report, chain, front, "two blocks that will be taken back", &[]);
    chain.revert(before);
    follow(report, chain, front, "a rollback", &[head - 1, head]);
    chain.pay();
    follow(report, chain, front, "a block after the rollback", &[head]);
}

fn alone(make: Make) {
    if let Some(report) = tell(make, 1) {
        report.finish();
    }
}

fn three(make: Make) {
    if let Some(report) = tell(make, 3) {
        report.finish();
    }
}

/// At the same time, because each mostly waits.
#[test]
fn anvil_with_every_fork() {
    if testkit::anvil::program().is_none() {
        return;
    }
    let forks = [
        "frontier",
        "byzantium",
        "istanbul",
        "berlin",
        "london",
        "paris",
        "shanghai",
        "cancun",
        "prague",
        "osaka",
    ];
    let reports: Vec<_> = thread::scope(|scope| {
        let told: Vec<_> = forks.map(|fork| scope.spawn(move || tell(Make::Anvil(fork), 1))).into();
        told.into_iter().filter_map(|report| report.join().unwrap()).collect()
    });
    let faulty = |report: Report| thread::spawn(|| report.finish()).join().is_err();
    let faulty = reports.into_iter().map(faulty).filter(|is_faulty| *is_faulty).count();
    assert_eq!(faulty, 0, "forks with faults");
}

#[test]
fn hardhat_2() {
    alone(Make::Hardhat2);
}

#[test]
fn hardhat_3() {
    alone(Make::Hardhat3);
}

#[test]
fn ganache() {
    alone(Make::Ganache);
}

#[test]
fn three_anvils_with_one_chain() {
    three(Make::Anvil("osaka"));
}

#[test]
fn three_hardhats_with_one_chain() {
    three(Make::Hardhat3);
}

/// Whether nodes deliver anything that fits together was asked although nobody wanted it proven.
#[test]
fn hardhat_is_served_without_proofs() {
    let Some(chain) = Chain::start(Make::Hardhat3, 1) else { return };
    let front = Front::unready(&chain.urls(), &format!("{NETWORK}[integrity]\nmode = \"off\"\n"));
    let mut report = Report::new("Hardhat 3 without proofs".to_owned());
    report.passes_on = true;
    if report.wait_until_ready(&front) {
        for question in questions::all(&chain) {
            report.compare(&chain, &front, &question);
        }
    }
    report.finish();
}

/// How long it takes until callers see each new block. Blocks that the next one overtakes are left out.
fn head_delays(chain: &Chain, front: &Front, blocks: usize, block_time: Duration) -> Vec<Duration> {
    let mut delays = Vec::new();
    for _ in 0..blocks {
        chain.node().ask("evm_mine", json!([]));
        let (mined, head) = (Instant::now(), format!("{:#x}", chain.node().head()));
        let mut is_seen = false;
        while mined.elapsed() < block_time {
            if !is_seen && front.ask("eth_blockNumber", "[]")["result"] == head.as_str() {
                is_seen = true;
                delays.push(mined.elapsed());
            }
            thread::sleep(Duration::from_millis(10));
        }
    }
    delays.sort();
    delays
}

/// The nodes of such chains were asked for their head every four seconds, however fast blocks came.
#[test]
fn fast_blocks_are_followed_with_the_default_interval() {
    for (block_time, blocks) in [(Duration::from_millis(250), 16), (Duration::from_secs(2), 4)] {
        let Some(chain) = Chain::start(Make::Anvil("osaka"), 1) else { return };
        let front = Front::polling_by_default(&chain.urls(), NETWORK);
        let mut report = Report::new(format!("blocks every {block_time:?}"));
        report.wait_until_ready(&front);
        // The first ones show how fast they come.
        head_delays(&chain, &front, blocks, block_time);
        let delays = head_delays(&chain, &front, blocks, block_time);
        if delays.len() < blocks / 4 {
            report.fault(format!("of {blocks} blocks {} were ever the newest one", delays.len()));
        }
        let median = delays.get(delays.len() / 2);
        report.times.push(format!("{} of {blocks} heads seen, after {median:?} (median)", delays.len()));
        report.finish();
    }
}
