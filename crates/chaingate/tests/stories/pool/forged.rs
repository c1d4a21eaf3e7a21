//! Nodes that lie. With an honest majority no lie gets through, and none is left when the liar is gone.

use std::net::SocketAddr;
use std::thread;
use std::time::Duration;

use testkit::forgery::Forgery;
use testkit::matrix::{NodeLie, NodeMix, RunningGateway, StateTrust, TrueChain, run_cell};
use testkit::proxy::{Mood, Proxy};

use super::front::Front;
use super::questions::outcome;
use super::{deep_questions, long};
use crate::demo::Demo;

/// Gateways that are tried at the same time.
const AT_ONCE: usize = 8;

/// Calls for each lie, of which each is asked while nodes lie and again when they are honest.
const CALLS: usize = 24;

/// Blocks that are asked about.
const BLOCKS: u64 = 12;

/// Where the nodes and the gateways take calls.
const NODE_PATH: &str = "/v3/demo";

impl RunningGateway for Front {
    fn public(&self) -> SocketAddr {
        self.public
    }

    fn operator(&self) -> SocketAddr {
        self.operator
    }

    fn path(&self) -> &str {
        "/v3/custom"
    }
}

/// Lets some nodes tell each of these lies to a gateway that confirms state. No answer may be wrong, and none may fail where
/// honest nodes are the quorum.
fn nothing_gets_through(chain: &TrueChain, forgeries: &[Forgery], mix: NodeMix, rest: &str) {
    let rest = format!("[network]\nname = \"demo\"\n{rest}");
    let start = |nodes: &[String]| -> Box<dyn RunningGateway> { Box::new(Front::unready(nodes, &rest)) };
    for (number, forgeries) in forgeries.chunks(AT_ONCE).enumerate() {
        thread::scope(|scope| {
            for forgery in forgeries {
                let start = &start;
                scope.spawn(move || {
                    let lie = NodeLie::from(*forgery);
                    let calls = chain.sample(&lie, CALLS, number as u64);
                    let report = run_cell(chain, &lie, mix, StateTrust::Confirmed, &calls, start);
                    assert!(report.crossed.is_empty(), "{forgery:?}, {}: {:#?}", mix.name, report.crossed);
                });
            }
        });
    }
}

fn demo_chain(node: &Demo) -> TrueChain {
    TrueChain::read("demo", node.public, NODE_PATH, BLOCKS)
}

