//! `chaingate docs`: writes the generated documents.

use std::fs;
use std::path::{Path, PathBuf};

use clap::Args;

use crate::docs::documents;

#[derive(Debug, Args)]
pub(super) struct DocsArguments {
    /// Directory to write them to
    #[arg(long, value_name = "DIR")]
    out: PathBuf,
}

pub(super) fn run(arguments: &DocsArguments) -> Result<(), String> {
    let say = |path: &Path, error: std::io::Error| format!("{}: {error}", path.display());
    fs::create_dir_all(&arguments.out).map_err(|error| say(&arguments.out, error))?;
    for (name, text) in documents()? {
        let path = arguments.out.join(name);
        fs::write(&path, text).map_err(|error| say(&path, error))?;
    }
    Ok(())
}
