//! Three real nodes that are reorganised while they are asked without a pause. Needs anvil: `ANVIL` names the program.
//!
//! `CHAINGATE_STORM_SECONDS` says how long; `CHAINGATE_STRICT_LATENCY` makes the story as strict about time as the promise is,
//! for machines that do nothing else meanwhile.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread;
use std::time::{Duration, Instant};

use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use serde_json::{Value, json};
use testkit::http::{ReceivedReply, TestConnection};

use super::callers::storm_time;
use super::front::Front;
use super::identical_nodes::{BOX, Truths, Twins};
use crate::gateway_under_test::call;

const DEPTH_MAX: u64 = 7;

/// After the nodes have left a branch, callers may be told of it for one poll interval and this time.
const STALE_MAX: Duration = Duration::from_millis(100);
const POLL_INTERVAL: Duration = Duration::from_millis(20);

/// Callers of each gateway.
const CALLERS: u64 = 2;

/// Two gateways: one keeps blocks, and one asks nodes for all of them.
const FRONTS: usize = 2;

/// A call, and the block that its answer names.
struct Answered {
    front: usize,
    begun: Instant,
    ended: Instant,
    block: Option<String>,
}

#[test]
fn no_call_fails_and_no_answer_is_stale_while_three_nodes_are_reorganised() {
    let Some(mut twins) = Twins::start() else { return };
    (0..2 * DEPTH_MAX).for_each(|_| twins.mine());
    let network = "[network]\nname = \"anvil\"\n";
    let folder = tempfile::tempdir().unwrap();
    let fronts: [_; FRONTS] = [
        Front::following(folder.path(), &twins.urls(), "from = 0", network),
        Front::of(&twins.urls(), &format!("{network}[cache]\nenabled = false\n")),
    ];
    let (is_over, truths) = (AtomicBool::new(false), twins.truths.clone());
    let mut left_at = vec![Instant::now()];
    let (answered, failed) = thread::scope(|scope| {
        let callers: Vec<_> = (0..FRONTS as u64 * CALLERS)
            .map(|seed| {
                let (front, is_over, truths) = (seed as usize % FRONTS, &is_over, &truths);
                let wire = fronts[front].wire();
                scope.spawn(move || ask_without_pause(front, wire, seed, truths, is_over))
            })
            .collect();
        reorganise_until_over(&mut twins, storm_time(6), &mut left_at);
        is_over.store(true, Relaxed);
        let (mut answered, mut failed) = (Vec::new(), Vec::new());
        for caller in callers {
            let (answers, failures) = caller.join().unwrap();
            answered.extend(answers);
            failed.extend(failures);
        }
        (answered, failed)
    });
    let calls = answered.len() + failed.len();
    eprintln!("{calls} calls during {} reorganisations, {} failed", left_at.len() - 1, failed.len());
    failed.iter().take(20).for_each(|failure| eprintln!("{failure}"));
    assert!(failed.is_empty(), "{} of {calls} calls failed, such as {}", failed.len(), failed[0]);
    (0..FRONTS).for_each(|front| assert_fresh(&answered, front, &truths, &left_at));
}

/// Makes reorganisations of every depth: of all nodes at once, or of one after the other. `left_at` gets the time at which a
/// quorum of the nodes had each branch.
fn reorganise_until_over(twins: &mut Twins, time: Duration, left_at: &mut Vec<Instant>) {
    let started = Instant::now();
    for turn in 0.. {
        let depth = 1 + turn % DEPTH_MAX;
        let pause = Duration::from_millis([0, 60][(turn / DEPTH_MAX % 2) as usize]);
        twins.mine();
        thread::sleep(Duration::from_millis(100));
        twins.branch_off(depth);
        let mut moved_at: Vec<_> = thread::scope(|scope| {
            let twins = &*twins;
            let nodes = (0..twins.count()).map(|node| {
                scope.spawn(move || {
                    thread::sleep(pause * node as u32);
                    twins.follow(node, depth);
                    Instant::now()
                })
            });
            nodes.collect::<Vec<_>>().into_iter().map(|node| node.join().unwrap()).collect()
        });
        moved_at.sort_unstable();
        left_at.push(moved_at[moved_at.len() / 2]);
        if started.elapsed() >= time {
            return;
        }
    }
}

fn ask_without_pause(
    front: usize,
    mut wire: TestConnection,
    seed: u64,
    truths: &Truths,
    is_over: &AtomicBool,
) -> (Vec<Answered>, Vec<String>) {
    let mut rng = StdRng::seed_from_u64(seed);
    let (mut answered, mut failed) = (Vec::new(), Vec::new());
    while !is_over.load(Relaxed) {
        let (method, params, may_be_gone) = question(&mut rng, truths);
        let begun = Instant::now();
        let reply = wire.post("/v3/custom", call(method, &params.to_string()));
        let ended = Instant::now();
        let error = reply.json()["error"].clone();
        if error.is_null() || may_be_gone && says_it_is_gone(&error) {
            // Questions that name a block by its hash are answered after it is gone, too.
            let is_named = |block: &String| params.to_string().contains(&**block);
            let block = block_hash(&reply).filter(|block| !is_named(block));
            answered.push(Answered { front, begun, ended, block });
        } else {
            failed.push(format!("gateway {front}, {:?}: {method} {params}: {error}", ended - begun));
        }
    }
    (answered, failed)
}

