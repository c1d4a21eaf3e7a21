//! `chaingate keys`: creates, imports, lists, rotates, revokes and restricts keys, and shows what they have used.

mod import; // chaingate keys import
mod restrictions; // options that restrict a key
mod selection; // which key is meant
mod usage; // chaingate keys usage

use std::io::{BufRead, BufReader, Read, stdin};
use std::path::{Path, PathBuf};

use callers::ConfiguredKey;
use clap::{Args, Subcommand};
use console::{KeyDocument, KeyListDocument, LocalRevocationDocument, NewKeyDocument};
use resources::counted;
use restrictions::{AllowOptions, CredentialOptions, ExpiryOptions, LimitOptions};
use selection::KeyArgument;
use serde_json::{Map, Value, json};
use usage::UsageArguments;

use super::administration::{
    AdminConnection, AdministrationOptions, CommandOutput, Table, path, utc_text, write,
};

/// Create, import, list, rotate, revoke, restrict and hash API keys, and show their usage
///
/// Callers put a key into the path of the URL. A key is shown once, when it is created or rotated; the store has only a
/// keyed hash of it. Other commands name a key by its id, or by its account and its name. Changes take effect within a
/// second.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  chaingate keys create --account acme --name backend
  chaingate keys import keys.csv --dry-run
  chaingate keys list --account acme
  chaingate keys rotate k_0123456789ab --overlap-hours 24
  chaingate keys revoke --account acme --name backend
  chaingate keys revoke k_0123456789ab --local
  chaingate keys allow k_0123456789ab --methods eth_call,eth_getLogs --origins https://app.example.com
  chaingate keys allow k_0123456789ab --any methods
  chaingate keys limits k_0123456789ab --credits-per-second 100 --credits-per-day 0
  chaingate keys usage --account acme --since 7d
  openssl rand -hex 24 | tee new-key | chaingate keys hash")]
pub(super) struct KeysArguments {
    #[command(subcommand)]
    command: KeysCommand,
    #[command(flatten)]
    options: AdministrationOptions,
}

#[derive(Debug, Subcommand)]
enum KeysCommand {
    /// Create a key and show it once
    Create(Box<CreateKeyArguments>),
    Import(import::ImportKeysArguments),
    /// List the keys of an account
    List {
        /// Name of the account
        #[arg(long, value_name = "ACCOUNT")]
        account: String,
    },
    /// Replace a key by a new one with the same settings; the old one stays valid for a while
    Rotate {
        #[command(flatten)]
        key: KeyArgument,
        /// Hours for which the old key stays valid
        #[arg(long, value_name = "HOURS", default_value_t = 24)]
        overlap_hours: u64,
        /// Seconds for which the old key stays valid, instead of hours
        #[arg(long, value_name = "SECONDS", conflicts_with = "overlap_hours")]
        overlap_seconds: Option<u64>,
        /// File with the secret of the new key, required if the old key has a secret
        #[arg(long, value_name = "FILE")]
        secret_file: Option<PathBuf>,
    },
    /// Refuse a key from now on, for ever
    Revoke {
        #[command(flatten)]
        key: KeyArgument,
        /// Refuse the key on this gateway only, at once and also while the store cannot be reached; the store gets the revocation
        /// when it is back
        #[arg(long)]
        local: bool,
    },
    /// Change the name of a key
    Rename {
        #[command(flatten)]
        key: KeyArgument,
        /// New name
        #[arg(long, value_name = "NAME")]
        to: String,
    },
    /// Restrict what a key may be used for, and what callers must send with it
    ///
    /// Lists replace the lists that the key has; `--any LIST` removes one.
    Allow(Box<AllowKeyArguments>),
    /// Limit the credits of a key, within the limits of its account
    Limits {
        #[command(flatten)]
        key: KeyArgument,
        #[command(flatten)]
        limits: LimitOptions,
    },
    Usage(Box<UsageArguments>),
    /// Print the hash of a key, which `[[key]]` takes as `key_hash`, in the place of the key
    ///
    /// The key is the first line of standard input, because other users can see the arguments of a command.
    Hash,
}

