//! What can be said on the command line.

mod import;

use clap::{Parser, Subcommand};
use std::process::ExitCode;

/// A JSON-RPC 2.0 gateway to one blockchain network.
#[derive(Debug, Parser)]
#[command(version, about, propagate_version = true, arg_required_else_help = true)]
pub struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Import(import::Arguments),
}

impl Arguments {
    /// Does what was asked for.
    pub fn run(self) -> ExitCode {
        match self.command {
            Command::Import(arguments) => import::run(&arguments),
        }
    }
}
