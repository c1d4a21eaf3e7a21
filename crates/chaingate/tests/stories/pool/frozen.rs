//! The gateway itself is stopped for a while, as on a machine that is suspended or starved.

use std::thread;
use std::time::Duration;

use testkit::http::{TestConnection, get};

use crate::demo::until;
use crate::gateway_under_test::call;
use crate::process::Process;

/// Longer than the time that a node has for a short call.
const FROZEN: Duration = Duration::from_secs(3);

#[test]
fn a_gateway_that_was_stopped_for_a_while_blames_no_node_for_it() {
    let node = Process::start("127.0.0.1:0", "", "info");
    let port = node.public.port();
    let node_entry = |host: &str| format!("[[node]]\nurl = \"http://{host}:{port}/v3/demo\"\n");
    let rest = format!(
        "{}{}[network]\nname = \"front\"\n[[key]]\nkey = \"key\"\nplan = \"custom\"\n[pool]\ncall_timeout_ms = 2000\n",
        node_entry("127.0.0.1"),
        node_entry("localhost")
    );
    let front = Process::start("127.0.0.1:0", &rest, "info");
    until("its nodes are there", || get(front.operator, "/ready").status == 200);
    let mut wire = TestConnection::connect(front.public);
    let mut balance = |number: u32| {
        let read = call("eth_getBalance", &format!(r#"["0x{number:040x}","latest"]"#));
        let reply = wire.post("/v3/key", read);
        assert!(reply.json()["result"].is_string(), "{reply:?}");
    };
    balance(1);

    front.signal("STOP");
    thread::sleep(FROZEN);
    front.signal("CONT");

    // Each of these needs a node: nobody has asked about these addresses before.
    (2..30).for_each(balance);
    assert_eq!(get(front.operator, "/ready").status, 200);
    let metrics = get(front.operator, "/metrics");
    let down =
        metrics.text().lines().find(|line| line.starts_with("chaingate_node_health") && line.ends_with(" 0"));
    assert_eq!(down, None, "a node is taken for one that is down");
}