#[derive(Debug, Args)]
struct CreateKeyArguments {
    /// Name of the account
    #[arg(long, value_name = "ACCOUNT")]
    account: String,
    /// Name of the key, for people
    #[arg(long, value_name = "NAME")]
    name: String,
    #[command(flatten)]
    expiry: ExpiryOptions,
    #[command(flatten)]
    allow: AllowOptions,
    #[command(flatten)]
    credentials: CredentialOptions,
    #[command(flatten)]
    limits: LimitOptions,
}

#[derive(Debug, Args)]
struct AllowKeyArguments {
    #[command(flatten)]
    key: KeyArgument,
    #[command(flatten)]
    allow: AllowOptions,
    #[command(flatten)]
    credentials: CredentialOptions,
}

pub(super) fn run(KeysArguments { command, options }: KeysArguments) -> Result<(), String> {
    match command {
        KeysCommand::Create(arguments) => create(&options, *arguments),
        KeysCommand::Import(arguments) => import::run(&options, &arguments),
        KeysCommand::List { account } => list(&options, &account),
        KeysCommand::Rotate { key, overlap_hours, overlap_seconds, secret_file } => {
            let overlap_s = overlap_seconds.unwrap_or(overlap_hours.saturating_mul(3_600));
            rotate(&options, &key, overlap_s, secret_file.as_deref())
        }
        KeysCommand::Revoke { key, local: true } => revoke_here(&options, &key),
        KeysCommand::Revoke { key, local: false } => change(&options, &key, "revoked", |gateway, id| {
            gateway.post(&path(&["keys", id, "revoke"]), &json!({}))
        }),
        KeysCommand::Rename { key, to } => {
            let body = json!({ "name": to });
            change(&options, &key, "renamed", |gateway, id| gateway.put(&path(&["keys", id, "name"]), &body))
        }
        KeysCommand::Allow(arguments) => {
            let AllowKeyArguments { key, allow, credentials } = *arguments;
            let mut settings = Map::new();
            allow.write(&mut settings);
            credentials.write(&mut settings)?;
            set(&options, &key, settings)
        }
        KeysCommand::Limits { key, limits } => {
            let mut settings = Map::new();
            limits.write(&mut settings);
            set(&options, &key, settings)
        }
        KeysCommand::Usage(arguments) => usage::run(&options, *arguments),
        KeysCommand::Hash => hash(),
    }
}

/// Bytes of standard input that are read for a key: more than it may have, so that one that is too long is found.
const KEY_INPUT_BYTES_MAX: u64 = 4_096;

fn hash() -> Result<(), String> {
    let mut line = String::new();
    let read = BufReader::new(stdin().lock().take(KEY_INPUT_BYTES_MAX)).read_line(&mut line);
    read.map_err(|error| format!("cannot read the key from standard input: {error}"))?;
    let hash = ConfiguredKey::hash_text(line.trim_end_matches(['\r', '\n']));
    let hash = hash.map_err(|wrong| format!("the key on standard input {wrong}"))?;
    write(&format!("key_hash = \"{hash}\"\n"))
}

fn create(options: &AdministrationOptions, arguments: CreateKeyArguments) -> Result<(), String> {
    let CreateKeyArguments { account, name, expiry, allow, credentials, limits } = arguments;
    let mut settings = Map::new();
    allow.write(&mut settings);
    credentials.write(&mut settings)?;
    limits.write(&mut settings);
    let body = json!({ "name": name, "expires_at": expiry.expires_at(), "settings": settings });
    let (connection, output) = options.connect()?;
    let reply = connection.post(&path(&["accounts", &account, "keys"]), &body)?;
    output.print(&reply, |new: NewKeyDocument| new_key_text(&new, &output, ""))
}

