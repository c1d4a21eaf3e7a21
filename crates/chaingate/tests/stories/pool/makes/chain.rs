//! One or more nodes of a make with the same short chain, block by block, because all of them are told the same.

use std::{iter, thread};

use serde_json::{Value, json};
use testkit::anvil::Anvil;
use testkit::ganache;
use testkit::hardhat::{self, HardhatVersion};
use testkit::node_process::NodeProcess;

/// The time of block 0. No wall clock is involved, so that all nodes of a make have the same hashes.
const GENESIS_TIME: u64 = 1_735_689_600;
const GENESIS_DATE: &str = "2025-01-01T00:00:00Z";

/// All of these nodes know the first accounts of this phrase and give them ether.
const MNEMONIC: &str = "test test test test test test test test test test test junk";
pub(super) const ALICE: &str = "0xf39fd6e51aad88f6f4ce6ab8827279cfffb92266";
pub(super) const BOB: &str = "0x70997970c51812dc3a010c7d01b50e0d17dc79c8";

/// The first contract that Alice creates.
pub(super) const CONTRACT: &str = "0x5fbdb2315678afecb367f032d93f642f64180aa3";

/// Stores 42 in slot 0 and returns a contract. That stores a word that it is called with in slot 0, logs the slot, and returns it. No
/// opcode is younger than Frontier.
const CREATION: &str = "0x602a600055603d6011600039603d6000f33615600b576000356000555b600054600052\
    7f1111111111111111111111111111111111111111111111111111111111111111\
    60206000a160206000f3";

/// Fails on every fork.
pub(super) const INVALID: &str = "0xfe";

/// The blocks that [`Chain::start`] makes.
pub(super) const CREATED: u64 = 1;
pub(super) const PAID: u64 = 3;
pub(super) const FAILED: u64 = 4;
pub(super) const HEAD: u64 = 6;

/// A node of another make or fork.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Make {
    Anvil(&'static str),
    Hardhat2,
    Hardhat3,
    Ganache,
}

impl Make {
    pub(super) fn name(self) -> String {
        match self {
            Self::Anvil(fork) => format!("anvil {fork}"),
            make => format!("{make:?}"),
        }
    }

    fn start(self) -> Option<NodeProcess> {
        let time = GENESIS_TIME.to_string();
        // Without a fork: the default is what projects use.
        let hardhat =
            json!({"chainId": 31337, "initialDate": GENESIS_DATE, "mining": {"auto": false, "interval": 0}});
        match self {
            Self::Anvil(fork) => {
                Anvil::start(&["--hardfork", fork, "--timestamp", &time]).map(NodeProcess::from)
            }
            Self::Hardhat2 => hardhat::start(HardhatVersion::V2, &hardhat),
            Self::Hardhat3 => hardhat::start(HardhatVersion::V3, &hardhat),
            Self::Ganache => ganache::start(&[
                "--chain.chainId",
                "31337",
                "--chain.networkId",
                "31337",
                "--chain.time",
                GENESIS_DATE,
                "--wallet.mnemonic",
                MNEMONIC,
                "--wallet.defaultBalance",
                "10000",
            ]),
        }
    }

    /// Whether transactions of type 2 can be sent.
    fn has_london(self) -> bool {
        !matches!(self, Self::Anvil("frontier" | "byzantium" | "istanbul" | "berlin"))
    }

    /// Whether code can shift, which the reasons of reverts need here.
    pub(super) fn has_constantinople(self) -> bool {
        !matches!(self, Self::Anvil("frontier" | "byzantium"))
    }
}

/// A state to go back to: the ids for `evm_revert`, and the next nonce.
pub(super) struct Snapshot {
    ids: Vec<Value>,
    nonce: u64,
}

pub(super) struct Chain {
    pub(super) make: Make,
    pub(super) nodes: Vec<NodeProcess>,
    /// The time of the newest block of any branch, so that no two branches have a block in common.
    time: u64,
    nonce: u64,
    /// All transactions that were ever sent.
    pub(super) transactions: Vec<Value>,
}

