//! Attacks on a gateway in a process of its own, beside honest load, with the figures that must not be exceeded.
//!
//! Everything stays on loopback. Hostile connections come from 127.0.0.2, honest ones from 127.0.0.1. Only processes that
//! this program has started are ended.
#![allow(clippy::print_stdout, reason = "figures are what this program is for")]

mod attack; // the attacks, and the table of them
mod gateway; // the process under attack
mod honest; // load at a fixed rate that expects every answer
mod hostile; // connections of the attacker
mod http1; // requests and replies over HTTP/1
mod http2; // frames of HTTP/2, written by hand
mod instances; // several gateways that share a store and Redis
mod lies; // nodes that lie to a gateway
mod report; // figures, limits and the table that is printed
mod run; // idle, attacked, recovered: the phases of one attack

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use clap::builder::PossibleValuesParser;
use clap::{Parser, Subcommand};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use attack::{ATTACKS, Attack};

/// Runs attacks against a gateway that it starts itself, and fails if the gateway crosses a limit.
#[derive(Debug, Parser)]
#[command(name = "chaingate-attack", subcommand_negates_reqs = true, args_conflicts_with_subcommands = true)]
struct AttackArguments {
    #[command(subcommand)]
    other: Option<OtherAttack>,

    /// The attacks to run; `all` runs each of them.
    #[arg(required = true, value_parser = PossibleValuesParser::new(names()))]
    attacks: Vec<String>,

    /// The gateway's program.
    #[arg(long, default_value = "target/release/chaingate")]
    gateway: PathBuf,

    /// How long each attack lasts. The gateway's timeouts are shortened to a third of it where they are longer.
    #[arg(long, default_value_t = 40, value_parser = clap::value_parser!(u64).range(2..=600))]
    seconds: u64,

    /// Percentage of the connections and bodies of the full attack.
    #[arg(long, default_value_t = 100, value_parser = clap::value_parser!(u64).range(1..=100))]
    scale: u64,

    /// Honest latency below this is never too high. Raise it where other programs use the processor.
    #[arg(long, default_value_t = 100)]
    latency_floor_ms: u64,
}

/// Attacks that do not run beside honest load.
#[derive(Debug, Subcommand)]
enum OtherAttack {
    /// Lets nodes lie to a gateway, and compares what it answers with the truth.
    Lies(lies::LieArguments),
    /// Lets the parts of three gateways with PostgreSQL and Redis fail under load, and compares usage with the callers' count.
    Instances(instances::InstancesArguments),
}

fn names() -> Vec<&'static str> {
    ATTACKS.iter().map(|attack| attack.name).chain(["all"]).collect()
}

fn main() -> ExitCode {
    let arguments = AttackArguments::parse();
    let folder = match tempfile::tempdir() {
        Ok(folder) => folder,
        Err(error) => {
            println!("cannot create a temporary folder: {error}");
            return ExitCode::FAILURE;
        }
    };
    allow_open_files();
    match &arguments.other {
        Some(OtherAttack::Lies(lies)) => return lies::run(lies, folder.path()),
        Some(OtherAttack::Instances(instances)) => return instances::run(instances, folder.path()),
        None => {}
    }
    let options = run::AttackOptions {
        gateway: arguments.gateway,
        folder: folder.path().to_owned(),
        duration: Duration::from_secs(arguments.seconds),
        scale: arguments.scale,
        latency_floor: Duration::from_millis(arguments.latency_floor_ms),
    };
    let all = arguments.attacks.iter().any(|name| name == "all");
    let chosen: Vec<&Attack> = ATTACKS
        .iter()
        .filter(|attack| all || arguments.attacks.iter().any(|name| name == attack.name))
        .collect();
    match run::run_all(&chosen, &options) {
        Ok(reports) => {
            report::print_table(&reports);
            if reports.iter().all(|report| report.exceeded.is_empty()) {
                ExitCode::SUCCESS
            } else {
                ExitCode::FAILURE
            }
        }
        Err(error) => {
            println!("{error}");
            ExitCode::FAILURE
        }
    }
}

/// Raises the limit of open files: attacks open thousands of connections, and a shell often grants fewer at first.
fn allow_open_files() {
    let limit = getrlimit(Resource::Nofile);
    if let Err(error) = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit }) {
        println!("the limit of open files stays at {:?}: {error}", limit.current);
    }
}
