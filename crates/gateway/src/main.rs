//! The `chaingate` program.

use clap::Parser as _;
use gateway::cli::Arguments;
use std::process::ExitCode;

fn main() -> ExitCode {
    Arguments::parse().run()
}
