//! A real node that speaks a dialect of its own. Needs the EthereumJS client: `ETHEREUMJS` names the script that starts it.

use std::collections::HashMap;

use archive::Archive;
use chain_builder::write_blocks;
use tempfile::TempDir;
use testkit::ethereumjs;
use testkit::node_process::NodeProcess;
use testkit::ports::free_ports;

use super::front::Front;
use super::questions::{self, Question, agree, outcome};
use crate::demo::Demo;

const REST: &str = "[network]\nname = \"demo\"\n[cache]\nenabled = false\n";

/// The demo chain up to the last fork that EthereumJS knows, in a gateway and in EthereumJS.
pub(super) struct Pair {
    pub(super) gateway: Demo,
    pub(super) node: NodeProcess,
    _folder: TempDir,
}

impl Pair {
    pub(super) fn start() -> Option<Self> {
        ethereumjs::program()?;
        let mut genesis = demo_builder::genesis();
        let end = genesis.config.osaka_time.take().unwrap();
        (genesis.config.bpo1_time, genesis.config.bpo2_time) = (None, None);
        let mut blocks = demo_builder::build().unwrap().blocks;
        blocks.retain(|built| built.block.header.timestamp < end);
        let mut rlp = Vec::new();
        write_blocks(&blocks, &mut rlp).unwrap();
        let directory = tempfile::tempdir().unwrap();
        let archive = Archive::open_or_create(directory.path(), &json(&genesis)).unwrap();
        // It wants to know by number where work ends.
        let first_without_work = blocks.iter().find(|built| built.block.header.difficulty.is_zero());
        genesis.config.merge_netsplit_block = first_without_work.map(|built| built.block.header.number);
        let folder = tempfile::tempdir().unwrap();
        let node = ethereumjs::start(folder.path(), &json(&genesis), &rlp, free_ports())?;
        archive.import_blocks(blocks.into_iter().map(|built| built.block), &mut archive::NoProgress).unwrap();
        Some(Self { gateway: Demo::over(archive, directory, ""), node, _folder: folder })
    }

    pub(super) fn node_url(&self) -> String {
        format!("http://{}", self.node.address)
    }

    fn gateway_url(&self) -> String {
        format!("http://{}/v3/demo", self.gateway.public)
    }
}

fn json(genesis: &alloy_genesis::Genesis) -> String {
    serde_json::to_string(genesis).unwrap()
}

#[test]
fn ethereumjs_is_believed_where_it_is_right_and_nothing_else_of_it_is_delivered() {
    let Some(pair) = Pair::start() else { return };
    let front = Front::of(&[pair.node_url()], REST);
    let mut answered: HashMap<&str, u32> = HashMap::new();
    for Question { method, params, truth } in questions::all(&pair.gateway) {
        let told = outcome(&front.ask(method, &params));
        // It leaves out what makes a transaction of type 4, and gives no uncles and no receipts from before Byzantium: what hangs
        // on those is not proven.
        // Its estimates are not those of others either, and nothing proves an estimate.
        if told["code"] != -32002 && method != "eth_estimateGas" {
            *answered.entry(method).or_default() += 1;
            assert!(agree(&truth, &told), "{method} {params}: {told} is not {truth}");
        }
    }
    let about_blocks = [
        "eth_getBlockByNumber",
        "eth_getBlockByHash",
        "eth_getTransactionByHash",
        "eth_getTransactionReceipt",
    ];
    assert!(about_blocks.iter().all(|method| answered.contains_key(method)), "{answered:?}");
    assert!(answered.values().sum::<u32>() > 100, "{answered:?}");
}

/// It delivers some transactions and receipts without members that their roots cover. Whether that is found out depends on which
/// node is asked first; then it is excluded for minutes like any node whose answer is proven wrong, and nobody notices.
#[test]
fn another_node_answers_calls_that_ethereumjs_lacks() {
    let Some(pair) = Pair::start() else { return };
    let front = Front::of(&[pair.node_url(), pair.gateway_url()], REST);
    let questions = questions::all(&pair.gateway);
    // Twice, because what is lacking is learned the first time.
    for Question { method, params, truth } in questions.iter().chain(&questions) {
        let told = outcome(&front.ask(method, params));
        assert!(agree(truth, &told), "{method} {params}: {told} is not {truth}");
    }
}