fn rotate(
    options: &AdministrationOptions,
    key: &KeyArgument,
    overlap_s: u64,
    secret_file: Option<&Path>,
) -> Result<(), String> {
    let secret = secret_file.map(restrictions::read_secret).transpose()?;
    let (connection, output) = options.connect()?;
    let id = key.find(&connection)?;
    let body = json!({ "overlap_seconds": overlap_s, "secret": secret });
    let reply = connection.post(&path(&["keys", &id, "rotate"]), &body)?;
    output.print(&reply, |new: NewKeyDocument| {
        let until = match overlap_s {
            0 => format!("The old key {id} is no longer valid.\n\n"),
            _ => format!("The old key {id} stays valid for {}.\n\n", counted(overlap_s, "second")),
        };
        new_key_text(&new, &output, &until)
    })
}

fn new_key_text(new: &NewKeyDocument, output: &CommandOutput, note: &str) -> String {
    let NewKeyDocument { key, details } = new;
    let (id, account, name, curl) = (&details.id, &details.account, &details.name, output.curl_line(key));
    format!(
        "Key \"{name}\" of account {account}. It is shown only now, so store it:\n\n  {key}\n\n\
         id {id} names it in other commands.\n\n{note}Try it:\n\n  {curl}\n"
    )
}

fn set(
    options: &AdministrationOptions,
    key: &KeyArgument,
    settings: Map<String, Value>,
) -> Result<(), String> {
    if settings.is_empty() {
        return Err("nothing to change; see --help".to_owned());
    }
    let body = Value::Object(settings);
    change(options, key, "changed", |gateway, id| gateway.patch(&path(&["keys", id, "settings"]), &body))
}

/// Makes a change that returns the key, and says what was done.
fn change(
    options: &AdministrationOptions,
    key: &KeyArgument,
    done: &str,
    send: impl FnOnce(&AdminConnection, &str) -> Result<Value, String>,
) -> Result<(), String> {
    let (connection, output) = options.connect()?;
    let id = key.find(&connection)?;
    let reply = send(&connection, &id)?;
    output.print(&reply, |key: KeyDocument| {
        format!("key {} (\"{}\" of account {}) {done}\n", key.id, key.name, key.account)
    })
}

/// Revokes a key on the gateway of the data directory alone.
fn revoke_here(options: &AdministrationOptions, key: &KeyArgument) -> Result<(), String> {
    let (connection, output) = options.connect()?;
    let reply = connection.post("/admin/v1/local-revocations", &key.unresolved())?;
    output.print(&reply, |revoked: LocalRevocationDocument| {
        format!(
            "key {} is refused on this gateway; revoke it on the others, too, until the store has the revocation\n",
            revoked.id
        )
    })
}

fn list(options: &AdministrationOptions, account: &str) -> Result<(), String> {
    let (connection, output) = options.connect()?;
    let reply = connection.get_all(&path(&["accounts", account, "keys"]), "keys")?;
    output.print(&reply, |list: KeyListDocument| {
        let mut table =
            Table::new(&["ID", "NAME", "KEY", "STATUS", "CREATED", "LAST USED", "EXPIRES", "SETTINGS"]);
        let time = |seconds: Option<i64>| seconds.map_or_else(|| "never".to_owned(), utc_text);
        for key in list.keys {
            let settings = serde_json::to_value(&key.settings).unwrap_or_default();
            table.row([
                key.id,
                key.name,
                format!("{}…", key.prefix),
                key.status,
                utc_text(key.created_at),
                time(key.last_used_at),
                time(key.expires_at),
                settings_text(&settings),
            ]);
        }
        table.text_or("no keys; create one with: chaingate keys create --account ACCOUNT --name NAME")
    })
}

/// The names of the settings that a key has, with their values where these are short.
fn settings_text(settings: &Value) -> String {
    let Some(settings) = settings.as_object() else { return String::new() };
    let shown = settings.iter().filter(|(_, value)| !value.is_null() && **value != Value::Bool(false));
    let text = |(name, value): (&String, &Value)| match value {
        Value::Number(number) => format!("{name}={number}"),
        Value::Array(list) => format!("{name}({})", list.len()),
        _ => name.clone(),
    };
    shown.map(text).collect::<Vec<_>>().join(" ")
}
