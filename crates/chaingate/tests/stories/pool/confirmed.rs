//! Nodes that lie about the state. No block proves it, so a quorum of the nodes must agree.

use std::thread;
use std::time::{Duration, Instant};

use testkit::forgery::{ForgedSubject, Forgery};
use testkit::http::get;
use testkit::proxy::{Mood, Proxy};

use super::front::Front;
use super::lists::wrong_answers;
use super::questions::{self, Question, outcome};
use crate::demo::{Demo, metric, until};

const NETWORK: &str = "[network]\nname = \"demo\"\n";

/// Long enough that a node without it is asked first, and that its answer comes first.
const SLOW: Duration = Duration::from_millis(40);

const STATE_METHODS: [&str; 6] = [
    "eth_getStorageAt",
    "eth_getBalance",
    "eth_getCode",
    "eth_getTransactionCount",
    "eth_call",
    "eth_estimateGas",
];

/// Questions about the state: values, calls that return and calls that revert, and estimates of both.
fn about_state(node: &Demo) -> Vec<Question> {
    let mut questions = questions::all(node);
    questions.retain(|question| STATE_METHODS.contains(&question.method));
    let token = demo_builder::contracts::TOKEN.address();
    let params = format!(r#"[{{"to":"{token}","data":"0xdeadbeef"}}]"#);
    let truth = outcome(&node.call("eth_estimateGas", &params));
    questions.push(Question { method: "eth_estimateGas", params, truth });
    questions
}

/// Lies about what is asked here.
fn forgeries() -> impl Iterator<Item = Forgery> {
    let others = [
        Forgery::GasPrice,
        Forgery::PriorityFee,
        Forgery::FeeHistoryBaseFees,
        Forgery::FeeHistoryRewards,
        Forgery::FeeHistoryEmpty,
        Forgery::ProofValues,
        Forgery::RawTransactions,
    ];
    let about_state = Forgery::ALL.iter().filter(|forgery| forgery.subject() == ForgedSubject::State);
    about_state.filter(move |forgery| !others.contains(forgery)).copied()
}

/// A mix of lying and honest nodes.
#[derive(Clone, Copy)]
struct Liars {
    lying: usize,
    nodes: usize,
    /// Whether the honest nodes take longer.
    are_quick: bool,
}

impl Liars {
    /// Compares each answer twice: while some nodes lie, and once they have gone.
    fn change_nothing(self, chain: &Demo, questions: &[Question], forgery: Forgery) {
        let (proxies, front) = Front::behind(chain.public, "/v3/demo", self.nodes, NETWORK);
        let (lying, honest) = proxies.split_at(self.lying);
        lying.iter().for_each(|proxy| proxy.set(Mood::Forging(forgery)));
        if self.are_quick {
            honest.iter().for_each(|proxy| proxy.set(Mood::Slow(SLOW)));
        }
        for time in ["while nodes lie", "when they have gone"] {
            for Question { method, params, truth } in questions {
                let told = outcome(&front.ask(method, params));
                assert_eq!(told, *truth, "{forgery:?} {time}: {method} {params}");
            }
            lying.iter().for_each(|proxy| proxy.set(Mood::Dead));
        }
    }

    fn change_nothing_in_any_way(self) {
        let chain = Demo::with("");
        let questions = about_state(&chain);
        let (chain, questions) = (&chain, &questions[..]);
        thread::scope(|scope| {
            for forgery in forgeries() {
                scope.spawn(move || self.change_nothing(chain, questions, forgery));
            }
        });
    }
}

/// All lies about the state got through, and were kept.
#[test]
fn one_liar_of_three_changes_no_answer_about_the_state() {
    Liars { lying: 1, nodes: 3, are_quick: false }.change_nothing_in_any_way();
}

#[test]
fn a_quick_liar_and_slow_honest_nodes_change_no_answer_about_the_state() {
    Liars { lying: 1, nodes: 3, are_quick: true }.change_nothing_in_any_way();
}

/// Two equal answers are not enough where two nodes may lie.
#[test]
fn two_liars_of_five_change_no_answer_about_the_state() {
    Liars { lying: 2, nodes: 5, are_quick: false }.change_nothing_in_any_way();
}

#[test]
fn two_quick_liars_of_five_change_no_answer_about_the_state() {
    Liars { lying: 2, nodes: 5, are_quick: true }.change_nothing_in_any_way();
}

/// A forgery that changes no answer of its node would show nothing.
#[test]
fn every_state_forgery_changes_some_answer_of_its_node() {
    let chain = Demo::with("");
    let questions = about_state(&chain);
    let proxy = Proxy::start(chain.public, "/v3/demo");
    for forgery in forgeries() {
        proxy.set(Mood::Forging(forgery));
        let is_forged = |Question { method, params, truth }: &Question| {
            let call = crate::gateway_under_test::call(method, params);
            outcome(&testkit::http::post(proxy.address, "/", call).json()) != *truth
        };
        assert!(questions.iter().any(is_forged), "{forgery:?}");
    }
}

const BALANCE: (&str, &str) = ("eth_getBalance", r#"["0x00000000000000000000000000000000000000aa","0x5"]"#);

/// The `Chaingate-Verified` and `Chaingate-Source` of a balance.
fn balance(front: &Front, number: u32) -> (String, String) {
    let params = format!(r#"["0x{number:040x}","0x5"]"#);
    let reply = front.ask_as("custom", "", BALANCE.0, &params);
    assert_eq!(reply.json()["result"], "0x0", "{}", reply.text());
    let header = |name| reply.header(name).unwrap_or_default().to_owned();
    (header("chaingate-verified"), header("chaingate-source"))
}

#[test]
fn one_node_is_believed_about_the_state_only_where_the_operator_says_so() {
    let chain = Demo::with("");
    for (nodes, state, verified) in [
        (1, "", "none"),
        (2, "", "none"),
        (3, "", "confirmed"),
        (3, "[integrity]\nstate = \"trust\"\n", "none"),
        (2, "[integrity]\nstate = \"confirm\"\n", "confirmed"),
    ] {
        let rest = format!("{NETWORK}{state}");
        let (_proxies, front) = Front::behind(chain.public, "/v3/demo", nodes, &rest);
        assert_eq!(balance(&front, 1).0, verified, "{nodes} nodes {state}");
        let again = balance(&front, 1);
        assert_eq!((&*again.0, &*again.1), (verified, "cache"), "{nodes} nodes {state}");
        let mode = if verified == "none" { "trust" } else { "confirm" };
        assert_eq!(get(front.operator, "/status").json()["integrity"]["state"], mode);
    }
}

/// Only liars were left, and they were believed: 83 of 120 storage reads were wrong.
#[test]
fn remaining_nodes_are_not_believed_without_a_quorum() {
    let chain = Demo::with("");
    let (proxies, front) = Front::behind(chain.public, "/v3/demo", 3, NETWORK);
    proxies[1..].iter().for_each(|proxy| proxy.set(Mood::Dead));
    let reply = front.ask_as("custom", "", BALANCE.0, BALANCE.1);
    assert_eq!(reply.error(), "-32002 resource unavailable");
    proxies[1].set(Mood::Honest);
    until("two of three are a quorum", || {
        front.ask_as("custom", "", BALANCE.0, BALANCE.1).json()["result"] == "0x0"
    });
    assert!(metric(front.operator, "chaingate_confirmations_total{outcome=\"failed\"}") >= 1.0);
}

/// A quorum is of the nodes that are configured, not of those that happen to answer.
#[test]
fn two_liars_are_not_believed_when_the_three_honest_nodes_are_gone() {
    let chain = Demo::with("");
    let (proxies, front) = Front::behind(chain.public, "/v3/demo", 5, NETWORK);
    proxies[..2].iter().for_each(|proxy| proxy.set(Mood::Forging(Forgery::Balance)));
    proxies[2..].iter().for_each(|proxy| proxy.set(Mood::Dead));
    let reply = front.ask_as("custom", "", BALANCE.0, BALANCE.1);
    assert_eq!(reply.error(), "-32002 resource unavailable");
}

#[test]
fn a_node_that_fails_or_hangs_costs_no_answer() {
    let chain = Demo::with("");
    let questions = about_state(&chain);
    let rest = format!("{NETWORK}[cache]\nenabled = false\n");
    for mood in
        [Mood::Dead, Mood::Hung, Mood::Garbage, Mood::RateLimited, Mood::ServerError, Mood::Cut, Mood::Html]
    {
        let (proxies, front) = Front::behind(chain.public, "/v3/demo", 3, &rest);
        proxies[1].set(mood);
        for Question { method, params, truth } in &questions {
            assert_eq!(outcome(&front.ask(method, params)), *truth, "{mood:?}: {method} {params}");
        }
    }
}

/// A node whose answer a quorum contradicts is reported, counted, and asked less.
#[test]
fn a_node_that_a_quorum_contradicts_is_taken_for_a_liar() {
    let chain = Demo::with("");
    let (proxies, front) = Front::behind(chain.public, "/v3/demo", 3, NETWORK);
    proxies[0].set(Mood::Forging(Forgery::Balance));
    let mut number = 0;
    until("the liar was asked and contradicted", || {
        number += 1;
        balance(&front, number);
        metric(front.operator, "chaingate_contradicted_answers_total") >= 1.0
    });
    assert!(metric(front.operator, "chaingate_confirmations_total{outcome=\"disputed\"}") >= 1.0);
    let faults = format!("chaingate_node_faults_total{{node=\"{}\",fault=\"wrong\"}}", proxies[0].url());
    assert!(metric(front.operator, &faults) >= 1.0);
    for honest in &proxies[1..] {
        let faults = format!("chaingate_node_faults_total{{node=\"{}\",fault=\"wrong\"}}", honest.url());
        assert_eq!(metric(front.operator, &faults), 0.0);
    }
}

/// As many nodes are asked as a quorum needs, and equal calls in flight share their answers.
#[test]
fn a_confirmed_answer_costs_as_many_calls_as_a_quorum_has_nodes() {
    let chain = Demo::with("");
    let (proxies, front) = Front::behind(chain.public, "/v3/demo", 5, NETWORK);
    for number in 1..=20 {
        balance(&front, number);
    }
    let calls = metric(front.operator, "chaingate_confirmation_node_calls_total");
    // A busy machine may have been slow with one or the other. All nodes would be 100 calls.
    assert!((60.0..=95.0).contains(&calls), "{calls}");
    proxies.iter().for_each(|proxy| proxy.set(Mood::Slow(Duration::from_millis(300))));
    let before = metric(front.operator, "chaingate_confirmation_node_calls_total");
    thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| balance(&front, 1_000));
        }
    });
    let calls = metric(front.operator, "chaingate_confirmation_node_calls_total") - before;
    assert!(calls <= 5.0, "{calls}");
}

