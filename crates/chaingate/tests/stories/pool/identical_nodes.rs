//! Real nodes that have the same chain, block by block, because all of them are told the same.

use std::sync::{Arc, RwLock};

use serde_json::{Value, json};
use testkit::anvil::Anvil;
use testkit::ports::free_port;

const ALICE: &str = "0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266";
/// The first contract that Alice creates. It logs the payments that it gets.
pub(super) const BOX: &str = "0x5FbDB2315678afecb367f032d93F642f64180aa3";
/// Returns `CALLVALUE PUSH0 MSTORE PUSH1 32 PUSH0 LOG0 STOP`.
const BOX_CREATION: &str = "0x67345f5260205fa0005f5260086018f3";

/// When block 0 is; every further block is a second later.
const GENESIS_TIME: &str = "1700000000";

/// A base fee so low that it never changes: anvil does not restore the fee when it takes blocks back.
const BASE_FEE: &str = "7";

/// The true answers about one block.
#[derive(Clone, Debug)]
pub(super) struct Truth {
    pub(super) block: Value,
    pub(super) transaction: Value,
    pub(super) receipt: Value,
    pub(super) balance: Value,
    pub(super) logs: Value,
}

/// The true answers about every block of a branch, by its number.
pub(super) type Branch = Vec<Arc<Truth>>;

/// Every branch that there has been, oldest first. Each is known before any node has it.
pub(super) type Truths = Arc<RwLock<Vec<Branch>>>;

/// Three nodes, and a reference that only tests ask and that tells the truth.
pub(super) struct Twins {
    reference: Anvil,
    nodes: Vec<Twin>,
    /// The payment in each block of the present branch. All of the chain follows from these.
    payments: Vec<u64>,
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
        let truths = Arc::new(RwLock::new(vec![vec![truth(&reference, 0)]]));
        Some(Self { reference, nodes, payments: vec![0], truths })
    }

    pub(super) fn urls(&self) -> Vec<String> {
        self.nodes.iter().map(|node| format!("http://{}", node.anvil.address)).collect()
    }

    pub(super) fn count(&self) -> usize {
        self.nodes.len()
    }

    fn head(&self) -> u64 {
        self.payments.len() as u64 - 1
    }

    /// Makes a block.
    pub(super) fn mine(&mut self) {
        self.payments.push(self.head() + 1);
        self.mine_last(&self.reference);
        let truth = truth(&self.reference, self.head());
        self.truths.write().unwrap().last_mut().unwrap().push(truth);
        self.nodes.iter().filter(|node| node.awake).for_each(|node| self.mine_last(&node.anvil));
    }

    fn mine_last(&self, anvil: &Anvil) {
        mine(anvil, self.head(), self.payments[self.payments.len() - 1]);
    }

    /// Replaces the newest blocks by as many others, which no node has yet.
    pub(super) fn branch_off(&mut self, depth: u64) {
        let first = self.head() + 1 - depth;
        // No block of another branch has the same payment.
        self.payments[first as usize..].iter_mut().for_each(|payment| *payment += 1 << 32);
        reorganise(&self.reference, depth, &self.payments);
        let mut branch = self.truths.read().unwrap().last().unwrap()[..first as usize].to_vec();
        branch.extend((first..=self.head()).map(|number| truth(&self.reference, number)));
        self.truths.write().unwrap().push(branch);
    }

    /// A node changes over to the blocks that [`branch_off`](Self::branch_off) has made.
    pub(super) fn follow(&self, node: usize, depth: u64) {
        reorganise(&self.nodes[node].anvil, depth, &self.payments);
        self.is_like_the_others(node);
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

    /// Starts a killed node on its old port, with only block 0 at first, and lets it catch up.
    pub(super) fn start_again(&mut self, node: usize) {
        let twin = &mut self.nodes[node];
        twin.anvil = start(twin.port).expect("it was there before");
        self.catch_up(node);
    }

    fn catch_up(&mut self, node: usize) {
        let anvil = &self.nodes[node].anvil;
        for number in anvil.head() + 1..=self.head() {
            mine(anvil, number, self.payments[number as usize]);
        }
        self.is_like_the_others(node);
        self.nodes[node].awake = true;
    }

    fn is_like_the_others(&self, node: usize) {
        let newest =
            |anvil: &Anvil| anvil.ask("eth_getBlockByNumber", json!(["latest", false]))["hash"].clone();
        assert_eq!(newest(&self.nodes[node].anvil), newest(&self.reference));
    }
}

fn start(port: u16) -> Option<Anvil> {
    let arguments = ["--timestamp", GENESIS_TIME, "--block-base-fee-per-gas", BASE_FEE];
    let anvil = Anvil::start_at(port, &arguments)?;
    anvil.ask("anvil_setBlockTimestampInterval", json!([1]));
    Some(anvil)
}

/// The one transaction of a block.
fn transaction(number: u64, payment: u64) -> Value {
    let mut transaction = json!({
        "type": "0x2", "chainId": "0x7a69", "from": ALICE, "nonce": format!("{:#x}", number - 1),
        "gas": "0x186a0", "maxFeePerGas": "0x77359400", "maxPriorityFeePerGas": "0x1"
    });
    if number == 1 {
        transaction["data"] = json!(BOX_CREATION);
    } else {
        transaction["to"] = json!(BOX);
        transaction["value"] = json!(format!("{payment:#x}"));
    }
    transaction
}

fn mine(anvil: &Anvil, number: u64, payment: u64) {
    anvil.ask("eth_sendTransaction", json!([transaction(number, payment)]));
    anvil.ask("evm_mine", json!([]));
}

/// Replaces the newest blocks of a node, all at once.
fn reorganise(anvil: &Anvil, depth: u64, payments: &[u64]) {
    let first = payments.len() as u64 - depth;
    let transactions = (0..depth).map(|place| {
        let number = first + place;
        json!([transaction(number, payments[number as usize]), place])
    });
    anvil.ask("anvil_reorg", json!([depth, transactions.collect::<Vec<_>>()]));
}

fn truth(anvil: &Anvil, number: u64) -> Arc<Truth> {
    let tag = format!("{number:#x}");
    let block = anvil.ask("eth_getBlockByNumber", json!([tag, false]));
    let about = |method| match &block["transactions"][0] {
        Value::Null => Value::Null,
        hash => anvil.ask(method, json!([hash])),
    };
    Arc::new(Truth {
        transaction: about("eth_getTransactionByHash"),
        receipt: about("eth_getTransactionReceipt"),
        balance: anvil.ask("eth_getBalance", json!([BOX, tag])),
        logs: anvil.ask("eth_getLogs", json!([{"fromBlock": tag, "toBlock": tag}])),
        block,
    })
}