/// A question, and whether the block that it names may be gone.
fn question(rng: &mut StdRng, truths: &Truths) -> (&'static str, Value, bool) {
    let branches = truths.read().unwrap();
    // The newest branch, which nodes may not have yet, or the one before, which they may have left.
    let branch = &branches[branches.len().saturating_sub(rng.random_range(1..=2))];
    let number = rng.random_range(branch.len().saturating_sub(DEPTH_MAX as usize + 1)..branch.len());
    let (tag, truth) = (format!("{number:#x}"), &branch[number]);
    let (hash, transaction) = (&truth.block["hash"], &truth.transaction["hash"]);
    // An address that nobody has asked for before.
    let address = format!("{:#042x}", rng.random::<u128>());
    let to_box = json!({"from": address, "to": BOX});
    match rng.random_range(0..18) {
        0 => ("eth_getBlockByNumber", json!(["latest", rng.random::<bool>()]), false),
        1 => ("eth_getBlockReceipts", json!(["latest"]), false),
        2 => ("eth_getBalance", json!([address, "latest"]), false),
        3 => ("eth_call", json!([to_box, "latest"]), false),
        4 => ("eth_estimateGas", json!([to_box]), false),
        5 => ("eth_getLogs", json!([{"fromBlock": "latest", "address": [BOX, address]}]), false),
        6 => ("eth_getStorageAt", json!([address, "0x0", "latest"]), false),
        7 => ("eth_feeHistory", json!(["0x4", "latest", [50]]), false),
        8 => ("eth_getBlockByNumber", json!([tag, rng.random::<bool>()]), false),
        9 => ("eth_getBlockReceipts", json!([tag]), false),
        10 => ("eth_getTransactionCount", json!([address, tag]), true),
        11 => ("eth_getLogs", json!([{"fromBlock": tag, "toBlock": "latest"}]), true),
        12 => ("eth_getBlockByHash", json!([hash, rng.random::<bool>()]), false),
        13 => ("eth_getBlockReceipts", json!([hash]), false),
        14 => ("eth_getBalance", json!([address, {"blockHash": hash}]), true),
        15 => ("eth_getLogs", json!([{"blockHash": hash}]), true),
        16 => ("eth_getTransactionByHash", json!([transaction]), false),
        _ => ("eth_getTransactionReceipt", json!([transaction]), false),
    }
}

/// Whether an error says that a block is not there, or not there yet.
fn says_it_is_gone(error: &Value) -> bool {
    let message = error["message"].as_str().unwrap_or_default();
    let gone = ["header not found", "header for hash not found", "unknown block"];
    gone.contains(&message) || error["code"] == -32602 && message.contains("block range")
}

/// The hash of the block that an answer names as the one at which it is true.
fn block_hash(reply: &ReceivedReply) -> Option<String> {
    Some(reply.header("chaingate-block")?.split_once(' ')?.1.to_owned())
}

/// Checks that a gateway that has told anybody of a branch tells nobody of an older one afterwards. Between the moment in which
/// a quorum of the nodes has left a branch and that one, its answers depend on when it polls, and how busy the machine is.
fn assert_fresh(answered: &[Answered], front: usize, truths: &Truths, left_at: &[Instant]) {
    let truths = truths.read().unwrap();
    let mut branches_of = HashMap::<&str, (usize, usize)>::new();
    for (place, branch) in truths.iter().enumerate() {
        for truth in branch {
            let hash = truth.block["hash"].as_str().unwrap();
            branches_of.entry(hash).or_insert((place, place)).1 = place;
        }
    }
    let told: Vec<_> = answered
        .iter()
        .filter(|call| call.front == front)
        .filter_map(|call| Some((call, branches_of.get(call.block.as_deref()?)?)))
        .collect();
    let mut lags = Vec::new();
    for (branch, &left) in left_at.iter().enumerate().skip(1) {
        let of_branch = told.iter().filter(|(_, (first, _))| *first >= branch);
        let Some(seen) = of_branch.map(|(call, _)| call.ended).min() else { continue };
        let is_old = |(call, (_, last)): &&(&Answered, &(usize, usize))| *last < branch && call.begun > seen;
        let stale = told.iter().find(is_old).map(|(call, _)| (&call.block, call.begun - seen));
        assert_eq!(stale, None, "gateway {front}, branch {branch}: an answer of an older one");
        let old_ones = told.iter().filter(|(call, (_, last))| *last < branch && call.begun > left);
        lags.push(old_ones.map(|(call, _)| call.begun - left).max().unwrap_or_default());
    }
    lags.sort_unstable();
    let most = *lags.last().expect("there were reorganisations");
    eprintln!(
        "gateway {front}: of {} branches, old for {:?} usually, {most:?} at most",
        lags.len(),
        lags[lags.len() / 2]
    );
    let strict = std::env::var_os("CHAINGATE_STRICT_LATENCY").is_some();
    assert!(!strict || most <= POLL_INTERVAL + STALE_MAX, "{most:?}");
}
