//! Recorded chains and exchanges. They are not part of this repository: `CHAINGATE_CONFORMANCE` names their folder.

use std::fs;
use std::path::{Path, PathBuf};

use alloy_consensus::{Block, EthereumTxEnvelope, Header, TxEip4844};
use alloy_primitives::Address;
use alloy_rlp::Decodable;
use serde_json::Value;

use super::mutate::{
    all_found_out, covered_in_block, covered_in_receipt, covered_in_receipts, covered_in_transaction,
};
use super::sample::rpc_block;
use super::*;

pub(crate) type Transaction = EthereumTxEnvelope<TxEip4844>;

/// Blocks of a chain whose digits are changed too; all of them would take minutes.
const MUTATED: usize = 10;

pub(crate) fn corpora() -> Vec<PathBuf> {
    let Some(folder) = skip::recorded_chains() else { return Vec::new() };
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let found: Vec<_> = entries.filter(|path| path.join("chain.rlp").exists()).collect();
    assert!(!found.is_empty());
    found
}

pub(crate) fn chain(corpus: &Path) -> Vec<Block<Transaction, Header>> {
    let bytes = fs::read(corpus.join("chain.rlp")).unwrap();
    let (mut rest, mut blocks) = (&bytes[..], Vec::new());
    while !rest.is_empty() {
        blocks.push(Block::decode(&mut rest).unwrap());
    }
    blocks
}

fn expect_block(header: &Header, full: bool) -> Expect {
    Expect::Block { hash: Some(header.hash_slow()), number: Some(header.number), full }
}

/// The block as alloy's types write it, with whole transactions and with hashes.
pub(crate) fn written(block: &Block<Transaction, Header>) -> [String; 2] {
    let uncles = block.body.ommers.iter().map(Header::hash_slow).collect();
    rpc_block(&block.header, &block.body.transactions, uncles, block.body.withdrawals.clone())
}

#[test]
fn every_recorded_block_is_sound_and_none_with_a_changed_digit() {
    for corpus in corpora() {
        let chain = chain(&corpus);
        let step = chain.len().div_ceil(MUTATED);
        for (place, block) in chain.iter().enumerate() {
            for (result, full) in written(block).iter().zip([true, false]) {
                let expect = expect_block(&block.header, full);
                let facts = sound(&expect, result);
                assert_eq!(facts.count, block.body.transactions.len());
                if place % step == 0 {
                    all_found_out(&expect, result, covered_in_block);
                }
            }
        }
    }
}

/// A recorded call with its result. Errors and calls with other ids than hexadecimal ones are left out.
pub(crate) struct Exchange {
    pub(crate) method: String,
    params: Vec<Value>,
    pub(crate) result: Value,
}

pub(crate) fn exchanges(corpus: &Path) -> Vec<Exchange> {
    let mut found = Vec::new();
    for folder in fs::read_dir(corpus.join("io")).unwrap() {
        for file in fs::read_dir(folder.unwrap().path()).unwrap() {
            let text = fs::read_to_string(file.unwrap().path()).unwrap();
            let message = |mark: &str| {
                let lines = text.lines().filter_map(move |line| line.strip_prefix(mark));
                lines.map(|line| serde_json::from_str::<Value>(line).unwrap()).collect::<Vec<_>>()
            };
            for (call, reply) in message(">>").into_iter().zip(message("<<")) {
                let Some(result) = reply.get("result").cloned() else { continue };
                let method = call["method"].as_str().unwrap().to_owned();
                let params = call["params"].as_array().cloned().unwrap_or_default();
                found.push(Exchange { method, params, result });
            }
        }
    }
    found
}

/// What the recorded chain says about the blocks that are asked for.
struct Known {
    blocks: Vec<Arc<BlockFacts>>,
}

impl Known {
    fn of(corpus: &Path) -> Self {
        let facts = |block: &Block<Transaction, Header>| {
            sound(&expect_block(&block.header, true), &written(block)[0]).header.unwrap()
        };
        Self { blocks: chain(corpus).iter().map(facts).collect() }
    }

    /// By hash, number or tag. None for the genesis, which the file of the chain leaves out.
    fn block(&self, param: &Value) -> Option<&Arc<BlockFacts>> {
        match param.as_str().unwrap() {
            "latest" | "pending" | "safe" | "finalized" => self.blocks.last(),
            "earliest" => None,
            hash if hash.len() == 66 => {
                let hash: B256 = hash.parse().unwrap();
                self.blocks.iter().find(|block| block.id.hash == hash)
            }
            number => self.blocks.iter().find(|block| block.id.number == quantity(number)),
        }
    }
}

