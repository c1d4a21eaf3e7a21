use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;

use sqlx::Connection;
use sqlx::sqlite::{SqliteConnectOptions, SqliteConnection};
use store::{AccountStatus, HashKey, KEY_PAGE_ROWS, RowPosition, StoreFailure};

use crate::databases::{Database, account, run, user};

/// The tables and some rows of each earlier version, for SQLite and for PostgreSQL.
const VERSIONS: [[&str; 2]; 3] = [
    [include_str!("../versions/1.sqlite.sql"), include_str!("../versions/1.postgres.sql")],
    [include_str!("../versions/2.sqlite.sql"), include_str!("../versions/2.postgres.sql")],
    [include_str!("../versions/3.sqlite.sql"), include_str!("../versions/3.postgres.sql")],
];

pub(crate) async fn execute(database: &Database, [sqlite, postgres]: [&'static str; 2]) {
    match database {
        Database::Sqlite(folder) => {
            let file = folder.path().join("callers.sqlite");
            let options = SqliteConnectOptions::new().filename(file).create_if_missing(true);
            let mut connection = SqliteConnection::connect_with(&options).await.unwrap();
            sqlx::raw_sql(sqlite).execute(&mut connection).await.unwrap();
            connection.close().await.unwrap();
        }
        Database::Postgres(server) => {
            server.run(postgres);
        }
    }
}

#[test]
fn every_earlier_version_is_brought_up_to_date_with_its_rows() {
    for version in VERSIONS {
        for database in Database::each() {
            run(async {
                execute(&database, version).await;
                let store = database.store();
                assert_eq!(store.hash_key().await.unwrap(), HashKey::from_bytes([0x42; 32]));
                assert_eq!(store.newest_change().await.unwrap().0.revision, 3);
                let accounts = store.accounts_after(0).await.unwrap().rows;
                assert_eq!(accounts[0].name, "acme");
                assert_eq!(accounts[1].status, AccountStatus::Suspended);
                let keys = store.keys_changed_after(&RowPosition::default(), KEY_PAGE_ROWS).await.unwrap();
                assert_eq!((keys.len(), keys[0].1.last_used_at), (1, Some(1_700_000_009)));
                let mut change = store.begin_change().await.unwrap();
                assert_eq!(change.insert_account(&account("gamma")).await, Ok(3));
                assert_eq!(change.insert_user(&user("ada@example.com", Some(3))).await, Ok(1));
                assert_eq!(change.commit().await, Ok(4));
            });
        }
    }
}

#[test]
fn a_later_version_is_refused() {
    for database in Database::each() {
        run(async {
            database.store().prepare().await.unwrap();
            execute(&database, ["UPDATE store_version SET version = 1000"; 2]).await;
            let refused = database.store().prepare().await;
            assert!(matches!(refused, Err(StoreFailure::NewerVersion { found: 1000, .. })), "{refused:?}");
        });
    }
}

/// During an upgrade of several gateways, one of an earlier version would add usage without its sums.
#[test]
fn an_earlier_version_that_still_runs_adds_no_usage() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("callers.sqlite");
    let database = Database::Sqlite(folder);
    run(async {
        execute(&database, VERSIONS[2]).await;
        database.store().prepare().await.unwrap();
        let options = SqliteConnectOptions::new().filename(file);
        let mut connection = SqliteConnection::connect_with(&options).await.unwrap();
        let insert = "INSERT INTO usage_flushes VALUES ('0011223344556677', 1700000000001, 1, 1700006500)";
        assert!(sqlx::raw_sql(insert).execute(&mut connection).await.is_err());
        connection.close().await.unwrap();
    });
}

#[test]
fn processes_that_start_together_make_one_store() {
    Database::each().iter().for_each(open_together);
}

/// Some of the processes were told that the file is locked: SQLite does not wait when several change a new file to
/// write-ahead logging at once.
#[test]
fn processes_that_start_together_wait_for_each_other() {
    for _ in 0..50 {
        open_together(&Database::Sqlite(tempfile::tempdir().unwrap()));
    }
}

/// Opens an empty database eight times at once.
fn open_together(database: &Database) {
    run(async {
        let opened: Vec<_> = (0..8)
            .map(|_| {
                let store = database.store();
                tokio::spawn(async move { store.hash_key().await })
            })
            .collect();
        let mut hash_keys = Vec::new();
        for opened in opened {
            hash_keys.push(opened.await.unwrap().unwrap());
        }
        assert!(hash_keys.iter().all(|hash_key| *hash_key == hash_keys[0]));
    });
}

/// A gateway opens the file several times. Each time it dropped the locks of its other connections, so the next command that
/// ended deleted the log of the running gateway, which then had errors of the disk.
#[test]
fn opening_the_file_again_keeps_the_locks_of_the_process() {
    let database = Database::Sqlite(tempfile::tempdir().unwrap());
    let Database::Sqlite(folder) = &database else { return };
    let file = folder.path().join("callers.sqlite");
    run(async {
        let (first, second) = (database.store(), database.store());
        first.prepare().await.unwrap();
        assert!(is_locked(&file));
        second.prepare().await.unwrap();
        assert!(is_locked(&file), "the locks are lost");
    });
}

/// Whether this process holds a lock on a file.
fn is_locked(file: &Path) -> bool {
    let (inode, process) = (file.metadata().unwrap().ino(), std::process::id().to_string());
    let locks = std::fs::read_to_string("/proc/locks").unwrap();
    locks.lines().any(|line| {
        let fields: Vec<&str> = line.split_whitespace().collect();
        let is_of_file = fields.iter().any(|field| field.ends_with(&format!(":{inode}")));
        fields.contains(&process.as_str()) && is_of_file
    })
}

#[test]
fn only_the_owner_can_read_the_file() {
    let folder = tempfile::tempdir().unwrap();
    let database = Database::Sqlite(folder);
    run(async {
        let store = database.store();
        let mut change = store.begin_change().await.unwrap();
        change.insert_account(&account("acme")).await.unwrap();
        change.commit().await.unwrap();
        let Database::Sqlite(folder) = &database else { return };
        for entry in std::fs::read_dir(folder.path()).unwrap() {
            let entry = entry.unwrap();
            let mode = entry.metadata().unwrap().permissions().mode();
            assert_eq!(mode & 0o777, 0o600, "{:?}", entry.path());
        }
    });
}
