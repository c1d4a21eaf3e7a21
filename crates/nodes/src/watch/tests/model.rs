//! Nodes of a small world with true hashes, which do as they are told.

use std::collections::HashMap;
use std::sync::Arc;

use alloy_consensus::Header;
use alloy_primitives::{Address, B256};
use bytes::Bytes;
use parking_lot::Mutex;
use serde_json::{Value, json};
use std::time::Duration;
use tokio::sync::watch;

use tokio::time::{Instant, sleep, sleep_until};

use super::super::{ExclusionReason, HeadHint, HistoryReaches, Watched};
use crate::call::{Ask, BlockId, Fault, RpcCall, RpcError, RpcReply};
use crate::node_fault::NodeFault;
use crate::node_id::NodeId;
use crate::partner::{PartnerQuota, PartnerTerms};

/// Every block that was ever made.
#[derive(Clone, Debug, Default)]
pub(crate) struct World(Arc<Mutex<HashMap<B256, Header>>>);

impl World {
    pub(crate) fn genesis(&self, salt: u8) -> B256 {
        self.put(Header { extra_data: vec![salt].into(), ..Header::default() })
    }

    /// Blocks upon `from`; those of equal salt are equal.
    pub(crate) fn grow(&self, from: B256, blocks: u64, salt: u8) -> B256 {
        (0..blocks).fold(from, |parent_hash, _| {
            let number = self.header(parent_hash).number + 1;
            let extra_data = vec![salt].into();
            self.put(Header { parent_hash, number, timestamp: number * 12, extra_data, ..Header::default() })
        })
    }

    /// A block with a transaction upon `parent`.
    pub(crate) fn send(&self, parent: B256) -> B256 {
        let number = self.header(parent).number + 1;
        let header = Header { parent_hash: parent, number, timestamp: number * 12, ..Header::default() };
        self.put(Header { transactions_root: SENT_ROOT, gas_limit: 30_000_000, ..header })
    }

    pub(crate) fn id(&self, hash: B256) -> BlockId {
        BlockId { number: self.header(hash).number, hash }
    }

    pub(crate) fn ancestor(&self, of: B256, generations: u64) -> B256 {
        (0..generations).fold(of, |hash, _| self.header(hash).parent_hash)
    }

    fn header(&self, hash: B256) -> Header {
        self.0.lock()[&hash].clone()
    }

    fn put(&self, header: Header) -> B256 {
        let hash = header.hash_slow();
        self.0.lock().insert(hash, header);
        hash
    }

    fn json(&self, hash: B256) -> Value {
        let mut block = serde_json::to_value(self.header(hash)).expect("a header is JSON");
        block["hash"] = json!(hash);
        let is_sent_in = self.header(hash).transactions_root == SENT_ROOT;
        block["transactions"] = if is_sent_in { json!([SENT_ROOT]) } else { json!([]) };
        block["uncles"] = json!([]);
        block
    }
}

/// How a node behaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Behaviour {
    Well,
    Dead,
    /// Takes calls and never answers.
    Silent,
    /// Changes a member of each header.
    Lying,
    Garbled,
    Syncing,
    /// Shows its head, and has no other block.
    Forgetful,
}

/// The root of the transactions of a block that has one.
const SENT_ROOT: B256 = B256::repeat_byte(0x51);

/// The delay of an answer.
const ANSWERED_AFTER: Duration = Duration::from_millis(1);

#[derive(Debug)]
pub(crate) struct ModelScript {
    pub(crate) mood: Behaviour,
    pub(crate) chain_id: u64,
    pub(crate) head: B256,
    /// How far below the head safe and finalized are; `None` does not know the tags.
    pub(crate) marks_below: Option<(u64, u64)>,
    pub(crate) lowest_state: u64,
    /// The error that it returns for states below that; zero without one.
    pub(crate) state_error: Option<&'static str>,
    /// The block with the only transaction, which raised the nonce of its sender.
    pub(crate) sent_in: Option<u64>,
    pub(crate) hints: Option<watch::Receiver<Option<HeadHint>>>,
    /// How often it answers with an error when it is asked for block 0.
    pub(crate) genesis_errors: u32,
    /// Its answer to `eth_capabilities`, which it does not have otherwise.
    pub(crate) capabilities: Option<Value>,
}

