//! Calls with their true answers, which a node gives when it is asked directly.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};

use methods::{BlockParam, FeeQuery, GatewayQuery, METHODS, Method, MethodId, Query};
use rand::SeedableRng;
use rand::rngs::SmallRng;
use rand::seq::SliceRandom;
use serde_json::{Value, json};

use super::lie::NodeLie;
use crate::http::{TestConnection, post};
use crate::proofs::ProvableStates;
use crate::proxy::{KnownReplies, Mood, Proxy};

/// Blocks with uncles that are asked about.
const WITH_UNCLES_MAX: u64 = 4;

/// Longer answers are left out: reading them takes most of the time, and they are of the same kinds.
const ANSWER_BYTES_MAX: usize = 20_000;

/// The data that an answer is made from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AnswerKind {
    /// Blocks, which can be proven.
    Blocks,
    /// State, fees, and other data that no header commits to.
    State,
}

/// A call with its true answer.
#[derive(Clone, Debug)]
pub struct KnownCall {
    pub method: &'static str,
    pub params: Value,
    pub kind: AnswerKind,
    /// The reply of the node, which [`super::judge`] compares with the gateway's.
    pub(super) truth: Value,
}

impl KnownCall {
    pub(super) fn body(&self) -> String {
        json!({"jsonrpc": "2.0", "id": 1, "method": self.method, "params": self.params}).to_string()
    }

    /// Whether the answer depends on which block is the newest, safe or finalized.
    pub(super) fn depends_on_head(&self) -> bool {
        let params = self.params.to_string();
        params == "[]" || ["latest", "safe", "finalized"].iter().any(|tag| params.contains(tag))
    }
}

/// A chain that does not change, the node that has it, and calls about it.
#[derive(Debug)]
pub struct TrueChain {
    pub name: &'static str,
    pub node: SocketAddr,
    pub path: &'static str,
    pub calls: Vec<KnownCall>,
    /// Number of the newest block.
    pub(super) head: Value,
    /// Hashes of all blocks.
    pub(super) hashes: HashSet<String>,
    pub(super) known: Arc<KnownReplies>,
    /// The states that its nodes give proofs of.
    proofs: Option<Arc<ProvableStates>>,
    /// The calls that each lie changes the answers to, by the name of the lie.
    forged: Mutex<HashMap<String, Vec<usize>>>,
}

impl TrueChain {
    /// Reads the chain of a node that takes calls at `path`. About so many blocks is asked, besides some with uncles.
    pub fn read(name: &'static str, node: SocketAddr, path: &'static str, blocks: u64) -> Self {
        let ask = |method: &str, params: Value| {
            let call = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
            post(node, path, call.to_string()).json()
        };
        let block =
            |number: u64| ask("eth_getBlockByNumber", json!([format!("{number:#x}"), true]))["result"].take();
        let newest = ask("eth_blockNumber", json!([]))["result"].take();
        let head = u64::from_str_radix(newest.as_str().unwrap_or_default().trim_start_matches("0x"), 16);
        let head = head.expect("a node has a head");
        let mut asked = about_chain();
        let (mut hashes, mut with_uncles) = (HashSet::new(), 0);
        for number in 0..=head {
            let block = block(number);
            hashes.insert(block["hash"].as_str().unwrap_or_default().to_owned());
            let has_uncles = block["uncles"].as_array().is_some_and(|uncles| !uncles.is_empty());
            with_uncles += u64::from(has_uncles);
            if has_uncles && with_uncles <= WITH_UNCLES_MAX || number % (head / blocks).max(1) == 0 {
                about_block(number, head, &block, &mut asked);
            }
        }
        let calls = asked.into_iter().filter_map(|(method, params)| {
            let truth = ask(method, params.clone());
            let kind = kind_of(method);
            (truth.to_string().len() < ANSWER_BYTES_MAX).then_some(KnownCall { method, params, kind, truth })
        });
        let calls = calls.collect();
        Self {
            name,
            node,
            path,
            calls,
            head: newest,
            hashes,
            known: Arc::default(),
            proofs: None,
            forged: Mutex::default(),
        }
    }

