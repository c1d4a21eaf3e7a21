//! What is told when nodes cannot be used.

use serde_json::Value;
use testkit::http::get;
use testkit::proxy::{Mood, Proxy};

use super::front::Front;
use crate::demo::{Demo, until};
use crate::process::Process;

const NETWORK: &str = "[network]\nname = \"demo\"\n";

/// When all nodes were gone, `/ready` told so only after the head had stood still for too long.
#[test]
fn ready_tells_that_no_node_answers_and_that_one_is_back() {
    let chain = Demo::with("");
    let rest = format!("{NETWORK}[pool]\nhead_stall_ms = 3600000\n");
    for mood in [Mood::Dead, Mood::Hung, Mood::ServerError] {
        let (proxies, front) = Front::behind(chain.public, "/v3/demo", 2, &rest);
        proxies.iter().for_each(|proxy| proxy.set(mood));
        until("it is not ready", || get(front.operator, "/ready").status == 503);
        assert!(get(front.operator, "/ready").text().contains("no node answers"), "{mood:?}");
        proxies[1].set(Mood::Honest);
        until("it is ready", || get(front.operator, "/ready").status == 200);
    }
}

/// Neither the interval of polls nor the time that the head may stand still delays the news that all nodes are gone.
#[test]
fn ready_tells_that_all_nodes_were_killed_before_the_next_poll() {
    let nodes = [(); 2].map(|()| Process::start("127.0.0.1:0", "", "info"));
    let mut rest = "[[key]]\nkey = \"k\"\n[network]\nname = \"front\"\n\
                    [pool]\npoll_interval_ms = 3600000\nhead_stall_ms = 3600000\n"
        .to_owned();
    for node in &nodes {
        rest.push_str(&format!("[[node]]\nurl = \"http://{}/v3/demo\"\n", node.public));
    }
    let front = Process::start("127.0.0.1:0", &rest, "info");
    until("it is ready", || get(front.operator, "/ready").status == 200);
    nodes.iter().for_each(|node| node.signal("KILL"));
    until("it is not ready", || get(front.operator, "/ready").status == 503);
    assert!(get(front.operator, "/ready").text().contains("no node answers"));
}

/// The records of the log that are about a node.
fn about<'a>(log: &'a [Value], node: &'a str) -> Vec<&'a Value> {
    log.iter().filter(|record| record["fields"]["node"] == node).collect()
}

/// A wrong `chain_id` was told as nodes that disagree, wrong credentials as replies that are no JSON-RPC, a wrong host name
/// as a refused connection, and a failed handshake twice a second for ever.
#[test]
fn each_node_that_cannot_be_used_is_told_once_with_what_is_wrong_and_what_to_do() {
    let chain = Demo::with("");
    let node = || Proxy::start(chain.public, "/v3/demo");
    let (other_chain, unauthorized, plain) = (node(), node(), node());
    unauthorized.set(Mood::Unauthorized);
    let nodes = [
        ("other-chain", other_chain.url()),
        ("unauthorized", unauthorized.url().replace("http://", "http://user:canary@")),
        ("no-such-host", "http://canary@no-such-host.invalid:8545/canary".to_owned()),
        ("plain", format!("https://{}/canary", plain.address)),
    ];
    let mut rest =
        "[[key]]\nkey = \"k\"\n[network]\nname = \"other\"\nchain_id = 99\n[pool]\npoll_interval_ms = 20\n"
            .to_owned();
    for (name, url) in &nodes {
        rest.push_str(&format!("[[node]]\nname = \"{name}\"\nurl = \"{url}\"\n"));
    }
    let gateway = Process::start("127.0.0.1:0", &rest, "info");
    for (node, fault) in [("unauthorized", "status"), ("no-such-host", "dns"), ("plain", "tls")] {
        let line = format!("chaingate_node_faults_total{{node=\"{node}\",fault=\"{fault}\"}} ");
        until("it has failed several times", || {
            let page = get(gateway.operator, "/metrics");
            let text = page.text();
            text.lines().find_map(|text| text.strip_prefix(&*line)).unwrap().parse::<u64>().unwrap() >= 3
        });
    }
    assert_eq!(get(gateway.operator, "/ready").status, 503);
    gateway.terminate();
    let (_, log) = gateway.ended();
    assert!(log.iter().all(|line| !line.contains("canary")), "{log:#?}");
    let log: Vec<Value> = log.iter().filter_map(|line| serde_json::from_str(line).ok()).collect();
    for (node, what, advice) in [
        ("other-chain", "its chain id is", "chain_id in [network]"),
        ("unauthorized", "HTTP status 401", "credentials"),
        ("no-such-host", "its host name cannot be resolved", "DNS"),
        // It waits for the rest of a request that it does not understand.
        ("plain", "the TLS handshake failed", "TLS"),
    ] {
        let told = about(&log, node);
        // A slow machine may take so long that the outage is told a second time.
        assert!((1..=2).contains(&told.len()), "{told:#?}");
        let text = told[0].to_string();
        assert!(text.contains(what) && text.contains(advice), "{text}");
    }
}
