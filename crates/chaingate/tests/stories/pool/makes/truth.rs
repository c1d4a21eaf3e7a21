//! The answers of a node about its own chain, and their comparison with the answers of a gateway in front of it.

use serde_json::{Value, json};
use testkit::node_process::NodeProcess;

use super::chain::Make;

/// The meaning of an answer, whatever words a make has for it.
#[derive(Debug, PartialEq)]
pub(super) enum Outcome {
    Result(Value),
    /// The call reverts with this data.
    Revert(Value),
    /// The EVM stops for another reason.
    Halt,
    /// The block whose state is asked for does not exist.
    NoBlock,
    /// The gas of a call is more than what the node gives a call at most.
    GasCap,
    /// The node does not have the method, or not in this form.
    Unsupported,
    /// Any other error.
    Error(Value),
}

impl Outcome {
    pub(super) fn of(reply: &Value) -> Self {
        let Some(error) = reply.get("error") else { return Self::Result(reply["result"].clone()) };
        let message = error["message"].as_str().unwrap_or_default();
        let says = |parts: &[&str]| parts.iter().any(|part| message.contains(part));
        if error["code"] == -32002 {
            return Self::Error(error.clone());
        }
        if says(&["greater than the cap", "gas limit too high (cap: "]) {
            Self::GasCap
        } else if says(&["invalid opcode", "InvalidFEOpcode", "OutOfGas", "out of gas", "NotActivated"]) {
            Self::Halt
        } else if says(&["reverted", "revert"]) {
            Self::Revert(revert_data(error))
        } else if says(&[
            "header not found",
            "header for hash not found",
            "unknown block",
            "BlockOutOfRange",
            "Received invalid block tag",
            "Resource not found",
            "blockHash cannot be found",
        ]) {
            Self::NoBlock
        } else if says(&[
            "not supported",
            "does not exist/is not available",
            "Cannot wrap",
            "trailing characters",
            "number of arguments",
        ]) || error["code"] == -32601
        {
            Self::Unsupported
        } else {
            Self::Error(error.clone())
        }
    }
}

/// The data of a revert. Hardhat 2 has it in an object, and so has Ganache for estimates of gas.
fn revert_data(error: &Value) -> Value {
    let data = &error["data"];
    let inner = ["data", "result"].iter().find_map(|name| data.get(name));
    inner.unwrap_or(data).clone()
}

/// Methods about the contents of a block.
const IN_A_BLOCK: [&str; 9] = [
    "eth_getBlockTransactionCountByNumber",
    "eth_getBlockTransactionCountByHash",
    "eth_getUncleCountByBlockNumber",
    "eth_getUncleCountByBlockHash",
    "eth_getUncleByBlockNumberAndIndex",
    "eth_getUncleByBlockHashAndIndex",
    "eth_getTransactionByBlockNumberAndIndex",
    "eth_getTransactionByBlockHashAndIndex",
    "eth_getBlockReceipts",
];

/// Whether the node does not have the method, or not with these parameters.
pub(super) fn lacks(node: &NodeProcess, method: &str, params: &Value) -> bool {
    Outcome::of(&node.reply(method, params)) == Outcome::Unsupported
}

