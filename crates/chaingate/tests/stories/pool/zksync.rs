//! A chain of the family `zksync`: its headers cannot be computed, so a quorum of the nodes must agree on what is in blocks, too.

use std::thread;

use testkit::forgery::Forgery;
use testkit::proxy::{Mood, Proxy};

use super::front::Front;
use super::questions::{self, Question, outcome};
use crate::demo::Demo;

const NETWORK: &str = "[network]\nname = \"demo\"\nfamily = \"zksync\"\n";

/// Gateways that are tried at the same time.
const AT_ONCE: usize = 8;

/// Longer answers are left out: reading them takes most of the time, and they are of the same kinds.
const ANSWER_BYTES_MAX: usize = 20_000;

/// Questions of each method. All of them would take a minute.
const OF_EACH_METHOD: usize = 2;

fn short_questions(chain: &Demo) -> Vec<Question> {
    let mut questions = questions::all(chain);
    questions.retain(|question| question.truth.to_string().len() < ANSWER_BYTES_MAX);
    // The last blocks have the newest kinds of transactions.
    questions.reverse();
    questions.sort_by_key(|question| question.method);
    let mut of_method = ("", 0);
    questions.retain(|question| {
        of_method = if of_method.0 == question.method {
            (of_method.0, of_method.1 + 1)
        } else {
            (question.method, 0)
        };
        of_method.1 < OF_EACH_METHOD
    });
    questions
}

/// Compares each answer twice: while nodes lie, and once they are honest again.
fn change_nothing(chain: &Demo, questions: &[Question], mood: Mood, liars: usize, nodes: usize) {
    let proxies: Vec<_> = (0..nodes).map(|_| Proxy::start(chain.public, "/v3/demo")).collect();
    let urls: Vec<_> = proxies.iter().map(Proxy::url).collect();
    let front = Front::of(&urls, NETWORK);
    proxies[..liars].iter().for_each(|proxy| proxy.set(mood));
    for time in ["while a node lies", "when it has stopped"] {
        for Question { method, params, truth } in questions {
            assert_eq!(outcome(&front.ask(method, params)), *truth, "{mood:?} {time}: {method} {params}");
        }
        proxies.iter().for_each(|proxy| proxy.set(Mood::Honest));
    }
}

/// Lies about headers, values, states and logs got through.
#[test]
fn one_liar_of_three_changes_nothing_where_blocks_cannot_be_proven() {
    let chain = Demo::with("");
    let questions = short_questions(&chain);
    let (chain, questions) = (&chain, &questions[..]);
    let moods: Vec<_> = Forgery::ALL.iter().copied().map(Mood::Forging).collect();
    for moods in moods.chunks(AT_ONCE) {
        thread::scope(|scope| {
            for mood in moods {
                scope.spawn(move || change_nothing(chain, questions, *mood, 1, 3));
            }
        });
    }
}

#[test]
fn data_of_blocks_that_cannot_be_proven_is_confirmed() {
    let chain = Demo::with("");
    let (_proxies, front) = Front::behind(chain.public, "/v3/demo", 3, NETWORK);
    // Until then nobody can know that there is no receipt.
    front.wait_for_histories();
    let hash = format!(r#"["0x{}"]"#, "ab".repeat(32));
    for (method, params) in [
        ("eth_getBlockByNumber", r#"["0x5",true]"#),
        ("eth_getBlockReceipts", r#"["0x5"]"#),
        ("eth_getLogs", r#"[{"fromBlock":"0x1","toBlock":"0x5"}]"#),
        ("eth_getTransactionReceipt", &hash),
        ("eth_gasPrice", "[]"),
        ("zks_getRawBlockTransactions", "[0]"),
    ] {
        let reply = front.ask_as("custom", "", method, params);
        assert_eq!(reply.header("chaingate-verified"), Some("confirmed"), "{method}: {}", reply.text());
    }
}
