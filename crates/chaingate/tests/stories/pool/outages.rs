//! Messages and metrics about nodes that cannot be used.

use serde_json::Value;
use testkit::forgery::Forgery;
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

/// `/status` and the live view had one sentence, or none, whatever kept a node from being used, and the log only the first cause.
#[test]
fn the_state_of_a_node_says_why_it_is_down() {
    let chain = Demo::with("");
    let node = |mood| {
        let proxy = Proxy::start(chain.public, "/v3/demo");
        proxy.set(mood);
        proxy
    };
    let refused = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let proxies = [
        ("hung", node(Mood::Hung), "no reply in time"),
        ("unauthorized", node(Mood::Unauthorized), "HTTP status 401"),
        ("syncing", node(Mood::Forging(Forgery::Syncing)), "it is syncing"),
        ("other", node(Mood::OtherChain), "its chain id is"),
        (
            "liar",
            node(Mood::Forging(Forgery::HeadAhead)),
            "eth_getBlockByNumber for block latest is wrong (`hash`",
        ),
        (
            "huge",
            node(Mood::Forging(Forgery::HeadHugeNumber)),
            "block latest is wrong (`number` has a value that no block has)",
        ),
    ];
    let mut nodes: Vec<_> = proxies.iter().map(|(name, proxy, why)| (*name, proxy.url(), *why)).collect();
    let plain = proxies[0].1.url().replace("http://", "https://");
    nodes.push(("plain", plain, "TLS"));
    nodes.push((
        "no-such-host",
        "http://no-such-host.invalid:8545".to_owned(),
        "its host name cannot be resolved",
    ));
    nodes.push(("refused", format!("http://{refused}"), "cannot connect"));
    let mut rest = format!(
        "[[key]]\nkey = \"k\"\n[network]\nname = \"front\"\nchain_id = {}\n[pool]\nquorum = 1\npoll_interval_ms = 20\n",
        chain_id(&chain)
    );
    for (name, url, _) in &nodes {
        rest.push_str(&format!("[[node]]\nname = \"{name}\"\nurl = \"{url}\"\n"));
    }
    let gateway = Process::start("127.0.0.1:0", &rest, "info");
    for (place, (name, _, why)) in nodes.iter().enumerate() {
        let told = || {
            let status = get(gateway.operator, "/status").json();
            status["nodes"]["each"][place]["not_used_because"].as_str().unwrap_or_default().to_owned()
        };
        until(&format!("{name} is told with {why:?}, not {:?}", told()), || told().contains(why));
    }
    // Another cause than the first is logged at once.
    proxies[1].1.set(Mood::Hung);
    until("it is told", || {
        let status = get(gateway.operator, "/status").json();
        status["nodes"]["each"][1]["not_used_because"]
            .as_str()
            .unwrap_or_default()
            .contains("no reply in time")
    });
    gateway.terminate();
    let (_, log) = gateway.ended();
    let log: Vec<Value> = log.iter().filter_map(|line| serde_json::from_str(line).ok()).collect();
    for why in ["HTTP status 401", "no reply in time"] {
        assert!(about(&log, "unauthorized").iter().any(|line| line.to_string().contains(why)), "{log:#?}");
    }
}

fn chain_id(chain: &Demo) -> String {
    let id = chain.call("eth_chainId", "[]")["result"].as_str().unwrap().to_owned();
    u64::from_str_radix(&id[2..], 16).unwrap().to_string()
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
        // A node without TLS waits for the rest of a request that it does not understand.
        ("plain", "the TLS handshake failed", "TLS"),
    ] {
        let told = about(&log, node);
        // A slow machine may take so long that the outage is told a second time.
        assert!((1..=2).contains(&told.len()), "{told:#?}");
        let text = told[0].to_string();
        assert!(text.contains(what) && text.contains(advice), "{text}");
    }
}

/// With two of three nodes down the cause was null, because a chain with slow blocks or mining on demand may stand still for long.
#[test]
fn without_a_quorum_the_status_says_at_once_why_the_head_waits() {
    let chain = Demo::with("");
    let (proxies, front) = Front::behind(chain.public, "/v3/demo", 3, NETWORK);
    let because = || get(front.operator, "/status").json()["nodes"]["head_waits_because"].clone();
    until("nothing is said of a head that may stand still", || because().is_null());
    proxies[0].set(Mood::Dead);
    proxies[1].set(Mood::Hung);
    until("the cause is told", || because() == "only 1 node of this chain answers; the quorum is 2");
    proxies[0].set(Mood::Honest);
    until("it is over", || because().is_null());
}
