//! Questions to a gateway and to the node behind it: every method, in every form that callers use.

use methods::METHODS;
use serde_json::{Value, json};
use testkit::node_process::NodeProcess;

use super::chain::{ALICE, BOB, CONTRACT, CREATED, Chain, FAILED, HEAD, INVALID, PAID};

pub(super) type Question = (&'static str, Value);

/// Reverts with `Error("no")`.
const REVERT: &str = "0x6308c379a060e01b6000526020600452600260245261\
    6e6f60f01b60445260646000fd";
const UNKNOWN: &str = "0xabababababababababababababababababababababababababababababababab";
/// More than the 2^24 that some nodes give a call at most.
const MUCH_GAS: &str = "0x1000001";

/// Methods that the gateway answers about itself, without its nodes.
const OF_THE_GATEWAY: [&str; 2] = ["rpc.discover", "web3_clientVersion"];

/// Methods that none of these makes has. Their answers are parts of the block that `eth_getBlockByNumber` is compared for.
const OF_NO_MAKE: [&str; 2] = ["eth_getHeaderByNumber", "eth_getHeaderByHash"];

/// Everything that is asked about the chain as it is started.
pub(super) fn all(chain: &Chain) -> Vec<Question> {
    let asked =
        [network(), blocks(chain), transactions(chain), logs(chain), state(chain), calls(chain)].concat();
    for method in METHODS.iter().filter(|method| !method.name.starts_with("zks_")) {
        let is_asked = asked.iter().any(|(name, _)| *name == method.name);
        let is_left_out = OF_THE_GATEWAY.contains(&method.name) || OF_NO_MAKE.contains(&method.name);
        assert!(is_asked || is_left_out, "{} is not asked", method.name);
    }
    asked
}

fn network() -> Vec<Question> {
    let simple = [
        "eth_chainId",
        "net_version",
        "eth_syncing",
        "eth_blockNumber",
        "eth_gasPrice",
        "eth_maxPriorityFeePerGas",
    ];
    let mut asked: Vec<_> = simple.map(|method| (method, json!([]))).into();
    for params in [
        json!(["0x2", tag(FAILED), [50]]),
        json!(["0x2", tag(PAID), []]),
        json!(["0x3", "latest", []]),
        json!(["0x1", "earliest", []]),
    ] {
        asked.push(("eth_feeHistory", params));
    }
    asked
}

fn blocks(chain: &Chain) -> Vec<Question> {
    let mut asked = Vec::new();
    let tags = ["latest", "earliest", "safe", "finalized", "0xffff"].map(str::to_owned);
    for number in (0..=HEAD).map(tag).chain(tags) {
        asked.push(("eth_getBlockByNumber", json!([number, false])));
        asked.push(("eth_getBlockByNumber", json!([number, true])));
    }
    for number in [0, CREATED, PAID, FAILED, HEAD, 0xffff] {
        for method in
            ["eth_getBlockTransactionCountByNumber", "eth_getUncleCountByBlockNumber", "eth_getBlockReceipts"]
        {
            asked.push((method, json!([tag(number)])));
        }
        asked.push(("eth_getUncleByBlockNumberAndIndex", json!([tag(number), "0x0"])));
        asked.push(("eth_getTransactionByBlockNumberAndIndex", json!([tag(number), "0x0"])));
    }
    let hashes = [0, PAID, FAILED].map(|number| hash(chain.node(), number));
    for hash in hashes.into_iter().chain([json!(UNKNOWN)]) {
        asked.push(("eth_getBlockByHash", json!([hash, false])));
        asked.push(("eth_getBlockByHash", json!([hash, true])));
        for method in
            ["eth_getBlockTransactionCountByHash", "eth_getUncleCountByBlockHash", "eth_getBlockReceipts"]
        {
            asked.push((method, json!([hash])));
        }
        asked.push(("eth_getUncleByBlockHashAndIndex", json!([hash, "0x0"])));
        asked.push(("eth_getTransactionByBlockHashAndIndex", json!([hash, "0x1"])));
    }
    asked
}

fn transactions(chain: &Chain) -> Vec<Question> {
    let unknown = json!(UNKNOWN);
    let hashes = chain.transactions.iter().chain([&unknown]);
    let about = |hash| {
        ["eth_getTransactionByHash", "eth_getTransactionReceipt"].map(|method| (method, json!([hash])))
    };
    hashes.flat_map(about).collect()
}

fn logs(chain: &Chain) -> Vec<Question> {
    let filters = [
        json!({"fromBlock": "0x0", "toBlock": "latest"}),
        json!({"fromBlock": tag(PAID), "toBlock": tag(FAILED), "address": CONTRACT}),
        json!({"fromBlock": "0x1", "toBlock": tag(HEAD), "address": BOB}),
        json!({"blockHash": hash(chain.node(), PAID)}),
        json!({"blockHash": hash(chain.node(), FAILED)}),
        json!({"blockHash": UNKNOWN}),
    ];
    filters.map(|filter| ("eth_getLogs", json!([filter]))).into()
}

/// The blocks whose state is asked for.
fn state_blocks(chain: &Chain) -> Vec<Value> {
    vec![
        json!("latest"),
        json!("earliest"),
        json!(tag(PAID)),
        json!(tag(FAILED)),
        json!({"blockHash": hash(chain.node(), PAID)}),
        json!({"blockHash": hash(chain.node(), CREATED), "requireCanonical": true}),
        json!({"blockNumber": tag(PAID)}),
        json!({"blockHash": UNKNOWN}),
        json!("0xffff"),
    ]
}

fn state(chain: &Chain) -> Vec<Question> {
    let mut asked = Vec::new();
    for block in state_blocks(chain) {
        asked.push(("eth_getBalance", json!([ALICE, block])));
        asked.push(("eth_getBalance", json!([BOB, block])));
        asked.push(("eth_getTransactionCount", json!([ALICE, block])));
        asked.push(("eth_getCode", json!([CONTRACT, block])));
        asked.push(("eth_getStorageAt", json!([CONTRACT, "0x0", block])));
    }
    asked.push(("eth_getBalance", json!([BOB, "pending"])));
    asked.push(("eth_getTransactionCount", json!([ALICE, "pending"])));
    asked
}

fn calls(chain: &Chain) -> Vec<Question> {
    let message = json!({"to": CONTRACT, "data": "0x"});
    let mut asked = Vec::new();
    for block in state_blocks(chain).into_iter().chain([json!("pending")]) {
        asked.push(("eth_call", json!([message, block])));
        asked.push(("eth_estimateGas", json!([message, block])));
    }
    let mut messages = vec![
        json!({"to": BOB, "from": ALICE, "value": "0x1"}),
        json!({"to": CONTRACT, "data": format!("0x{:064x}", 5), "gas": "0x186a0"}),
        json!({"to": CONTRACT, "data": "0x", "gas": MUCH_GAS}),
        json!({"data": INVALID}),
    ];
    if chain.make.has_constantinople() {
        messages.push(json!({"from": ALICE, "data": REVERT}));
    }
    for message in messages {
        asked.push(("eth_call", json!([message, "latest"])));
        asked.push(("eth_estimateGas", json!([message])));
    }
    let slot = format!("0x{:064x}", 0);
    let state = json!({CONTRACT: {"stateDiff": {slot: format!("0x{:064x}", 5)}}});
    asked.push(("eth_call", json!([message, "latest", state])));
    // Returns the number of the block.
    let number = json!({"data": "0x4360005260206000f3"});
    asked.push(("eth_call", json!([number, tag(PAID)])));
    asked.push(("eth_call", json!([number, "latest", {}, {"number": "0x1234"}])));
    asked
}

pub(super) fn tag(number: u64) -> String {
    format!("{number:#x}")
}

pub(super) fn hash(node: &NodeProcess, number: u64) -> Value {
    node.ask("eth_getBlockByNumber", json!([tag(number), false]))["hash"].clone()
}
