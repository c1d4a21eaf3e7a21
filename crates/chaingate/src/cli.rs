//! The command line: `chaingate` = `chaingate serve`.

mod accounts; // chaingate accounts
mod admin_api; // the admin API of a gateway
mod administration; // what the commands about accounts and keys have in common
mod banner; // printed on a terminal when the gateway has started
mod check; // chaingate check
mod docs; // chaingate docs
mod import; // chaingate import
mod keys; // chaingate keys
mod serve; // chaingate serve
mod signals; // SIGTERM, Ctrl-C, SIGHUP
mod verify; // chaingate verify

use std::fs;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use clap::{Args, Parser, Subcommand};
use gateway::log::BackgroundWriter;

use crate::config::Config;

/// JSON-RPC 2.0 gateway for one Ethereum-like network
#[derive(Debug, Parser)]
#[command(name = "chaingate", version, args_conflicts_with_subcommands = true)]
struct Cli {
    #[command(subcommand)]
    command: Option<Command>,
    #[command(flatten)]
    settings: ConfigOptions,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Serve callers (default command)
    Serve(ConfigOptions),
    /// Check a configuration without starting the gateway
    Check(ConfigOptions),
    Import(import::ImportArguments),
    Verify(verify::VerifyArguments),
    Accounts(accounts::AccountsArguments),
    Keys(keys::KeysArguments),
    /// Write the generated documents
    #[command(hide = true)]
    Docs(docs::DocsArguments),
}

/// Options that override the configuration file.
#[derive(Debug, Args)]
struct ConfigOptions {
    /// Configuration file; without one, the demo chain is served
    #[arg(long, value_name = "FILE", env = "CHAINGATE_CONFIG")]
    config: Option<PathBuf>,
    /// Directory of the archive and of blocks stored from nodes
    #[arg(long, value_name = "DIR", env = "CHAINGATE_DATA_DIR")]
    data_dir: Option<PathBuf>,
    /// Address and port for callers
    #[arg(long, value_name = "ADDRESS", env = "CHAINGATE_LISTEN")]
    listen: Option<SocketAddr>,
    /// Address and port for the operator: /health, /ready, /status, /metrics, /admin
    #[arg(long, value_name = "ADDRESS", env = "CHAINGATE_OPERATOR")]
    operator: Option<SocketAddr>,
}

impl ConfigOptions {
    /// The settings, or what is wrong with them. Files that they name are read, because a gateway would not start without them.
    fn load(self) -> Result<Config, String> {
        let config = self.parse()?;
        let problems = config.problems();
        if problems.is_empty() { Ok(config) } else { Err(problems.join("\n")) }
    }

    /// The configuration file with the options of the command line applied.
    fn parse(self) -> Result<Config, String> {
        let mut config = match &self.config {
            None => Config::default(),
            Some(path) => {
                let text =
                    fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))?;
                Config::parse(&text).map_err(|errors| format!("{}:\n{errors}", path.display()))?
            }
        };
        config.data_dir = self.data_dir.unwrap_or(config.data_dir);
        config.listen.server.public = self.listen.unwrap_or(config.listen.server.public);
        config.listen.operator.address = self.operator.unwrap_or(config.listen.operator.address);
        Ok(config)
    }
}

/// Runs the command that the process was started with.
pub fn run() -> ExitCode {
    let cli = Cli::parse();
    let done = |()| ExitCode::SUCCESS;
    let result = match cli.command {
        None => serve::run(cli.settings),
        Some(Command::Serve(settings)) => serve::run(settings),
        Some(Command::Check(settings)) => check::run(settings).map(done),
        Some(Command::Import(arguments)) => return import::run(arguments),
        Some(Command::Verify(arguments)) => verify::run(&arguments).map(done),
        Some(Command::Accounts(arguments)) => accounts::run(arguments).map(done),
        Some(Command::Keys(arguments)) => keys::run(arguments).map(done),
        Some(Command::Docs(arguments)) => docs::run(&arguments).map(done),
    };
    match result {
        Ok(status) => status,
        Err(message) => {
            say(&message);
            ExitCode::FAILURE
        }
    }
}

/// How long a message waits for its reader before the program ends without it.
const MESSAGE_TIMEOUT: Duration = Duration::from_secs(5);

/// Writes a message to standard error. A missing reader is no error, and a stuck one is waited for no longer than
/// [`MESSAGE_TIMEOUT`].
fn say(message: &str) {
    if let Ok(messages) = BackgroundWriter::to_stderr() {
        messages.write_lines(format!("chaingate: {message}\n").as_bytes());
        messages.finish(MESSAGE_TIMEOUT);
    }
}
