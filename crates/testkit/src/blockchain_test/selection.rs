//! Tests of our own in the official format: the rules that executing clients have got wrong, ours included.
//!
//! They are made by the chain builder and stored beside the tests of the archive. What must be refused is built
//! under other rules or spoilt afterwards, so that nothing but the rule in question speaks against it.

mod deposits; // EIP-6110: one layout of logs
mod forks; // the DAO fork, uncles, wrong headers
mod requests; // EIP-7002, EIP-7251: contracts that must be there and must end well
mod writer; // blocks → JSON

use serde_json::{Map, Value};
use writer::TestWriter;

/// Every test, by file and name.
pub fn selection() -> Vec<(&'static str, Map<String, Value>)> {
    vec![
        ("dao_fork.json", Map::from_iter([forks::dao_fork(), forks::dao_fork_uncle()])),
        ("uncles.json", Map::from_iter([forks::uncles()])),
        ("wrong_headers.json", Map::from_iter([forks::wrong_headers()])),
        ("request_contracts.json", requests::tests()),
        ("deposit_logs.json", deposits::tests()),
    ]
}
