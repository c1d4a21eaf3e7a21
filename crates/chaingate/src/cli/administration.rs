//! The parts that all commands about accounts and keys share: their options, the way to the running gateway or to the store, and
//! their output.
//!
//! Every command makes requests of the admin API. A running gateway gets them over its operator listener; if none runs, this
//! process answers them itself, on the store of the configuration.

mod client; // requests to a running gateway
mod connection; // to a running gateway or to the store
mod output; // JSON or text
mod table; // tables for people

use std::path::PathBuf;

use clap::Args;

pub(super) use connection::{AdminConnection, command_line_actor, path};
pub(super) use output::{CommandOutput, utc_text, write};
pub(super) use table::Table;

use super::ConfigOptions;
use crate::config::Config;

/// Options of all commands about accounts and keys.
#[derive(Debug, Args)]
pub(super) struct AdministrationOptions {
    /// Configuration file of the gateway
    #[arg(long, global = true, value_name = "FILE", env = "CHAINGATE_CONFIG")]
    config: Option<PathBuf>,
    /// Data directory of the gateway
    #[arg(long, global = true, value_name = "DIR", env = "CHAINGATE_DATA_DIR")]
    data_dir: Option<PathBuf>,
    /// Print one JSON object
    #[arg(long, global = true)]
    json: bool,
}

impl AdministrationOptions {
    /// The configuration of the gateway.
    pub(super) fn config(&self) -> Result<Config, String> {
        let (config, data_dir) = (self.config.clone(), self.data_dir.clone());
        let options = ConfigOptions { config, data_dir, listen: None, operator: None, console: None };
        Ok(options.parse()?.0)
    }

    /// Whether the result is printed as JSON.
    pub(super) fn is_json(&self) -> bool {
        self.json
    }

    /// Finds the running gateway of the data directory, or opens the store.
    pub(super) fn connect(&self) -> Result<(AdminConnection, CommandOutput), String> {
        let config = self.config()?;
        let output = CommandOutput::new(&config, self.json);
        Ok((AdminConnection::open(&config)?, output))
    }
}
