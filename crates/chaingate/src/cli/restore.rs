//! `chaingate restore`: makes a data directory of a backup.

use std::path::PathBuf;

use clap::Args;

use super::administration::{utc_text, write};
use super::step_display::StepDisplay;
use crate::backup::{self, BackedUpStore, megabytes};

/// Make a data directory of a backup
///
/// Every file is compared with its checksum before anything is written, and the result is opened and compared with the manifest.
/// A data directory with anything in it is refused. Run this as the user of the gateway, and start the gateway afterwards.
#[derive(Debug, Args)]
#[command(after_help = "Example:
  chaingate restore --from /backup/chaingate-2026-11-19 --data-dir /var/lib/chaingate")]
pub(super) struct RestoreArguments {
    /// Folder that `chaingate backup` has made
    #[arg(long, value_name = "DIR")]
    from: PathBuf,
    /// Directory to restore into: missing or empty
    #[arg(long, value_name = "DIR", env = "CHAINGATE_DATA_DIR")]
    data_dir: PathBuf,
}

pub(super) fn run(arguments: &RestoreArguments) -> Result<(), String> {
    let RestoreArguments { from, data_dir } = arguments;
    let mut display = StepDisplay::new("restore")?;
    let restored = backup::restore(from, data_dir, &mut |step, done, total| display.show(step, done, total));
    drop(display);
    let manifest = restored?;
    let made_at = utc_text(manifest.finished_at);
    let mut text = format!(
        "Restored {} of the network {} into {}, as of {made_at} UTC.\n",
        megabytes(manifest.bytes()),
        manifest.network,
        data_dir.display()
    );
    if let Some(archive) = &manifest.archive {
        text.push_str(&format!("The head of the archive is block {}.\n", archive.head));
    }
    match manifest.store {
        BackedUpStore::Sqlite => {}
        BackedUpStore::Postgresql => {
            text.push_str(
                "Accounts, keys and usage were in PostgreSQL: restore them with pg_restore or psql.\n",
            );
        }
        BackedUpStore::Missing => text.push_str("The gateway had no stored accounts.\n"),
    }
    write(&text)
}
