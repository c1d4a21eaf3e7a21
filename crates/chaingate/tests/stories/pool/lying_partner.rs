//! A partner that lies while all nodes are down. Its answers about blocks are proven, or are not passed on.

use std::net::SocketAddr;
use std::thread;

use demo::CHAIN_ID;
use methods::METHODS;
use testkit::forgery::Forgery;
use testkit::matrix::{Course, NodeLie, NodeMix, RunningGateway, StateTrust, TrueChain, run_cell};
use testkit::proxy::{Mood, Proxy};

use super::front::Front;
use crate::demo::Demo;

/// Gateways that are tried at the same time. They wait for dead nodes most of the time.
const AT_ONCE: usize = 16;

/// Calls for each lie. A partner that was found out is left alone for minutes, so that the first of them count most.
const CALLS: usize = 6;

/// Blocks that are asked about.
const BLOCKS: u64 = 12;

/// A gateway whose only node is dead, and which asks a partner.
struct InOutage {
    _node: Proxy,
    front: Front,
}

impl InOutage {
    /// The node is there until the gateway has a head.
    fn begin(chain: &TrueChain, partner: &str) -> Self {
        let methods: Vec<_> = METHODS.iter().map(|method| format!("\"{}\"", method.name)).collect();
        let rest = format!(
            "[network]\nname = \"demo\"\nchain_id = {CHAIN_ID}\n[methods]\nfailover = [{}]\n\
             [[partner]]\nurl = \"{partner}\"\ncalls_per_second = 100000\n",
            methods.join(",")
        );
        let node = chain.proxy();
        let front = Front::of(&[node.url()], &rest);
        node.set(Mood::Dead);
        Self { _node: node, front }
    }
}

impl RunningGateway for InOutage {
    fn public(&self) -> SocketAddr {
        self.front.public
    }

    fn operator(&self) -> SocketAddr {
        self.front.operator
    }

    fn path(&self) -> &str {
        "/v3/custom"
    }
}

#[test]
fn a_partner_gets_no_forged_block_data_through() {
    let node = Demo::with("");
    let chain = &TrueChain::read("demo", node.public, "/v3/demo", BLOCKS);
    let start =
        |partner: &[String]| -> Box<dyn RunningGateway> { Box::new(InOutage::begin(chain, &partner[0])) };
    for (number, forgeries) in Forgery::ALL.chunks(AT_ONCE).enumerate() {
        thread::scope(|scope| {
            for forgery in forgeries {
                let start = &start;
                scope.spawn(move || {
                    let lie = NodeLie::from(*forgery).during(Course::OnlyLiars);
                    let calls = chain.sample(&lie, CALLS, 100 + number as u64);
                    let mix = NodeMix::ONE_OF_ONE;
                    let report = run_cell(chain, &lie, mix, StateTrust::Trusted, &calls, start);
                    assert!(report.crossed.is_empty(), "{forgery:?}: {:#?}", report.crossed);
                });
            }
        });
    }
}
