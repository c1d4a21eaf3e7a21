//! Which database is used.

use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use sqlx::postgres::PgConnectOptions;

/// The file of the default store, in the data directory.
pub const SQLITE_FILE: &str = "callers.sqlite";

/// Parameters of a PostgreSQL URL. Any other is refused, because it may be a misspelt password.
const PARAMETERS: [&str; 12] = [
    "sslmode",
    "sslrootcert",
    "sslcert",
    "sslkey",
    "host",
    "hostaddr",
    "port",
    "dbname",
    "user",
    "password",
    "application_name",
    "options",
];

/// A SQLite file or a PostgreSQL database.
#[derive(Clone)]
pub struct StoreLocation {
    pub(crate) kind: LocationKind,
}

#[derive(Clone)]
pub(crate) enum LocationKind {
    Sqlite(PathBuf),
    Postgres(Box<PgConnectOptions>),
}

impl StoreLocation {
    /// The default store: a SQLite file in the data directory.
    pub fn in_data_dir(data_dir: &Path) -> Self {
        Self { kind: LocationKind::Sqlite(data_dir.join(SQLITE_FILE)) }
    }

    /// Whether gateways on other machines can use the same store.
    pub fn is_shared(&self) -> bool {
        matches!(&self.kind, LocationKind::Postgres(_))
    }

    /// The file of the store; `None` for PostgreSQL.
    pub fn sqlite_file(&self) -> Option<&Path> {
        match &self.kind {
            LocationKind::Sqlite(file) => Some(file),
            LocationKind::Postgres(_) => None,
        }
    }

    /// Whether this is a file that does not exist yet, so that it has no keys.
    pub fn is_missing_file(&self) -> bool {
        matches!(&self.kind, LocationKind::Sqlite(file) if !file.exists())
    }

    /// Reads `postgres://USER:PASSWORD@HOST:PORT/DATABASE` or `sqlite:FILE`. The error does not repeat the URL, which can
    /// contain a password.
    pub fn parse(url: &str) -> Result<Self, String> {
        if let Some(file) = url.strip_prefix("sqlite:") {
            let file = file.strip_prefix("//").unwrap_or(file);
            let is_file = !file.is_empty() && !file.contains(['?', '#']);
            return is_file
                .then(|| Self { kind: LocationKind::Sqlite(PathBuf::from(file)) })
                .ok_or_else(|| "sqlite: must be followed by the path of a file".to_owned());
        }
        if !url.starts_with("postgres://") && !url.starts_with("postgresql://") {
            return Err("must start with postgres:// or sqlite:".to_owned());
        }
        check_parameters(url)?;
        let options = PgConnectOptions::from_str(url)
            .map_err(|_| "must have the form postgres://USER:PASSWORD@HOST:PORT/DATABASE".to_owned())?;
        if options.get_database().is_none_or(str::is_empty) {
            return Err("must name a database: postgres://USER:PASSWORD@HOST:PORT/DATABASE".to_owned());
        }
        Ok(Self { kind: LocationKind::Postgres(Box::new(options)) })
    }
}

fn check_parameters(url: &str) -> Result<(), String> {
    let Some((_, parameters)) = url.split_once('?') else { return Ok(()) };
    let names = parameters.split('&').map(|pair| pair.split('=').next().unwrap_or_default());
    for name in names {
        if !PARAMETERS.contains(&name) {
            return Err(format!("has an unknown parameter; known are {}", PARAMETERS.join(", ")));
        }
    }
    Ok(())
}

impl fmt::Display for StoreLocation {
    /// Without user and password.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.kind {
            LocationKind::Sqlite(file) => write!(f, "sqlite:{}", file.display()),
            LocationKind::Postgres(options) => {
                let database = options.get_database().unwrap_or_default();
                match options.get_socket() {
                    Some(socket) => write!(f, "postgres://{}/{database}", socket.display()),
                    None => write!(f, "postgres://{}:{}/{database}", options.get_host(), options.get_port()),
                }
            }
        }
    }
}

impl fmt::Debug for StoreLocation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "StoreLocation({self})")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_form_of_a_url_is_checked_without_repeating_it() {
        for url in [
            "postgres://u:hunter2@db.example:5432/chaingate",
            "postgresql://db/chaingate?sslmode=require",
            "postgres:///chaingate?host=/run/postgresql&user=u&password=hunter2",
            "sqlite:/var/lib/chaingate/callers.sqlite",
            "sqlite://relative.sqlite",
        ] {
            let location = StoreLocation::parse(url).unwrap();
            let shown = format!("{location} {location:?}");
            assert!(!shown.contains("hunter2") && !shown.contains("u:"), "{shown}");
        }
        for url in [
            "",
            "mysql://u:hunter2@db/chaingate",
            "postgres://u:hunter2@db:port/chaingate",
            "postgres://u:hunter2@db",
            "postgres://db/chaingate?pasword=hunter2",
            "sqlite:",
            "sqlite:file?mode=hunter2",
        ] {
            let error = StoreLocation::parse(url).unwrap_err();
            assert!(!error.contains("hunter2"), "{error}");
        }
    }
}
