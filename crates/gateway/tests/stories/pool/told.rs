//! What a gateway has told its callers of a chain that is reorganised, call by call beside what is true.

use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};

use rand::Rng;
use rand::rngs::StdRng;
use serde_json::{Value, json};

use super::callers::Caller;
use super::twins::{BOX, Branch, Truth, Truths};

/// Half of the questions are about so many blocks below the head, which reorganisations may reach.
const NEW_BLOCKS: usize = 12;

/// What the gateway has told anybody so far.
pub(super) struct Told {
    truths: Truths,
    /// The newest branch that an answer must have come from. What was true only before it may never be heard again.
    branch: AtomicUsize,
    /// The highest head. Branches are as long as those that they replace, so it never falls.
    head: AtomicUsize,
}

/// A question, and what is true of it on a branch. What names no block is true as of the block that the answer names.
struct Asked {
    method: &'static str,
    params: Value,
    truth: Box<dyn Fn(&Branch, &Value) -> Value>,
}

impl Told {
    pub(super) fn new(truths: Truths) -> Self {
        Self { truths, branch: AtomicUsize::new(0), head: AtomicUsize::new(0) }
    }

    /// Asks for something, and compares.
    pub(super) fn ask(&self, caller: &mut Caller) {
        let (branch, head) = (self.branch.load(SeqCst), self.head.load(SeqCst));
        let Asked { method, params, truth } = self.question(&mut caller.rng, head);
        let reply = caller.ask(method, &params.to_string());
        let Some(result) = reply.get("result") else { panic!("{method} {params}: {reply}") };
        let truths = self.truths.read().unwrap();
        let is_true = |branch: &usize| truth(&truths[*branch], result) == *result;
        let Some(of) = (branch..truths.len()).find(is_true) else {
            let was_true = (0..branch).rev().find(is_true);
            panic!(
                "{method} {params}: {result} is not true on branch {branch} of {}, and was on {was_true:?}",
                truths.len()
            );
        };
        self.branch.fetch_max(of, SeqCst);
        if let Some(now) = head_in(method, &params, result) {
            assert!(now >= head, "the head was {head}, and is {now}");
            self.head.fetch_max(now, SeqCst);
        }
    }

    fn question(&self, rng: &mut StdRng, head: usize) -> Asked {
        let lowest = if rng.random() { head.saturating_sub(NEW_BLOCKS) } else { 0 };
        let number = rng.random_range(lowest..=head);
        let (tag, from) = (format!("{number:#x}"), number.saturating_sub(3));
        match rng.random_range(0..10) {
            0 => asked("eth_blockNumber", json!([]), |branch, told| {
                if quantity(told) < branch.len() { told.clone() } else { Value::Null }
            }),
            1 => asked("eth_getBlockByNumber", json!(["latest", false]), |branch, told| {
                branch.get(quantity(&told["number"])).map_or(Value::Null, |truth| truth.block.clone())
            }),
            2 => self.about_transaction(rng, number, "eth_getTransactionByHash", |truth| &truth.transaction),
            3 => self.about_transaction(rng, number, "eth_getTransactionReceipt", |truth| &truth.receipt),
            4 => about_block(number, "eth_getBalance", json!([BOX, tag]), |truth| truth.balance.clone()),
            5 => about_block(number, "eth_getBlockReceipts", json!([tag]), |truth| {
                Value::from_iter(Some(&truth.receipt).filter(|receipt| receipt.is_object()).cloned())
            }),
            6 => {
                let params = json!([tag, "0x0"]);
                about_block(number, "eth_getTransactionByBlockNumberAndIndex", params, |truth| {
                    truth.transaction.clone()
                })
            }
            7 => {
                let params = json!([{"fromBlock": format!("{from:#x}"), "toBlock": tag}]);
                asked("eth_getLogs", params, move |branch, _| {
                    let blocks = branch.get(from..=number).unwrap_or_default();
                    blocks.iter().filter_map(|truth| truth.logs.as_array()).flatten().cloned().collect()
                })
            }
            _ => {
                about_block(number, "eth_getBlockByNumber", json!([tag, false]), |truth| truth.block.clone())
            }
        }
    }

    /// Of any branch: what is asked for may have been lost, or be about to come.
    fn about_transaction(
        &self,
        rng: &mut StdRng,
        number: usize,
        method: &'static str,
        truth: fn(&Truth) -> &Value,
    ) -> Asked {
        let truths = self.truths.read().unwrap();
        let branch = &truths[rng.random_range(0..truths.len())];
        let number = number.clamp(1, branch.len() - 1);
        let hash = branch[number].transaction["hash"].clone();
        asked(method, json!([hash]), move |branch, _| {
            let there = branch.get(number).filter(|truth| truth.transaction["hash"] == hash);
            there.map_or(Value::Null, |there| truth(there).clone())
        })
    }
}

fn asked(method: &'static str, params: Value, truth: impl Fn(&Branch, &Value) -> Value + 'static) -> Asked {
    Asked { method, params, truth: Box::new(truth) }
}

fn about_block(number: usize, method: &'static str, params: Value, truth: fn(&Truth) -> Value) -> Asked {
    asked(method, params, move |branch, _| branch.get(number).map_or(Value::Null, |of| truth(of)))
}

/// The head that an answer tells of.
fn head_in(method: &str, params: &Value, result: &Value) -> Option<usize> {
    match method {
        "eth_blockNumber" => Some(quantity(result)),
        _ if params[0] == "latest" => Some(quantity(&result["number"])),
        _ => None,
    }
}

fn quantity(value: &Value) -> usize {
    let digits = value.as_str().and_then(|text| text.strip_prefix("0x"));
    digits.and_then(|digits| usize::from_str_radix(digits, 16).ok()).unwrap_or_else(|| panic!("{value}"))
}