    /// This chain with nodes that prove state.
    pub fn with_proofs(self, proofs: ProvableStates) -> Self {
        Self { proofs: Some(Arc::new(proofs)), ..self }
    }

    /// A proxy in front of its node.
    pub fn proxy(&self) -> Proxy {
        let proxy = Proxy::start_known(self.node, self.path, &self.known);
        self.set(&proxy, None);
        proxy
    }

    /// Lets a proxy tell a lie from now on, or the truth.
    pub(super) fn set(&self, proxy: &Proxy, lie: Option<&NodeLie>) {
        if let Some(proofs) = &self.proofs {
            proxy.prove_with(proofs, lie.and_then(|lie| lie.proof));
        }
        proxy.set(lie.map_or(Mood::Honest, |lie| lie.mood));
    }

    /// A sample of `count` calls, in an order that depends on `seed`: of two of three calls this lie changes the answer, the others
    /// are of all methods in turn.
    pub fn sample(&self, lie: &NodeLie, count: usize, seed: u64) -> Vec<&KnownCall> {
        let mut rng = SmallRng::seed_from_u64(seed);
        let mut forged = self.forged_by(lie);
        forged.shuffle(&mut rng);
        forged.truncate(count * 2 / 3);
        let mut by_method: BTreeMap<&str, Vec<&KnownCall>> = BTreeMap::new();
        self.calls.iter().for_each(|call| by_method.entry(call.method).or_default().push(call));
        by_method.values_mut().for_each(|calls| calls.shuffle(&mut rng));
        while forged.len() < count.min(self.calls.len()) {
            let next = by_method.values_mut().filter_map(Vec::pop);
            forged.extend(next);
        }
        forged.truncate(count);
        forged.shuffle(&mut rng);
        forged
    }

    /// Calls to which a node with this lie gives other answers.
    pub fn forged_by(&self, lie: &NodeLie) -> Vec<&KnownCall> {
        let known = self.forged.lock().unwrap_or_else(PoisonError::into_inner).get(&lie.name).cloned();
        let forged = known.unwrap_or_else(|| self.find_forged(lie));
        let calls = forged.iter().map(|index| &self.calls[*index]).collect();
        self.forged.lock().unwrap_or_else(PoisonError::into_inner).insert(lie.name.clone(), forged);
        calls
    }

    fn find_forged(&self, lie: &NodeLie) -> Vec<usize> {
        let proxy = self.proxy();
        self.set(&proxy, Some(lie));
        let mut liar = TestConnection::connect(proxy.address);
        let mut is_forged = |call: &KnownCall| {
            let told: Value = serde_json::from_slice(&liar.post("/", call.body()).body).unwrap_or_default();
            told != call.truth
        };
        let calls = self.calls.iter().enumerate();
        calls.filter(|(_, call)| is_forged(call)).map(|(index, _)| index).collect()
    }
}

fn kind_of(method: &str) -> AnswerKind {
    let row = MethodId::named(method).expect("a method of the table").row();
    match example_query(row) {
        Query::Gateway(_) | Query::Block(_) | Query::Transaction(_) | Query::Logs(_) => AnswerKind::Blocks,
        Query::Fees(_) | Query::State(_) | Query::Simulation(_) | Query::RawTransactions(_) => {
            AnswerKind::State
        }
    }
}

fn example_query(method: &Method) -> Query<BlockParam> {
    method.example_query().expect("the parameters of an example are valid")
}

/// Whether a method takes a call without parameters and answers about the chain.
fn is_about_chain(method: &Method) -> bool {
    match example_query(method) {
        Query::Gateway(query) => match query {
            GatewayQuery::ChainId | GatewayQuery::NetVersion | GatewayQuery::BlockNumber => true,
            GatewayQuery::Syncing | GatewayQuery::ClientVersion | GatewayQuery::Discover => false,
        },
        Query::Fees(FeeQuery::NextBlock(_)) => true,
        Query::Fees(FeeQuery::History { .. })
        | Query::State(_)
        | Query::Simulation(_)
        | Query::Block(_)
        | Query::Transaction(_)
        | Query::RawTransactions(_)
        | Query::Logs(_) => false,
    }
}

