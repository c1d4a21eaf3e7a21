//! Answers that are kept, and calls that they must not get in the way of.

use archive::Archive;
use serde_json::json;
use testkit::proxy::{Mood, Proxy};

use super::front::Front;
use crate::demo::{Demo, metric, until};
use crate::memory::{logs, non_reader};

/// Answers in the cache once counted as answers that wait to be read. With as many of them as may wait, every further
/// call was refused, for as long as they were kept.
#[test]
fn kept_answers_do_not_count_as_waiting_to_be_read() {
    let chain = Demo::with("");
    let node = Proxy::start(chain.public, "/v3/demo");
    let front = Front::of(&[node.url()], "[network]\nname = \"demo\"\n[limits]\nmemory_bytes_max = 400000\n");
    let mut large = 0;
    for number in 1..=255 {
        let params = format!(r#"["{number:#x}"]"#);
        // The last one may not have been let go of yet.
        until("it is answered", || {
            let reply = front.ask_as("custom", "", "eth_getBlockReceipts", &params);
            large += usize::from(reply.body.len() > 20_000);
            reply.status == 200
        });
    }
    assert!(large >= 2, "the chain has {large} blocks with large receipts");
}

/// A few callers that did not read made every call of everybody fail whose answer was not kept.
#[test]
fn callers_that_do_not_read_cost_only_their_own_account() {
    let chain = Demo::with("");
    let node = Proxy::start(chain.public, "/v3/demo");
    let limits =
        "[limits]\nmemory_bytes_max = 100000000\nwrite_timeout_ms = 120000\n[cache]\nenabled = false\n";
    let front = Front::of(&[node.url()], &format!("[network]\nname = \"demo\"\n{limits}"));
    let streams: Vec<_> =
        (0..12).map(|number| non_reader(front.public, "/v3/custom", &logs(number))).collect();
    until("their account has no memory left", || {
        metric(front.operator, "chaingate_memory_refused_total") >= 1.0
    });
    let params = r#"["0x536F14E49e1Bb927003E83aDEBF295F3682ff121","0x0","latest"]"#;
    for key in ["custom", "growth"] {
        assert_eq!(front.ask_as(key, "", "eth_getStorageAt", params).status, 200, "small calls pass");
    }
    let large = testkit::http::post(front.public, "/v3/growth", logs(9));
    assert_eq!(large.json()["result"].as_array().map(Vec::len), Some(10_000));
    drop(streams);
}

/// Large data is proven, searched and written in the thread pool; small data is not worth a hand-off.
#[test]
fn large_blocks_are_proven_and_large_answers_made_in_the_pool() {
    let chain = Demo::with("");
    let node = Proxy::start(chain.public, "/v3/demo");
    let front = Front::of(&[node.url()], "[network]\nname = \"demo\"\n");
    let jobs_for = |method: &str, params: &str| {
        let before = metric(front.operator, "chaingate_pool_jobs_total");
        let reply = front.ask_as("custom", "", method, params);
        assert!(reply.json()["result"].is_array(), "{}", reply.text());
        let jobs = metric(front.operator, "chaingate_pool_jobs_total") - before;
        (jobs > 0.0, reply.header("chaingate-source") == Some("cache"))
    };
    let chatter = "0x536F14E49e1Bb927003E83aDEBF295F3682ff121";
    let large = format!(r#"[{{"fromBlock":"0x64","toBlock":"0xb5","address":"{chatter}"}}]"#);
    assert_eq!(jobs_for("eth_getLogs", &large), (true, false));
    assert_eq!(jobs_for("eth_getLogs", &large), (false, true), "what is proven is kept at once");
    let small = format!(r#"[{{"fromBlock":"0x64","toBlock":"0x90","address":"{chatter}"}}]"#);
    assert_eq!(jobs_for("eth_getLogs", &small), (false, false));
    // Each log is compared with each value of the filter.
    let many: Vec<_> = (0..4_500).map(|number| format!("\"{:#042x}\"", number + 1)).collect();
    let long_filter =
        format!(r#"[{{"fromBlock":"0x64","toBlock":"0x90","address":["{chatter}",{}]}}]"#, many.join(","));
    assert_eq!(jobs_for("eth_getLogs", &long_filter), (true, false));
    assert_eq!(jobs_for("eth_getBlockReceipts", r#"["0xb6"]"#), (true, false));
}

/// Large answers were checked in the pool, and then copied on the thread of their connection.
#[test]
fn large_answers_are_read_and_copied_in_the_pool() {
    let chain = Demo::with("");
    let node = Proxy::start(chain.public, "/v3/demo");
    // Answers of nodes are passed on only where blocks are not proven.
    let front = Front::of(&[node.url()], "[network]\nname = \"demo\"\n[integrity]\nmode = \"off\"\n");
    let jobs_for = |method: &str, params: &str| {
        let before = metric(front.operator, "chaingate_pool_jobs_total");
        let reply = front.ask_as("custom", "", method, params);
        assert!(reply.json()["result"].is_array(), "{}", reply.text());
        let jobs = metric(front.operator, "chaingate_pool_jobs_total") - before;
        (jobs, reply.header("chaingate-source") == Some("cache"))
    };
    let chatter = "0x536F14E49e1Bb927003E83aDEBF295F3682ff121";
    let large = format!(r#"[{{"fromBlock":"0x64","toBlock":"0xb9","address":"{chatter}"}}]"#);
    assert_eq!(jobs_for("eth_getLogs", &large), (3.0, false), "it is read, counted, and copied to be kept");
    assert_eq!(jobs_for("eth_getLogs", &large), (0.0, true));
    let small = format!(r#"[{{"fromBlock":"0x64","toBlock":"0x90","address":"{chatter}"}}]"#);
    assert_eq!(jobs_for("eth_getLogs", &small).0, 0.0, "small ones are not worth a thread");
    assert_eq!(
        jobs_for("eth_getBlockReceipts", r#"["0xb6"]"#),
        (1.0, false),
        "it is read; to copy it takes no time worth a thread"
    );
}

/// The newest blocks say by their blooms that they may have such logs, and have none. While the head is new, a node may be
/// late with them, and the end of the range was asked for every time; it was for ever.
#[test]
fn logs_up_to_a_head_that_stands_are_kept_whatever_blooms_say() {
    let heavy = testkit::heavy::log_heavy(200, 50);
    let folder = tempfile::tempdir().unwrap();
    let archive = Archive::open_or_create(folder.path(), &heavy.chain.genesis_json()).unwrap();
    let blocks: Vec<_> = heavy.chain.blocks.iter().map(|built| built.block.clone()).collect();
    archive.import_blocks(blocks, &mut archive::NoProgress).unwrap();
    let chain = Demo::over(archive, folder, "");
    let (_proxies, front) = Front::behind(chain.public, "/v3/demo", 1, "");
    let topics: Vec<_> = heavy.hundred.topics.iter().map(|any| json!(any)).collect();
    let filter =
        json!([{"fromBlock": "0x0", "address": heavy.hundred.addresses, "topics": topics}]).to_string();
    until("it is kept", || {
        let reply = front.ask_as("custom", "", "eth_getLogs", &filter);
        assert_eq!(reply.json()["result"].as_array().map(Vec::len), Some(100));
        reply.header("chaingate-source") == Some("cache")
    });
}

/// Whoever waited for a receipt made every node look for it each time.
#[test]
fn a_receipt_that_is_not_there_is_looked_for_once_at_each_head() {
    let chain = Demo::with("");
    let (proxies, front) = Front::behind(chain.public, "/v3/demo", 3, "[network]\nname = \"demo\"\n");
    let params = format!(r#"["0x{}"]"#, "ab".repeat(32));
    let asked = |method| proxies.iter().map(|proxy| proxy.asked(method, &params)).sum::<u64>();
    for _ in 0..5 {
        for method in ["eth_getTransactionReceipt", "eth_getTransactionByHash"] {
            let reply = front.ask(method, &params);
            assert!(reply["result"].is_null() && reply.get("error").is_none(), "{reply}");
        }
    }
    assert_eq!(asked("eth_getTransactionReceipt"), 3);
    assert_eq!(asked("eth_getTransactionByHash"), 15, "it may be pending any moment");
}

/// One node of three did not say that there is nothing.
#[test]
fn a_receipt_that_someone_may_have_is_looked_for_again() {
    let chain = Demo::with("");
    let (proxies, front) = Front::behind(chain.public, "/v3/demo", 3, "[network]\nname = \"demo\"\n");
    proxies[0].set(Mood::Headless);
    proxies[1].set(Mood::Nulls);
    proxies[2].set(Mood::ServerError);
    let params = format!(r#"["0x{}"]"#, "ab".repeat(32));
    for _ in 0..3 {
        let reply = front.ask_as("custom", "", "eth_getTransactionReceipt", &params);
        assert_ne!(reply.header("chaingate-source"), Some("cache"), "{}", reply.text());
    }
}
