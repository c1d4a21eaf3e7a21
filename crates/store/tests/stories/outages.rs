use std::time::Duration;

use store::{Store, StoreFailure};

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
