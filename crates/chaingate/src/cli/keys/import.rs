//! `chaingate keys import`: keys that callers have already, from CSV or JSON, so that they need not change them.
//!
//! The keys go straight into the store, all of them or none. A running gateway has them within a second.

mod csv; // text → records
mod file; // records → keys

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use callers::administration::{ImportMistake, ImportedKeys};
use clap::Args;
use resources::counted;
use serde_json::json;

use self::file::{FileMistake, KeyFile};
use super::super::administration::{AdministrationOptions, command_line_actor, write};
use super::super::new_runtime;

/// Bytes of a file with as many keys as one import may have, each with a long list of addresses.
const FILE_BYTES_MAX: u64 = 64 << 20;

/// Import keys that callers have already, with their names, accounts and allow-lists
///
/// All keys are imported, or none if there is a mistake in the file; all mistakes are reported with their lines. A key that its
/// account has already stays as it is, so the command can be repeated. Keys are in the file as plain text; the store gets only
/// their keyed hashes.
#[derive(Debug, Args)]
#[command(
    after_help = "A CSV file names its columns in its first line: account, name and key, and any of plan, expires_at and the
settings of a key. Entries of a list are separated by |. A JSON file has an array of objects with the same names.

  account,plan,name,key,methods,credits_per_day
  acme,growth,backend,0123456789abcdef0123456789abcdef,eth_call|eth_getLogs,100000

Accounts that do not exist are created, and need a plan."
)]
pub(super) struct ImportKeysArguments {
    /// CSV or JSON file
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Check everything, and import nothing
    #[arg(long)]
    dry_run: bool,
}

pub(super) fn run(options: &AdministrationOptions, arguments: &ImportKeysArguments) -> Result<(), String> {
    let path = &arguments.file;
    let KeyFile { keys, lines, mut mistakes } = KeyFile::parse(&read(path)?)
        .map_err(|mistake| format!("{}:{}: {}", path.display(), mistake.line, mistake.message))?;
    let administration = options.config()?.administration();
    // With a mistake, the other keys are checked all the same.
    let is_dry_run = arguments.dry_run || !mistakes.is_empty();
    let imported = new_runtime()?
        .block_on(administration.import_keys(&command_line_actor(), &keys, is_dry_run))
        .map_err(|error| error.to_string())?;
    let of_line = |ImportMistake { place, message }: &ImportMistake| FileMistake {
        line: lines.get(*place).copied().unwrap_or_default(),
        message: message.clone(),
    };
    mistakes.extend(imported.mistakes.iter().map(of_line));
    if !mistakes.is_empty() {
        return Err(mistakes_text(path, mistakes));
    }
    let ImportedKeys { new_accounts, new_keys, existing_keys, .. } = imported;
    if options.is_json() {
        let done = json!({
            "new_accounts": new_accounts, "new_keys": new_keys, "existing_keys": existing_keys, "dry_run": arguments.dry_run,
        });
        return write(&format!("{done}\n"));
    }
    let verb = if arguments.dry_run { "would import" } else { "imported" };
    let (keys, accounts) = (counted(new_keys, "key"), counted(new_accounts, "new account"));
    write(&format!("{verb} {keys} and {accounts}; {} there already\n", counted(existing_keys, "key")))
}

fn mistakes_text(path: &Path, mut mistakes: Vec<FileMistake>) -> String {
    mistakes.sort_by_key(|mistake| mistake.line);
    let count = counted(mistakes.len() as u64, "mistake");
    let line = |mistake: &FileMistake| format!("{}:{}: {}", path.display(), mistake.line, mistake.message);
    let lines: Vec<_> = mistakes.iter().map(line).collect();
    format!("{count}, so nothing was imported:\n{}", lines.join("\n"))
}

fn read(path: &Path) -> Result<String, String> {
    let named = |error: std::io::Error| format!("{}: {error}", path.display());
    let mut text = String::new();
    let read = File::open(path).and_then(|file| file.take(FILE_BYTES_MAX + 1).read_to_string(&mut text));
    if read.map_err(named)? as u64 > FILE_BYTES_MAX {
        return Err(format!("{}: it has more than {FILE_BYTES_MAX} bytes; divide it", path.display()));
    }
    Ok(text)
}
