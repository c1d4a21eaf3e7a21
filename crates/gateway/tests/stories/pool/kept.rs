//! Answers that are kept, and what they must not get in the way of.

use archive::Archive;
use serde_json::json;
use testkit::proxy::Proxy;

use super::front::Front;
use crate::demo::{Demo, until};

/// Answers in the cache once counted as answers that wait to be read. With as many of them as may wait, every further
/// call was refused, for as long as they were kept.
#[test]
fn what_is_kept_does_not_count_as_waiting_to_be_read() {
    let chain = Demo::with("");
    let node = Proxy::start(chain.public, "/v3/demo");
    let front = Front::of(&[node.url()], "[network]\nname = \"demo\"\n[limits]\nheld_bytes_max = 20000\n");
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

/// The newest blocks say by their blooms that they may have such logs, and have none. While the head is new, a node may be
/// late with them, and the end of the range was asked for every time; it was for ever.
#[test]
fn logs_up_to_a_head_that_stands_are_kept_whatever_blooms_say() {
    let heavy = testkit::heavy::log_heavy(200, 50);
    let folder = tempfile::tempdir().unwrap();
    let archive = Archive::open_or_create(folder.path(), &heavy.chain.genesis_json()).unwrap();
    let blocks: Vec<_> = heavy.chain.blocks.iter().map(|built| built.block.clone()).collect();
    archive.import_blocks(blocks, &mut ()).unwrap();
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
