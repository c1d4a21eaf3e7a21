//! `chaingate check`: what is wrong with a configuration, all at once.

use super::{Settings, say};

pub(super) fn run(settings: Settings) -> Result<(), String> {
    settings.load()?;
    say("the configuration is right");
    Ok(())
}
