//! Options that restrict a key, as fields of a request to the admin API.

use std::fs;
use std::path::{Path, PathBuf};

use callers::{KEY_FIELDS, KeyField, KeyFieldKind};
use clap::builder::PossibleValuesParser;
use clap::{Arg, ArgAction, ArgMatches, Args, Command, FromArgMatches, value_parser};
use resources::unix_time;
use serde_json::{Map, Value, json};

/// The uses of a key that are allowed, and the credentials that callers must send.
pub(super) type AllowOptions = SettingOptions<false>;

/// How many credits a key may use.
pub(super) type LimitOptions = SettingOptions<true>;

/// One option per setting of a key, except those that are read from files. `LIMITS` selects the limits or all others.
#[derive(Debug)]
pub(super) struct SettingOptions<const LIMITS: bool>(Map<String, Value>);

/// The option that removes allow-lists.
const ANY: &str = "any";

impl<const LIMITS: bool> SettingOptions<LIMITS> {
    fn fields() -> impl Iterator<Item = &'static KeyField> {
        let is_in_file = |kind| matches!(kind, KeyFieldKind::Secret | KeyFieldKind::PublicKeys);
        KEY_FIELDS
            .iter()
            .filter(move |field| !is_in_file(field.kind) && (field.kind == KeyFieldKind::Credits) == LIMITS)
    }

    pub(super) fn write(self, settings: &mut Map<String, Value>) {
        settings.extend(self.0);
    }
}

impl<const LIMITS: bool> Args for SettingOptions<LIMITS> {
    fn augment_args(command: Command) -> Command {
        let command = Self::fields().fold(command, |command, field| command.arg(option(field)));
        if LIMITS {
            return command;
        }
        let lists = KEY_FIELDS.iter().filter(|field| field.kind == KeyFieldKind::AllowList);
        let names = PossibleValuesParser::new(lists.map(|list| list.option));
        let any = Arg::new(ANY).long(ANY).value_name("LISTS").value_delimiter(',').value_parser(names);
        command.arg(
            any.action(ArgAction::Append).help("Lists to remove, so that the key may be used for anything"),
        )
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl<const LIMITS: bool> FromArgMatches for SettingOptions<LIMITS> {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let mut settings = Map::new();
        if !LIMITS {
            let removed = matches.get_many::<String>(ANY).into_iter().flatten();
            settings.extend(removed.map(|list| (list.replace('-', "_"), Value::Null)));
        }
        for field in Self::fields() {
            if let Some(value) = given(field, matches) {
                settings.insert(field.name.to_owned(), value);
            }
        }
        Ok(Self(settings))
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

fn option(field: &'static KeyField) -> Arg {
    let arg = Arg::new(field.name).long(field.option);
    match field.kind {
        KeyFieldKind::AllowList => {
            let example =
                if field.example.is_empty() { String::new() } else { format!(", such as {}", field.example) };
            let arg = arg.help(format!("{}{example}", field.description)).value_name("LIST");
            arg.value_delimiter(',').action(ArgAction::Append)
        }
        KeyFieldKind::Credits => {
            let help = format!("{}; 0 removes the limit", field.description);
            arg.help(help).value_name("CREDITS").value_parser(value_parser!(u64))
        }
        KeyFieldKind::Required | KeyFieldKind::Right => {
            arg.help(field.description).value_name("BOOLEAN").value_parser(value_parser!(bool))
        }
        KeyFieldKind::Text | KeyFieldKind::Secret | KeyFieldKind::PublicKeys => {
            arg.help(field.description).value_name("TEXT")
        }
    }
}

/// The value of an option, as the admin API has it.
fn given(field: &KeyField, matches: &ArgMatches) -> Option<Value> {
    match field.kind {
        KeyFieldKind::AllowList => {
            matches.get_many::<String>(field.name).map(|list| json!(list.collect::<Vec<_>>()))
        }
        KeyFieldKind::Credits => matches.get_one::<u64>(field.name).map(|&credits| match credits {
            0 => Value::Null,
            _ => json!(credits),
        }),
        KeyFieldKind::Required | KeyFieldKind::Right => {
            matches.get_one::<bool>(field.name).map(|required| json!(required))
        }
        KeyFieldKind::Text | KeyFieldKind::Secret | KeyFieldKind::PublicKeys => {
            matches.get_one::<String>(field.name).map(|text| json!(text))
        }
    }
}

/// Credentials that are in files, and the removal of credentials.
#[derive(Debug, Args)]
pub(super) struct CredentialOptions {
    /// File with the secret that callers send as the password of HTTP Basic
    #[arg(long, value_name = "FILE")]
    secret_file: Option<PathBuf>,
    /// Remove the secret
    #[arg(long, conflicts_with = "secret_file")]
    no_secret: bool,
    /// PEM files with public keys whose JSON Web Tokens are accepted
    #[arg(long, value_name = "FILES", value_delimiter = ',')]
    jwt_public_keys: Option<Vec<PathBuf>>,
    /// Remove the public keys and the audience
    #[arg(long, conflicts_with_all = ["jwt_public_keys", "jwt_audience"])]
    no_jwt: bool,
}

impl CredentialOptions {
    /// Explicit settings win over those that are removed with a credential.
    pub(super) fn write(self, settings: &mut Map<String, Value>) -> Result<(), String> {
        let removed_with_secret: &[_] = if self.no_secret { &["secret", "secret_required"] } else { &[] };
        let removed_with_jwt: &[_] =
            if self.no_jwt { &["jwt_public_keys", "jwt_audience", "jwt_required"] } else { &[] };
        for field in removed_with_secret.iter().chain(removed_with_jwt) {
            settings.entry(*field).or_insert(Value::Null);
        }
        if let Some(path) = &self.secret_file {
            settings.insert("secret".to_owned(), json!(read_secret(path)?));
        }
        if let Some(paths) = &self.jwt_public_keys {
            let keys = paths.iter().map(|path| read(path)).collect::<Result<Vec<_>, _>>()?;
            settings.insert("jwt_public_keys".to_owned(), json!(keys));
        }
        Ok(())
    }
}

/// The secret in a file, without the end of its line.
pub(super) fn read_secret(path: &Path) -> Result<String, String> {
    Ok(read(path)?.trim_end_matches(['\r', '\n']).to_owned())
}

fn read(path: &Path) -> Result<String, String> {
    fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))
}

/// Until when a key is valid.
#[derive(Debug, Args)]
pub(super) struct ExpiryOptions {
    /// Days after which the key is refused
    #[arg(long, value_name = "DAYS")]
    expires_in_days: Option<u64>,
    /// Time from which the key is refused, in seconds since 1970
    #[arg(long, value_name = "SECONDS", conflicts_with = "expires_in_days")]
    expires_at: Option<u64>,
}

impl ExpiryOptions {
    /// The time in seconds since 1970 from which the key is refused.
    pub(super) fn expires_at(&self) -> Option<u64> {
        let in_days = |days: u64| unix_time().as_secs().saturating_add(days.saturating_mul(24 * 60 * 60));
        self.expires_at.or_else(|| self.expires_in_days.map(in_days))
    }
}
