//! Writes the generated documents.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Parser;

/// Writes the documents that are generated from the tables in the source
#[derive(Debug, Parser)]
struct Arguments {
    /// Directory to write them to
    #[arg(long, value_name = "DIR", default_value = "docs")]
    out: PathBuf,
}

fn main() -> Result<ExitCode, String> {
    let out = Arguments::parse().out;
    let say = |path: &Path, error: std::io::Error| format!("{}: {error}", path.display());
    fs::create_dir_all(&out).map_err(|error| say(&out, error))?;
    for (name, text) in docs::documents()? {
        let path = out.join(name);
        fs::write(&path, text).map_err(|error| say(&path, error))?;
    }
    Ok(ExitCode::SUCCESS)
}
