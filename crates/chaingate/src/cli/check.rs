//! `chaingate check`: reports the errors of a configuration without starting the gateway.

use super::{ConfigOptions, console_server, say};
use crate::source::{self, ArchiveCheck};

pub(super) fn run(settings: ConfigOptions) -> Result<(), String> {
    let config = settings.load()?;
    if let Some(why) = config.listen.unusable_address().or_else(|| console_server::unusable_address(&config))
    {
        return Err(why);
    }
    match source::check(&config)? {
        ArchiveCheck::Ok => say("configuration OK"),
        ArchiveCheck::InUse(why) => say(&format!("configuration OK; the archive was not checked: {why}")),
    }
    Ok(())
}
