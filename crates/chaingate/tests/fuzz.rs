//! A short run of what `fuzz/` does for hours: input that is nearly right, the same each time.
//!
//! `CHAINGATE_FUZZ_CASES` says how many cases each test tries, `CHAINGATE_FUZZ_FIRST` which is the first.
#![allow(clippy::unwrap_used, clippy::print_stderr, reason = "a failing case is to be seen")]
#![allow(unreachable_pub, missing_debug_implementations, reason = "elsewhere, these files are a library")]

#[path = "../../../fuzz/src/call_parser.rs"]
mod call_parser;
#[path = "../../../fuzz/src/evm.rs"]
mod evm;
#[path = "../../../fuzz/src/http1_framing.rs"]
mod http1_framing;
#[path = "../../../fuzz/src/make.rs"]
mod make;
#[path = "../../../fuzz/src/whole_path.rs"]
mod whole_path;

use std::cell::Cell;

use make::Maker;

/// Tries the cases, and names the one that failed.
fn try_cases(usual: u64, input: impl Fn(&mut Maker) -> Vec<u8>, run: impl Fn(&[u8])) {
    let first = from_environment("CHAINGATE_FUZZ_FIRST").unwrap_or_default();
    let count = from_environment("CHAINGATE_FUZZ_CASES").unwrap_or(usual);
    for number in first..first + count {
        let input = input(&mut Maker::new(number));
        let named = Named { number, input: &input };
        run(&input);
        drop(named);
    }
}

fn from_environment(name: &str) -> Option<u64> {
    Some(std::env::var(name).ok()?.parse().expect("a number of cases"))
}

struct Named<'a> {
    number: u64,
    input: &'a [u8],
}

impl Drop for Named<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("case {} failed: {}", self.number, self.input.escape_ascii());
        }
    }
}

#[test]
fn any_body_is_read_as_another_parser_reads_it() {
    try_cases(20_000, Maker::body, call_parser::run);
}

#[test]
fn any_body_has_a_reply_with_the_right_id() {
    let gateway = whole_path::Gateway::start();
    try_cases(2_000, Maker::body, |body| gateway.run(body));
}

#[test]
fn any_program_comes_back_at_any_fork() {
    let machine = evm::Machine::start();
    try_cases(500, Maker::program, |program| machine.run(program));
}

#[test]
fn any_connection_is_cut_into_the_requests_that_hyper_sees() {
    let readers = http1_framing::Readers::start();
    let (cases, compared) = (Cell::new(0), Cell::new(0));
    try_cases(5_000, Maker::connection, |connection| {
        compared.set(compared.get() + readers.run(connection));
        cases.set(cases.get() + 1);
    });
    assert!(compared.get() >= cases.get() / 10, "{} requests in {} cases", compared.get(), cases.get());
}

/// Enough that every kind of call is among them.
const SEEDS: u64 = 500;

#[test]
#[ignore = "writes the files that a guided run starts from, into the folder CHAINGATE_FUZZ_SEEDS"]
fn seeds_are_written() {
    let folder = std::path::PathBuf::from(std::env::var_os("CHAINGATE_FUZZ_SEEDS").unwrap());
    for target in ["call_parser", "whole_path", "evm", "http1_framing"] {
        std::fs::create_dir_all(folder.join(target)).unwrap();
        for number in 0..SEEDS {
            let mut maker = Maker::new(number);
            let input = match target {
                "evm" => maker.program(),
                "http1_framing" => maker.connection(),
                _ => maker.body(),
            };
            std::fs::write(folder.join(target).join(format!("seed-{number}")), input).unwrap();
        }
    }
}
