use std::net::TcpListener;
use std::time::Duration;

use store::{Store, StoreFailure, StoreLocation};
use tokio::time::Instant;

use crate::databases::{Database, account, run};

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
            assert_eq!(store.accounts_after(0).await.unwrap().len(), 2);
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
                tokio::spawn(async move { store.revision().await })
            })
            .collect();
        for caller in callers {
            let failed = caller.await.unwrap();
            assert!(matches!(failed, Err(StoreFailure::Unavailable(_))), "{failed:?}");
        }
        assert!(start.elapsed() <= Duration::from_secs(16), "{:?}", start.elapsed());
    });
}
