//! Compares the answers of a gateway about a chain that is reorganised with the truth, call by call.

use std::sync::Arc;

use parking_lot::Mutex;
use rand::Rng;
use rand::rngs::StdRng;
use serde_json::{Value, json};

use super::callers::Caller;
use super::identical_nodes::{BOX, Branch, Truth, Truths};
use super::questions::agree;

/// Half of the questions are about this many blocks below the head, which reorganisations may reach.
const NEW_BLOCKS: usize = 12;

/// The place up to which the gateway has told its callers of the chain.
pub(super) struct Told {
    truths: Truths,
    /// The earliest place that agrees with the answers so far. No later answer may be from a place before it.
    at: Mutex<Place>,
}

/// A branch, and how far the gateway has followed it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Place {
    branch: usize,
    head: usize,
}

/// A question with its true answer on a branch. If it names no block, it is about the block that the answer names.
struct Asked {
    method: &'static str,
    params: Value,
    /// The newest block that the question names.
    number: usize,
    truth: Box<Tells>,
}

/// Computes the true answer on a branch. The second argument is the given answer, which may name its own block.
type Tells = dyn Fn(&Branch, &Value) -> Value;

impl Told {
    pub(super) fn new(truths: Truths) -> Self {
        Self { truths, at: Mutex::new(Place { branch: 0, head: 0 }) }
    }

    /// Asks a random question, and compares the answer.
    pub(super) fn ask(&self, caller: &mut Caller) {
        let at = *self.at.lock();
        let asked = self.question(&mut caller.rng, at.head);
        let reply = caller.ask(asked.method, &asked.params.to_string());
        let truths = self.truths.read().unwrap();
        let place = (at.branch..truths.len()).find_map(|branch| asked.place(&reply, at, branch, &truths));
        let Some(place) = place else {
            let Asked { method, params, .. } = &asked;
            let before = (0..at.branch).rev().find(|&branch| asked.is_true(&reply, &truths[branch]));
            panic!(
                "{method} {params}: {reply} after {at:?} of {} branches, true on {before:?}",
                truths.len()
            );
        };
        let mut at = self.at.lock();
        *at = place.max(*at);
    }

    fn question(&self, rng: &mut StdRng, head: usize) -> Asked {
        let lowest = if rng.random() { head.saturating_sub(NEW_BLOCKS) } else { 0 };
        let number = rng.random_range(lowest..=head);
        let (tag, from) = (format!("{number:#x}"), number.saturating_sub(3));
        match rng.random_range(0..10) {
            0 => asked(0, "eth_blockNumber", json!([]), |branch, told| {
                if quantity(told) < branch.len() { told.clone() } else { Value::Null }
            }),
            1 => asked(0, "eth_getBlockByNumber", json!(["latest", false]), |branch, told| {
                branch.get(quantity(&told["number"])).map_or(Value::Null, |truth| truth.block.clone())
            }),
            2 => self.about_transaction(rng, number, "eth_getTransactionByHash", |truth| &truth.transaction),
            3 => self.about_transaction(rng, number, "eth_getTransactionReceipt", |truth| &truth.receipt),
            4 => balance(number.saturating_sub(NEW_BLOCKS)),
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
                asked(number, "eth_getLogs", params, move |branch, _| {
                    let blocks = branch.get(from..=number).unwrap_or_default();
                    blocks.iter().filter_map(|truth| truth.logs.as_array()).flatten().cloned().collect()
                })
            }
            _ => {
                about_block(number, "eth_getBlockByNumber", json!([tag, false]), |truth| truth.block.clone())
            }
        }
    }

    /// A question about a transaction of any branch: it may have been lost, or be about to come.
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
        asked(0, method, json!([hash]), move |branch, _| {
            let there = branch.get(number).filter(|truth| truth.transaction["hash"] == hash);
            there.map_or(Value::Null, |there| truth(there).clone())
        })
    }
}

impl Asked {
    /// The place of the gateway if this answer is from this branch; `None` if it cannot be, or if the place is before `at`.
    fn place(&self, reply: &Value, at: Place, branch: usize, truths: &[Branch]) -> Option<Place> {
        // Nodes make the blocks of a branch one by one, and the gateway may see that.
        let lowest = if branch == at.branch { at.head } else { first_of_its_own(branch, truths) };
        let is_not_there_yet = branch > at.branch && self.number > lowest && is_nothing(reply);
        if !is_not_there_yet && !self.is_true(reply, &truths[branch]) {
            return None;
        }
        let head = head_in(self.method, &self.params, &reply["result"]).unwrap_or(lowest);
        (head >= lowest).then_some(Place { branch, head })
    }

    fn is_true(&self, reply: &Value, branch: &Branch) -> bool {
        reply.get("result").is_some_and(|result| {
            let mut truth = (self.truth)(branch, result);
            // Anvil does not count the list of withdrawals, which Geth does.
            if let Some(truth) = truth.as_object_mut() {
                truth.remove("size");
            }
            agree(&truth, result)
        })
    }
}

/// The first block that a branch does not share with the one before it.
fn first_of_its_own(branch: usize, truths: &[Branch]) -> usize {
    let both = truths[branch].iter().zip(&truths[branch - 1]);
    both.take_while(|(one, other)| Arc::ptr_eq(one, other)).count()
}

/// Whether a reply is null, or an error that says that the head is further down.
fn is_nothing(reply: &Value) -> bool {
    reply.get("result").map_or(reply["error"]["code"] == -32602, Value::is_null)
}

fn asked(
    number: usize,
    method: &'static str,
    params: Value,
    truth: impl Fn(&Branch, &Value) -> Value + 'static,
) -> Asked {
    Asked { method, params, number, truth: Box::new(truth) }
}

fn about_block(number: usize, method: &'static str, params: Value, truth: fn(&Truth) -> Value) -> Asked {
    asked(number, method, params, move |branch, _| branch.get(number).map_or(Value::Null, |of| truth(of)))
}

/// A balance at an old block, or at the next one: anvil answers for another block when it is asked for the state of its newest
/// one while it makes or takes back blocks. It also does so without a gateway, and its answer does not show it.
fn balance(number: usize) -> Asked {
    asked(number, "eth_getBalance", json!([BOX, format!("{number:#x}")]), move |branch, told| {
        let balances = || branch.iter().skip(number).take(2).map(|truth| &truth.balance);
        balances().find(|balance| *balance == told).or_else(|| balances().next()).cloned().unwrap_or_default()
    })
}

/// The head that an answer tells of.
fn head_in(method: &str, params: &Value, result: &Value) -> Option<usize> {
    match method {
        "eth_blockNumber" => Some(quantity(result)),
        "eth_getBlockByNumber" if params[0] == "latest" => Some(quantity(&result["number"])),
        _ => None,
    }
}

fn quantity(value: &Value) -> usize {
    let digits = value.as_str().and_then(|text| text.strip_prefix("0x"));
    digits.and_then(|digits| usize::from_str_radix(digits, 16).ok()).unwrap_or_else(|| panic!("{value}"))
}
