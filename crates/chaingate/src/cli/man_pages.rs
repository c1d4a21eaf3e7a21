//! `chaingate man-pages`: writes the manual, for packages.

use std::fs;
use std::path::PathBuf;

use clap::{Args, CommandFactory};

use super::Cli;

/// Write the manual pages of all commands
#[derive(Debug, Args)]
pub(super) struct ManPagesArguments {
    /// Directory to write them to
    #[arg(value_name = "DIR")]
    to: PathBuf,
}

pub(super) fn run(arguments: &ManPagesArguments) -> Result<(), String> {
    let to = &arguments.to;
    fs::create_dir_all(to)
        .and_then(|()| clap_mangen::generate_to(Cli::command(), to))
        .map_err(|error| format!("{}: {error}", to.display()))
}
