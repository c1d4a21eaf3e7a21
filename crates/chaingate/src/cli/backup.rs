//! `chaingate backup`: writes a copy of everything that a gateway needs.

use std::path::PathBuf;

use clap::Args;
use resources::counted;
use serde_json::json;

use super::administration::{AdministrationOptions, write};
use super::step_display::StepDisplay;
use crate::backup::{self, BackedUpStore, BackupResult, megabytes};

/// Back up the archive, the stored blocks and the accounts of a gateway, which may go on running
///
/// The backup is as of the moment at which it begins. Imports and new blocks go on; the archive's file grows by the pages that they
/// replace until its rows are read, and uses them again later. Accounts, keys and usage in a PostgreSQL database are not part of it:
/// use pg_dump. Usage that is not in the store yet is not part of it either.
///
/// The folder appears when all of it is on the disk. It contains secrets: keep it private.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  chaingate backup --config /etc/chaingate/chaingate.toml --to /backup/chaingate-$(date +%F)
  chaingate backup --data-dir chaingate-data --to /backup/today --json")]
pub(super) struct BackupArguments {
    /// Folder for the backup; it must not exist yet
    #[arg(long, value_name = "DIR")]
    to: PathBuf,
    #[command(flatten)]
    options: AdministrationOptions,
}

pub(super) fn run(arguments: &BackupArguments) -> Result<(), String> {
    let config = arguments.options.config()?;
    let mut display = StepDisplay::new("backup")?;
    let made = backup::make(&config, &arguments.to, &mut |step, done, total| display.show(step, done, total));
    drop(display);
    let made = made?;
    let text = match arguments.options.is_json() {
        true => format!(
            "{}\n",
            json!({
                "to": arguments.to,
                "bytes": made.manifest.bytes(),
                "seconds": made.duration.as_secs_f64(),
                "archive_growth_bytes": made.archive_growth,
                "not_recorded_because": made.not_recorded,
                "manifest": made.manifest,
            })
        ),
        false => text(arguments, &made),
    };
    write(&text)
}

fn text(arguments: &BackupArguments, made: &BackupResult) -> String {
    let manifest = &made.manifest;
    let mut text = String::new();
    for file in &manifest.files {
        text.push_str(&format!("{:<18} {:>12}\n", file.name, megabytes(file.bytes)));
    }
    if let Some(archive) = &manifest.archive {
        text.push_str(&format!("The head of the archive is block {}.\n", archive.head));
    }
    if let Some(blocks) = &manifest.blocks {
        text.push_str(&format!("There are {} of nodes.\n", counted(blocks.blocks, "stored block")));
    }
    if made.archive_growth > 0 {
        text.push_str(&format!(
            "The file of the archive grew by {} meanwhile.\n",
            megabytes(made.archive_growth)
        ));
    }
    if manifest.store == BackedUpStore::Postgresql {
        text.push_str("Accounts, keys and usage are in PostgreSQL: back them up with pg_dump.\n");
    }
    if let Some(why) = &made.not_recorded {
        text.push_str(&format!(
            "The gateway does not know about the backup, because its time cannot be written: {why}\n"
        ));
    }
    let (to, seconds) = (arguments.to.display(), made.duration.as_secs_f64());
    text + &format!("Backed up {} to {to} in {seconds:.1} s.\n", megabytes(manifest.bytes()))
}