fn quantity(text: &str) -> u64 {
    u64::from_str_radix(&text[2..], 16).unwrap()
}

fn words(value: &Value) -> Vec<B256> {
    match value {
        Value::Array(words) => words.iter().flat_map(self::words).collect(),
        Value::String(word) => vec![word.parse().unwrap()],
        _ => vec![],
    }
}

fn log_query(filter: &Value, known: &Known) -> Option<LogQuery> {
    let topics =
        filter["topics"].as_array().map(|topics| topics.iter().map(words).collect()).unwrap_or_default();
    let addresses: Vec<Address> =
        filter["address"].as_str().map(|address| address.parse().unwrap()).into_iter().collect();
    let query = |from, to| LogQuery::new(from, to, addresses, topics, 10_000);
    if filter["blockHash"].is_string() {
        let block = known.block(&filter["blockHash"])?.id;
        return Some(query(block.number, block.number).of_block(block.hash));
    }
    let number = |name: &str| Some(known.block(&filter[name])?.id.number);
    Some(query(number("fromBlock")?, number("toBlock")?))
}

/// What the gateway would expect of the answer.
fn expected(exchange: &Exchange, known: &Known) -> Option<Expect> {
    let word = |place: usize| exchange.params[place].as_str().unwrap().parse::<B256>().unwrap();
    let index = || quantity(exchange.params[1].as_str().unwrap());
    let block = || known.block(&exchange.params[0]);
    Some(match exchange.method.as_str() {
        "eth_getStorageAt" => Expect::Word,
        "eth_call" => Expect::Data,
        "eth_estimateGas" => Expect::Quantity,
        "eth_getTransactionByHash" => Expect::Transaction { hash: Some(word(0)), block: None, index: None },
        "eth_getTransactionReceipt" => Expect::Receipt { transaction: word(0) },
        "eth_getTransactionByBlockHashAndIndex" | "eth_getTransactionByBlockNumberAndIndex" => {
            let block = block()?;
            let hash = block.transactions.as_ref()?.get(index() as usize).copied();
            Expect::Transaction { hash, block: Some(block.id), index: Some(index()) }
        }
        "eth_getUncleByBlockHashAndIndex" | "eth_getUncleByBlockNumberAndIndex" => {
            let block = block()?;
            Expect::Uncle { block: block.id, hash: block.uncles.get(index() as usize).copied() }
        }
        "eth_getBlockReceipts" => {
            let block = block()?;
            Expect::Receipts { block: block.id, header: Some(block.clone()) }
        }
        "eth_getLogs" => Expect::Logs(Arc::new(log_query(&exchange.params[0], known)?)),
        other => panic!("nothing is known of {other}"),
    })
}

/// How many changed digits were found out.
fn mutated(exchange: &Exchange, expect: &Expect) -> usize {
    let result = exchange.result.to_string();
    match expect {
        Expect::Transaction { block, .. } => all_found_out(expect, &result, |place, whole| {
            let tied = block.is_some() || !place.starts_with("/block") && place != "/transactionIndex";
            tied && covered_in_transaction(place, whole)
        }),
        Expect::Receipt { .. } => all_found_out(expect, &result, covered_in_receipt),
        Expect::Receipts { .. } => all_found_out(expect, &result, covered_in_receipts),
        Expect::Uncle { .. } => all_found_out(expect, &result, covered_in_block),
        // The recorded filters all name the second topic.
        Expect::Logs(_) => {
            let by_hash = exchange.params[0]["blockHash"].is_string();
            let covers = |place: &str, _: &Value| {
                place.ends_with("/topics/1") || (by_hash && place.ends_with("/blockHash"))
            };
            all_found_out(expect, &result, covers)
        }
        _ => 0,
    }
}

#[test]
fn every_recorded_answer_is_sound_and_none_with_a_changed_digit() {
    let (mut judged, mut found_out) = (0, 0);
    let corpora = corpora();
    for corpus in &corpora {
        let known = Known::of(corpus);
        for exchange in exchanges(corpus) {
            if exchange.result.is_null() {
                continue;
            }
            let Some(expect) = expected(&exchange, &known) else { continue };
            sound(&expect, &exchange.result.to_string());
            judged += 1;
            found_out += mutated(&exchange, &expect);
        }
    }
    assert!(corpora.is_empty() || (judged > 150 && found_out > 5_000), "{judged} {found_out}");
}
