//! `chaingate reload`: makes the running gateway read its configuration file again.

use clap::Args;
use console::ReloadReport;
use serde_json::json;

use super::administration::{AdministrationOptions, path};

/// Make the running gateway read its configuration file again
///
/// The file is checked as a whole first: with a mistake in it nothing changes, and the mistakes are shown with their lines. Calls
/// that are in flight finish with what they began with. SIGHUP does the same.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  chaingate reload --config /etc/chaingate/chaingate.toml
  kill -HUP PID")]
pub(super) struct ReloadArguments {
    #[command(flatten)]
    options: AdministrationOptions,
}

pub(super) fn run(arguments: &ReloadArguments) -> Result<(), String> {
    let (connection, output) = arguments.options.connect()?;
    let reply = connection.post(&path(&["reload"]), &json!({}))?;
    output.print(&reply, text)
}

fn text(report: ReloadReport) -> String {
    let mut text = match report.changed.as_slice() {
        [] => "nothing has changed that a reload changes\n".to_owned(),
        changed => format!("in effect: {}\n", changed.join(", ")),
    };
    if !report.needs_restart.is_empty() {
        text.push_str(&format!("after a restart: {}\n", report.needs_restart.join(", ")));
    }
    text
}