/// The report of the watcher about it.
#[derive(Debug, Default)]
pub(crate) struct Noted {
    pub(crate) faults: Vec<Fault>,
    pub(crate) head: Option<BlockId>,
    pub(crate) lowest_state: Option<u64>,
    pub(crate) history: Option<HistoryReaches>,
    pub(crate) exclusion: Option<ExclusionReason>,
    /// Whether polls have failed since the last reply.
    pub(crate) is_lost: bool,
    pub(crate) calls: HashMap<&'static str, usize>,
    pub(crate) is_admitted: bool,
}

#[derive(Debug)]
pub(crate) struct ModelNode {
    id: NodeId,
    name: String,
    pub(crate) world: World,
    pub(crate) script: Mutex<ModelScript>,
    pub(crate) noted: Mutex<Noted>,
    /// Its methods and quota if it is a partner.
    partner_terms: Option<PartnerTerms>,
}

impl ModelNode {
    pub(crate) fn new(number: usize, world: &World, head: B256) -> Arc<Self> {
        let (mood, marks_below) = (Behaviour::Well, Some((2, 4)));
        let script = ModelScript {
            mood,
            chain_id: 1,
            head,
            marks_below,
            lowest_state: 0,
            state_error: Some("missing trie node"),
            sent_in: None,
            hints: None,
            genesis_errors: 0,
            capabilities: None,
        };
        let name = format!("model-{number}");
        let id = NodeId::new(u32::try_from(number).expect("there are few nodes"));
        let (script, noted) = (Mutex::new(script), Mutex::default());
        Arc::new(Self { id, name, world: world.clone(), script, noted, partner_terms: None })
    }

    /// A node of another provider.
    pub(crate) fn partner(number: usize, world: &World, head: B256, calls_per_day: u64) -> Arc<Self> {
        let node = Self::new(number, world, head);
        let quota = PartnerQuota { calls_per_second: 100, calls_per_day };
        let partner_terms = Some(PartnerTerms::new(None, quota));
        Arc::new(Self { partner_terms, ..Arc::into_inner(node).expect("nobody else has it") })
    }

    pub(crate) fn set_head(&self, head: B256) {
        self.script.lock().head = head;
    }

    pub(crate) fn set_mood(&self, mood: Behaviour) {
        self.script.lock().mood = mood;
    }

    pub(crate) fn answer(&self, call: &RpcCall) -> RpcReply {
        let params: Vec<Value> = serde_json::from_slice(&call.params).expect("params are an array");
        let mut script = self.script.lock();
        if call.method == "eth_getBlockByNumber" && params[0] == "0x0" && script.genesis_errors > 0 {
            script.genesis_errors -= 1;
            return error("internal error");
        }
        let result = match call.method {
            "eth_chainId" => json!(format!("{:#x}", script.chain_id)),
            "web3_clientVersion" => json!("model/v1"),
            "eth_syncing" if script.mood == Behaviour::Syncing => json!({"currentBlock": "0x1"}),
            "eth_syncing" => json!(false),
            "eth_getBalance" | "eth_getTransactionCount" => {
                let (block, is_nonce) = (number(&params[1]), call.method == "eth_getTransactionCount");
                let is_dropped = block < script.lowest_state;
                match script.state_error.filter(|_| is_dropped) {
                    Some(state_error) => return error(state_error),
                    None if is_nonce && !is_dropped && script.sent_in.is_some_and(|sent| sent <= block) => {
                        json!("0x1")
                    }
                    None => json!("0x0"),
                }
            }
            "eth_getTransactionByBlockHashAndIndex" => {
                json!({ "from": Address::ZERO, "nonce": "0x0", "type": "0x0", "r": "0x1" })
            }
            "eth_getTransactionByHash" | "eth_getTransactionReceipt" => Value::Null,
            "eth_getBlockByNumber" | "eth_getBlockByHash" => {
                match self.find(&script, call.method, &params[0]) {
                    Some(hash) => self.block(&script, hash),
                    None if params[0] == "safe" || params[0] == "finalized" => return error("unknown block"),
                    None => Value::Null,
                }
            }
            "eth_capabilities" => match &script.capabilities {
                Some(capabilities) => capabilities.clone(),
                None => return error("the method eth_capabilities does not exist/is not available"),
            },
            other => panic!("nobody asks a node for {other}"),
        };
        RpcReply::Result(Bytes::from(result.to_string()))
    }