/// Block data from nodes is proven, and state is confirmed.
#[test]
fn every_reply_says_how_far_it_is_verified() {
    let chain = Demo::with("");
    let (_proxies, front) = Front::behind(chain.public, "/v3/demo", 3, "[network]\nname = \"demo\"\n");
    front.wait_for_histories();
    let unknown = format!(r#"["0x{}"]"#, "ab".repeat(32));
    for (method, params, verified) in [
        ("eth_getBlockByNumber", r#"["0x5",true]"#, "proven"),
        ("eth_getBlockReceipts", r#"["0x5"]"#, "proven"),
        ("eth_getLogs", r#"[{"fromBlock":"0x1","toBlock":"0x5"}]"#, "proven"),
        ("eth_getTransactionReceipt", &unknown, "confirmed"),
        ("eth_blockNumber", "[]", "confirmed"),
        ("eth_getBalance", r#"["0x00000000000000000000000000000000000000aa","0x5"]"#, "confirmed"),
    ] {
        for time in ["first", "kept"] {
            let reply = front.ask_as("custom", "", method, params);
            assert_eq!(reply.header("chaingate-verified"), Some(verified), "{time}: {method} {params}");
        }
    }
    let call = |method, params| crate::gateway_under_test::call(method, params);
    let batch = format!("[{},{}]", call("eth_getBlockReceipts", r#"["0x5"]"#), call("eth_blockNumber", "[]"));
    assert_eq!(front.wire().post("/v3/custom", batch).header("chaingate-verified"), Some("confirmed"));
}

/// A forgery that changes no answer of its node would show nothing. Nobody is asked for proofs, methods and sync here, and all blocks
/// of this node are final.
#[test]
fn every_forgery_changes_some_answer_of_its_node() {
    let node = Demo::with("");
    let chain = demo_chain(&node);
    let unseen = [Forgery::ProofValues, Forgery::RawTransactions, Forgery::Syncing, Forgery::MarksAtHead];
    for forgery in Forgery::ALL {
        let unseen = unseen.contains(forgery);
        assert!(unseen || !chain.forged_by(&NodeLie::from(*forgery)).is_empty(), "{forgery:?}");
    }
}

/// One node of three said that there is no such receipt, and the others took longer than a null was kept back for.
#[test]
fn a_null_needs_more_than_one_node_however_slow_the_others_are() {
    let blocks = long::chain(2);
    let chain = long::node(&blocks);
    let question = deep_questions::about(&blocks, &chain).swap_remove(0);
    let proxies: Vec<_> = (0..3).map(|_| Proxy::start(chain.public, "/v3/demo")).collect();
    let urls: Vec<_> = proxies.iter().map(Proxy::url).collect();
    let front = Front::of(&urls, "[network]\nname = \"long\"\n[pool]\ncall_timeout_ms = 60000\n");
    proxies[0].set(Mood::Forging(Forgery::NoTransactions));
    proxies[1..].iter().for_each(|proxy| proxy.set(Mood::Slow(Duration::from_millis(1_300))));
    assert_eq!(outcome(&front.ask(question.method, &question.params)), question.truth);
}

/// A block's data was asked of a node for each question about it.
#[test]
fn a_block_is_fetched_once_for_all_questions_about_it() {
    let chain = Demo::with("");
    let hash = chain.call("eth_getBlockByNumber", r#"["0x5",false]"#)["result"]["hash"].to_string();
    let ask_all = |front: &Front| {
        front.ask("eth_getBlockByNumber", r#"["0x5",true]"#);
        front.ask("eth_getBlockByNumber", r#"["0x5",false]"#);
        front.ask("eth_getBlockReceipts", r#"["0x5"]"#);
        front.ask("eth_getBlockTransactionCountByNumber", r#"["0x5"]"#);
        front.ask("eth_getUncleCountByBlockHash", &format!("[{hash}]"));
    };
    for (proven_bytes_max, fetched) in [(1, 5), (64 << 20, 1)] {
        let cache = format!("[cache]\nbytes_max = 1\nproven_bytes_max = {proven_bytes_max}\n");
        let rest = format!("[network]\nname = \"demo\"\n{cache}");
        let (proxies, front) = Front::behind(chain.public, "/v3/demo", 1, &rest);
        ask_all(&front);
        assert_eq!(proxies[0].asked("eth_getBlockByHash", &format!("[{hash},true]")), fetched);
    }
}

/// 41 of 84 lies about block data got through, each in up to a quarter of the calls that it was about, and many were kept.
#[test]
fn one_liar_of_three_changes_nothing() {
    let node = Demo::with("");
    let chain = demo_chain(&node);
    nothing_gets_through(&chain, Forgery::ALL, NodeMix::ONE_OF_THREE, "");
}

/// Half of the calls got a lie where the liar was faster than the honest nodes.
#[test]
fn a_quick_liar_and_slow_honest_nodes_change_nothing() {
    let node = Demo::with("");
    let chain = demo_chain(&node);
    nothing_gets_through(&chain, Forgery::ALL, NodeMix::ONE_OF_THREE_SLOW, "");
}

#[test]
fn two_liars_of_five_change_nothing() {
    let node = Demo::with("");
    let chain = demo_chain(&node);
    nothing_gets_through(&chain, Forgery::ALL, NodeMix::TWO_OF_FIVE, "");
}

/// Below the window nobody has watched the blocks: receipts were not held against their root there, a transaction could be
/// moved to any other block, and one null hid what honest nodes had.
#[test]
fn one_liar_of_three_changes_nothing_in_deep_blocks() {
    let blocks = long::chain(2);
    let node = long::node(&blocks);
    let chain = TrueChain::read("long", node.public, NODE_PATH, BLOCKS);
    nothing_gets_through(&chain, Forgery::ALL, NodeMix::ONE_OF_THREE, "");
}

/// Answers that contradict the hash of their block are not passed on, also when only liars are there. Most of these calls fail
/// at their deadline, so that each of these tests takes long on any machine.
fn no_majority_gets_through(mix: NodeMix, forgeries: &[Forgery]) {
    let node = Demo::with("");
    nothing_gets_through(&demo_chain(&node), forgeries, mix, "");
}

fn halves() -> (&'static [Forgery], &'static [Forgery]) {
    Forgery::ALL.split_at(Forgery::ALL.len() / 2)
}

#[test]
fn a_liar_alone_gets_no_forged_block_data_through() {
    no_majority_gets_through(NodeMix::ONE_OF_ONE, halves().0);
}

#[test]
fn a_liar_alone_gets_no_other_forged_block_data_through() {
    no_majority_gets_through(NodeMix::ONE_OF_ONE, halves().1);
}

#[test]
fn a_majority_of_liars_gets_no_forged_block_data_through() {
    no_majority_gets_through(NodeMix::TWO_OF_THREE, halves().0);
}

#[test]
fn a_majority_of_liars_gets_no_other_forged_block_data_through() {
    no_majority_gets_through(NodeMix::TWO_OF_THREE, halves().1);
}

/// Chains may have old blocks whose hashes cannot be computed here. All nodes were taken for liars when a caller asked for one.
#[test]
fn nodes_that_agree_on_a_block_that_cannot_be_proven_are_not_blamed() {
    let node = long::node(&long::chain(1));
    let (proxies, front) =
        Front::behind(node.public, NODE_PATH, 3, "[network]\nname = \"long\"\n[follow]\nmode = \"off\"\n");
    proxies.iter().for_each(|proxy| proxy.set(Mood::Forging(Forgery::BlockStateRoot)));
    let old = format!(r#"["{:#x}",false]"#, long::DEEP);
    assert_eq!(front.ask("eth_getBlockByNumber", &old)["error"]["code"], -32002);
    proxies.iter().for_each(|proxy| proxy.set(Mood::Honest));
    assert_eq!(
        outcome(&front.ask("eth_getBlockByNumber", &old)),
        outcome(&node.call("eth_getBlockByNumber", &old))
    );
    let metrics = testkit::http::get(front.operator, "/metrics");
    let blamed =
        metrics.text().lines().filter(|line| line.contains("fault=\"wrong\"") && !line.ends_with(" 0"));
    assert_eq!(blamed.collect::<Vec<_>>(), [""; 0]);
}
