//! `chaingate docs`: the documents that are made from the tables.

use std::fs;
use std::path::PathBuf;

use clap::Args;

use crate::docs::documents;

#[derive(Debug, Args)]
pub(super) struct Arguments {
    /// The folder for them
    #[arg(long, value_name = "DIR")]
    out: PathBuf,
}

pub(super) fn run(arguments: &Arguments) -> Result<(), String> {
    for (name, text) in documents() {
        let path = arguments.out.join(name);
        fs::write(&path, text).map_err(|error| format!("{}: {error}", path.display()))?;
    }
    Ok(())
}
