//! The `chaingate` binary.

use std::process::ExitCode;

fn main() -> ExitCode {
    gateway::cli::run()
}
