//! A proxy in front of a real node that does what broken, slow and lying nodes do.
//!
//! It takes one request after another from a connection, asks the real node, and passes on what comes back, changed as
//! its mood demands. The mood may be changed while calls are under way.

mod messages; // reading and writing HTTP
mod makes; // replies of nodes of other makes about old blocks
mod pruned; // replies of nodes about old blocks that they have dropped
mod tampering; // wrong results

use std::collections::HashMap;
use std::io::{self, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use alloy_primitives::B256;
use serde_json::{Value, json};

use crate::forgery::Forgery;
use crate::proofs::{ProofLie, ProvableStates, lie_about_state};
pub use makes::NodeMake;
use messages::{Message, read_message, write};
pub use pruned::Pruned;
use tampering::{off_by_one, tamper, upside_down};

/// The behaviour that the proxy gives the node behind it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mood {
    Honest,
    /// Connections are closed as soon as they are made.
    Dead,
    /// Requests are taken and never answered.
    Hung,
    /// Calls that identify the node or poll its blocks are answered; all others are taken and never answered.
    HungOnData,
    Slow(Duration),
    /// Calls that identify the node or poll its blocks are answered at once, all others after this time.
    SlowOnData(Duration),
    /// The data of blocks below this number was dropped, apart from the blocks themselves.
    Pruned {
        below: u64,
        says: Pruned,
    },
    /// The node is of this make, and has dropped what is in blocks below this number.
    Made {
        make: NodeMake,
        below: u64,
    },
    /// The node says that it is syncing.
    Syncing,
    /// A page for people instead of an answer.
    Html,
    /// Half of the answer, and then the end.
    Cut,
    /// Bytes that are no JSON.
    Garbage,
    /// The answer to another call.
    WrongId,
    /// The answers of a batch come in another order.
    Swapped,
    /// An error with the status of a broken server.
    ServerError,
    /// The credentials are wrong, said as providers do.
    Unauthorized,
    /// Too many requests, said in a reply with the status of success.
    RateLimited,
    /// Batches are refused.
    NoBatches,
    /// Transactions and receipts are not there.
    Nulls,
    /// No log ever matches.
    NoLogs,
    /// Blocks are not the ones that were asked for: their numbers are off by one.
    WrongBlocks,
    /// Transactions, receipts and logs are said to be in the block above theirs.
    Misplaced,
    /// Blocks list other transactions than they have, beside their true headers.
    TamperedLists,
    /// The receipts of a block say the opposite of what happened.
    WrongReceipts,
    /// The head stays where it was when the mood began.
    StaleHead,
    /// The head is said to be far ahead.
    FarAhead,
    /// Whoever asks for the head gets an error, and any other question a true answer: the node seems to be down.
    Headless,
    /// Another chain altogether.
    OtherChain,
    /// Blocks are not there when they are asked for by hash.
    Hashless,
    /// Unknown transactions are said to be in this block, and no block is there when it is asked for by hash.
    FalsePlaces {
        number: u64,
        hash: B256,
    },
    /// Answers are forged in one way.
    Forging(Forgery),
    /// Everything comes from another node, which is of another chain.
    Impostor(SocketAddr),
    /// Below this number, blocks are those of another node. They are also there by their hashes.
    OtherDepths {
        node: SocketAddr,
        below: u64,
    },
}

/// A proxy that runs until it is dropped.
#[derive(Debug)]
pub struct Proxy {
    pub address: SocketAddr,
    shared: Arc<ProxyState>,
}

/// Replies of a node whose chain does not change, by method and parameters. Proxies that share them ask each question once.
#[derive(Debug, Default)]
pub struct KnownReplies(Mutex<HashMap<String, Value>>);

#[derive(Debug)]
struct ProxyState {
    node: SocketAddr,
    path: &'static str,
    known: Option<Arc<KnownReplies>>,
    mood: Mutex<Mood>,
    stale: Mutex<Option<Value>>,
    calls: AtomicU64,
    replies: AtomicU64,
    batches: AtomicU64,
    /// How often each call came: the method and its parameters as JSON.
    asked: Mutex<HashMap<String, u64>>,
    /// Each call that came, as its method and parameters, and the header `traceparent` that it came with.
    traces: Mutex<Vec<(String, Option<String>)>>,
    /// Whole HTTP replies, by the method that is answered with them.
    scripted: Mutex<HashMap<String, Arc<[u8]>>>,
    /// The states to give proofs of, and the lie about them.
    proofs: Mutex<Option<(Arc<ProvableStates>, Option<ProofLie>)>>,
    stopped: AtomicBool,
    open: Mutex<Vec<TcpStream>>,
}

