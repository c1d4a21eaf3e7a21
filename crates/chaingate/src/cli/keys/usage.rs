//! `chaingate keys usage`: what callers have used.

use callers::usage::{
    REPORT_ROWS_MAX, UsageDimension, UsageFormat, UsageReport, UsageReportRequest, UsageStep, UsedKey,
    flush_left_over,
};
use clap::Args;
use resources::unix_time;
use serde_json::Value;
use store::Store;

use crate::cli::administration::{AdministrationOptions, write};
use crate::cli::{new_runtime, say};
use crate::config::Config;

/// Show what callers have used
///
/// Reads the store, to which a running gateway moves its usage every second. Times are UTC.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  chaingate keys usage --account acme
  chaingate keys usage --account acme --since 7d --by time,method --step day
  chaingate keys usage --account acme --since 30d --by tag --format csv
  chaingate keys usage --since 2026-10-01 --until 2026-11-01 --by time,account,key,method,outcome --step hour --format csv")]
pub(super) struct UsageArguments {
    /// Name of the account; without it, all accounts
    #[arg(long, value_name = "ACCOUNT")]
    account: Option<String>,
    /// Id of a key
    #[arg(long, value_name = "ID")]
    key: Option<String>,
    /// Name of a network
    #[arg(long, value_name = "NETWORK")]
    network: Option<String>,
    /// Tag of the calls
    #[arg(long, value_name = "TAG")]
    tag: Option<String>,
    /// Start: 2026-11-17, 2026-11-17T13:00Z, or how long ago, such as 30m, 24h or 7d; without it, today
    #[arg(long, value_name = "TIME")]
    since: Option<String>,
    /// End, in the same forms; without it, now
    #[arg(long, value_name = "TIME")]
    until: Option<String>,
    /// Dimensions to sum up by: time, network, account, key, method, outcome, tag; without it, key,method,outcome, and key of a tag
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = dimension)]
    by: Option<Vec<UsageDimension>>,
    /// Step of the time: minute, hour, day
    #[arg(long, value_name = "STEP", value_parser = step)]
    step: Option<UsageStep>,
    /// Format: table, csv, jsonl
    #[arg(long, value_name = "FORMAT", default_value = "table", value_parser = format, conflicts_with = "json")]
    format: UsageFormat,
}

fn dimension(text: &str) -> Result<UsageDimension, String> {
    UsageDimension::named(text)
        .ok_or("must be time, network, account, key, method, outcome or tag".to_owned())
}

fn step(text: &str) -> Result<UsageStep, String> {
    UsageStep::named(text).ok_or("must be minute, hour or day".to_owned())
}

fn format(text: &str) -> Result<UsageFormat, String> {
    UsageFormat::named(text).ok_or("must be table, csv or jsonl".to_owned())
}

pub(super) fn run(options: &AdministrationOptions, arguments: UsageArguments) -> Result<(), String> {
    let UsageArguments { account, key, network, tag, since, until, by, step, format } = arguments;
    let by = match by {
        Some(by) => by.into_iter().collect(),
        None => UsageReportRequest::usual_dimensions(tag.as_deref()),
    };
    let (after, rows_max) = (UsedKey::default(), None);
    let mut request =
        UsageReportRequest { account, key, network, tag, since, until, by, step, after, rows_max };
    let config = options.config()?;
    let runtime = new_runtime()?;
    let store = Store::new(config.store_location());
    let mut is_first = true;
    loop {
        let report = runtime.block_on(read(&store, &config, &request, is_first))?;
        let is_whole = is_first && report.next.is_none();
        let text = match (options.is_json(), format) {
            (false, UsageFormat::Csv | UsageFormat::JsonLines) => report.text_of_page(format, is_first),
            _ if !is_whole => {
                let message = "choose --format csv or jsonl, a shorter time or a larger step";
                return Err(format!("more than {REPORT_ROWS_MAX} rows; {message}"));
            }
            (true, _) => {
                let mut object = report.json();
                object["account"] = request.account.clone().map_or(Value::Null, Value::String);
                format!("{object}\n")
            }
            (false, UsageFormat::Table) => report.text(format),
        };
        write(&text)?;
        let Some(next) = report.next else { break };
        (request.after, is_first) = (next, false);
    }
    runtime.block_on(store.close());
    Ok(())
}

/// Reads one page. What earlier processes have left over is moved to the store before the first one.
async fn read(
    store: &Store,
    config: &Config,
    request: &UsageReportRequest,
    is_first: bool,
) -> Result<UsageReport, String> {
    let now = unix_time().as_secs();
    if is_first {
        let failures = flush_left_over(store, &config.data_dir, now).await;
        for failure in failures.map_err(|error| error.to_string())? {
            say(&format!("warning: {failure}"));
        }
    }
    UsageReport::read(store, &config.usage, request, now).await.map_err(|error| error.to_string())
}
