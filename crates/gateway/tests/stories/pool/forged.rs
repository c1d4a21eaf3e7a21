//! Nodes that lie about block data. With an honest majority no lie gets through, and none is left when the liar is gone.

use std::thread;
use std::time::Duration;

use testkit::forgery::Forgery;
use testkit::proxy::{Mood, Proxy};

use super::front::Front;
use super::questions::{self, Question, outcome};
use super::{deep_questions, long};
use crate::demo::Demo;

/// Gateways that are tried at the same time.
const AT_ONCE: usize = 8;

/// Longer answers are left out: reading them takes most of the time, and they are of the same kinds.
const ANSWER_BYTES_MAX: usize = 20_000;

/// Long enough that a node without it is asked first.
const SLOW: Duration = Duration::from_millis(40);

/// Questions about block data. Each kind often enough that a liar is asked.
fn block_data(node: &Demo) -> Vec<Question> {
    let mut questions = questions::all(node);
    questions.retain(|question| {
        let about_state = ["eth_getBalance", "eth_getTransactionCount"].contains(&question.method);
        let about_blocks =
            ["Block", "Uncle", "Transaction", "Logs"].iter().any(|part| question.method.contains(part));
        let is_short = question.truth.to_string().len() < ANSWER_BYTES_MAX;
        is_short && about_blocks && !about_state && !question.method.starts_with("zks_")
    });
    questions
}

/// Compares each answer twice: while some nodes lie, and once they are honest again.
fn nothing_gets_through(chain: &Demo, questions: &[Question], liars: usize, nodes: usize, rest: &str) {
    for forgeries in Forgery::ALL.chunks(AT_ONCE) {
        thread::scope(|scope| {
            for forgery in forgeries {
                scope.spawn(move || one_forgery(chain, questions, *forgery, liars, nodes, rest));
            }
        });
    }
}

fn one_forgery(
    chain: &Demo,
    questions: &[Question],
    forgery: Forgery,
    liars: usize,
    nodes: usize,
    rest: &str,
) {
    let proxies: Vec<_> = (0..nodes).map(|_| Proxy::start(chain.public, "/v3/demo")).collect();
    let (lying, honest) = proxies.split_at(liars);
    lying.iter().for_each(|proxy| proxy.set(Mood::Forging(forgery)));
    let urls: Vec<_> = proxies.iter().map(Proxy::url).collect();
    let front = Front::of(&urls, &format!("[network]\nname = \"demo\"\n{rest}"));
    if rest.contains("# slow") {
        honest.iter().for_each(|proxy| proxy.set(Mood::Slow(SLOW)));
    }
    for time in ["while a node lies", "when it has stopped"] {
        for Question { method, params, truth } in questions {
            assert_eq!(outcome(&front.ask(method, params)), *truth, "{forgery:?} {time}: {method} {params}");
        }
        proxies.iter().for_each(|proxy| proxy.set(Mood::Honest));
    }
}

/// Whatever a node says of a block's data is proven, and what nodes say of the state is confirmed.
#[test]
fn every_reply_says_how_far_it_is_verified() {
    let chain = Demo::with("");
    let (_proxies, front) = Front::behind(chain.public, "/v3/demo", 3, "[network]\nname = \"demo\"\n");
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

/// A forgery that changes no answer of its node would show nothing.
#[test]
fn every_forgery_changes_some_answer_of_its_node() {
    let chain = Demo::with("");
    let questions = block_data(&chain);
    let proxy = Proxy::start(chain.public, "/v3/demo");
    for forgery in Forgery::ALL {
        proxy.set(Mood::Forging(forgery));
        let is_forged = |Question { method, params, .. }: &Question| {
            let call = crate::gateway_under_test::call(method, params);
            let told = testkit::http::post(proxy.address, "/", call).json();
            told["result"] != chain.call(method, params)["result"]
        };
        assert!(questions.iter().any(is_forged), "{forgery:?}");
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
fn one_liar_of_three_changes_no_block_data() {
    let chain = Demo::with("");
    nothing_gets_through(&chain, &block_data(&chain), 1, 3, "");
}

/// Half of the calls got a lie where the liar was faster than the honest nodes.
#[test]
fn a_quick_liar_and_slow_honest_nodes_change_no_block_data() {
    let chain = Demo::with("");
    let mut questions = block_data(&chain);
    questions.dedup_by_key(|question| question.method);
    questions.truncate(24);
    nothing_gets_through(&chain, &questions, 1, 3, "# slow\n");
}

#[test]
fn two_liars_of_five_change_no_block_data() {
    let chain = Demo::with("");
    let mut questions = block_data(&chain);
    questions.truncate(40);
    nothing_gets_through(&chain, &questions, 2, 5, "");
}

/// Below the window nobody has watched the blocks: receipts were not held against their root there, a transaction could be
/// moved to any other block, and one null hid what honest nodes had.
#[test]
fn one_liar_of_three_changes_nothing_in_deep_blocks() {
    let blocks = long::chain(2);
    let chain = long::node(&blocks);
    let questions = deep_questions::about(&blocks, &chain);
    nothing_gets_through(&chain, &questions, 1, 3, "");
}

/// The only node lies. What it says is true of the block's hash or is not told.
#[test]
fn a_liar_alone_gets_no_forged_block_data_through() {
    let chain = Demo::with("");
    let questions = block_data(&chain);
    for forgery in Forgery::ALL {
        // What no block proves is believed when nobody contradicts it.
        if [Forgery::NoTransactions, Forgery::Pending].contains(&forgery) {
            continue;
        }
        let proxy = Proxy::start(chain.public, "/v3/demo");
        let front = Front::of(&[proxy.url()], "[network]\nname = \"demo\"\n");
        proxy.set(Mood::Forging(forgery));
        for Question { method, params, truth } in questions.iter().take(12) {
            let told = outcome(&front.ask(method, params));
            assert!(told == *truth || told["code"] == -32002, "{forgery:?}: {method} {params}: {told}");
        }
    }
}
