//! The feed, one round at a time.

use sqlx::Connection;
use sqlx::sqlite::{SqliteConnectOptions, SqliteConnection};
use store::{KeyRecord, KeyStatus};
use tempfile::TempDir;

use super::*;
use crate::account::Account;
use crate::administration::{Administration, KeyCreation, NewKey};
use crate::api_key::ApiKey;

/// A feed whose next round records which keys were used.
fn feed(folder: &TempDir) -> (Feed, Arc<Directory>) {
    let directory = Arc::new(Directory::new(&[]));
    let config = FeedConfig {
        location: StoreLocation::in_data_dir(folder.path()),
        data_dir: folder.path().to_owned(),
        plans: Plans::default(),
        network: "demo".to_owned(),
        is_required: true,
    };
    let mut feed = Feed::new(config, Arc::clone(&directory), Arc::default(), watch::channel(0).0);
    feed.uses_recorded_at -= RECORD_USES_INTERVAL;
    (feed, directory)
}

fn administration(folder: &TempDir) -> Administration {
    Administration::new(Store::new(StoreLocation::in_data_dir(folder.path())), Plans::default())
}

async fn new_key(administration: &Administration) -> NewKey {
    administration.create_account("test", "acme", "team").await.unwrap();
    let (account, name) = ("acme".to_owned(), "k".to_owned());
    let creation = KeyCreation { account, name, ..KeyCreation::default() };
    administration.create_key("test", &creation).await.unwrap()
}

async fn execute(folder: &TempDir, statement: &'static str) {
    let options = SqliteConnectOptions::new().filename(folder.path().join("callers.sqlite"));
    let mut connection = SqliteConnection::connect_with(&options).await.unwrap();
    sqlx::raw_sql(statement).execute(&mut connection).await.unwrap();
    connection.close().await.unwrap();
}

fn run(story: impl Future<Output = ()>) {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(story);
}

/// Uses of keys were recorded before changes were applied. While that failed, no revocation took effect.
#[test]
fn changes_are_followed_although_uses_cannot_be_recorded() {
    let folder = TempDir::new().unwrap();
    run(async {
        let administration = administration(&folder);
        let new = new_key(&administration).await;
        let (mut feed, directory) = feed(&folder);
        feed.load().await.unwrap();
        feed.follow().await.unwrap();
        directory.record_use(&directory.find(new.key.as_bytes()).unwrap());
        execute(
            &folder,
            "CREATE TRIGGER refuse BEFORE UPDATE OF last_used_at ON api_keys BEGIN SELECT RAISE(ABORT, 'refused'); END",
        )
        .await;
        administration.revoke_key("test", &new.summary.id).await.unwrap();
        assert_eq!(feed.follow().await, Ok(()));
        assert!(directory.find(new.key.as_bytes()).is_none());
        feed.record_uses().await;
        execute(&folder, "DROP TRIGGER refuse").await;
        feed.uses_recorded_at -= RECORD_USES_INTERVAL;
        feed.record_uses().await;
        let key = administration.key_of("acme", &new.summary.id).await.unwrap();
        assert!(key.last_used_at.is_some(), "the use is not forgotten");
    });
}

/// All keys that were used in a minute were recorded one after another, and revocations waited for seconds.
#[test]
fn changes_wait_for_no_more_than_one_statement_about_used_keys() {
    let folder = TempDir::new().unwrap();
    run(async {
        let new = new_key(&administration(&folder)).await;
        let (mut feed, directory) = feed(&folder);
        feed.load().await.unwrap();
        feed.follow().await.unwrap();
        let account = Arc::clone(&directory.find(new.key.as_bytes()).unwrap().account);
        for number in 0..=RECORDED_USES_MAX {
            directory.record_use(&Arc::new(some_key(&account, number)));
        }
        feed.record_uses().await;
        feed.record_uses().await;
        assert_eq!(directory.take_used(1).0.len(), 0, "the rest is recorded in the next round");
        directory.record_use(&Arc::new(some_key(&account, 0)));
        feed.record_uses().await;
        assert_eq!(directory.take_used(1).0.len(), 1, "others wait until it is time again");
    });
}

fn some_key(account: &Arc<Account>, number: usize) -> ApiKey {
    let row = KeyRecord {
        id: format!("k_{number:012x}"),
        account_id: 1,
        name: "k".to_owned(),
        prefix: String::new(),
        hash: [0; 32],
        created_at: 0,
        last_used_at: None,
        expires_at: None,
        status: KeyStatus::Active,
        settings: "{}".to_owned(),
    };
    ApiKey::stored(&row, Arc::clone(account), None)
}
