//! `chaingate verify`: compares the archive on disk with its checksums.

use super::say;
use archive::Archive;
use clap::Args;
use std::path::PathBuf;

/// Check the whole archive for damage
///
/// Reads everything in use and compares it with its checksums. The gateway does the same for what it reads, and reports
/// damage as errors of single calls. Run this command after a disk fault, or after copying an archive. No other process may
/// have the archive open.
#[derive(Debug, Args)]
pub(super) struct VerifyArguments {
    /// Directory of the archive
    #[arg(long, value_name = "DIRECTORY", default_value = "chaingate-data", env = "CHAINGATE_DATA_DIR")]
    data_dir: PathBuf,
}

pub(super) fn run(arguments: &VerifyArguments) -> Result<(), String> {
    let head = Archive::verify(&arguments.data_dir).map_err(|cause| cause.to_string())?;
    say(&format!("the archive is not damaged; its head is block {head}"));
    Ok(())
}
