//! Whether an answer is true, and whether a gateway may give it.

use serde_json::Value;

use super::calls::{AnswerKind, KnownCall, TrueChain};
use super::lie::NodeLie;
use super::mix::NodeMix;
use crate::http::{ReceivedReply, post};

/// How far a gateway is configured to verify state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StateTrust {
    /// One node is believed.
    Trusted,
    /// A quorum must agree.
    Confirmed,
    /// Everything must be proven.
    Proven,
}

/// The outcome of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AnswerVerdict {
    Right,
    /// An error that says that there is no answer now.
    Failed,
    /// An untrue answer that the honest nodes cannot outvote: another head, or that something is not there.
    Decided,
    Wrong,
}

/// The code of errors that say that no node can answer.
const UNAVAILABLE: i64 = -32002;

pub(super) fn judge(
    chain: &TrueChain,
    lie: Option<&NodeLie>,
    mix: &NodeMix,
    call: &KnownCall,
    reply: Option<&ReceivedReply>,
) -> AnswerVerdict {
    let Some(reply) = reply else { return AnswerVerdict::Failed };
    let told: Value = serde_json::from_slice(&reply.body).unwrap_or_default();
    if is_same(&call.truth, &told) && is_known_block(chain, reply) {
        return AnswerVerdict::Right;
    }
    let is_error = told.get("error").is_some();
    if told["error"]["code"] == UNAVAILABLE
        || is_error && call.kind == AnswerKind::Blocks && !mix.honest_decide()
    {
        return AnswerVerdict::Failed;
    }
    let is_proven = reply.header("chaingate-verified") == Some("proven");
    let is_decided = !mix.honest_decide()
        && lie.is_some_and(|lie| is_of_other_head(chain, lie, call, reply, &told))
        || mix.liars_decide() && is_not_there(&told) && !is_proven;
    if is_decided { AnswerVerdict::Decided } else { AnswerVerdict::Wrong }
}

/// Whether a result says that something is nowhere, or in no block yet.
fn is_not_there(told: &Value) -> bool {
    told.get("result")
        .is_some_and(|result| result.is_null() || result.get("blockHash").is_some_and(Value::is_null))
}

/// Whether an answer is true of the head that liars may decide on.
fn is_of_other_head(
    chain: &TrueChain,
    lie: &NodeLie,
    call: &KnownCall,
    reply: &ReceivedReply,
    told: &Value,
) -> bool {
    let Some(node) = lie.other else {
        let is_above_head = is_not_there(told) || told["error"]["message"] == "header not found";
        return lie.about_heads && (call.depends_on_head() || is_above_head || !is_known_block(chain, reply));
    };
    let truth = serde_json::from_slice(&post(node, chain.path, call.body()).body);
    is_same(&truth.unwrap_or_default(), told)
}

impl StateTrust {
    /// Whether wrong answers of this kind must not occur.
    pub(super) fn forbids_wrong(self, mix: &NodeMix, kind: AnswerKind) -> bool {
        match (kind, self) {
            (AnswerKind::Blocks, _) | (AnswerKind::State, Self::Proven) => true,
            (AnswerKind::State, Self::Confirmed) => !mix.liars_decide(),
            (AnswerKind::State, Self::Trusted) => false,
        }
    }
}

/// Whether the block that the answer is said to be of is one of the chain.
fn is_known_block(chain: &TrueChain, reply: &ReceivedReply) -> bool {
    let hash = reply.header("chaingate-block").and_then(|block| block.split(' ').nth(1));
    hash.is_none_or(|hash| chain.hashes.contains(hash))
}

/// Whether two replies say the same. The texts of errors may differ in their details. The total difficulty of a block is left
/// out: no header commits to it, so that a gateway in front of nodes may not tell it.
fn is_same(truth: &Value, told: &Value) -> bool {
    if let (Some(truth), Some(told)) = (truth.get("error"), told.get("error")) {
        return truth["code"] == told["code"] && truth["data"] == told["data"];
    }
    match (truth.get("result"), told.get("result")) {
        (Some(truth), Some(told)) => comparable(truth) == comparable(told),
        _ => false,
    }
}

fn comparable(result: &Value) -> Value {
    let mut result = result.clone();
    if let Some(members) = result.as_object_mut().filter(|block| block.contains_key("transactions")) {
        members.remove("totalDifficulty");
    }
    result
}