    fn find(&self, script: &ModelScript, method: &str, block: &Value) -> Option<B256> {
        let head = self.world.id(script.head);
        let below = |generations: u64| self.world.ancestor(head.hash, generations);
        if method == "eth_getBlockByHash" {
            let hash = serde_json::from_value(block.clone()).expect("a hash");
            return Some(hash).filter(|hash| self.world.0.lock().contains_key(hash));
        }
        match block.as_str() {
            Some("latest") => Some(head.hash),
            Some("safe") => script.marks_below.map(|(safe, _)| below(safe.min(head.number))),
            Some("finalized") => script.marks_below.map(|(_, finalized)| below(finalized.min(head.number))),
            _ => head.number.checked_sub(number(block)).map(below),
        }
    }

    fn block(&self, script: &ModelScript, hash: B256) -> Value {
        let mut block = self.world.json(hash);
        if script.mood == Behaviour::Lying {
            block["stateRoot"] = json!(B256::repeat_byte(0xbb));
        }
        let is_shown = script.mood != Behaviour::Forgetful || hash == script.head || block["number"] == "0x0";
        if is_shown { block } else { Value::Null }
    }
}

fn number(value: &Value) -> u64 {
    let digits = value.as_str().and_then(|text| text.strip_prefix("0x")).expect("a quantity");
    u64::from_str_radix(digits, 16).expect("a quantity")
}

fn error(message: &str) -> RpcReply {
    RpcReply::Error(RpcError { code: -32000, message: message.to_owned(), data: None })
}

impl Ask for ModelNode {
    async fn ask(&self, call: &RpcCall, deadline: Instant) -> Result<RpcReply, Fault> {
        *self.noted.lock().calls.entry(call.method).or_default() += 1;
        let mood = self.script.lock().mood;
        match mood {
            Behaviour::Dead => Err(Fault::Connect),
            Behaviour::Garbled => Err(Fault::Garbled),
            Behaviour::Silent => {
                sleep_until(deadline).await;
                Err(Fault::Timeout)
            }
            _ => {
                // Nobody answers before others can have a look.
                sleep(ANSWERED_AFTER).await;
                Ok(self.answer(call))
            }
        }
    }
}

impl Watched for ModelNode {
    type Client = Self;

    fn id(&self) -> NodeId {
        self.id
    }

    fn client(&self) -> &Self {
        self
    }

    fn name(&self) -> &str {
        &self.name
    }

    fn record_reply(&self) {
        self.noted.lock().is_lost = false;
    }

    fn record_loss(&self) {
        let mut noted = self.noted.lock();
        (noted.is_lost, noted.history, noted.lowest_state) = (true, None, None);
    }

    fn is_lost(&self) -> bool {
        self.noted.lock().is_lost
    }

    fn record_poll(&self, outcome: Result<(), NodeFault>) {
        self.noted.lock().faults.extend(outcome.err().map(|fault| fault.kind));
    }

    fn record_head(&self, head: BlockId) {
        self.noted.lock().head = Some(head);
    }

    fn set_lowest_state(&self, number: u64) {
        self.noted.lock().lowest_state = Some(number);
    }

    fn set_history(&self, reaches: HistoryReaches, _: u64) {
        self.noted.lock().history = Some(reaches);
    }

    fn is_history_known(&self) -> bool {
        self.noted.lock().history.is_some()
    }

    fn partner_terms(&self) -> Option<&PartnerTerms> {
        self.partner_terms.as_ref()
    }

    fn exclude(&self, reason: &ExclusionReason) {
        let mut noted = self.noted.lock();
        (noted.exclusion, noted.is_admitted) = (Some(reason.clone()), false);
    }

    fn admit(&self) {
        let mut noted = self.noted.lock();
        (noted.exclusion, noted.is_admitted) = (None, true);
    }

    fn hints(&self) -> Option<watch::Receiver<Option<HeadHint>>> {
        self.script.lock().hints.clone()
    }
}
