//! The benchmark. `cargo run --release -p chaingate-bench -- archive [CORPORA]`.
#![allow(clippy::print_stdout, reason = "figures are what this program is for")]

mod archive;

use std::process::ExitCode;

fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(1);
    match arguments.next().as_deref() {
        Some("archive") => {
            archive::run(arguments.next().map(Into::into));
            ExitCode::SUCCESS
        }
        _ => {
            println!("usage: chaingate-bench archive [FOLDER WITH mainnet-0-8191]");
            ExitCode::from(2)
        }
    }
}
