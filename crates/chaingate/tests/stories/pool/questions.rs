//! Questions with their true answers, which a node gives when it is asked directly.

use demo::HEAD_NUMBER;
use demo_builder::accounts::{ALICE, ERIN};
use demo_builder::contracts::{CHATTER, TOKEN, TOUR};
use demo_builder::facts::{CHATTER_BLOCKS, RAW_BLOCKS, mapping_slot};
use methods::METHODS;
use rand::Rng;
use serde_json::Value;

use super::callers::Caller;
use crate::demo::Demo;

/// A call, and the result or error that it must have.
#[derive(Clone, Debug)]
pub(super) struct Question {
    pub(super) method: &'static str,
    pub(super) params: String,
    pub(super) truth: Value,
}

/// Questions of every kind to the demo chain.
pub(super) fn all(node: &Demo) -> Vec<Question> {
    let examples = METHODS.iter().filter(|method| method.name != "rpc.discover");
    let mut asked: Vec<_> = examples.map(|method| (method.name, method.example.to_owned())).collect();
    asked.extend(fixed());
    for point in &demo_builder::build().unwrap().facts.points {
        let (number, hash) = (point.block, point.block_hash);
        asked.push(("eth_getBlockByNumber", format!(r#"["{number:#x}",true]"#)));
        asked.push(("eth_getBlockByHash", format!(r#"["{hash}",false]"#)));
        asked.push(("eth_getBlockReceipts", format!(r#"["{number:#x}"]"#)));
        asked.push(("eth_getUncleCountByBlockNumber", format!(r#"["{number:#x}"]"#)));
        asked.push(("eth_getUncleByBlockHashAndIndex", format!(r#"["{hash}","0x0"]"#)));
        asked.push(("eth_getLogs", format!(r#"[{{"blockHash":"{hash}"}}]"#)));
        asked.push(("eth_getBalance", format!(r#"["{}","{number:#x}"]"#, ALICE.address)));
        if let Some(transaction) = point.transaction {
            let (hash, index) = (transaction.hash, transaction.index);
            asked.push(("eth_getTransactionByHash", format!(r#"["{hash}"]"#)));
            asked.push(("eth_getTransactionReceipt", format!(r#"["{hash}"]"#)));
            asked.push((
                "eth_getTransactionByBlockNumberAndIndex",
                format!(r#"["{number:#x}","{index:#x}"]"#),
            ));
        }
    }
    asked
        .into_iter()
        .map(|(method, params)| {
            let truth = outcome(&node.call(method, &params));
            Question { method, params, truth }
        })
        .collect()
}

const UNAVAILABLE: i64 = -32002;

/// Asks one of the questions and compares. Only a quorum can say that there is nothing, so such a call may fail without one.
pub(super) fn ask_any(caller: &mut Caller, questions: &[Question]) {
    let Question { method, params, truth } = &questions[caller.rng.random_range(0..questions.len())];
    let told = outcome(&caller.ask(method, params));
    let is_without_quorum = truth.is_null() && told["code"] == UNAVAILABLE;
    assert!(told == *truth || is_without_quorum, "{method} {params}: {told} is not {truth}");
}

fn fixed() -> Vec<(&'static str, String)> {
    let (tour, token, chatter) = (TOUR.address(), TOKEN.address(), CHATTER.address());
    let (first, last) = CHATTER_BLOCKS.into_inner();
    let raw = *RAW_BLOCKS.start();
    vec![
        ("eth_feeHistory", r#"["0x5","latest",[25,75.5]]"#.to_owned()),
        ("eth_getStorageAt", format!(r#"["{tour}","0x0","latest"]"#)),
        ("eth_getStorageAt", format!(r#"["{tour}","{}","latest"]"#, mapping_slot(ERIN.address, 1))),
        ("eth_getStorageAt", format!(r#"["{tour}","0x0","earliest"]"#)),
        ("eth_getCode", format!(r#"["{token}","latest"]"#)),
        ("eth_getTransactionCount", format!(r#"["{}","latest"]"#, ALICE.address)),
        ("eth_getTransactionByHash", format!(r#"["0x{}"]"#, "ab".repeat(32))),
        ("eth_getTransactionReceipt", format!(r#"["0x{}"]"#, "ab".repeat(32))),
        ("eth_getBlockByHash", format!(r#"["0x{}",false]"#, "ab".repeat(32))),
        ("eth_getBlockByNumber", format!(r#"["{:#x}",false]"#, HEAD_NUMBER + 1)),
        ("eth_getLogs", format!(r#"[{{"fromBlock":"0x0","toBlock":"latest","address":"{token}"}}]"#)),
        (
            "eth_getLogs",
            format!(r#"[{{"fromBlock":"{first:#x}","toBlock":"{last:#x}","address":"{chatter}"}}]"#),
        ),
        (
            "eth_getLogs",
            format!(r#"[{{"fromBlock":"{first:#x}","toBlock":"{:#x}","address":"{chatter}"}}]"#, first + 2),
        ),
        ("eth_getLogs", r#"[{"fromBlock":"0x0","toBlock":"0x5"}]"#.to_owned()),
        // totalSupply(), failWithReason and an estimate of each.
        ("eth_call", format!(r#"[{{"to":"{token}","data":"0x18160ddd"}},"latest"]"#)),
        ("eth_estimateGas", format!(r#"[{{"to":"{token}","data":"0x18160ddd"}}]"#)),
        ("eth_call", format!(r#"[{{"to":"{token}","data":"0xdeadbeef"}},"latest"]"#)),
        ("zks_getRawBlockTransactions", format!("[{raw}]")),
        ("zks_getRawBlockTransactions", "[0]".to_owned()),
    ]
}

/// The result or error of a reply. The total difficulty of a block is left out: no header commits to it, so that a gateway in
/// front of nodes does not tell it.
pub(super) fn outcome(reply: &Value) -> Value {
    let outcome = reply.get("result").or_else(|| reply.get("error"));
    let mut outcome = outcome.cloned().unwrap_or_else(|| panic!("{reply}"));
    if let Some(members) = outcome.as_object_mut().filter(|block| block.contains_key("transactions")) {
        members.remove("totalDifficulty");
    }
    outcome
}

/// Whether two answers are equal in all members that both have. Nodes leave out members that are younger than they are, and
/// add different ones.
pub(super) fn agree(truth: &Value, told: &Value) -> bool {
    match (truth, told) {
        (Value::Object(truth), Value::Object(told)) => {
            told.iter().all(|(name, told)| truth.get(name).is_none_or(|truth| agree(truth, told)))
        }
        (Value::Array(truth), Value::Array(told)) => {
            truth.len() == told.len() && truth.iter().zip(told).all(|(truth, told)| agree(truth, told))
        }
        _ => truth == told,
    }
}
