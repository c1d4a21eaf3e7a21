//! The benchmark: what the archive does alone, and the gateway side by side with its peers.
#![allow(clippy::print_stdout, reason = "figures are what this program is for")]

mod archive;
mod blutgang;
mod gateway;
mod hyper_server;
mod load;
mod mock_node;
mod nginx;
mod peers;
mod pool;
mod verified;

use std::process::ExitCode;

const USAGE: &str = "\
Usage: chaingate-bench archive [FOLDER]    the archive alone; FOLDER holds mainnet-0-8191
       chaingate-bench gateway [SECONDS]   the gateway beside a bare hyper server and anvil, SECONDS a run (5)
       chaingate-bench pool [SECONDS [PART]]
                                           the gateway in front of a node beside nginx, blutgang and a bare hyper
                                           server; only rows with PART in \" KIND NAME\", where KIND is cached, uncached,
                                           cold or warm
       chaingate-bench verified [SECONDS]  state that three nodes confirm, or that one proves, beside nginx in front of one of
                                           them; and how fast older blocks are fetched, proven and kept

`gateway`, `pool` and `verified` need target/dist/chaingate and wrk. `gateway` takes anvil from $ANVIL or the PATH, without it if
there is none (name the program itself, not a script that starts it, or its CPU time is not seen). `pool` takes nginx
from the PATH or /usr/sbin and blutgang from $BLUTGANG or the PATH, without them if there are none; its node is a mock
that repeats the answers of a real one. With $CHAINGATE_BEFORE, `gateway` and `pool` measure that build of the gateway, too, as the
server `before`.";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["archive"] => archive::run(None),
        ["archive", corpora] => archive::run(Some(corpora.into())),
        ["gateway"] => gateway::run(5),
        ["gateway", seconds] if seconds.parse::<u64>().is_ok() => gateway::run(seconds.parse().unwrap_or(5)),
        ["pool"] => pool::run(5, ""),
        ["pool", seconds] if seconds.parse::<u64>().is_ok() => pool::run(seconds.parse().unwrap_or(5), ""),
        ["pool", seconds, part] if seconds.parse::<u64>().is_ok() => {
            pool::run(seconds.parse().unwrap_or(5), part);
        }
        ["verified"] => verified::run(5),
        ["verified", seconds] if seconds.parse::<u64>().is_ok() => {
            verified::run(seconds.parse().unwrap_or(5));
        }
        ["mock-node", original] => mock_node::run(original),
        ["hyper-server", bytes] => hyper_server::run(bytes.parse().unwrap_or(0)),
        _ => {
            println!("{USAGE}");
            return ExitCode::from(2);
        }
    }
    ExitCode::SUCCESS
}
