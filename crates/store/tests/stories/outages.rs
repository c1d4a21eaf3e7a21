use std::net::TcpListener;
use std::time::Duration;

use store::{Store, StoreFailure, StoreLocation};
use tokio::time::Instant;

use crate::databases::{Database, account, run};
use crate::postgres::PostgresServer;
use crate::stalling_proxy::StallingProxy;

#[test]
fn a_store_that_ends_and_comes_back_is_used_again() {
    for mut database in Database::each() {
        let Database::Postgres(_) = &database else { continue };
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let store = database.store();
        runtime.block_on(add(&store, "acme")).unwrap();
        if let Database::Postgres(server) = &mut database {
            server.kill();
        }
        let failed = runtime.block_on(add(&store, "beta"));
        assert!(matches!(failed, Err(StoreFailure::Unavailable(_))), "{failed:?}");
        if let Database::Postgres(server) = &mut database {
            server.restart();
        }
        runtime.block_on(async {
            while let Err(failure) = add(&store, "beta").await {
                assert!(matches!(failure, StoreFailure::Unavailable(_)), "{failure:?}");
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
            assert_eq!(store.accounts_after(0).await.unwrap().rows.len(), 2);
        });
    }
}

async fn add(store: &Store, name: &str) -> Result<(), StoreFailure> {
    let mut change = store.begin_change().await?;
    change.insert_account(&account(name)).await?;
    change.commit().await.map(drop)
}

#[test]
fn a_file_that_cannot_be_opened_is_an_outage() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir(folder.path().join("callers.sqlite")).unwrap();
    let database = Database::Sqlite(folder);
    let failed = run(async { database.store().prepare().await });
    assert!(matches!(failed, Err(StoreFailure::Unavailable(_))), "{failed:?}");
}

/// While a server hung since the start, callers opened the store one after another, and the tenth waited for 50 seconds.
#[test]
fn nobody_waits_for_others_that_open_a_store_that_hangs() {
    // Nothing accepts or answers the connections that the system makes.
    let server = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("postgres://u@{}/d?sslmode=disable", server.local_addr().unwrap());
    let store = Store::new(StoreLocation::parse(&url).unwrap());
    // The clock is that of the test: it goes on when everything waits.
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build();
    runtime.unwrap().block_on(async {
        let start = Instant::now();
        let callers: Vec<_> = (0..10)
            .map(|_| {
                let store = store.clone();
                tokio::spawn(async move { store.newest_change().await })
            })
            .collect();
        for caller in callers {
            let failed = caller.await.unwrap();
            assert!(matches!(failed, Err(StoreFailure::Unavailable(_))), "{failed:?}");
        }
        assert!(start.elapsed() <= Duration::from_secs(16), "{:?}", start.elapsed());
    });
}

/// A copy that lacked the newest changes took the place of the store, or a backup was restored. As soon as it had as many changes
/// as the store of before, nobody could tell them apart. A gateway that had the file open read and wrote the deleted one.
#[test]
fn a_copy_that_takes_the_place_of_its_store_has_another_history() {
    for mut database in Database::each() {
        let store = database.store();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(add(&store, "acme")).unwrap();
        keep_copy(&mut database, &store, &runtime);
        let store = database.store();
        runtime.block_on(until_added(&store, "lost"));
        let (lost, _) = runtime.block_on(store.newest_change()).unwrap();
        assert!(runtime.block_on(store.history(&lost)).unwrap().has_seen);
        fail_over_to_copy(&mut database);
        runtime.block_on(async {
            until_added(&store, "beta").await;
            let history = store.history(&lost).await.unwrap();
            assert_eq!((history.newest.revision, history.has_seen), (lost.revision, false));
            assert!(store.history(&history.newest).await.unwrap().has_seen);
            assert_eq!(store.account_named("lost").await, Ok(None));
        });
    }
}

/// The first tries can meet connections that the server has closed.
async fn until_added(store: &Store, name: &str) {
    while let Err(failure) = add(store, name).await {
        assert!(matches!(failure, StoreFailure::Unavailable(_)), "{failure:?}");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

fn keep_copy(database: &mut Database, store: &Store, runtime: &tokio::runtime::Runtime) {
    match database {
        Database::Postgres(server) => server.keep_copy(),
        Database::Sqlite(folder) => {
            // A file has all changes when nobody has it open.
            runtime.block_on(store.close());
            let file = folder.path().join("callers.sqlite");
            std::fs::copy(&file, folder.path().join("backup")).unwrap();
        }
    }
}

fn fail_over_to_copy(database: &mut Database) {
    match database {
        Database::Postgres(server) => server.fail_over_to_copy(),
        Database::Sqlite(folder) => {
            for suffix in ["-wal", "-shm"] {
                std::fs::remove_file(folder.path().join(format!("callers.sqlite{suffix}"))).unwrap();
            }
            std::fs::rename(folder.path().join("backup"), folder.path().join("callers.sqlite")).unwrap();
        }
    }
}

/// A connection that a router had forgotten was waited for until the system gave it up, or for 15 seconds by each statement.
#[test]
fn connections_that_hang_are_replaced() {
    let Some(server) = PostgresServer::start() else { return };
    let proxy = StallingProxy::start(server.socket());
    let url = format!("postgres://chaingate@{}/postgres?sslmode=disable", proxy.address());
    let store = Store::new(StoreLocation::parse(&url).unwrap());
    run(async {
        // Several connections, which are idle when they begin to hang.
        let first = store.begin_change().await.unwrap();
        store.newest_change().await.unwrap();
        drop(first);
        store.newest_change().await.unwrap();
        proxy.stall();
        let start = Instant::now();
        add(&store, "acme").await.unwrap();
        // Each of them cost 15 seconds before, and the pool waited for none to be free.
        assert!(start.elapsed() < Duration::from_secs(10), "it took {:?}", start.elapsed());
        for number in 0..20 {
            add(&store, &format!("account {number}")).await.unwrap();
        }
    });
}

/// A change that waited too long for another one was refused for good, like one with a mistake in it.
#[test]
fn a_change_that_waits_for_another_one_for_too_long_times_out() {
    let Some(server) = PostgresServer::start() else { return };
    let store = Store::new(StoreLocation::parse(&server.url()).unwrap());
    run(async {
        let first = store.begin_change().await.unwrap();
        let failed = store.begin_change().await.map(drop);
        assert!(matches!(failed, Err(StoreFailure::TimedOut(_))), "{failed:?}");
        drop(first);
        add(&store, "acme").await.unwrap();
    });
}

/// The rights that docs/operation.md names are enough: a schema of its own, and no other right.
#[test]
fn a_user_with_a_schema_of_its_own_is_enough() {
    let Some(server) = PostgresServer::start() else { return };
    server.run("CREATE ROLE gateway LOGIN NOSUPERUSER NOCREATEDB NOCREATEROLE");
    server.run("REVOKE ALL ON SCHEMA public FROM PUBLIC");
    server.run("CREATE SCHEMA gateway AUTHORIZATION gateway");
    let url = server.url().replace("user=chaingate", "user=gateway");
    let store = Store::new(StoreLocation::parse(&url).unwrap());
    run(async {
        let mut listener = store.listen().await.unwrap().unwrap();
        add(&store, "acme").await.unwrap();
        let announced = tokio::time::timeout(Duration::from_secs(60), listener.changed()).await;
        assert_eq!(announced, Ok(Ok(())));
        let (newest, _) = store.newest_change().await.unwrap();
        assert!(store.history(&newest).await.unwrap().has_seen);
    });
}
