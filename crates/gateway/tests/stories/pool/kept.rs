//! Answers that are kept, and what they must not get in the way of.

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
