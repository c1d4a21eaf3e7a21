//! In which block a transaction or a log is, when nodes do not agree about it.

use testkit::proxy::{Mood, Proxy};

use super::front::Front;
use super::questions::{self, Question, outcome};
use crate::demo::{Demo, until};

const CHAIN: &str = "[network]\nname = \"demo\"\n[cache]\nenabled = false\n";

/// Questions about transactions by their hash, all of which the view has seen in a block.
fn by_hash(node: &Demo) -> Vec<Question> {
    let mut questions = questions::all(node);
    questions.retain(|question| {
        let method = question.method;
        let by_hash = method == "eth_getTransactionByHash" || method == "eth_getTransactionReceipt";
        by_hash && question.truth.is_object()
    });
    questions
}

/// An answer that put a transaction or a log into a block where it is not was doubted and kept. For the sake of that
/// worthless answer a node that seemed to be down, and had the true one, was not asked.
#[test]
fn a_misplaced_answer_does_not_keep_other_nodes_from_being_asked() {
    let node = Demo::with("");
    let (proxies, front) = Front::behind(node.public, "/v3/demo", 2, CHAIN);
    proxies[0].set(Mood::Misplaced);
    proxies[1].set(Mood::Headless);
    let mut logs = questions::all(&node);
    logs.retain(|question| question.params.contains(r#""toBlock":"0x5""#));
    // A few are enough, because the node takes its time to fall again.
    for Question { method, params, truth } in by_hash(&node).into_iter().take(2).chain(logs) {
        until("the honest one is down", || front.sees_down(&proxies[1]));
        assert_eq!(outcome(&front.ask(method, &params)), truth, "{method} {params}");
    }
}

/// Where nobody looks at answers, nobody knew in which block a transaction is said to be, and that was taken for a node
/// that is behind.
#[test]
fn transactions_are_delivered_where_answers_are_not_refused() {
    let node = Demo::with("");
    let proxy = Proxy::start(node.public, "/v3/demo");
    let front = Front::of(&[proxy.url()], &format!("{CHAIN}[integrity]\nmode = \"off\"\n"));
    for Question { method, params, truth } in by_hash(&node) {
        assert_eq!(outcome(&front.ask(method, &params)), truth, "{method} {params}");
    }
    proxy.set(Mood::Misplaced);
    for Question { method, params, .. } in by_hash(&node) {
        assert!(front.ask(method, &params)["result"].is_object(), "{method} {params}");
    }
}
