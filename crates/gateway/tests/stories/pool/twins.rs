//! Real nodes that have the same chain, block by block, because all of them are told the same.

use std::net::TcpListener;
use std::sync::{Arc, RwLock};

use serde_json::{Value, json};
use testkit::anvil::Anvil;

const ALICE: &str = "0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266";
pub(super) const BOB: &str = "0x70997970C51812dc3A010C7d01b50e0d17dc79C8";

/// When block 0 is.
const GENESIS_TIME: u64 = 1_700_000_000;

/// Ports that the system gives to nobody by itself, so that a node finds its own again.
const PORTS: std::ops::Range<u16> = 20_000..30_000;

/// What is true of one block.
#[derive(Clone, Debug)]
pub(super) struct Truth {
    pub(super) block: Value,
    pub(super) transaction: Value,
    pub(super) receipt: Value,
    pub(super) balance: Value,
}

/// What is true of every block, by its number.
pub(super) type Truths = Arc<RwLock<Vec<Truth>>>;

/// Three nodes, and one that nobody else asks and that tells the truth.
pub(super) struct Twins {
    reference: Anvil,
    nodes: Vec<Twin>,
    pub(super) truths: Truths,
}

struct Twin {
    port: u16,
    anvil: Anvil,
    /// Whether it takes new blocks.
    awake: bool,
}

impl Twins {
    /// `None` where there is no anvil.
    pub(super) fn start() -> Option<Self> {
        let reference = start(free_port())?;
        let nodes = (0..3).map(|_| {
            let port = free_port();
            Some(Twin { port, anvil: start(port)?, awake: true })
        });
        let nodes = nodes.collect::<Option<_>>()?;
        let truths = Arc::new(RwLock::new(vec![truth(&reference, 0)]));
        Some(Self { reference, nodes, truths })
    }

    pub(super) fn urls(&self) -> Vec<String> {
        self.nodes.iter().map(|node| format!("http://{}", node.anvil.address)).collect()
    }

    /// Makes a block. What is true of it is known before any node has it.
    pub(super) fn mine(&self) {
        mine(&self.reference);
        let truth = truth(&self.reference, self.reference.head());
        self.truths.write().unwrap().push(truth);
        self.nodes.iter().filter(|node| node.awake).for_each(|node| mine(&node.anvil));
    }

    pub(super) fn stop(&mut self, node: usize) {
        self.nodes[node].awake = false;
        self.nodes[node].anvil.signal("STOP");
    }

    pub(super) fn go_on(&mut self, node: usize) {
        self.nodes[node].anvil.signal("CONT");
        self.catch_up(node);
    }

    pub(super) fn kill(&mut self, node: usize) {
        self.nodes[node].awake = false;
        self.nodes[node].anvil.signal("KILL");
    }

    /// Starts a killed node where it was, with nothing but block 0 at first.
    pub(super) fn start_again(&mut self, node: usize) {
        let twin = &mut self.nodes[node];
        twin.anvil = start(twin.port).expect("it was there before");
        self.catch_up(node);
    }

    fn catch_up(&mut self, node: usize) {
        let head = self.reference.head();
        let twin = &mut self.nodes[node];
        (twin.anvil.head()..head).for_each(|_| mine(&twin.anvil));
        twin.awake = true;
    }
}

fn start(port: u16) -> Option<Anvil> {
    Anvil::start_at(port, &["--timestamp", &GENESIS_TIME.to_string()])
}

fn free_port() -> u16 {
    let is_free = |port: &u16| TcpListener::bind(("127.0.0.1", *port)).is_ok();
    std::iter::repeat_with(|| rand::random_range(PORTS)).find(is_free).expect("there are endless tries")
}

/// One block with one payment. Everything in it follows from its number.
fn mine(anvil: &Anvil) {
    let number = anvil.head() + 1;
    anvil.ask(
        "eth_sendTransaction",
        json!([{"from": ALICE, "to": BOB, "value": format!("{number:#x}"), "gas": "0x5208",
                "maxFeePerGas": "0x77359400", "maxPriorityFeePerGas": "0x1"}]),
    );
    anvil.ask("evm_mine", json!([{"timestamp": GENESIS_TIME + number}]));
}

fn truth(anvil: &Anvil, number: u64) -> Truth {
    let tag = format!("{number:#x}");
    let block = anvil.ask("eth_getBlockByNumber", json!([tag, false]));
    let about = |method| match &block["transactions"][0] {
        Value::Null => Value::Null,
        hash => anvil.ask(method, json!([hash])),
    };
    Truth {
        transaction: about("eth_getTransactionByHash"),
        receipt: about("eth_getTransactionReceipt"),
        balance: anvil.ask("eth_getBalance", json!([BOB, tag])),
        block,
    }
}
