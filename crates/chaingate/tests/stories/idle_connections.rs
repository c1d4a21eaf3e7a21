//! Ten thousand connections that want nothing.

use std::net::SocketAddr;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use testkit::http::{TestConnection, post};

use crate::demo::{metric, until};
use crate::gateway_under_test::chain_id;
use crate::process::Process;

const CROWD: u64 = 10_000;

/// Files that are open beside the connections of the crowd.
const OTHER_FILES: u64 = 200;

/// A connection costs no more than this, with all that the allocator adds.
const CONNECTION_BYTES_MAX: u64 = 10 << 10;

/// Addresses that all mean this machine: one has too few ports for a crowd.
fn address(index: u64, port: u16) -> SocketAddr {
    SocketAddr::from(([127, 0, 0, 2 + (index % 8) as u8], port))
}

/// As many connections as this process may have.
fn crowd() -> u64 {
    let limit = getrlimit(Resource::Nofile);
    // The next line shows whether the limit was raised.
    let _raised = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit });
    let allowed = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
    let crowd = CROWD.min(allowed - OTHER_FILES);
    if crowd < CROWD {
        eprintln!("only {crowd} connections: no more than {allowed} files may be open here");
    }
    crowd
}

#[test]
fn ten_thousand_idle_connections_cost_little_and_hurt_nobody() {
    let crowd = crowd();
    let limits =
        "[limits]\nconnections_max = 11000\nfirst_byte_timeout_ms = 600000\nkeep_alive_timeout_ms = 600000";
    let process = Process::start("0.0.0.0:0", limits, "info");
    let port = process.public.port();
    let honest = |index| post(address(index, port), "/v3/demo", chain_id("1")).status;
    assert_eq!(honest(0), 200);
    let before = process.memory();

    let mut idle: Vec<_> = (0..crowd).map(|index| TestConnection::connect(address(index, port))).collect();
    for wire in idle.iter_mut().step_by(2) {
        assert_eq!(wire.post("/v3/demo", chain_id("1")).status, 200);
    }
    until("all are there", || metric(process.operator, "chaingate_connections_open") >= crowd as f64);

    assert!((0..200).all(|index| honest(index) == 200));
    let grown = process.memory().saturating_sub(before);
    assert!(grown < crowd * CONNECTION_BYTES_MAX, "{} bytes for each of {crowd}", grown / crowd);
    assert!(metric(process.operator, "chaingate_connections_open") >= crowd as f64, "nobody was let go");
    drop(idle);
    until("all are gone", || metric(process.operator, "chaingate_connections_open") < 10.0);
    assert_eq!(honest(0), 200);
}
