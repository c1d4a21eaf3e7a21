//! `chaingate console`: makes the links with which people get access to the console and prints them, and blocks users.

use std::sync::Arc;

use callers::people::{Invitation, InvitationTarget, NewLink, People, PeopleError, SignUp};
use clap::{Args, Subcommand};
use resources::Supervisor;
use serde_json::json;

use super::administration::{AdministrationOptions, command_line_actor, utc_text, write};
use super::new_runtime;
use crate::config::Config;

/// Let people into the console, or keep them out: sign-in link, invitation, reset link, block, unblock
///
/// Each link works once. It is printed once and only its hash is stored, so copy it now and send it to the right person.
/// The commands change the store directly and work whether the gateway runs or not.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  chaingate console sign-in-link
  chaingate console invite --account acme --email ada@example.com
  chaingate console invite --plan developer
  chaingate console reset --email ada@example.com
  chaingate console block --email ada@example.com")]
pub(super) struct ConsoleArguments {
    #[command(subcommand)]
    command: ConsoleCommand,
    #[command(flatten)]
    options: AdministrationOptions,
}

#[derive(Debug, Subcommand)]
enum ConsoleCommand {
    /// Make a link that makes an operator of whoever opens it (24 hours)
    SignInLink,
    /// Make an invitation for a developer (7 days)
    Invite {
        #[command(flatten)]
        target: InvitationOptions,
        /// The only email address that may use it
        #[arg(long, value_name = "EMAIL")]
        email: Option<String>,
    },
    /// Make a link with which a user chooses a new password (24 hours)
    Reset {
        #[command(flatten)]
        user: UserOptions,
    },
    /// Keep a user out of the console and end their sessions; keys go on working
    Block {
        #[command(flatten)]
        user: UserOptions,
    },
    /// Let a blocked user sign in again
    Unblock {
        #[command(flatten)]
        user: UserOptions,
    },
}

/// Which user a command is about.
#[derive(Debug, Args)]
struct UserOptions {
    /// Email address of the user
    #[arg(long, value_name = "EMAIL")]
    email: String,
}

/// The account that an invitation leads to.
#[derive(Debug, Args)]
#[group(required = true, multiple = false)]
struct InvitationOptions {
    /// Account that the person joins
    #[arg(long, value_name = "ACCOUNT")]
    account: Option<String>,
    /// Plan of a new account, whose name the person chooses
    #[arg(long, value_name = "PLAN")]
    plan: Option<String>,
}

impl InvitationOptions {
    fn target(self) -> InvitationTarget {
        match (self.account, self.plan) {
            (Some(account), _) => InvitationTarget::Account(account),
            (None, plan) => InvitationTarget::NewAccount { plan: plan.unwrap_or_default() },
        }
    }
}

pub(super) fn run(ConsoleArguments { command, options }: ConsoleArguments) -> Result<(), String> {
    match command {
        ConsoleCommand::SignInLink => {
            print_link(&options, async |people, actor| people.create_operator_link(actor).await)
        }
        ConsoleCommand::Invite { target, email } => {
            let invitation = Invitation { email, target: target.target() };
            print_link(&options, async |people, actor| people.create_invitation(actor, &invitation).await)
        }
        ConsoleCommand::Reset { user: UserOptions { email } } => {
            print_link(&options, async |people, actor| people.create_reset_link(actor, &email).await)
        }
        ConsoleCommand::Block { user: UserOptions { email } } => {
            change_user(&options, &email, "blocked", async |people, actor| {
                people.block_user(actor, &email).await
            })
        }
        ConsoleCommand::Unblock { user: UserOptions { email } } => {
            change_user(&options, &email, "active", async |people, actor| {
                people.unblock_user(actor, &email).await
            })
        }
    }
}

/// The path of a link for the first operator; `None` if there is an operator already.
pub(super) fn first_operator_link(config: &Config) -> Result<Option<String>, String> {
    let link = with_people(config, async |people| match people.has_operator().await? {
        true => Ok(None),
        false => people.create_operator_link("terminal").await.map(Some),
    });
    Ok(link?.map(|link| link.path()))
}

fn print_link(
    options: &AdministrationOptions,
    make: impl AsyncFnOnce(&People, &str) -> Result<NewLink, PeopleError>,
) -> Result<(), String> {
    let config = options.config()?;
    let url = config.console_url().ok_or("the console is off; set `console` in the section [listen]")?;
    let actor = command_line_actor();
    let link = with_people(&config, async |people| make(people, &actor).await)?;
    let url = format!("{url}{}", link.path());
    let text = match options.is_json() {
        true => format!("{}\n", json!({ "url": url, "expires_at": link.expires_at })),
        false => format!("{url}\nworks once, until {} UTC\n", utc_text(link.expires_at)),
    };
    write(&text)
}

/// Changes the status of a user, and prints the new one.
fn change_user(
    options: &AdministrationOptions,
    email: &str,
    status: &str,
    change: impl AsyncFnOnce(&People, &str) -> Result<(), PeopleError>,
) -> Result<(), String> {
    let actor = command_line_actor();
    with_people(&options.config()?, async |people| change(people, &actor).await)?;
    let text = match options.is_json() {
        true => format!("{}\n", json!({ "email": email, "status": status })),
        false => format!("user {email} is {status}\n"),
    };
    write(&text)
}

fn with_people<T>(
    config: &Config,
    work: impl AsyncFnOnce(&People) -> Result<T, PeopleError>,
) -> Result<T, String> {
    let runtime = new_runtime()?;
    let people = People::new(Arc::new(config.administration()), SignUp::Invitation, Supervisor::default());
    runtime.block_on(work(&people)).map_err(|error| error.to_string())
}
