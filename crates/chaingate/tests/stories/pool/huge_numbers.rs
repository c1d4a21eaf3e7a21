//! Numbers that no chain has, from all nodes at once: nobody computes with them, and everything goes on when the nodes are honest.

use serde_json::Value;
use testkit::forgery::Forgery;
use testkit::http::get;
use testkit::proxy::{Mood, Proxy};

use super::front::Front;
use super::questions::outcome;
use crate::demo::{Demo, metric, until};

const LIES: [Forgery; 8] = [
    Forgery::HeadHugeNumber,
    Forgery::HeadLargestNumber,
    Forgery::MarksHugeNumber,
    Forgery::BlockHugeNumbers,
    Forgery::ReceiptHugeNumbers,
    Forgery::LogHugeNumbers,
    Forgery::TransactionHugeNumbers,
    Forgery::HeadAhead,
];

const QUESTIONS: [(&str, &str); 9] = [
    ("eth_blockNumber", "[]"),
    ("eth_feeHistory", r#"["0x5","latest",[20,80]]"#),
    ("eth_feeHistory", r#"["0x400","0x5",[]]"#),
    ("eth_gasPrice", "[]"),
    ("eth_getLogs", r#"[{"fromBlock":"0x1","toBlock":"latest"}]"#),
    ("eth_getBlockByNumber", r#"["latest",true]"#),
    ("eth_getBlockByNumber", r#"["finalized",false]"#),
    ("eth_getBlockReceipts", r#"["0x5"]"#),
    ("eth_getTransactionByBlockNumberAndIndex", r#"["0x5","0x0"]"#),
];

/// Three proxies of one node, and a gateway that follows them.
struct Liars {
    node: Demo,
    proxies: Vec<Proxy>,
    front: Front,
    _data_dir: tempfile::TempDir,
}

impl Liars {
    fn start(forgery: Forgery) -> Self {
        let node = Demo::with("");
        let proxies: Vec<_> = (0..3).map(|_| Proxy::start(node.public, "/v3/demo")).collect();
        proxies.iter().for_each(|proxy| proxy.set(Mood::Forging(forgery)));
        let urls: Vec<_> = proxies.iter().map(Proxy::url).collect();
        let data_dir = tempfile::tempdir().unwrap();
        let rest = "[network]\nname = \"demo\"\n[pool]\ncall_timeout_ms = 1000\n[cache]\nenabled = false\n";
        let front = Front::following_unready(data_dir.path(), &urls, "", rest);
        Self { node, proxies, front, _data_dir: data_dir }
    }

    /// Asks everything while all nodes lie, before and after they were polled several times.
    fn ask_liars(&self, forgery: Forgery) {
        self.proxies.iter().for_each(|proxy| proxy.set(Mood::Forging(forgery)));
        for _ in 0..2 {
            let before: Vec<_> = self.proxies.iter().map(Proxy::replies).collect();
            for (method, params) in QUESTIONS {
                let reply = self.front.ask(method, params);
                assert_ne!(reply["error"]["code"], -32603, "{forgery:?}: {method} {params}");
            }
            until("all nodes are polled", || {
                self.proxies.iter().zip(&before).all(|(proxy, before)| proxy.replies() >= before + 4)
            });
        }
    }

    /// All nodes are honest: every answer is theirs.
    fn ask_honest(&self) {
        self.proxies.iter().for_each(|proxy| proxy.set(Mood::Honest));
        until("it is ready", || get(self.front.operator, "/ready").status == 200);
        for (method, params) in QUESTIONS {
            let truth = outcome(&self.node.call(method, params));
            until(method, || outcome(&self.front.ask(method, params)) == truth);
        }
    }

    fn nothing_has_panicked(&self) {
        let tasks: Value = get(self.front.operator, "/status").json();
        for task in tasks["tasks"].as_array().unwrap() {
            assert_eq!((&task["panics"], &task["state"]), (&0.into(), &"running".into()), "{task}");
        }
        assert_eq!(metric(self.front.operator, "chaingate_follow_running") as u64, 1);
        let metrics = get(self.front.operator, "/metrics");
        // A method that was called has a line for each outcome.
        let of_faults = metrics.text().lines().filter(|line| line.contains("outcome=\"internal_error\""));
        let faults: Vec<_> = of_faults.filter(|line| !line.ends_with(" 0")).collect();
        assert!(faults.is_empty(), "{faults:?}");
    }
}

/// A header with the number 2^64 - 1, on which a quorum agreed, made calls panic and ended the thread that follows the chain.
#[test]
fn a_quorum_that_says_them_after_the_first_head_ends_nothing() {
    let liars = Liars::start(Forgery::ExtraMembers);
    liars.ask_honest();
    for forgery in LIES {
        liars.ask_liars(forgery);
        liars.ask_honest();
    }
    liars.nothing_has_panicked();
}

#[test]
fn a_quorum_that_says_them_before_the_first_head_ends_nothing() {
    for forgery in LIES {
        let liars = Liars::start(forgery);
        liars.ask_liars(forgery);
        liars.ask_honest();
        liars.nothing_has_panicked();
    }
}
