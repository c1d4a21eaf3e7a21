//! Writes the files of `crates/demo/chain`.

use std::error::Error;
use std::path::Path;

fn main() -> Result<(), Box<dyn Error>> {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../demo/chain");
    Ok(demo_builder::build()?.write(Path::new(folder))?)
}
