//! What is fuzzed, as plain functions that panic when something is wrong. libFuzzer calls them with what it finds, the
//! suite of the gateway calls them with what [`make`] thinks of.

pub mod call_parser; // bytes → calls, against another parser
pub mod evm; // any program over any fork
pub mod http1_framing; // where requests end, against hyper
pub mod make; // input that is nearly right
pub mod whole_path; // a body → a reply
