//! `chaingate verify`: whether the archive on disk is what was once written.

use super::say;
use archive::Archive;
use clap::Args;
use std::path::PathBuf;

/// Read the whole archive and compare everything in use with its checksums
///
/// At run time this is done with whatever is read, and damage is an error of the calls that meet it. Run this to know
/// beforehand: after a disk fault, or before you trust a copied file. The archive must not be in use.
#[derive(Debug, Args)]
pub(super) struct Arguments {
    /// Directory of the archive
    #[arg(long, value_name = "DIRECTORY", default_value = "chaingate-data", env = "CHAINGATE_DATA_DIR")]
    data_dir: PathBuf,
}

pub(super) fn run(arguments: &Arguments) -> Result<(), String> {
    let head = Archive::verify(&arguments.data_dir).map_err(|cause| cause.to_string())?;
    say(&format!("the archive is sound; its head is block {head}"));
    Ok(())
}
