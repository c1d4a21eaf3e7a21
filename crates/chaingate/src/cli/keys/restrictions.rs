//! Options that restrict a key, as fields of a request to the admin API.

use std::fs;
use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use resources::unix_time;
use serde_json::{Map, Value, json};

/// What a key may be used for.
#[derive(Debug, Args)]
pub(super) struct AllowOptions {
    /// Web pages that may use the key: https://app.example.com, *.example.com, localhost:3000
    #[arg(long, value_name = "ORIGINS", value_delimiter = ',')]
    origins: Option<Vec<String>>,
    /// Texts, one of which must occur in the header User-Agent
    #[arg(long, value_name = "TEXTS", value_delimiter = ',')]
    user_agents: Option<Vec<String>>,
    /// Contracts that the key may query
    #[arg(long, value_name = "ADDRESSES", value_delimiter = ',')]
    addresses: Option<Vec<String>>,
    /// Methods that the key may call
    #[arg(long, value_name = "METHODS", value_delimiter = ',')]
    methods: Option<Vec<String>>,
    /// Networks that the key may be used for
    #[arg(long, value_name = "NETWORKS", value_delimiter = ',')]
    networks: Option<Vec<String>>,
    /// Lists to remove, so that the key may be used for anything
    #[arg(long, value_name = "LISTS", value_delimiter = ',')]
    any: Vec<AllowList>,
}

/// A list that restricts a key.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum AllowList {
    Origins,
    UserAgents,
    Addresses,
    Methods,
    Networks,
}

impl AllowList {
    fn field(self) -> &'static str {
        match self {
            Self::Origins => "origins",
            Self::UserAgents => "user_agents",
            Self::Addresses => "addresses",
            Self::Methods => "methods",
            Self::Networks => "networks",
        }
    }
}

impl AllowOptions {
    pub(super) fn write(self, settings: &mut Map<String, Value>) {
        for list in &self.any {
            settings.insert(list.field().to_owned(), Value::Null);
        }
        let lists = [
            ("origins", self.origins),
            ("user_agents", self.user_agents),
            ("addresses", self.addresses),
            ("methods", self.methods),
            ("networks", self.networks),
        ];
        for (field, list) in lists {
            if let Some(list) = list {
                settings.insert(field.to_owned(), json!(list));
            }
        }
    }
}

/// What callers must send in addition to the key.
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
    /// Audience that the tokens must name
    #[arg(long, value_name = "AUDIENCE")]
    jwt_audience: Option<String>,
    /// Remove the public keys and the audience
    #[arg(long, conflicts_with_all = ["jwt_public_keys", "jwt_audience"])]
    no_jwt: bool,
    /// Whether requests without the secret are refused
    #[arg(long, value_name = "BOOLEAN")]
    secret_required: Option<bool>,
    /// Whether requests without a token are refused
    #[arg(long, value_name = "BOOLEAN")]
    jwt_required: Option<bool>,
}

impl CredentialOptions {
    pub(super) fn write(self, settings: &mut Map<String, Value>) -> Result<(), String> {
        let mut set = |field: &str, value: Value| settings.insert(field.to_owned(), value);
        if let Some(path) = &self.secret_file {
            set("secret", json!(read_secret(path)?));
        }
        if self.no_secret {
            set("secret", Value::Null);
            set("secret_required", Value::Null);
        }
        if let Some(paths) = &self.jwt_public_keys {
            let keys = paths.iter().map(|path| read(path)).collect::<Result<Vec<_>, _>>()?;
            set("jwt_public_keys", json!(keys));
        }
        if let Some(audience) = &self.jwt_audience {
            set("jwt_audience", json!(audience));
        }
        if self.no_jwt {
            for field in ["jwt_public_keys", "jwt_audience", "jwt_required"] {
                set(field, Value::Null);
            }
        }
        if let Some(required) = self.secret_required {
            set("secret_required", json!(required));
        }
        if let Some(required) = self.jwt_required {
            set("jwt_required", json!(required));
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

/// How many credits a key may use, within the limits of its account.
#[derive(Debug, Args)]
pub(super) struct LimitOptions {
    /// Credits per second; 0 removes the limit
    #[arg(long, value_name = "CREDITS")]
    credits_per_second: Option<u64>,
    /// Credits per day (UTC); 0 removes the limit
    #[arg(long, value_name = "CREDITS")]
    credits_per_day: Option<u64>,
}

impl LimitOptions {
    pub(super) fn write(self, settings: &mut Map<String, Value>) {
        let limits =
            [("credits_per_second", self.credits_per_second), ("credits_per_day", self.credits_per_day)];
        for (field, limit) in limits {
            match limit {
                None => {}
                Some(0) => drop(settings.insert(field.to_owned(), Value::Null)),
                Some(limit) => drop(settings.insert(field.to_owned(), json!(limit))),
            }
        }
    }
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
