//! The benchmark: what the archive does alone, and the gateway side by side with its peers.
#![allow(clippy::print_stdout, reason = "figures are what this program is for")]

mod archive;
mod gateway;
mod hyper_server;
mod load;
mod peers;

use std::process::ExitCode;

const USAGE: &str = "\
Usage: chaingate-bench archive [FOLDER]    the archive alone; FOLDER holds mainnet-0-8191
       chaingate-bench gateway [SECONDS]   the gateway beside a bare hyper server and anvil, SECONDS a run (5)

`gateway` needs target/release/chaingate and wrk, and takes anvil from $ANVIL or the PATH, without it if there is none
(name the program itself, not a script that starts it, or its CPU time is not seen).";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["archive"] => archive::run(None),
        ["archive", corpora] => archive::run(Some(corpora.into())),
        ["gateway"] => gateway::run(5),
        ["gateway", seconds] if seconds.parse::<u64>().is_ok() => gateway::run(seconds.parse().unwrap_or(5)),
        ["hyper-server", bytes] => hyper_server::run(bytes.parse().unwrap_or(0)),
        _ => {
            println!("{USAGE}");
            return ExitCode::from(2);
        }
    }
    ExitCode::SUCCESS
}
