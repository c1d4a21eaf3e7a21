//! The command line: `chaingate` = `chaingate serve`.

mod accounts; // chaingate accounts
mod admin_api; // the admin API of a gateway
mod administration; // parts that the commands about accounts and keys share
mod backup; // chaingate backup
mod banner; // printed on a terminal when the gateway has started
mod certificate; // when the TLS certificate expires
mod check; // chaingate check
mod completions; // chaingate completions
mod effective_config; // every key with its value and where that comes from
mod console; // chaingate console
mod console_server; // the console of a gateway
mod health; // chaingate health
mod import; // chaingate import
mod keys; // chaingate keys
mod man_pages; // chaingate man-pages
mod reload; // chaingate reload
mod restore; // chaingate restore
mod step_display; // how far a long command is
mod method_forms; // methods as forms of the console
mod serve; // chaingate serve
mod stop; // the end of chaingate serve
mod service_manager; // systemd, which starts and watches the gateway
mod signals; // SIGTERM, Ctrl-C, SIGHUP, SIGUSR1, SIGUSR2
mod verify; // chaingate verify

use std::fs;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use ::console::ConsoleAddress;
use clap::{Args, Parser, Subcommand};
use gateway::log::BackgroundWriter;
use resources::Supervisor;
use tokio::runtime::{self, Runtime};

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
    Serve(serve::ServeOptions),
    Check(check::CheckArguments),
    Import(import::ImportArguments),
    Backup(backup::BackupArguments),
    Restore(restore::RestoreArguments),
    Verify(verify::VerifyArguments),
    Accounts(accounts::AccountsArguments),
    Keys(keys::KeysArguments),
    Reload(reload::ReloadArguments),
    Console(console::ConsoleArguments),
    Health(health::HealthArguments),
    Completions(completions::CompletionsArguments),
    #[command(hide = true)]
    ManPages(man_pages::ManPagesArguments),
}

/// Options that override the configuration file.
#[derive(Clone, Debug, Args)]
struct ConfigOptions {
    /// Configuration file; without one, the demo chain is served
    #[arg(long, value_name = "FILE", env = "CHAINGATE_CONFIG")]
    config: Option<PathBuf>,
    /// Directory of the archive, the store and other files of the gateway
    #[arg(long, value_name = "DIR", env = "CHAINGATE_DATA_DIR")]
    data_dir: Option<PathBuf>,
    /// Address and port for callers
    #[arg(long, value_name = "ADDRESS", env = "CHAINGATE_LISTEN")]
    listen: Option<SocketAddr>,
    /// Address and port for the operator: /health, /ready, /status, /metrics, /admin
    #[arg(long, value_name = "ADDRESS", env = "CHAINGATE_OPERATOR")]
    operator: Option<SocketAddr>,
    /// Address and port for the console, or `off`
    #[arg(long, value_name = "ADDRESS", env = "CHAINGATE_CONSOLE")]
    console: Option<ConsoleAddress>,
}

impl ConfigOptions {
    /// The settings and the text of the file, or what is wrong with the settings. Files that they name are read, because a gateway
    /// would not start without them.
    fn load(self) -> Result<(Config, String), String> {
        let (config, text) = self.parse()?;
        let problems = config.problems();
        if problems.is_empty() { Ok((config, text)) } else { Err(problems.join("\n")) }
    }

    /// The configuration file with the options of the command line applied, and its text, which is empty if there is none.
    fn parse(self) -> Result<(Config, String), String> {
        let (mut config, text) = match &self.config {
            None => (Config::default(), String::new()),
            Some(path) => {
                let text =
                    fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))?;
                let config =
                    Config::parse(&text).map_err(|errors| format!("{}:\n{errors}", path.display()))?;
                (config, text)
            }
        };
        config.data_dir = self.data_dir.unwrap_or(config.data_dir);
        config.listen.server.public = self.listen.unwrap_or(config.listen.server.public);
        config.listen.operator.address = self.operator.unwrap_or(config.listen.operator.address);
        config.console_address = self.console.unwrap_or(config.console_address);
        Ok((config, text))
    }
}

/// Runs the command that the process was started with.
pub fn run() -> ExitCode {
    let cli = Cli::parse();
    let done = |()| ExitCode::SUCCESS;
    let result = match cli.command {
        None => serve::run(serve::ServeOptions { settings: cli.settings, take_over: false }),
        Some(Command::Serve(options)) => serve::run(options),
        Some(Command::Check(arguments)) => check::run(arguments).map(done),
        Some(Command::Import(arguments)) => return import::run(arguments),
        Some(Command::Backup(arguments)) => backup::run(&arguments).map(done),
        Some(Command::Restore(arguments)) => restore::run(&arguments).map(done),
        Some(Command::Verify(arguments)) => verify::run(&arguments),
        Some(Command::Accounts(arguments)) => accounts::run(arguments).map(done),
        Some(Command::Keys(arguments)) => keys::run(arguments).map(done),
        Some(Command::Reload(arguments)) => reload::run(&arguments).map(done),
        Some(Command::Console(arguments)) => console::run(arguments).map(done),
        Some(Command::Health(arguments)) => health::run(arguments).map(done),
        Some(Command::Completions(arguments)) => completions::run(&arguments).map(done),
        Some(Command::ManPages(arguments)) => man_pages::run(&arguments).map(done),
    };
    match result {
        Ok(status) => status,
        Err(message) => {
            say(&message);
            ExitCode::FAILURE
        }
    }
}

/// The runtime of a command.
fn new_runtime() -> Result<Runtime, String> {
    let runtime = runtime::Builder::new_current_thread().enable_all().build();
    runtime.map_err(|error| format!("cannot start: {error}"))
}

/// How long a message waits for its reader before the program ends without it.
const MESSAGE_TIMEOUT: Duration = Duration::from_secs(5);

/// Writes a message to standard error. A missing reader is no error, and a stuck one is waited for no longer than
/// [`MESSAGE_TIMEOUT`].
fn say(message: &str) {
    if let Ok(messages) = BackgroundWriter::to_stderr(&Supervisor::default()) {
        messages.write_lines(format!("chaingate: {message}\n").as_bytes());
        messages.finish(MESSAGE_TIMEOUT);
    }
}