impl Proxy {
    /// Starts a proxy in front of a node that takes its calls at `path`.
    pub fn start(node: SocketAddr, path: &'static str) -> Self {
        Self::start_with(node, path, None)
    }

    /// Starts a proxy in front of a node whose chain does not change. Replies are asked for once and then taken from `known`.
    pub(crate) fn start_known(node: SocketAddr, path: &'static str, known: &Arc<KnownReplies>) -> Self {
        Self::start_with(node, path, Some(Arc::clone(known)))
    }

    fn start_with(node: SocketAddr, path: &'static str, known: Option<Arc<KnownReplies>>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port is free");
        let address = listener.local_addr().expect("it has an address");
        let shared = Arc::new(ProxyState {
            node,
            path,
            known,
            mood: Mutex::new(Mood::Honest),
            stale: Mutex::default(),
            calls: AtomicU64::new(0),
            replies: AtomicU64::new(0),
            batches: AtomicU64::new(0),
            asked: Mutex::default(),
            traces: Mutex::default(),
            scripted: Mutex::default(),
            proofs: Mutex::default(),
            stopped: AtomicBool::new(false),
            open: Mutex::default(),
        });
        let accepting = Arc::clone(&shared);
        thread::spawn(move || accepting.accept(&listener));
        Self { address, shared }
    }

    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Changes the mood. Connections under way are cut when the node is dead from now on, as a killed process does.
    pub fn set(&self, mood: Mood) {
        if mood == Mood::StaleHead {
            let call =
                json!({"jsonrpc":"2.0","id":1,"method":"eth_getBlockByNumber","params":["latest",false]});
            let reply = self.shared.ask(self.shared.node, &call).ok();
            *lock(&self.shared.stale) = reply.map(|reply| reply["result"].clone());
        }
        *lock(&self.shared.mood) = mood;
        if mood == Mood::Dead {
            self.shared.cut();
        }
    }

    /// Answers a method with these bytes from now on, which should be an HTTP reply.
    pub fn script(&self, method: &str, reply: impl Into<Arc<[u8]>>) {
        lock(&self.shared.scripted).insert(method.to_owned(), reply.into());
    }

    /// Lets the node answer a method again.
    pub fn forget_script(&self, method: &str) {
        lock(&self.shared.scripted).remove(method);
    }

    /// Gives proofs of state from now on, and refuses them for other blocks as reth does. With a lie, proofs and all other answers
    /// about state are false.
    pub fn prove_with(&self, proofs: &Arc<ProvableStates>, lie: Option<ProofLie>) {
        *lock(&self.shared.proofs) = Some((Arc::clone(proofs), lie));
    }

    /// The number of calls of a method that came.
    pub fn asked_method(&self, method: &str) -> u64 {
        let asked = lock(&self.shared.asked);
        let of_method = |text: &str| text.strip_prefix(method).is_some_and(|params| params.starts_with('['));
        asked.iter().filter(|(text, _)| of_method(text)).map(|(_, count)| *count).sum()
    }

    /// The header `traceparent` of each call that came with this text in its parameters.
    pub fn traces_about(&self, text: &str) -> Vec<Option<String>> {
        let traces = lock(&self.shared.traces);
        traces.iter().filter(|(call, _)| call.contains(text)).map(|(_, trace)| trace.clone()).collect()
    }

    /// The number of calls that came, each of a batch counted.
    pub fn calls(&self) -> u64 {
        self.shared.calls.load(Relaxed)
    }

    /// The number of requests that were answered or whose connection was cut. Later changes do not affect their replies.
    pub fn replies(&self) -> u64 {
        self.shared.replies.load(Relaxed)
    }

