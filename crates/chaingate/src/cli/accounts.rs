//! `chaingate accounts`: creates, lists, suspends and changes accounts.

use clap::{Args, Subcommand};
use console::{AccountDocument, AccountListDocument, AuditListDocument};
use serde_json::{Value, json};

use super::administration::{AdminConnection, AdministrationOptions, CommandOutput, Table, path, utc_text};

/// Create, list, suspend and change accounts
///
/// An account has a plan, which limits its credits, and keys, which callers put into the path of the URL. Changes go
/// through the running gateway of the data directory, or directly into the store if none runs. Either way they take effect
/// within a second.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  chaingate accounts create --name acme --plan core
  chaingate keys create --account acme --name backend
  chaingate accounts list
  chaingate accounts suspend acme
  chaingate accounts plan acme --plan team --json")]
pub(super) struct AccountsArguments {
    #[command(subcommand)]
    command: AccountsCommand,
    #[command(flatten)]
    options: AdministrationOptions,
}

#[derive(Debug, Subcommand)]
enum AccountsCommand {
    /// Create an account
    Create {
        /// Name of the account, unique in the store
        #[arg(long, value_name = "NAME")]
        name: String,
        /// Plan of the configuration
        #[arg(long, value_name = "PLAN")]
        plan: String,
    },
    /// List the accounts
    List,
    /// Refuse all calls of an account, until it is resumed
    Suspend {
        #[command(flatten)]
        account: AccountArgument,
    },
    /// Accept the calls of a suspended account again
    Resume {
        #[command(flatten)]
        account: AccountArgument,
    },
    /// Change the plan of an account
    Plan {
        #[command(flatten)]
        account: AccountArgument,
        /// Plan of the configuration
        #[arg(long, value_name = "PLAN")]
        plan: String,
    },
    /// Show who changed what, newest first
    Audit {
        /// Number of entries
        #[arg(long, value_name = "NUMBER", default_value_t = 50)]
        limit: u32,
    },
}

/// The name of an account, with or without `--account`.
#[derive(Debug, Args)]
#[group(required = true, multiple = false)]
struct AccountArgument {
    /// Name of the account
    #[arg(value_name = "ACCOUNT")]
    account: Option<String>,
    /// The same as an option
    #[arg(long = "account", visible_alias = "name", value_name = "ACCOUNT", hide = true)]
    named: Option<String>,
}

impl AccountArgument {
    fn name(&self) -> &str {
        self.account.as_ref().or(self.named.as_ref()).map_or("", String::as_str)
    }
}

pub(super) fn run(AccountsArguments { command, options }: AccountsArguments) -> Result<(), String> {
    match command {
        AccountsCommand::Create { name, plan } => {
            let body = json!({ "name": name, "plan": plan });
            change(&options, |gateway| gateway.post("/admin/v1/accounts", &body), "created")
        }
        AccountsCommand::List => list(&options),
        AccountsCommand::Suspend { account } => {
            let path = path(&["accounts", account.name(), "suspend"]);
            change(&options, |gateway| gateway.post(&path, &json!({})), "suspended")
        }
        AccountsCommand::Resume { account } => {
            let path = path(&["accounts", account.name(), "resume"]);
            change(&options, |gateway| gateway.post(&path, &json!({})), "resumed")
        }
        AccountsCommand::Plan { account, plan } => {
            let (path, body) = (path(&["accounts", account.name(), "plan"]), json!({ "plan": plan }));
            change(&options, |gateway| gateway.put(&path, &body), "changed")
        }
        AccountsCommand::Audit { limit } => audit(&options, limit),
    }
}

/// Makes a change that returns the account, and says what was done.
fn change(
    options: &AdministrationOptions,
    send: impl FnOnce(&AdminConnection) -> Result<Value, String>,
    done: &str,
) -> Result<(), String> {
    let (connection, output) = options.connect()?;
    let reply = send(&connection)?;
    output.print(&reply, |account: AccountDocument| {
        format!("account {} {done}: plan {}, {}\n", account.name, account.plan, account.status)
    })
}

fn list(options: &AdministrationOptions) -> Result<(), String> {
    let (connection, output) = options.connect()?;
    let reply = connection.get_all("/admin/v1/accounts", "accounts")?;
    output.print(&reply, |list: AccountListDocument| {
        let mut table = Table::new(&["ACCOUNT", "PLAN", "STATUS", "CREATED"]);
        for account in &list.accounts {
            table.row([
                account.name.clone(),
                account.plan.clone(),
                account.status.clone(),
                utc_text(account.created_at),
            ]);
        }
        table.text_or("no accounts; create one with: chaingate accounts create --name NAME --plan PLAN")
    })
}

fn audit(options: &AdministrationOptions, limit: u32) -> Result<(), String> {
    let (connection, output): (_, CommandOutput) = options.connect()?;
    let reply = connection.get(&format!("/admin/v1/audit?limit={limit}"))?;
    output.print(&reply, |list: AuditListDocument| {
        let mut table = Table::new(&["TIME (UTC)", "ACTION", "SUBJECT", "BY", "DETAILS"]);
        for entry in &list.entries {
            table.row([
                utc_text(entry.at),
                entry.action.clone(),
                entry.subject.clone(),
                entry.actor.clone(),
                entry.details.to_string(),
            ]);
        }
        table.text_or("no changes yet")
    })
}