/// The node's own answer. Methods that the node lacks are answered with others: state at a hash with state at that block's
/// number, the receipts of a block with the receipts of its transactions, and the number of uncles with the block.
pub(super) fn truth(node: &NodeProcess, method: &str, params: &Value) -> Outcome {
    let reply = node.reply(method, params);
    let outcome = Outcome::of(&reply);
    // Where there is nothing, the specification says null, and Ganache has an error of its own.
    let fails_at_nothing =
        reply["error"]["message"].as_str().is_some_and(|text| text.contains("of undefined"));
    if IN_A_BLOCK.contains(&method) && (outcome == Outcome::NoBlock || fails_at_nothing) {
        return Outcome::Result(Value::Null);
    }
    if outcome != Outcome::Unsupported {
        return outcome;
    }
    let block = |named: &Value| {
        let is_hash = named.as_str().is_some_and(|text| text.len() == 66);
        let method = if is_hash { "eth_getBlockByHash" } else { "eth_getBlockByNumber" };
        node.ask(method, json!([named, false]))
    };
    match method {
        "eth_getBlockReceipts" => {
            let block = block(&params[0]);
            let Some(hashes) = block["transactions"].as_array() else { return Outcome::Result(Value::Null) };
            let receipt = |hash| node.ask("eth_getTransactionReceipt", json!([hash]));
            Outcome::Result(hashes.iter().map(receipt).collect())
        }
        "eth_getUncleCountByBlockNumber" | "eth_getUncleCountByBlockHash" => {
            let uncles =
                block(&params[0])["uncles"].as_array().map(|uncles| json!(format!("{:#x}", uncles.len())));
            Outcome::Result(uncles.unwrap_or_default())
        }
        "eth_getUncleByBlockNumberAndIndex" | "eth_getUncleByBlockHashAndIndex" => {
            Outcome::Result(Value::Null)
        }
        _ => by_number(node, method, params, &block).unwrap_or(outcome),
    }
}

fn by_number(
    node: &NodeProcess,
    method: &str,
    params: &Value,
    block: &dyn Fn(&Value) -> Value,
) -> Option<Outcome> {
    let place = params
        .as_array()?
        .iter()
        .position(|param| param.get("blockHash").or_else(|| param.get("blockNumber")).is_some())?;
    let number = match &params[place]["blockHash"] {
        Value::Null => params[place]["blockNumber"].clone(),
        hash => block(hash)["number"].clone(),
    };
    if number.is_null() {
        return Some(Outcome::NoBlock);
    }
    let mut params = params.clone();
    params[place] = number;
    Some(Outcome::of(&node.reply(method, &params)))
}

/// How an answer of the gateway may differ from the node's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// The gateway has a member that the node does not have.
    Added,
    /// The node has a member that the gateway leaves out.
    LeftOut,
    /// The values differ.
    Changed,
    /// The gateway says that there is no such block.
    NoBlock,
}

/// A member in which the gateway may differ from the node, and why that is right.
struct Difference {
    /// The start of the name of the make; all makes if it is empty.
    make: &'static str,
    /// All methods if it is empty.
    method: &'static str,
    /// The last name in the path of the member; the whole answer if it is empty.
    member: &'static str,
    kind: Kind,
    because: &'static str,
}

const fn any(method: &'static str, member: &'static str, kind: Kind, because: &'static str) -> Difference {
    Difference { make: "", method, member, kind, because }
}

const fn only(
    make: &'static str,
    method: &'static str,
    member: &'static str,
    kind: Kind,
    because: &'static str,
) -> Difference {
    Difference { make, method, member, kind, because }
}

const DIFFERENCES: &[Difference] = &[
    any("", "totalDifficulty", Kind::LeftOut, "no header commits to it"),
    any("", "blockTimestamp", Kind::Added, "the block proves it"),
    any("", "chainId", Kind::Added, "the signature proves it"),
    any("", "yParity", Kind::Added, "it says the same as v"),
    any("", "contractAddress", Kind::Added, "as in geth, it is where a creation that failed would have been"),
    any("eth_feeHistory", "baseFeePerBlobGas", Kind::Added, "the blocks prove it"),
    any("eth_feeHistory", "blobGasUsedRatio", Kind::Added, "the blocks prove it"),
    any("eth_gasPrice", "", Kind::Changed, "it is computed from the blocks as geth does"),
    any("eth_maxPriorityFeePerGas", "", Kind::Changed, "it is computed from the blocks as geth does"),
    only("Hardhat", "", "size", Kind::Changed, "it does not count the length of a typed transaction"),
    only("anvil", "", "size", Kind::Changed, "it does not count the list of withdrawals"),
    only("anvil", "eth_feeHistory", "reward", Kind::LeftOut, "no rewards were asked for"),
    only(
        "anvil",
        "eth_feeHistory",
        "baseFeePerGas",
        Kind::Changed,
        "its last one is that of the block after its head",
    ),
    only(
        "anvil",
        "eth_feeHistory",
        "baseFeePerBlobGas",
        Kind::Changed,
        "its last one is that of the block after its head",
    ),
    only(
        "Ganache",
        "eth_getStorageAt",
        "",
        Kind::Changed,
        "a storage value has 32 bytes; it leaves out zeros",
    ),
    only("anvil", "", "blobGasPrice", Kind::LeftOut, "the transaction has no blobs"),
    only("anvil", "", "blockTimestamp", Kind::LeftOut, "receipts have no such member; it is a number there"),
    only("Ganache", "eth_getUncleCountByBlockNumber", "", Kind::LeftOut, "there is no such block"),
    only("Ganache", "eth_getUncleCountByBlockHash", "", Kind::LeftOut, "there is no such block"),
    only("Ganache", "eth_getLogs", "", Kind::NoBlock, "it gives no logs for a block that there is not"),
];

