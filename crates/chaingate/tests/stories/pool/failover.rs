//! Partners answer while none of the own nodes can.

use std::time::{Duration, Instant};

use alloy_primitives::B256;
use demo::CHAIN_ID;
use methods::METHODS;
use testkit::http::get;
use testkit::proxy::{Mood, Proxy};

use super::front::Front;
use super::long::{self, BLOCKS, DEEP};
use super::questions::{self, Question, outcome};
use crate::demo::{Demo, until};

const STORAGE: (&str, &str) =
    ("eth_getStorageAt", r#"["0xA7918D253764E42d60C3ce2010a34d5a1e7C1398","0x0","latest"]"#);
const BY_INDEX: &str = "eth_getTransactionByBlockNumberAndIndex";
const UNAVAILABLE: &str = "-32002 resource unavailable";

struct Outage {
    node: Proxy,
    partner: Proxy,
    front: Front,
    chain: Demo,
    /// The chain of the partner, if it is another one.
    _other: Option<Demo>,
}

impl Outage {
    /// An outage on the demo chain.
    fn begin(partner: &str) -> Self {
        let rest = "[network]\nname = \"demo\"\n[cache]\nenabled = false\n";
        Self::of(Demo::with(""), None, &format!("{rest}{}", entry(partner)), false).probed()
    }

    /// An outage on a long chain, which begins before the first head.
    fn from_the_start(partner: &str) -> Self {
        Self::of(long::node(&long::chain(2)), None, &long_rest(partner), true).probed()
    }

    /// An outage on a long chain.
    fn deep(partner: &str) -> Self {
        Self::of(long::node(&long::chain(2)), None, &long_rest(partner), false).probed()
    }

    /// An outage on a long chain, where partners answer these methods.
    fn of_methods(methods: &[&str], partner: &str) -> Self {
        let rest = format!("[methods]\nfailover = {methods:?}\n{}", long_rest(partner));
        Self::of(long::node(&long::chain(2)), None, &rest, false).probed()
    }

    fn probed(self) -> Self {
        self.front.wait_for_partner();
        self
    }

    fn of(chain: Demo, other: Option<Demo>, rest: &str, from_the_start: bool) -> Self {
        let node = Proxy::start(chain.public, "/v3/demo");
        let partner = Proxy::start(other.as_ref().unwrap_or(&chain).public, "/v3/demo");
        let rest = rest.replace("PARTNER", &partner.url());
        if from_the_start {
            node.set(Mood::Dead);
        }
        let front = if from_the_start {
            Front::unready(&[node.url()], &rest)
        } else {
            Front::of(&[node.url()], &rest)
        };
        node.set(Mood::Dead);
        until("the partner was probed", || partner.replies() > 0);
        Self { node, partner, front, chain, _other: other }
    }

    /// Checks that the partner gives the answer that the node would give.
    fn compare(&self, method: &str, params: &str) {
        let reply = self.front.ask_as("growth", "", method, params);
        let truth = outcome(&self.chain.call(method, params));
        assert_eq!(outcome(&reply.json()), truth, "{method} {params}");
        if reply.json().get("result").is_some() {
            assert_eq!(reply.header("chaingate-source"), Some("partner"), "{method} {params}");
        }
    }

    /// The number of answers of partners in the metrics.
    fn answers(&self) -> u64 {
        let page = get(self.front.operator, "/metrics");
        let name = "chaingate_partner_answers_total{reason=\"no_answer\"} ";
        page.text().lines().find_map(|line| line.strip_prefix(name)).unwrap().parse().unwrap()
    }
}

fn entry(partner: &str) -> String {
    format!("[[partner]]\nurl = \"PARTNER\"\n{partner}\n")
}

fn long_rest(partner: &str) -> String {
    format!("[network]\nname = \"long\"\n{}", entry(partner))
}

#[test]
fn a_partner_answers_for_plans_that_have_failover() {
    let outage = Outage::begin("");
    let front = &outage.front;
    let reply = front.ask_as("growth", "", STORAGE.0, STORAGE.1);
    assert_eq!(reply.header("chaingate-source"), Some("partner"), "{}", reply.text());
    assert_eq!(reply.json()["result"], format!("0x{:064x}", 1234));
    let by_index = front.ask_as("growth", "", BY_INDEX, r#"["latest","0x0"]"#);
    assert_eq!(by_index.header("chaingate-source"), Some("partner"));
    let asked = outage.partner.calls();

    for (key, headers, method, params) in [
        ("core", "", STORAGE.0, STORAGE.1),
        ("growth", "enable-failover: false\r\n", STORAGE.0, STORAGE.1),
        ("growth", "", "eth_getBalance", r#"["0xA7918D253764E42d60C3ce2010a34d5a1e7C1398","latest"]"#),
    ] {
        let reply = front.ask_as(key, headers, method, params);
        assert_eq!((reply.status, reply.error()), (200, UNAVAILABLE.to_owned()), "{key} {headers}{method}");
    }
    assert_eq!(outage.partner.calls(), asked, "the partner was not asked for those");

    outage.node.set(Mood::Honest);
    until("the own pool is used again", || {
        front.ask_as("growth", "", STORAGE.0, STORAGE.1).header("chaingate-source") == Some("node")
    });
}

#[test]
fn a_partner_has_a_budget_and_methods() {
    // A call about its chain comes out of the budget, too.
    let outage = Outage::begin("calls_per_day = 3\nmethods = [\"eth_getStorageAt\"]");
    let ask = |method, params| outage.front.ask_as("growth", "", method, params);
    for _ in 0..2 {
        assert_eq!(ask(STORAGE.0, STORAGE.1).header("chaingate-source"), Some("partner"));
    }
    assert_eq!(ask(STORAGE.0, STORAGE.1).error(), UNAVAILABLE);
    let other = ask(BY_INDEX, r#"["latest","0x0"]"#);
    assert_eq!(other.error(), UNAVAILABLE);
    assert_eq!(outage.partner.calls(), 3);
}

/// Partners are hardly polled. One that had failed a few times was never asked again.
#[test]
fn a_partner_that_is_back_is_asked_again() {
    let outage = Outage::begin("");
    let ask = || outage.front.ask_as("growth", "", STORAGE.0, STORAGE.1);
    outage.partner.set(Mood::ServerError);
    for _ in 0..8 {
        assert_eq!(ask().error(), UNAVAILABLE);
    }
    outage.partner.set(Mood::Honest);
    until("the partner answers", || ask().header("chaingate-source") == Some("partner"));
}

/// One call out of the budget was two calls to a partner that failed.
#[test]
fn a_partner_that_fails_is_not_asked_more_often_than_its_budget_says() {
    let outage = Outage::begin("calls_per_day = 2");
    outage.partner.set(Mood::ServerError);
    for _ in 0..4 {
        assert_eq!(outage.front.ask_as("growth", "", STORAGE.0, STORAGE.1).error(), UNAVAILABLE);
    }
    assert_eq!(outage.partner.calls(), 2);
}

/// A partner with a wrong key, or of another chain, was found out in an outage only.
#[test]
fn a_partner_that_cannot_be_used_is_seen_before_it_is_needed() {
    let chain = Demo::with("");
    let node = Proxy::start(chain.public, "/v3/demo");
    for (mood, usable) in [(Mood::Honest, "1"), (Mood::Unauthorized, "0"), (Mood::OtherChain, "0")] {
        let partner = Proxy::start(chain.public, "/v3/demo");
        partner.set(mood);
        let rest = format!("[network]\nname = \"demo\"\n{}", entry("").replace("PARTNER", &partner.url()));
        let front = Front::of(&[node.url()], &rest);
        until("it was probed", || partner.replies() > 0);
        let line = format!("chaingate_partner_usable{{partner=\"{}\"}} {usable}", partner.url());
        until("metrics tell", || get(front.operator, "/metrics").text().lines().any(|text| text == line));
        assert_eq!(get(front.operator, "/ready").status, 200, "{mood:?}");
    }
}

#[test]
fn answers_of_partners_are_checked_too() {
    let outage = Outage::begin("");
    outage.partner.set(Mood::WrongBlocks);
    let by_index = outage.front.ask_as("growth", "", BY_INDEX, r#"["latest","0x0"]"#);
    assert_eq!(by_index.error(), UNAVAILABLE);
}

#[test]
fn a_gateway_without_a_head_is_not_ready_and_says_so() {
    let chain = Demo::with("");
    let node = Proxy::start(chain.public, "/v3/demo");
    node.set(Mood::Dead);
    let front = Front::unready(&[node.url()], "[network]\nname = \"demo\"\n");
    assert_eq!(get(front.operator, "/ready").status, 503);
    assert_eq!(front.ask_as("custom", "", "eth_blockNumber", "[]").error(), UNAVAILABLE);
    node.set(Mood::Honest);
    until("it is ready", || get(front.operator, "/ready").status == 200);
    assert!(front.ask("eth_blockNumber", "[]")["result"].is_string());
}

const PLENTY: &str = "calls_per_second = 100000";

fn quoted(text: &str) -> String {
    format!("\"{text}\"")
}

/// Which block is meant would be the partner's word alone.
#[test]
fn no_partner_is_asked_before_the_first_head() {
    let outage = Outage::from_the_start(PLENTY);
    for block in ["latest", "pending", "earliest", "0x7"] {
        let reply = outage.front.ask_as("growth", "", STORAGE.0, &long::storage_at(&quoted(block)));
        assert_eq!(reply.error(), UNAVAILABLE, "{block}");
    }
    assert_eq!(outage.partner.calls(), 1, "it was asked for its chain");
    assert_eq!(get(outage.front.operator, "/ready").status, 503);
}

/// The nodes named the blocks of the window before they were down, and others that they were asked for.
#[test]
fn a_partner_answers_about_blocks_that_the_nodes_have_named() {
    let outage = Outage::deep(PLENTY);
    let hash = long::chain(2).blocks[DEEP as usize - 1].hash;
    let deep = [quoted(&format!("{DEEP:#x}")), quoted(&hash.to_string())];
    let window = ["latest", "pending", "safe", "finalized"].map(quoted);
    let numbers = [BLOCKS - 1, BLOCKS, BLOCKS + 1].map(|number| quoted(&format!("{number:#x}")));
    for block in window.iter().chain(&numbers) {
        outage.compare(STORAGE.0, &long::storage_at(block));
    }
    let answers = outage.answers();
    assert!(answers > 3);
    for block in &deep {
        let reply = outage.front.ask_as("growth", "", STORAGE.0, &long::storage_at(block));
        assert_eq!(reply.error(), UNAVAILABLE, "{block}");
    }
    assert_eq!(outage.answers(), answers);
    outage.node.set(Mood::Honest);
    let by_index = format!(r#"[{},"0x1"]"#, deep[0]);
    until("the node names it", || {
        let reply = outage.front.ask_as("growth", "", BY_INDEX, &by_index);
        reply.header("chaingate-source") == Some("node")
    });
    outage.node.set(Mood::Dead);
    until("the partner answers about it", || {
        let reply = outage.front.ask_as("growth", "", STORAGE.0, &long::storage_at(&deep[0]));
        reply.header("chaingate-source") == Some("partner")
    });
    outage.compare(STORAGE.0, &long::storage_at(&deep[0]));
}

#[test]
fn others_get_an_error_wherever_the_block_is() {
    let outage = Outage::deep("");
    for block in ["latest", "0x7"] {
        let storage = long::storage_at(&quoted(block));
        let balance = format!(r#"["0xA7918D253764E42d60C3ce2010a34d5a1e7C1398","{block}"]"#);
        for (key, headers, method, params) in [
            ("core", "", STORAGE.0, &*storage),
            ("growth", "enable-failover: false\r\n", STORAGE.0, &*storage),
            ("custom", "Enable-Failover: FALSE\r\n", STORAGE.0, &*storage),
            ("growth", "", "eth_getBalance", &*balance),
        ] {
            let reply = outage.front.ask_as(key, headers, method, params);
            assert_eq!(
                (reply.status, reply.error()),
                (200, UNAVAILABLE.to_owned()),
                "{key} {headers}{method}"
            );
        }
        assert_eq!(outage.partner.calls(), 1, "the partner was asked for its chain, and nothing else");
    }
}

#[test]
fn the_own_pool_is_used_again_when_it_is_back() {
    let outage = Outage::deep("");
    let params = long::storage_at(r#""latest""#);
    let source = || {
        let reply = outage.front.ask_as("growth", "", STORAGE.0, &params);
        reply.header("chaingate-source").unwrap_or_default().to_owned()
    };
    assert_eq!(source(), "partner");
    outage.node.set(Mood::Honest);
    until("the own pool is used again", || source() == "node");
}

#[test]
fn a_lying_partner_is_not_believed_about_blocks() {
    let outage = Outage::deep("");
    for mood in [Mood::WrongBlocks, Mood::Garbage, Mood::WrongId, Mood::Html] {
        outage.partner.set(mood);
        let reply = outage.front.ask_as("growth", "", BY_INDEX, r#"["latest","0x1"]"#);
        assert_eq!(reply.error(), UNAVAILABLE, "{mood:?}");
    }
}

/// Data of a block that the nodes have named is proven. The absence of a transaction is the partner's word.
#[test]
fn answers_of_partners_say_how_far_they_are_verified() {
    let outage = Outage::of_methods(&["eth_getBlockReceipts", "eth_getTransactionReceipt"], PLENTY);
    let unknown = format!(r#"["{}"]"#, B256::repeat_byte(0xab));
    for (method, params, verified) in [
        ("eth_getBlockReceipts", r#"["latest"]"#, "proven"),
        ("eth_getTransactionReceipt", &*unknown, "none"),
    ] {
        let reply = outage.front.ask_as("growth", "", method, params);
        assert_eq!(reply.header("chaingate-source"), Some("partner"), "{method} {params}");
        assert_eq!(reply.header("chaingate-verified"), Some(verified), "{method} {params}");
    }
}

/// The parts of a block are calls of their own.
#[test]
fn every_call_to_a_partner_is_out_of_its_budget() {
    let outage = Outage::of_methods(&["eth_getBlockReceipts"], "calls_per_day = 4");
    let ask =
        |block: u64| outage.front.ask_as("growth", "", "eth_getBlockReceipts", &format!(r#"["{block:#x}"]"#));
    assert_eq!(ask(BLOCKS).header("chaingate-source"), Some("partner"));
    assert_eq!(ask(BLOCKS - 1).error(), UNAVAILABLE, "its block was the last call");
    assert_eq!(outage.partner.calls(), 4, "one of them was a probe");
}

#[test]
fn a_partner_without_the_checkpoint_is_not_asked() {
    let [true_chain, other] = [2, 3].map(long::chain);
    let hash = true_chain.blocks[4].block.header.hash_slow();
    let rest = format!(
        "[network]\nname = \"long\"\ncheckpoint = {{ number = 5, hash = \"{hash}\" }}\n{}",
        entry(PLENTY)
    );
    let outage = Outage::of(long::node(&true_chain), Some(long::node(&other)), &rest, false);
    for (method, params) in
        [(STORAGE.0, long::storage_at(r#""latest""#)), (BY_INDEX, r#"["latest","0x0"]"#.to_owned())]
    {
        assert_eq!(outage.front.ask_as("growth", "", method, &params).error(), UNAVAILABLE, "{method}");
    }
    until("it was asked for the block of the checkpoint", || {
        outage.partner.asked("eth_getBlockByNumber", r#"["0x5",false]"#) == 1
    });
    assert_eq!(outage.partner.calls(), 2, "it was asked for its chain, too");
}

/// A partner that is on a fork has other blocks under the same numbers.
#[test]
fn a_partner_changes_nothing_about_blocks_that_nodes_have_shown() {
    let methods = ["eth_getBlockByNumber", "eth_getBlockReceipts", "eth_getLogs", "eth_gasPrice", BY_INDEX];
    let rest = format!("[network]\nname = \"long\"\n[methods]\nfailover = {methods:?}\n{}", entry(PLENTY));
    let [chain, fork] = [2, 3].map(|transactions| long::node(&long::chain(transactions)));
    let outage = Outage::of(chain, Some(fork), &rest, false).probed();
    let older = format!("{:#x}", BLOCKS - 100);
    for (method, params) in [
        ("eth_getBlockByNumber", r#"["latest",true]"#.to_owned()),
        ("eth_getBlockByNumber", format!(r#"["{older}",false]"#)),
        ("eth_getBlockReceipts", format!(r#"["{older}"]"#)),
        (BY_INDEX, format!(r#"["{older}","0x1"]"#)),
        ("eth_getLogs", format!(r#"[{{"fromBlock":"{older}","toBlock":"latest"}}]"#)),
        ("eth_gasPrice", "[]".to_owned()),
    ] {
        let reply = outage.front.ask_as("growth", "", method, &params).json();
        let is_true = || outcome(&reply) == outcome(&outage.chain.call(method, &params));
        assert!(reply["error"]["code"] == -32002 || is_true(), "{method} {params}: {reply}");
    }
}

/// A partner of another chain was believed: it had blocks with good hashes.
#[test]
fn a_partner_of_another_chain_is_not_asked() {
    let rest = format!("[network]\nname = \"long\"\n{}", entry(""));
    let outage = Outage::of(long::node(&long::chain(2)), Some(Demo::with("")), &rest, false);
    for block in [r#""latest""#, r#""0x7""#] {
        let reply = outage.front.ask_as("growth", "", STORAGE.0, &long::storage_at(block));
        assert_eq!(reply.error(), UNAVAILABLE, "{block}");
    }
    assert_eq!(outage.partner.calls(), 1, "it was asked for its chain");
}

/// A partner that took its time had as much of it for each part of a block that it was asked for.
#[test]
fn a_partner_has_no_more_time_than_a_call_has() {
    let outage = Outage::of_methods(&["eth_getBlockReceipts"], "[pool]\ncall_timeout_ms = 4000\n");
    outage.partner.set(Mood::Slow(Duration::from_millis(2_800)));
    let begun = Instant::now();
    let reply = outage.front.ask_as("growth", "", "eth_getBlockReceipts", r#"["latest"]"#);
    assert_eq!(reply.error(), UNAVAILABLE);
    // The partner is asked for the block, and then for its receipts.
    assert!(begun.elapsed() < Duration::from_secs(8), "{:?}", begun.elapsed());
}

/// The operator may let every method fail over. Those of log queries never did, whatever the configuration said.
#[test]
fn a_partner_answers_whatever_the_operator_lets_it() {
    let methods: Vec<_> = METHODS.iter().map(|method| quoted(method.name)).collect();
    let rest = format!(
        "[network]\nname = \"demo\"\nchain_id = {CHAIN_ID}\n[methods]\nfailover = [{}]\n{}",
        methods.join(","),
        entry(PLENTY)
    );
    let outage = Outage::of(Demo::with(""), None, &rest, false).probed();
    let mut questions = questions::all(&outage.chain);
    // Logs are asked for in one piece, and this partner gives no more than its limit.
    questions.retain(|question| question.truth["code"] != -32005);
    // The own nodes are tried first, which takes time.
    questions.sort_by_key(|question| question.method);
    questions.dedup_by_key(|question| question.method);
    for Question { method, params, truth } in questions {
        let reply = outage.front.ask_as("growth", "", method, &params);
        assert_eq!(outcome(&reply.json()), truth, "{method} {params}");
    }
}

/// Nodes that hang used up the time of every call before a partner was asked, also when they were known to be down.
#[test]
fn a_partner_answers_soon_when_all_nodes_hang() {
    let outage = Outage::deep("");
    outage.node.set(Mood::Hung);
    until("the node is down", || outage.front.sees_down(&outage.node));
    let asked = Instant::now();
    let reply = outage.front.ask_as("growth", "", STORAGE.0, &long::storage_at(r#""latest""#));
    assert_eq!(reply.header("chaingate-source"), Some("partner"), "{}", reply.text());
    assert!(asked.elapsed() < Duration::from_secs(6), "of 8 that a call has: {:?}", asked.elapsed());
}
