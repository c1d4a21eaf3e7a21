//! EthereumJS serves blocks that it is started with and cannot make any, so that nothing is followed here.

use serde_json::{Value, json};

use super::super::ethereumjs::Pair;
use super::super::front::Front;
use super::super::questions::{self, Question, agree, outcome};
use super::{NETWORK, Report};

/// State was refused without a reason, because it does not know EIP-1898, and so were receipts, because it answers null for the hash of
/// every block.
#[test]
fn what_ethereumjs_can_tell_reaches_callers_and_the_rest_is_refused_with_a_reason() {
    let Some(pair) = Pair::start() else { return };
    let version = pair.node.ask("web3_clientVersion", json!([]));
    let mut report = Report::new(format!("EthereumJS {version}"));
    let front = Front::unready(&[pair.node_url()], NETWORK);
    if report.wait_until_ready(&front) {
        let questions = questions::all(&pair.gateway);
        for question in questions.iter().filter(|question| !question.method.starts_with("zks_")) {
            compare(&mut report, &pair, &front, question);
        }
        report.check_refused_methods(&front);
        report.check_fees_beyond_the_head(&front);
    }
    report.finish();
}

/// The truth is what a gateway says that has executed the same blocks.
fn compare(report: &mut Report, pair: &Pair, front: &Front, question: &Question) {
    let Question { method, params, truth } = question;
    let asked: Value = serde_json::from_str(params).unwrap();
    let reply = front.ask(method, params);
    let node = pair.node.reply(method, &asked);
    if reply["error"]["code"] == -32002 {
        let has_reason = report.refusal(method, &asked, &reply);
        if has_reason && why_refused(pair, question, &asked, &node).is_none() {
            report.wrong(method, &asked, format!("{}, but the node says {node}", reply["error"]));
        }
        return;
    }
    report.answered += 1;
    let told = outcome(&reply);
    // It estimates without a search, so that only its own estimates are like what callers get.
    let is_estimate = *method == "eth_estimateGas" && truth.is_string();
    if is_estimate && told != outcome(&node) || !is_estimate && !agree(truth, &told) {
        report.wrong(method, &asked, format!("{told} is not {truth}; the node says {node}"));
    }
}

/// Why nobody can tell the answer from what it says.
fn why_refused(pair: &Pair, question: &Question, asked: &Value, node: &Value) -> Option<&'static str> {
    let Question { method, truth, .. } = question;
    if node.get("error").is_some() {
        return Some("it has an error of its own");
    }
    if ["eth_getLogs", "eth_feeHistory", "eth_gasPrice", "eth_maxPriorityFeePerGas"].contains(method) {
        return Some("there may be a block of the others in the range");
    }
    let named = [&truth["blockHash"], &truth[0]["blockHash"], &truth["hash"], &asked[0]];
    let named = named.into_iter().find(|named| named.is_string())?;
    let is_hash = named.as_str().is_some_and(|text| text.len() == 66);
    let method = if is_hash { "eth_getBlockByHash" } else { "eth_getBlockByNumber" };
    let block = pair.gateway.call(method, &json!([named, true]).to_string())["result"].clone();
    let has_members = |list: &Value, member: &dyn Fn(&Value) -> bool| {
        list.as_array().is_some_and(|list| list.iter().any(member))
    };
    if has_members(&block["uncles"], &|_| true) {
        Some("it has no method for the uncles that the block is proven with")
    } else if has_members(&block["transactions"], &|transaction| transaction["type"] == "0x4") {
        Some("it leaves the authorizations of transactions of type 4 out")
    } else if truth.to_string().contains("\"root\"") {
        Some("it leaves the state root of receipts from before Byzantium out")
    } else {
        None
    }
}