/// How two answers compare.
#[derive(Debug, Default)]
pub(super) struct Comparison {
    /// Where they differ, each with the path of the member.
    pub(super) faults: Vec<String>,
    /// The differences that are right, each with its reason.
    pub(super) listed: Vec<String>,
}

/// Compares two answers. A member that is null is like one that is left out.
pub(super) fn comparison(make: Make, method: &str, told: &Outcome, truth: &Outcome) -> Comparison {
    let mut comparison = Comparison::default();
    let mut differ = |path: &str, kind: Kind, text: String| {
        let last = path.rsplit('.').next().unwrap_or_default();
        let member = last.split('[').next().unwrap_or_default();
        match listed(make, method, member, kind) {
            Some(reason) => comparison.listed.push(format!("{method} {member} {kind:?}: {reason}")),
            None if path.is_empty() => comparison.faults.push(text),
            None => comparison.faults.push(format!("{path} is {text}")),
        }
    };
    match (told, truth) {
        (Outcome::Result(told), Outcome::Result(truth)) => {
            compare("", told, truth, &mut |path, told, truth| {
                let kind = match (told.is_null(), truth.is_null()) {
                    (false, true) => Kind::Added,
                    (true, false) => Kind::LeftOut,
                    _ => Kind::Changed,
                };
                differ(path, kind, format!("{told}, but the node says {truth}"));
            });
        }
        _ if told == truth => {}
        _ => {
            let kind = if *told == Outcome::NoBlock { Kind::NoBlock } else { Kind::Changed };
            differ("", kind, format!("{told:?}, but the node says {truth:?}"));
        }
    }
    comparison
}

fn listed(make: Make, method: &str, member: &str, kind: Kind) -> Option<&'static str> {
    let name = make.name();
    let is_meant = |difference: &&Difference| {
        name.starts_with(difference.make)
            && (difference.method.is_empty() || difference.method == method)
            && difference.member == member
            && difference.kind == kind
    };
    DIFFERENCES.iter().find(is_meant).map(|difference| difference.because)
}

fn compare(path: &str, told: &Value, truth: &Value, differ: &mut dyn FnMut(&str, &Value, &Value)) {
    match (told, truth) {
        (Value::Object(ours), Value::Object(theirs)) => {
            let mut names: Vec<_> = ours.keys().chain(theirs.keys()).collect();
            names.sort_unstable();
            names.dedup();
            for name in names {
                compare(&format!("{path}.{name}"), &told[name], &truth[name], differ);
            }
        }
        (Value::Array(ours), Value::Array(theirs)) if ours.len() == theirs.len() => {
            for (place, (told, truth)) in ours.iter().zip(theirs).enumerate() {
                compare(&format!("{path}[{place}]"), told, truth, differ);
            }
        }
        _ if told == truth || is_same_number(told, truth) => {}
        _ => differ(path, told, truth),
    }
}

/// Ratios are rounded at different places.
fn is_same_number(one: &Value, other: &Value) -> bool {
    one.as_f64().zip(other.as_f64()).is_some_and(|(one, other)| (one - other).abs() < 1e-12)
}
