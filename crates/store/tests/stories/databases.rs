use std::future::Future;

use store::{
    AccountRecord, AccountStatus, KeyRecord, KeyStatus, Store, StoreLocation, UserRecord, UserRole,
    UserStatus,
};
use tempfile::TempDir;

use crate::postgres::PostgresServer;

/// An empty database that ends with its test.
pub(crate) enum Database {
    Sqlite(TempDir),
    Postgres(PostgresServer),
}

impl Database {
    /// One of each kind; without PostgreSQL only SQLite, which has been reported.
    pub(crate) fn each() -> Vec<Self> {
        let sqlite = Self::Sqlite(TempDir::new().unwrap());
        std::iter::once(sqlite).chain(PostgresServer::start().map(Self::Postgres)).collect()
    }

    pub(crate) fn location(&self) -> StoreLocation {
        match self {
            Self::Sqlite(folder) => StoreLocation::in_data_dir(folder.path()),
            Self::Postgres(server) => StoreLocation::parse(&server.url()).unwrap(),
        }
    }

    pub(crate) fn store(&self) -> Store {
        Store::new(self.location())
    }
}

/// Runs a story on each kind of database.
pub(crate) fn on_each_database<F: Future<Output = ()>>(story: impl Fn(Store) -> F) {
    for database in Database::each() {
        run(story(database.store()));
    }
}

pub(crate) fn run<T>(story: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .unwrap()
        .block_on(story)
}

pub(crate) fn account(name: &str) -> AccountRecord {
    let status = AccountStatus::Active;
    AccountRecord { id: 0, name: name.to_owned(), plan: "core".to_owned(), status, created_at: 1_700_000_000 }
}

pub(crate) fn key(account_id: i64, number: u32) -> KeyRecord {
    let mut hash = [9; 32];
    hash[..4].copy_from_slice(&number.to_le_bytes());
    KeyRecord {
        id: format!("k_{number:012x}"),
        account_id,
        name: format!("key {number}"),
        prefix: "0a1b2c".to_owned(),
        hash,
        created_at: 1_700_000_000,
        last_used_at: None,
        expires_at: None,
        status: KeyStatus::Active,
        settings: "{}".to_owned(),
    }
}

pub(crate) fn user(email: &str, account_id: Option<i64>) -> UserRecord {
    UserRecord {
        id: 0,
        email: email.to_owned(),
        role: if account_id.is_some() { UserRole::Developer } else { UserRole::Operator },
        account_id,
        password_hash: Some("$argon2id$".to_owned()),
        status: UserStatus::Active,
        created_at: 1_700_000_000,
    }
}
