//! Which chain this is, when nodes do not agree about it or the operator says so.

use chaingate::config::Config;
use chaingate::source;
use serde_json::Value;
use testkit::http::get;
use testkit::proxy::{Mood, Proxy};

use super::front::Front;
use crate::demo::{Demo, until};

const NETWORK: &str = "[network]\nname = \"demo\"\n";

fn status(front: &Front) -> Value {
    get(front.operator, "/status").json()
}

fn is_ready(front: &Front) -> bool {
    get(front.operator, "/ready").status == 200
}

fn hash_of(chain: &Demo, number: u64) -> String {
    let params = format!(r#"["{number:#x}",false]"#);
    chain.call("eth_getBlockByNumber", &params)["result"]["hash"].as_str().unwrap().to_owned()
}

/// Whoever was up first settled the chain, and the other node was left out for good.
#[test]
fn two_nodes_of_different_chains_are_an_outage_that_names_both_until_they_agree() {
    let chain = Demo::with("");
    let proxies = [(); 2].map(|()| Proxy::start(chain.public, "/v3/demo"));
    proxies[0].set(Mood::OtherChain);
    let front = Front::unready(&proxies.each_ref().map(Proxy::url), NETWORK);
    until("that they disagree is told", || {
        status(&front)["nodes"]["each"][1]["not_used_because"].is_string()
    });
    let told = status(&front);
    let reason = told["nodes"]["each"][1]["not_used_because"].as_str().unwrap();
    for named in [proxies[0].url(), proxies[1].url(), "chain id 57005".to_owned()] {
        assert!(reason.contains(&named), "{reason}");
    }
    assert!(told["not_ready_because"].is_string(), "{told}");
    assert_eq!(front.ask("eth_blockNumber", "[]")["error"]["code"], -32002);
    proxies[0].set(Mood::Honest);
    until("they agree", || is_ready(&front));
}

#[test]
fn one_node_of_three_does_not_settle_the_chain_because_it_is_up_first() {
    let chain = Demo::with("");
    let proxies = [(); 3].map(|()| Proxy::start(chain.public, "/v3/demo"));
    proxies[0].set(Mood::OtherChain);
    proxies[1..].iter().for_each(|proxy| proxy.set(Mood::Dead));
    let front = Front::unready(&proxies.each_ref().map(Proxy::url), NETWORK);
    until("it waits for the others", || {
        let reason = status(&front)["nodes"]["each"][0]["not_used_because"].clone();
        reason.as_str().is_some_and(|reason| reason.contains("the quorum is 2"))
    });
    proxies[1..].iter().for_each(|proxy| proxy.set(Mood::Honest));
    until("the others settle it", || is_ready(&front));
    until("the liar is left out", || {
        let reason = status(&front)["nodes"]["each"][0]["not_used_because"].clone();
        reason.as_str().is_some_and(|reason| reason.contains("its chain id is 57005"))
    });
    assert_eq!(front.ask("eth_chainId", "[]")["result"], chain.call("eth_chainId", "[]")["result"]);
}

/// The configured hash of block 0 and the checkpoint decide, whatever the nodes say.
#[test]
fn the_configured_genesis_and_checkpoint_decide_who_is_used() {
    let chain = Demo::with("");
    let (genesis, fifth, other) = (hash_of(&chain, 0), hash_of(&chain, 5), format!("0x{}", "ab".repeat(32)));
    let genesis_hash = |hash: &str| format!("{NETWORK}genesis_hash = \"{hash}\"\n");
    let checkpoint = |hash: &str| format!("{NETWORK}checkpoint = {{ number = 5, hash = \"{hash}\" }}\n");
    for right in [genesis_hash(&genesis), checkpoint(&fifth)] {
        let (_proxies, front) = Front::behind(chain.public, "/v3/demo", 3, &right);
        assert!(is_ready(&front));
    }
    for (wrong, why) in
        [(genesis_hash(&other), "its block 0 is"), (checkpoint(&other), "the checkpoint in [network]")]
    {
        let proxies = [(); 3].map(|()| Proxy::start(chain.public, "/v3/demo"));
        let front = Front::unready(&proxies.each_ref().map(Proxy::url), &wrong);
        until("all are left out", || {
            let told = status(&front);
            let each = told["nodes"]["each"].as_array().unwrap();
            each.iter()
                .all(|node| node["not_used_because"].as_str().is_some_and(|reason| reason.contains(why)))
        });
        assert!(!is_ready(&front), "{why}");
    }
}

/// An archive of another chain was served under the configured chain id.
#[test]
fn an_archive_of_another_chain_than_the_configured_one_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    drop(demo::open(folder.path(), |_, _| ()).unwrap());
    let check = |network: &str| {
        let text =
            format!("data_dir = \"{}\"\n[network]\nname = \"demo\"\n{network}", folder.path().display());
        source::check(&Config::parse(&text).unwrap()).map(|_| ())
    };
    let other = format!("0x{}", "ab".repeat(32));
    assert_eq!(check(&format!("chain_id = {}\n", demo::CHAIN_ID)), Ok(()));
    for (network, why) in [
        ("chain_id = 99\n".to_owned(), "chain_id in [network] is 99"),
        (format!("genesis_hash = \"{other}\"\n"), "genesis_hash in [network]"),
        (format!("checkpoint = {{ number = 5, hash = \"{other}\" }}\n"), "checkpoint in [network]"),
    ] {
        let refused = check(&network).unwrap_err();
        assert!(refused.contains(why), "{refused}");
    }
}