    /// How often this very call came.
    pub fn asked(&self, method: &str, params: &str) -> u64 {
        lock(&self.shared.asked).get(&format!("{method}{params}")).copied().unwrap_or_default()
    }

    /// How often calls came that have this text in their parameters.
    pub fn asked_about(&self, text: &str) -> u64 {
        lock(&self.shared.asked).iter().filter(|(call, _)| call.contains(text)).map(|(_, times)| times).sum()
    }

    pub fn batches(&self) -> u64 {
        self.shared.batches.load(Relaxed)
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.shared.stopped.store(true, Relaxed);
        self.shared.cut();
        // Wakes the accepting thread, which then sees `stopped`.
        drop(TcpStream::connect(self.address));
    }
}

fn trace_in(head: &str) -> Option<&str> {
    head.lines().find_map(|line| line.strip_prefix("traceparent:")).map(str::trim)
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl ProxyState {
    fn accept(self: Arc<Self>, listener: &TcpListener) {
        for stream in listener.incoming() {
            if self.stopped.load(Relaxed) {
                return;
            }
            let Ok(stream) = stream else { continue };
            if self.mood() == Mood::Dead {
                continue;
            }
            if let Ok(copy) = stream.try_clone() {
                lock(&self.open).push(copy);
            }
            let shared = Arc::clone(&self);
            thread::spawn(move || {
                // A caller that goes away ends its thread; there is nobody to tell.
                let _ended = shared.serve(stream);
            });
        }
    }

    fn mood(&self) -> Mood {
        *lock(&self.mood)
    }

    fn cut(&self) {
        for stream in lock(&self.open).drain(..) {
            let _gone = stream.shutdown(Shutdown::Both);
        }
    }

    fn serve(&self, mut stream: TcpStream) -> io::Result<()> {
        stream.set_nodelay(true)?;
        let mut unread = Vec::new();
        while let Some(Message { head, body }) = read_message(&mut stream, &mut unread)? {
            let request: Value = serde_json::from_slice(&body)?;
            self.count(&request, trace_in(&head));
            let goes_on = self.answer(&mut stream, &request)?;
            self.replies.fetch_add(1, Relaxed);
            if !goes_on {
                return stream.shutdown(Shutdown::Both);
            }
        }
        Ok(())
    }

    fn count(&self, request: &Value, trace: Option<&str>) {
        let calls = request.as_array().map_or(std::slice::from_ref(request), Vec::as_slice);
        self.calls.fetch_add(calls.len() as u64, Relaxed);
        for call in calls {
            let text = format!("{}{}", call["method"].as_str().unwrap_or_default(), call["params"]);
            lock(&self.traces).push((text.clone(), trace.map(str::to_owned)));
            *lock(&self.asked).entry(text).or_default() += 1;
        }
        self.batches.fetch_add(u64::from(request.is_array()), Relaxed);
    }

    /// Answers one request; says whether the connection goes on.
    fn answer(&self, stream: &mut TcpStream, request: &Value) -> io::Result<bool> {
        match self.mood() {
            Mood::Dead => return Ok(false),
            Mood::Hung => {
                while self.mood() == Mood::Hung && !self.stopped.load(Relaxed) {
                    thread::sleep(Duration::from_millis(5));
                }
                return Ok(false);
            }
            Mood::HungOnData if !is_poll(request) => {
                while self.mood() == Mood::HungOnData && !self.stopped.load(Relaxed) {
                    thread::sleep(Duration::from_millis(5));
                }
                return Ok(false);
            }
            Mood::Slow(time) => thread::sleep(time),
            Mood::SlowOnData(time) if !is_poll(request) => thread::sleep(time),
            Mood::Html => return write(stream, 200, b"<html><body>It works!</body></html>").map(|()| true),
            Mood::Garbage => return write(stream, 200, br#"{"jsonrpc":"2.0","id":1,"resu"#).map(|()| true),
            Mood::ServerError => return write(stream, 502, b"bad gateway").map(|()| true),
            Mood::Unauthorized => {
                let refusal =
                    br#"{"jsonrpc":"2.0","id":1,"error":{"code":-32002,"message":"invalid project id"}}"#;
                return write(stream, 401, refusal).map(|()| true);
            }
            Mood::NoBatches if request.is_array() => {
                let refusal = br#"{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"batches are not supported"}}"#;
                return write(stream, 400, refusal).map(|()| true);
            }
            _ => {}
        }
        if let Some(reply) = self.scripted(request) {
            return stream.write_all(&reply).map(|()| true);
        }
        let mut reply = match self.mood() {
            Mood::Impostor(other) => self.ask(other, request)?,
            _ => self.true_reply(request)?,
        };
        self.change(request, &mut reply);
        let text = reply.to_string();
        if self.mood() == Mood::Cut {
            let head = format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n", text.len());
            stream.write_all(head.as_bytes())?;
            stream.write_all(&text.as_bytes()[..text.len() / 2])?;
            return Ok(false);
        }
        write(stream, 200, text.as_bytes()).map(|()| true)
    }

    /// The scripted reply to the first call of a request.
    fn scripted(&self, request: &Value) -> Option<Arc<[u8]>> {
        let method = request["method"].as_str().or_else(|| request[0]["method"].as_str())?;
        lock(&self.scripted).get(method).cloned()
    }

    /// The node's own reply to a call or a batch.
    fn true_reply(&self, request: &Value) -> io::Result<Value> {
        let Some(known) = &self.known else { return self.ask(self.node, request) };
        match request.as_array() {
            Some(calls) => calls.iter().map(|call| self.known_reply(known, call)).collect(),
            None => self.known_reply(known, request),
        }
    }

    fn known_reply(&self, known: &KnownReplies, call: &Value) -> io::Result<Value> {
        let key = format!("{}{}", call["method"], call["params"]);
        let found = lock(&known.0).get(&key).cloned();
        let mut reply = match found {
            Some(reply) => reply,
            None => self.ask(self.node, call)?,
        };
        lock(&known.0).entry(key).or_insert_with(|| reply.clone());
        reply["id"] = call["id"].clone();
        Ok(reply)
    }

    /// The result of a call to the node, null if it has none.
    fn true_result(&self, method: &str, params: Value) -> Value {
        let call = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
        self.true_reply(&call).map(|mut reply| reply["result"].take()).unwrap_or_default()
    }

    fn ask(&self, node: SocketAddr, request: &Value) -> io::Result<Value> {
        let mut node = TcpStream::connect(node)?;
        node.set_nodelay(true)?;
        node.set_read_timeout(Some(Duration::from_secs(30)))?;
        let text = request.to_string();
        let head = format!(
            "POST {} HTTP/1.1\r\nhost: node\r\ncontent-type: application/json\r\nconnection: close\r\ncontent-length: {}\r\n\r\n",
            self.path,
            text.len()
        );
        node.write_all(head.as_bytes())?;
        node.write_all(text.as_bytes())?;
        let Message { body, .. } =
            read_message(&mut node, &mut Vec::new())?.ok_or(io::ErrorKind::UnexpectedEof)?;
        Ok(serde_json::from_slice(&body)?)
    }

    fn change(&self, request: &Value, reply: &mut Value) {
        let mood = self.mood();
        match (request.as_array(), reply.as_array_mut()) {
            (Some(calls), Some(replies)) => {
                for reply in replies.iter_mut() {
                    let call = calls.iter().find(|call| call["id"] == reply["id"]);
                    self.change_one(mood, call.unwrap_or(&Value::Null), reply);
                }
                if mood == Mood::Swapped {
                    replies.reverse();
                }
            }
            _ => self.change_one(mood, request, reply),
        }
    }

    fn change_one(&self, mood: Mood, call: &Value, reply: &mut Value) {
        let method = call["method"].as_str().unwrap_or_default();
        if let Some((proofs, lie)) = lock(&self.proofs).as_ref() {
            if let Some(told) = proofs.answer(call, *lie) {
                *reply = json!({"jsonrpc": "2.0", "id": call["id"], "result": told});
            } else if lie.is_some() {
                lie_about_state(method, reply);
            } else if method == "eth_getProof" {
                // As reth says about blocks that it cannot prove. The error of the node behind may say that the method is missing.
                let error = json!({"code": -32000, "message": "distance to target block exceeds maximum proof window"});
                *reply = json!({"jsonrpc": "2.0", "id": call["id"], "error": error});
            }
        }
        match mood {
            Mood::WrongId => reply["id"] = json!(reply["id"].as_u64().unwrap_or_default() + 1),
            Mood::RateLimited => {
                let id = reply["id"].clone();
                *reply = json!({"jsonrpc":"2.0","id":id,"error":{"code":429,"message":"Too many requests"}});
            }
            Mood::Nulls if method.contains("Transaction") => reply["result"] = Value::Null,
            Mood::Hashless | Mood::FalsePlaces { .. } if method == "eth_getBlockByHash" => {
                reply["result"] = Value::Null;
            }
            Mood::FalsePlaces { number, hash }
                if method == "eth_getTransactionReceipt" && reply["result"].is_null() =>
            {
                reply["result"] = json!({ "blockHash": hash, "blockNumber": format!("{number:#x}") });
            }
            Mood::Pruned { below, says } => {
                says.apply(below, &|method, params| self.true_result(method, params), call, reply);
            }
            Mood::Made { make, below } => {
                make.apply(below, &|method, params| self.true_result(method, params), call, reply);
            }
            Mood::Syncing if method == "eth_syncing" => {
                reply["result"] =
                    json!({"startingBlock": "0x0", "currentBlock": "0x1", "highestBlock": "0x2"});
            }
            Mood::NoLogs if method == "eth_getLogs" => reply["result"] = json!([]),
            Mood::WrongBlocks => off_by_one(&mut reply["result"]),
            Mood::TamperedLists if call["params"][1] == false => tamper(&mut reply["result"]["transactions"]),
            Mood::Misplaced if method.starts_with("eth_getTransaction") || method == "eth_getLogs" => {
                off_by_one(&mut reply["result"]);
            }
            Mood::Headless if asks_for_head(call) => {
                let id = reply["id"].clone();
                *reply = json!({"jsonrpc":"2.0","id":id,"error":{"code":-32603,"message":"no head"}});
            }
            Mood::OtherDepths { node, below }
                if number_asked_for(call).is_some_and(|number| number < below)
                    || method == "eth_getBlockByHash" && reply["result"].is_null() =>
            {
                if let Ok(other) = self.ask(node, call) {
                    *reply = other;
                }
            }
            Mood::Forging(forgery) => {
                forgery.apply(&|method, params| self.true_result(method, params), call, reply);
            }
            Mood::WrongReceipts if method == "eth_getBlockReceipts" => upside_down(&mut reply["result"]),
            Mood::OtherChain if method == "eth_chainId" => reply["result"] = json!("0xdead"),
            Mood::OtherChain | Mood::FarAhead | Mood::StaleHead if asks_for_head(call) => {
                self.false_head(mood, method, reply);
            }
            _ => {}
        }
    }

    fn false_head(&self, mood: Mood, method: &str, reply: &mut Value) {
        let stale = lock(&self.stale).clone().unwrap_or(Value::Null);
        let ahead = "0x7fffffff";
        match (mood, method) {
            (Mood::StaleHead, "eth_blockNumber") => reply["result"] = stale["number"].clone(),
            (Mood::StaleHead, _) => reply["result"] = stale,
            (_, "eth_blockNumber") => reply["result"] = json!(ahead),
            _ => reply["result"]["number"] = json!(ahead),
        }
    }
}

/// Whether all calls of a request are of those that tell who a node is and which blocks it has.
fn is_poll(request: &Value) -> bool {
    const POLLS: [&str; 4] = ["eth_chainId", "eth_syncing", "web3_clientVersion", "eth_getBlockByNumber"];
    let calls = request.as_array().map_or(std::slice::from_ref(request), Vec::as_slice);
    calls.iter().all(|call| POLLS.contains(&call["method"].as_str().unwrap_or_default()))
}

/// The number of the block that is asked for.
fn number_asked_for(call: &Value) -> Option<u64> {
    let number = call["params"][0].as_str().filter(|_| call["method"] == "eth_getBlockByNumber")?;
    u64::from_str_radix(number.strip_prefix("0x")?, 16).ok()
}

fn asks_for_head(call: &Value) -> bool {
    call["method"] == "eth_blockNumber"
        || call["method"] == "eth_getBlockByNumber" && call["params"][0] == "latest"
}