type CallList = Vec<(&'static str, Value)>;

/// Calls about no block in particular.
fn about_chain() -> CallList {
    let unknown = format!("0x{}", "ab".repeat(32));
    let without_params = METHODS.iter().filter(|method| is_about_chain(method));
    let mut asked: CallList = without_params.map(|method| (method.name, json!([]))).collect();
    asked.extend([
        ("eth_feeHistory", json!(["0x5", "latest", [25, 75.5]])),
        ("eth_getTransactionByHash", json!([unknown])),
        ("eth_getTransactionReceipt", json!([unknown])),
        ("eth_getBlockByHash", json!([unknown, false])),
        ("eth_getBlockByNumber", json!(["0xffffff", false])),
    ]);
    for tag in ["earliest", "latest", "safe", "finalized"] {
        asked.push(("eth_getBlockByNumber", json!([tag, false])));
        asked.push(("eth_getBlockReceipts", json!([tag])));
    }
    asked
}

fn about_block(number: u64, head: u64, block: &Value, asked: &mut CallList) {
    let (hash, at) = (&block["hash"], json!(format!("{number:#x}")));
    let until = format!("{:#x}", (number + 4).min(head));
    asked.extend([
        ("eth_getBlockByNumber", json!([at, true])),
        ("eth_getBlockByNumber", json!([at, false])),
        ("eth_getBlockByHash", json!([hash, true])),
        ("eth_getBlockByHash", json!([hash, false])),
        ("eth_getHeaderByNumber", json!([at])),
        ("eth_getBlockReceipts", json!([at])),
        ("eth_getBlockTransactionCountByNumber", json!([at])),
        ("eth_getBlockTransactionCountByHash", json!([hash])),
        ("eth_getUncleCountByBlockNumber", json!([at])),
        ("eth_getUncleCountByBlockHash", json!([hash])),
        ("eth_getUncleByBlockNumberAndIndex", json!([at, "0x0"])),
        ("eth_getUncleByBlockHashAndIndex", json!([hash, "0x0"])),
        ("eth_getLogs", json!([{"blockHash": hash}])),
        ("eth_getLogs", json!([{"fromBlock": at, "toBlock": until}])),
        ("eth_feeHistory", json!(["0x3", at, [50]])),
        ("eth_getBalance", json!([block["miner"], at])),
    ]);
    let transactions = block["transactions"].as_array().map_or(&[][..], Vec::as_slice);
    for transaction in transactions.iter().take(2) {
        about_transaction(&at, hash, transaction, asked);
    }
}

fn about_transaction(at: &Value, block_hash: &Value, transaction: &Value, asked: &mut CallList) {
    let (hash, index) = (&transaction["hash"], &transaction["transactionIndex"]);
    let (from, to) = (&transaction["from"], &transaction["to"]);
    asked.extend([
        ("eth_getTransactionByHash", json!([hash])),
        ("eth_getTransactionReceipt", json!([hash])),
        ("eth_getTransactionByBlockNumberAndIndex", json!([at, index])),
        ("eth_getTransactionByBlockHashAndIndex", json!([block_hash, index])),
        ("eth_getBalance", json!([from, at])),
        ("eth_getTransactionCount", json!([from, at])),
    ]);
    if to.is_null() {
        return;
    }
    let message =
        json!({"from": from, "to": to, "data": transaction["input"], "value": transaction["value"]});
    asked.extend([
        ("eth_getCode", json!([to, at])),
        ("eth_getStorageAt", json!([to, "0x0", at])),
        ("eth_getStorageAt", json!([to, "0x2", at])),
        ("eth_call", json!([message, at])),
        ("eth_estimateGas", json!([message, at])),
        // No contract knows this function.
        ("eth_call", json!([{"to": to, "data": "0xdeadbeef"}, at])),
    ]);
}
