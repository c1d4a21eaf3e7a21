//! Nobody of our own can answer.

use std::time::{Duration, Instant};

use alloy_primitives::B256;
use demo::CHAIN_ID;
use methods::METHODS;
use testkit::heavy::HeavyChain;
use testkit::http::get;
use testkit::proxy::{Mood, Proxy};

use super::front::Front;
use super::long::{self, BLOCKS, DEEP};
use super::questions::{self, Question, outcome};
use crate::demo::{Demo, until};
use crate::gateway_under_test::call;

const STORAGE: (&str, &str) =
    ("eth_getStorageAt", r#"["0xA7918D253764E42d60C3ce2010a34d5a1e7C1398","0x0","latest"]"#);
const BY_INDEX: &str = "eth_getTransactionByBlockNumberAndIndex";
const UNAVAILABLE: &str = "-32002 resource unavailable";

struct Outage {
    node: Proxy,
    partner: Proxy,
    front: Front,
    chain: Demo,
    /// Where the partner gets its answers from, if that is another chain.
    _other: Option<Demo>,
}

impl Outage {
    /// On the demo chain, after the first head.
    fn begin(partner: &str) -> Self {
        let rest = "[network]\nname = \"demo\"\n[cache]\nenabled = false\n";
        Self::of(Demo::with(""), None, &format!("{rest}{}", entry(partner)), false)
    }

    /// On a long chain, before the first head.
    fn from_the_start(partner: &str) -> Self {
        let chain = long::chain(2);
        Self::with(&chain, &chain, partner, true)
    }

    /// On a long chain, after the first head.
    fn deep(partner: &str) -> Self {
        let chain = long::chain(2);
        Self::with(&chain, &chain, partner, false)
    }

    fn with(chain: &HeavyChain, partners: &HeavyChain, partner: &str, from_the_start: bool) -> Self {
        let other = (chain.head_hash() != partners.head_hash()).then(|| long::node(partners));
        let rest = format!("[network]\nname = \"long\"\n{}", entry(partner));
        Self::of(long::node(chain), other, &rest, from_the_start)
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

    /// The partner says what the node would say.
    fn compare(&self, method: &str, params: &str) {
        let reply = self.front.ask_as("growth", "", method, params);
        let truth = outcome(&self.chain.call(method, params));
        assert_eq!(outcome(&reply.json()), truth, "{method} {params}");
        if reply.json().get("result").is_some() {
            assert_eq!(reply.header("chaingate-source"), Some("partner"), "{method} {params}");
        }
    }

    /// How many answers of partners the metrics tell of.
    fn answers(&self, reason: &str) -> u64 {
        let page = get(self.front.operator, "/metrics");
        let name = format!("chaingate_partner_answers_total{{reason=\"{reason}\"}} ");
        page.text().lines().find_map(|line| line.strip_prefix(&*name)).unwrap().parse().unwrap()
    }
}

fn entry(partner: &str) -> String {
    format!("[[partner]]\nurl = \"PARTNER\"\n{partner}\n")
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
    // It is asked for its chain, too.
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
fn what_a_partner_says_is_checked_too() {
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

/// Ways to name the deep block, or another one.
fn names(chain: &HeavyChain) -> Vec<String> {
    let hash = chain.blocks[DEEP as usize - 1].hash;
    let mut names: Vec<_> = ["latest", "pending", "earliest", "safe", "finalized"].map(quoted).into();
    names.extend([DEEP, BLOCKS - 1, BLOCKS, BLOCKS + 1].map(|number| quoted(&format!("{number:#x}"))));
    names.extend([quoted(&hash.to_string()), format!(r#"{{"blockHash":"{hash}"}}"#)]);
    names.push(format!(r#"{{"blockHash":"{hash}","requireCanonical":true}}"#));
    names.push(format!(r#"{{"blockHash":"{}"}}"#, B256::repeat_byte(0xab)));
    names.push(format!(r#"{{"blockNumber":"{DEEP:#x}"}}"#));
    names
}

fn quoted(text: &str) -> String {
    format!("\"{text}\"")
}

/// Before the first head nobody could say which block is meant, and a partner was not asked.
#[test]
fn a_partner_answers_before_the_first_head() {
    let outage = Outage::from_the_start(PLENTY);
    for block in names(&long::chain(2)) {
        outage.compare(STORAGE.0, &long::storage_at(&block));
    }
    for block in ["latest", "0x7", "0x12b", "0x12d"] {
        for index in ["0x0", "0x1", "0x9"] {
            outage.compare(BY_INDEX, &format!(r#"["{block}","{index}"]"#));
        }
    }
    assert!(outage.answers("no_head") > 10);
    assert_eq!(get(outage.front.operator, "/ready").status, 503, "what a partner says is not the head");
}

/// Which block has a number below the window was asked of nodes only.
#[test]
fn a_partner_answers_for_blocks_below_the_window() {
    let outage = Outage::deep(PLENTY);
    for block in names(&long::chain(2)) {
        outage.compare(STORAGE.0, &long::storage_at(&block));
    }
    for block in ["latest", "0x7", "0x8"] {
        outage.compare(BY_INDEX, &format!(r#"["{block}","0x1"]"#));
    }
    assert!(outage.answers("no_block") > 3);
    assert_eq!(outage.answers("no_head"), 0);
}

#[test]
fn others_get_an_error_wherever_the_block_is() {
    for outage in [Outage::from_the_start(""), Outage::deep("")] {
        let deep = long::storage_at(r#""0x7""#);
        let balance = r#"["0xA7918D253764E42d60C3ce2010a34d5a1e7C1398","0x7"]"#;
        for (key, headers, method, params) in [
            ("core", "", STORAGE.0, &*deep),
            ("growth", "enable-failover: false\r\n", STORAGE.0, &*deep),
            ("custom", "Enable-Failover: FALSE\r\n", STORAGE.0, &*deep),
            ("growth", "", "eth_getBalance", balance),
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
    for outage in [Outage::from_the_start(""), Outage::deep("")] {
        let params = long::storage_at(r#""0x7""#);
        let source = || {
            let reply = outage.front.ask_as("growth", "", STORAGE.0, &params);
            reply.header("chaingate-source").unwrap_or_default().to_owned()
        };
        assert_eq!(source(), "partner");
        outage.node.set(Mood::Honest);
        until("the own pool is used again", || source() == "node");
    }
}

/// All calls of a batch are about one head, which is asked for once.
#[test]
fn a_batch_has_one_head_before_the_first() {
    let outage = Outage::from_the_start("");
    let latest = long::storage_at(r#""latest""#);
    let calls: Vec<_> =
        [(STORAGE.0, &*latest), (BY_INDEX, r#"["latest","0x0"]"#), (BY_INDEX, r#"["latest","0x1"]"#)]
            .map(|(method, params)| call(method, params))
            .into();
    let reply = outage.front.wire().post("/v3/growth", format!("[{}]", calls.join(","))).json();
    assert!(reply[0]["result"].is_string(), "{reply}");
    assert!(reply.as_array().unwrap()[1..].iter().all(|element| element["result"].is_object()), "{reply}");
    assert_eq!(
        outage.partner.calls(),
        4,
        "for its chain, the head once, the storage, and the block of both transactions"
    );
}

#[test]
fn a_lying_partner_is_not_believed_about_blocks() {
    for outage in [Outage::from_the_start(""), Outage::deep("")] {
        for mood in [Mood::WrongBlocks, Mood::Garbage, Mood::WrongId, Mood::Html] {
            outage.partner.set(mood);
            let reply = outage.front.ask_as("growth", "", BY_INDEX, r#"["0x7","0x1"]"#);
            assert_eq!(reply.error(), UNAVAILABLE, "{mood:?}");
        }
    }
}

/// What nodes have named is proven. Of what the partner has named itself it is proven what is in it, and not that it is meant.
#[test]
fn answers_of_partners_say_how_far_they_are_verified() {
    let methods = quoted("eth_getBlockReceipts") + "," + &quoted("eth_getTransactionReceipt");
    let rest = format!("[network]\nname = \"long\"\n[methods]\nfailover = [{methods}]\n{}", entry(PLENTY));
    let unknown = format!(r#"["{}"]"#, B256::repeat_byte(0xab));
    for (from_the_start, of_head) in [(true, "none"), (false, "proven")] {
        let outage = Outage::of(long::node(&long::chain(2)), None, &rest, from_the_start);
        for (method, params, verified) in [
            ("eth_getBlockReceipts", r#"["latest"]"#, of_head),
            ("eth_getBlockReceipts", r#"["0x7"]"#, "none"),
            ("eth_getTransactionReceipt", &*unknown, "none"),
        ] {
            let reply = outage.front.ask_as("growth", "", method, params);
            assert_eq!(reply.header("chaingate-source"), Some("partner"), "{method} {params}");
            assert_eq!(reply.header("chaingate-verified"), Some(verified), "{method} {params}");
        }
    }
}

/// A look-up of a block is a call, too.
#[test]
fn every_call_to_a_partner_is_out_of_its_budget() {
    let outage = Outage::from_the_start("calls_per_day = 5\nmethods = [\"eth_getStorageAt\"]");
    let ask = |block| outage.front.ask_as("growth", "", STORAGE.0, &long::storage_at(block));
    assert_eq!(ask(r#""0x7""#).header("chaingate-source"), Some("partner"));
    assert_eq!(ask(r#""latest""#).error(), UNAVAILABLE, "the head was the last call");
    assert_eq!(outage.partner.calls(), 5, "one of them was a probe");
}

/// The partner is of another chain. What it said about blocks must not be remembered when the own pool is back.
#[test]
fn nothing_that_a_partner_says_is_remembered() {
    for from_the_start in [true, false] {
        let outage = Outage::with(&long::chain(2), &long::chain(3), "", from_the_start);
        let ask = || outage.front.ask_as("growth", "", BY_INDEX, r#"["0x7","0x0"]"#);
        let (first, second) = (ask(), ask());
        assert_eq!(second.header("chaingate-source"), Some("partner"));
        assert_eq!(first.json(), second.json());
        outage.node.set(Mood::Honest);
        until("the own pool is used again", || ask().header("chaingate-source") != Some("partner"));
        let truth = outage.chain.call(BY_INDEX, r#"["0x7","0x0"]"#);
        assert_eq!(ask().json()["result"], truth["result"]);
        assert_ne!(ask().json()["result"], first.json()["result"]);
    }
}

/// Before the first head, a partner of a made-up chain was believed about the head and everything below it.
#[test]
fn a_partner_without_the_checkpoint_is_not_asked() {
    let [true_chain, other] = [2, 3].map(long::chain);
    let hash = true_chain.blocks[4].block.header.hash_slow();
    let methods = [BY_INDEX, "eth_getBlockByNumber"];
    let rest = format!(
        "[network]\nname = \"long\"\ncheckpoint = {{ number = 5, hash = \"{hash}\" }}\n\
         [methods]\nfailover = {methods:?}\n{}",
        entry(PLENTY)
    );
    let latest = r#"["latest",false]"#;
    let outage = Outage::of(long::node(&true_chain), Some(long::node(&other)), &rest, true);
    let ask = |outage: &Outage, method, params| outage.front.ask_as("growth", "", method, params);
    for (method, params) in [("eth_getBlockByNumber", latest), (BY_INDEX, r#"["0x7","0x0"]"#)] {
        assert_eq!(ask(&outage, method, params).error(), UNAVAILABLE, "{method}");
    }
    assert_eq!(outage.partner.asked("eth_getBlockByNumber", r#"["0x5",false]"#), 1);
    assert_eq!(outage.partner.asked("eth_getBlockByNumber", latest), 0);

    let outage = Outage::of(long::node(&true_chain), None, &rest, true);
    let reply = ask(&outage, "eth_getBlockByNumber", latest);
    assert_eq!(reply.header("chaingate-source"), Some("partner"), "{}", reply.text());
    // It has passed the probe, and lies about the checkpoint now.
    let forger = long::node(&other);
    outage.partner.set(Mood::OtherDepths { node: forger.public, below: 20 });
    assert_eq!(ask(&outage, BY_INDEX, r#"["0x5","0x0"]"#).error(), UNAVAILABLE);
}

/// A partner that is on a fork has other blocks under the same numbers.
#[test]
fn a_partner_changes_nothing_about_blocks_that_nodes_have_shown() {
    let methods = ["eth_getBlockByNumber", "eth_getBlockReceipts", "eth_getLogs", "eth_gasPrice", BY_INDEX];
    let rest = format!("[network]\nname = \"long\"\n[methods]\nfailover = {methods:?}\n{}", entry(PLENTY));
    let [chain, fork] = [2, 3].map(|transactions| long::node(&long::chain(transactions)));
    let outage = Outage::of(chain, Some(fork), &rest, false);
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

/// A partner that took its time had as much of it for each of the blocks that it was asked for.
#[test]
fn a_partner_has_no_more_time_than_a_call_has() {
    let rest = "[network]\nname = \"long\"\n[pool]\ncall_timeout_ms = 4000\n";
    let outage = Outage::of(long::node(&long::chain(2)), None, &format!("{rest}{}", entry("")), true);
    outage.partner.set(Mood::Slow(Duration::from_millis(2_800)));
    let begun = Instant::now();
    let reply = outage.front.ask_as("growth", "", STORAGE.0, &long::storage_at(r#""0x7""#));
    assert_eq!(reply.error(), UNAVAILABLE);
    // It is asked three times: for the head, the block and the storage.
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
    for from_the_start in [true, false] {
        let outage = Outage::of(Demo::with(""), None, &rest, from_the_start);
        let mut questions = questions::all(&outage.chain);
        // Logs are asked for in one piece, and this partner gives no more than its limit.
        questions.retain(|question| question.truth["code"] != -32005);
        if !from_the_start {
            // The own pool is tried first, which takes its time.
            questions.sort_by_key(|question| question.method);
            questions.dedup_by_key(|question| question.method);
        }
        for Question { method, params, truth } in questions {
            let reply = outage.front.ask_as("growth", "", method, &params);
            assert_eq!(outcome(&reply.json()), truth, "{method} {params}");
        }
    }
}

/// Nodes that hang used up the time of every call before a partner was asked, also when they were known to be down.
#[test]
fn a_partner_answers_soon_when_all_nodes_hang() {
    let outage = Outage::deep("");
    outage.node.set(Mood::Hung);
    until("the node is down", || outage.front.sees_down(&outage.node));
    for block in [r#""latest""#, r#""0x7""#] {
        let asked = Instant::now();
        let reply = outage.front.ask_as("growth", "", STORAGE.0, &long::storage_at(block));
        assert_eq!(reply.header("chaingate-source"), Some("partner"), "{}", reply.text());
        assert!(asked.elapsed() < Duration::from_secs(6), "of 8 that a call has: {:?}", asked.elapsed());
    }
}
