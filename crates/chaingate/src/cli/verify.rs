//! `chaingate verify`: compares the archive and the stored blocks on disk with their checksums.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use archive::{
    ARCHIVE_FILE, Archive, BLOCKS_FILE, BlocksFile, BlocksFileOpenError, CopyProgress, DamagedRange,
    OpenError,
};
use clap::Args;
use resources::counted;

use super::say;
use super::step_display::StepDisplay;
use crate::backup::{MANIFEST_FILE, check_backup};

/// The exit status if something is damaged. Errors, such as an archive that is in use, have status 1.
const DAMAGED: u8 = 2;

/// Check the archive and the stored blocks, or a backup, for damage
///
/// Reads everything in use and compares it with its checksums. The gateway does the same for what it reads, and reports
/// damage as errors of single calls. Run this command after a disk fault, or after copying an archive. No other process may
/// have the files open. The exit status is 2 if something is damaged; what is lost is shown.
#[derive(Debug, Args)]
pub(super) struct VerifyArguments {
    /// Directory of the archive and the stored blocks, or folder of a backup
    #[arg(long, value_name = "DIRECTORY", default_value = "chaingate-data", env = "CHAINGATE_DATA_DIR")]
    data_dir: PathBuf,
    /// Remove damaged blocks from the stored blocks; the gateway fetches them again
    #[arg(long)]
    repair: bool,
}

pub(super) fn run(arguments: &VerifyArguments) -> Result<ExitCode, String> {
    let VerifyArguments { data_dir, repair } = arguments;
    if data_dir.join(MANIFEST_FILE).exists() {
        return verify_backup(data_dir);
    }
    let (has_archive, has_blocks) =
        (data_dir.join(ARCHIVE_FILE).exists(), data_dir.join(BLOCKS_FILE).exists());
    if !has_archive && !has_blocks {
        return Err(OpenError::Missing(data_dir.join(ARCHIVE_FILE)).to_string());
    }
    let mut is_sound = true;
    if has_archive {
        is_sound &= verify_archive(data_dir)?;
    }
    if has_blocks {
        is_sound &= verify_blocks(data_dir, *repair)?;
    }
    Ok(if is_sound { ExitCode::SUCCESS } else { ExitCode::from(DAMAGED) })
}

/// Opening the files of a backup would change them.
fn verify_backup(folder: &Path) -> Result<ExitCode, String> {
    let mut display = StepDisplay::new("verify")?;
    let checked = check_backup(folder, &mut |step, done, total| display.show(step, done, total));
    drop(display);
    match checked {
        Ok(_) => {
            say("the backup is not damaged");
            Ok(ExitCode::SUCCESS)
        }
        Err(damage) => {
            say(&damage);
            Ok(ExitCode::from(DAMAGED))
        }
    }
}

fn verify_archive(data_dir: &Path) -> Result<bool, String> {
    let found = with_progress(ARCHIVE_FILE, |report| Archive::find_damage(data_dir, report));
    let verified = match found {
        // Pages that no row needs, and writes that the disk has dropped as a whole.
        Ok(damage) if damage.is_empty() => Archive::verify(data_dir),
        Ok(damage) => {
            let archive = Archive::open(data_dir).ok();
            let lines = damage.iter().map(|range| shown(range, &range.effect_on_archive(archive.as_ref())));
            say(&format!(
                "the archive is damaged. It cannot answer about:\n{}All other calls are answered. Restore a backup, or import again.",
                lines.collect::<String>()
            ));
            return Ok(false);
        }
        Err(cause) => Err(cause),
    };
    match verified {
        Ok(head) => {
            say(&format!("the archive is not damaged; its head is block {head}"));
            Ok(true)
        }
        Err(damaged @ OpenError::Damaged(_)) => {
            say(&damaged.to_string());
            Ok(false)
        }
        Err(cause) => Err(cause.to_string()),
    }
}

fn verify_blocks(data_dir: &Path, repair: bool) -> Result<bool, String> {
    let found = with_progress(BLOCKS_FILE, |report| BlocksFile::find_damage(data_dir, report));
    let verified = match found {
        Ok(damage) if damage.is_empty() => BlocksFile::verify(data_dir),
        Ok(damage) => return report_blocks(data_dir, &damage, repair),
        Err(cause) => Err(cause),
    };
    match verified {
        Ok(()) => {
            say("the stored blocks are not damaged");
            Ok(true)
        }
        Err(damaged @ BlocksFileOpenError::Damaged(_)) => {
            say(&damaged.to_string());
            Ok(false)
        }
        Err(cause) => Err(cause.to_string()),
    }
}

/// Shows damaged blocks, and removes them if that is wanted.
fn report_blocks(data_dir: &Path, damage: &[DamagedRange], repair: bool) -> Result<bool, String> {
    let lines = damage.iter().map(|range| shown(range, &range.effect_on_stored_blocks()));
    say(&format!(
        "the stored blocks are damaged. These cannot be read:\n{}",
        lines.collect::<String>().trim_end()
    ));
    if !repair {
        say("run the command with --repair to remove damaged blocks; the gateway fetches them again");
        return Ok(false);
    }
    let repaired = with_progress("repair", |report| BlocksFile::remove_damage(data_dir, report));
    let repaired = repaired.map_err(|cause| cause.to_string())?;
    let (kept, removed) = (counted(repaired.kept, "stored block"), counted(repaired.removed, "damaged one"));
    say(&format!("repaired: {kept} stay, {removed} will be fetched again"));
    Ok(true)
}

/// Shows how far a check is.
fn with_progress<T>(what: &str, work: impl FnOnce(&mut dyn FnMut(CopyProgress)) -> T) -> T {
    // Without messages, the result is still known.
    let mut display = StepDisplay::new("verify").ok();
    work(&mut |CopyProgress { rows, rows_total }| {
        if let Some(display) = &mut display {
            display.show(what, rows, rows_total);
        }
    })
}

fn shown(range: &DamagedRange, effect: &str) -> String {
    format!("  {effect} (table {})\n", range.table)
}
