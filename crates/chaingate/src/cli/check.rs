//! `chaingate check`: reports the errors of a configuration without starting the gateway, and with `--probe` asks everything that it
//! names.

mod probe; // what nodes, partners, the store and Redis say

use ::console::SignUpMode;
use clap::Args;
use resources::unix_seconds;

use super::certificate::CertificateExpiry;
use super::{ConfigOptions, console_server, say};
use crate::config::Config;
use crate::source::{self, ArchiveCheck};

/// Check a configuration without starting the gateway
#[derive(Debug, Args)]
pub(super) struct CheckArguments {
    /// Ask every node, partner, the store and Redis, too, and say what is wrong with each; nothing is changed
    #[arg(long)]
    probe: bool,
    #[command(flatten)]
    settings: ConfigOptions,
}

pub(super) fn run(arguments: CheckArguments) -> Result<(), String> {
    let (config, _) = arguments.settings.load()?;
    if let Some(why) = config.listen.unusable_address().or_else(|| console_server::unusable_address(&config))
    {
        return Err(why);
    }
    if let Some(why) = config.unnamed_network() {
        return Err(why.to_owned());
    }
    let warnings = [certificate(&config)?, keys(&config)?];
    let archive = source::check(&config)?;
    for warning in warnings.iter().flatten() {
        say(&format!("warning: {warning}"));
    }
    match archive {
        ArchiveCheck::Ok => say("configuration OK"),
        ArchiveCheck::InUse(why) => say(&format!("configuration OK; the archive was not checked: {why}")),
    }
    if arguments.probe { probe::run(&config) } else { Ok(()) }
}

/// A warning if the certificate has to be renewed soon, and an error if it has expired.
fn certificate(config: &Config) -> Result<Option<String>, String> {
    let Some(tls) = &config.listen.server.tls else { return Ok(None) };
    let expires_at = tls.expires_at().map_err(|error| error.to_string())?;
    match CertificateExpiry::new(tls, expires_at, unix_seconds()) {
        CertificateExpiry::Later => Ok(None),
        CertificateExpiry::Soon(text) => Ok(Some(text)),
        CertificateExpiry::Expired(text) => Err(text),
    }
}

/// An error if no caller can have a key. Where there is a store, it may have keys, and people may get some by themselves.
fn keys(config: &Config) -> Result<Option<String>, String> {
    let store = config.store_location();
    let creates = "chaingate accounts create --name ACCOUNT --plan PLAN, then chaingate keys create --account ACCOUNT --name KEY";
    if !config.keys.is_empty() {
        Ok(None)
    } else if !store.is_missing_file() {
        Ok(Some(format!(
            "there is no [[key]], so only keys of the store {store} are accepted; to create one: {creates}"
        )))
    } else if config.console.sign_up == SignUpMode::Open && config.console_address.preferred().is_some() {
        Ok(Some(
            "there is no key yet, so every call is refused until somebody signs up in the console".to_owned(),
        ))
    } else {
        Err(format!(
            "there is no key, so every call would be refused: add a [[key]], or create one: {creates}"
        ))
    }
}
