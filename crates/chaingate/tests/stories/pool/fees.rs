//! Gas prices, computed from proven blocks.

use testkit::proxy::Proxy;

use super::front::Front;
use super::long;
use super::questions::outcome;
use crate::demo::Demo;

/// Compares gas prices with the node's own, and checks that no node was asked for them: one of them could name any price.
fn assert_computed(chain: &Demo, network: &str, asked: &[(&str, &str, &str)]) {
    let (proxies, front) = Front::behind(chain.public, "/v3/demo", 3, network);
    for (method, params, verified) in asked {
        let reply = front.ask_as("custom", "", method, params);
        assert_eq!(outcome(&reply.json()), outcome(&chain.call(method, params)), "{method} {params}");
        assert_eq!(reply.header("chaingate-verified"), Some(*verified), "{method} {params}");
    }
    let were_asked =
        |proxy: &Proxy| proxy.asked("eth_gasPrice", "[]") + proxy.asked("eth_maxPriorityFeePerGas", "[]");
    assert!(proxies.iter().all(|proxy| were_asked(proxy) == 0));
}

#[test]
fn fees_in_front_of_nodes_are_those_of_the_embedded_chain() {
    let blocks = long::chain(2);
    assert_computed(
        &long::node(&blocks),
        "[network]\nname = \"long\"\n",
        &[
            ("eth_gasPrice", "[]", "proven"),
            ("eth_maxPriorityFeePerGas", "[]", "proven"),
            ("eth_feeHistory", r#"["0x5","latest",[0,25,75.5,100]]"#, "proven"),
            // Only a quorum says which block has this number.
            ("eth_feeHistory", r#"["0x5","0x9",[50]]"#, "confirmed"),
            ("eth_feeHistory", r#"["0x12c","latest"]"#, "proven"),
            ("eth_feeHistory", r#"["0x0","latest",[50]]"#, "proven"),
        ],
    );
}

/// The headers of a private chain do not tell how many blobs a block may have.
#[test]
fn fees_of_blobs_on_an_unknown_chain_are_confirmed_by_a_quorum() {
    assert_computed(
        &Demo::with(""),
        "[network]\nname = \"demo\"\n",
        &[
            ("eth_gasPrice", "[]", "proven"),
            ("eth_maxPriorityFeePerGas", "[]", "proven"),
            ("eth_feeHistory", r#"["0x5","latest",[25,75.5]]"#, "confirmed"),
            ("eth_feeHistory", r#"["0x5","0x30",[25,75.5]]"#, "proven"),
        ],
    );
}
