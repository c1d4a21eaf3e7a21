//! A node that lists other transactions than a block has, beside the block's true header.

use std::time::Duration;

use demo::HEAD_NUMBER;
use testkit::http::get;
use testkit::proxy::{Mood, Proxy};

use super::front::Front;
use super::questions::{self, Question, outcome};
use crate::demo::Demo;

/// Long enough that the other node shows its blocks first.
const LATER: Duration = Duration::from_millis(300);

/// The first list that was seen of a block stayed, and no header proves one. One node of three that was quick and listed
/// other transactions made every true receipt and transaction look wrong; the honest nodes were blamed for them, and
/// callers got errors.
#[test]
fn tampered_lists_blame_no_honest_node_and_change_no_answer() {
    let node = Demo::with("");
    let questions = questions::all(&node);
    let proxies: Vec<_> = (0..3).map(|_| Proxy::start(node.public, "/v3/demo")).collect();
    proxies[0].set(Mood::TamperedLists);
    proxies[1..].iter().for_each(|proxy| proxy.set(Mood::Slow(LATER)));
    let urls: Vec<_> = proxies.iter().map(Proxy::url).collect();
    let front = Front::of(&urls, "[network]\nname = \"demo\"\n[cache]\nenabled = false\n");
    proxies[1..].iter().for_each(|proxy| proxy.set(Mood::Honest));
    for Question { method, params, truth } in &questions {
        assert_eq!(outcome(&front.ask(method, params)), *truth, "{method} {params}");
    }
    // All three have shown the head, and two of them agree on what is in it.
    let head = format!(r#"["{HEAD_NUMBER:#x}",false]"#);
    let truth = outcome(&node.call("eth_getBlockByNumber", &head));
    for _ in 0..20 {
        assert_eq!(outcome(&front.ask("eth_getBlockByNumber", &head)), truth);
    }
    for honest in &proxies[1..] {
        assert_eq!(wrong_answers(&front, honest), 0);
    }
}

/// How often a node was blamed for an answer that cannot be true.
pub(super) fn wrong_answers(front: &Front, node: &Proxy) -> u64 {
    let line = format!("chaingate_node_faults_total{{node=\"{}\",fault=\"wrong\"}} ", node.url());
    let page = get(front.operator, "/metrics");
    page.text().lines().find_map(|text| text.strip_prefix(&*line)).unwrap().parse().unwrap()
}
