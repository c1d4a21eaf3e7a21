//! `chaingate completions`: what a shell needs to complete the command line.

use std::io::{self, Write, stdout};

use clap::{Args, CommandFactory};
use clap_complete::Shell;

use super::Cli;

/// Print the completions of a shell
#[derive(Debug, Args)]
pub(super) struct CompletionsArguments {
    #[arg(value_enum)]
    shell: Shell,
}

pub(super) fn run(arguments: &CompletionsArguments) -> Result<(), String> {
    let mut script = Vec::new();
    clap_complete::generate(arguments.shell, &mut Cli::command(), "chaingate", &mut script);
    print(&script).map_err(|error| format!("cannot write to standard output: {error}"))
}

/// A reader that has read enough, such as `head`, is no error.
fn print(script: &[u8]) -> io::Result<()> {
    match stdout().lock().write_all(script) {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        written => written,
    }
}
