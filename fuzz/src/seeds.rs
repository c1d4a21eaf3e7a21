//! Writes a first corpus for a target: `seeds TARGET FOLDER`.

use chaingate_fuzz::make::Maker;
use std::path::Path;

/// Enough that every kind of call is among them.
const SEEDS: u64 = 500;

fn main() -> std::io::Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [target, folder] = &arguments[..] else { return Err(std::io::Error::other("seeds TARGET FOLDER")) };
    std::fs::create_dir_all(folder)?;
    for number in 0..SEEDS {
        let mut maker = Maker::new(number);
        let seed = if target == "evm" { maker.program() } else { maker.body() };
        std::fs::write(Path::new(folder).join(format!("seed-{number}")), seed)?;
    }
    Ok(())
}