/// Nobody knew which of the kept answers were a liar's.
#[test]
fn answers_of_a_node_are_forgotten_when_it_is_proven_wrong() {
    let chain = Demo::with("");
    let (proxies, front) = Front::behind(chain.public, "/v3/demo", 2, NETWORK);
    proxies[0].set(Mood::Forging(Forgery::Balance));
    proxies[1].set(Mood::Dead);
    let ask = || {
        let reply = front.ask_as("custom", "", BALANCE.0, BALANCE.1);
        (reply.json()["result"].to_string(), reply.header("chaingate-source").unwrap_or_default().to_owned())
    };
    ask();
    assert_eq!(ask(), ("\"0x1234567\"".to_owned(), "cache".to_owned()), "one node is believed");
    proxies[0].set(Mood::Forging(Forgery::NoneListed));
    let blocks: Vec<_> = (1..=0x20).map(|number| format!(r#"["{number:#x}",true]"#)).collect();
    let mut blocks = blocks.iter().cycle();
    proxies[1].set(Mood::Honest);
    until("another node proves it wrong", || {
        front.ask("eth_getBlockByNumber", blocks.next().unwrap());
        wrong_answers(&front, &proxies[0]) > 0
    });
    until("it is asked again", || ask().0 == "\"0x0\"");
}

/// Only the answers of one node were forgotten. Answers that liars had confirmed while they were the quorum were served for as
/// long as they were kept.
#[test]
fn answers_that_liars_confirmed_are_forgotten_when_one_of_them_is_proven_wrong() {
    let chain = Demo::with("");
    let (proxies, front) = Front::behind(chain.public, "/v3/demo", 3, NETWORK);
    proxies[..2].iter().for_each(|proxy| proxy.set(Mood::Forging(Forgery::Balance)));
    let ask = || {
        let reply = front.ask_as("custom", "", BALANCE.0, BALANCE.1);
        (reply.json()["result"].to_string(), reply.header("chaingate-source").unwrap_or_default().to_owned())
    };
    ask();
    assert_eq!(ask(), ("\"0x1234567\"".to_owned(), "cache".to_owned()), "two of three are believed");
    proxies[0].set(Mood::Forging(Forgery::NoneListed));
    proxies[1].set(Mood::Dead);
    // Only the liar is left to say what is in a block.
    proxies[2].set(Mood::Dead);
    let faults = format!("chaingate_node_faults_total{{node=\"{}\",fault=\"wrong\"}}", proxies[0].url());
    let before = metric(front.operator, &faults);
    let mut number = 0;
    until("the liar is found out", || {
        number += 1;
        front.ask("eth_getBlockByNumber", &format!(r#"["{number:#x}",true]"#));
        metric(front.operator, &faults) > before
    });
    proxies.iter().for_each(|proxy| proxy.set(Mood::Honest));
    let told = ask();
    assert_ne!(told.0, "\"0x1234567\"", "{told:?}");
    until("the nodes are asked again", || ask().0 == "\"0x0\"");
}

/// Longer than anybody should wait for a node that hangs.
const CALL_TIMEOUT: Duration = Duration::from_secs(100);

/// Starts three nodes, of which `count` answer polls, so that they are not seen as down, and hang on calls.
fn with_hanging(count: usize) -> (Demo, Vec<Proxy>, Front, Vec<Question>) {
    let chain = Demo::with("");
    let timeout = CALL_TIMEOUT.as_millis();
    let rest = format!("{NETWORK}[cache]\nenabled = false\n[pool]\ncall_timeout_ms = {timeout}\n");
    let (proxies, front) = Front::behind(chain.public, "/v3/demo", 3, &rest);
    let mut questions = about_state(&chain);
    questions.retain(|question| !["eth_call", "eth_estimateGas"].contains(&question.method));
    proxies[..count].iter().for_each(|proxy| proxy.set(Mood::HungOnData));
    (chain, proxies, front, questions)
}

#[test]
fn a_node_that_hangs_on_calls_does_not_hold_up_those_who_confirm_the_state() {
    let (_chain, _proxies, front, questions) = with_hanging(1);
    let begun = Instant::now();
    for Question { method, params, truth } in &questions {
        assert_eq!(outcome(&front.ask(method, params)), *truth, "{method} {params}");
    }
    let took = begun.elapsed();
    eprintln!("{} calls while one of three hangs: {took:?}", questions.len());
    assert!(took < CALL_TIMEOUT / 2, "{took:?}");
}

/// The third cannot decide alone, so that calls fail. They took all of the time that a call has.
#[test]
fn calls_fail_soon_when_two_of_three_nodes_hang_on_them() {
    let (_chain, proxies, front, questions) = with_hanging(2);
    let Question { method, params, truth } = &questions[0];
    for turn in 0..3 {
        let begun = Instant::now();
        let reply = front.ask(method, params);
        eprintln!("turn {turn} while two of three hang: {:?}", begun.elapsed());
        assert_eq!(reply["error"]["code"], -32002, "{reply}");
        assert!(begun.elapsed() < CALL_TIMEOUT / 2, "{:?}", begun.elapsed());
    }
    proxies.iter().for_each(|proxy| proxy.set(Mood::Honest));
    until("the nodes are asked again", || outcome(&front.ask(method, params)) == *truth);
}