impl Chain {
    /// `None` where the make is not installed.
    pub(super) fn start(make: Make, nodes: usize) -> Option<Self> {
        let first = make.start()?;
        // Some makes take seconds to start, so that the other nodes start at once.
        let others = thread::scope(|scope| {
            let starting: Vec<_> = (1..nodes).map(|_| scope.spawn(move || make.start())).collect();
            starting.into_iter().map(|node| node.join().unwrap()).collect::<Option<Vec<_>>>()
        })?;
        let nodes = iter::once(first).chain(others).collect();
        let mut chain = Self { make, nodes, time: GENESIS_TIME, nonce: 0, transactions: Vec::new() };
        let store = |word: u8| json!({"to": CONTRACT, "data": format!("0x{word:064x}")});
        chain.mine(&[json!({"data": CREATION})]);
        chain.mine(&[store(7)]);
        chain.mine(&[store(9), json!({"to": BOB, "value": "0x1"})]);
        chain.mine(&[json!({"data": INVALID})]);
        let mut newest = json!({"to": BOB, "value": "0x2"});
        if make.has_london() {
            newest["maxFeePerGas"] = json!("0x2540be400");
            newest["maxPriorityFeePerGas"] = json!("0x3b9aca00");
        }
        chain.mine(&[newest]);
        chain.mine(&[]);
        assert_eq!(chain.node().head(), HEAD, "{}", make.name());
        Some(chain)
    }

    /// Whether nobody can prove an answer to this: Ganache hashes the status of a failed transaction as a zero byte, so that the receipts
    /// of its block do not match the root in the header.
    pub(super) fn is_unprovable(&self, params: &Value) -> bool {
        let params = params.to_string();
        let failed = self.node().ask("eth_getBlockByNumber", json!([format!("{FAILED:#x}"), false]));
        let names =
            [json!(format!("{FAILED:#x}")), failed["hash"].clone(), failed["transactions"][0].clone()];
        self.make == Make::Ganache && names.iter().any(|name| params.contains(&name.to_string()))
    }

    /// A node to ask for the truth. All of them tell it.
    pub(super) fn node(&self) -> &NodeProcess {
        &self.nodes[0]
    }

    pub(super) fn urls(&self) -> Vec<String> {
        self.nodes.iter().map(|node| format!("http://{}", node.address)).collect()
    }

    /// Makes a block with a payment that no other branch has.
    pub(super) fn pay(&mut self) {
        let value = format!("{:#x}", 1_000 + self.transactions.len());
        self.mine(&[json!({"to": BOB, "value": value})]);
    }

    /// Makes a block of these transactions, a second after the newest one.
    pub(super) fn mine(&mut self, transactions: &[Value]) {
        for transaction in transactions {
            let mut whole = transaction.clone();
            whole["from"] = json!(ALICE);
            whole["nonce"] = json!(format!("{:#x}", self.nonce));
            whole["gas"] = json!("0xf4240");
            if whole.get("maxFeePerGas").is_none() {
                whole["gasPrice"] = json!("0x2540be400");
            }
            self.nonce += 1;
            let hashes = self.on_each("eth_sendTransaction", &json!([whole]));
            self.transactions.push(hashes[0].clone());
        }
        self.time += 1;
        let time = match self.make {
            Make::Ganache => json!([{"timestamp": self.time}]),
            _ => json!([self.time]),
        };
        self.on_each("evm_mine", &time);
    }

    pub(super) fn snapshot(&self) -> Snapshot {
        Snapshot {
            ids: self.nodes.iter().map(|node| node.ask("evm_snapshot", json!([]))).collect(),
            nonce: self.nonce,
        }
    }

    /// Takes back all blocks since the snapshot.
    pub(super) fn revert(&mut self, to: Snapshot) {
        self.nonce = to.nonce;
        for (node, id) in self.nodes.iter().zip(to.ids) {
            assert_eq!(node.ask("evm_revert", json!([id])), json!(true), "{}", self.make.name());
        }
    }

    fn on_each(&self, method: &str, params: &Value) -> Vec<Value> {
        self.nodes.iter().map(|node| node.ask(method, params.clone())).collect()
    }
}
