//! The feed, one round at a time.

use std::future::poll_fn;
use std::pin::pin;
use std::task::Poll;

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
        plans: CurrentPlans::default(),
        network: "demo".to_owned(),
        is_required: true,
        copy_age_max: None,
    };
    let rounds = watch::channel(FeedRounds::default()).0;
    let mut feed = Feed::new(config, Arc::clone(&directory), Arc::default(), Arc::default(), rounds);
    feed.uses_recorded_at -= RECORD_USES_INTERVAL;
    (feed, directory)
}

fn administration(folder: &TempDir) -> Administration {
    Administration::new(Store::new(StoreLocation::in_data_dir(folder.path())), CurrentPlans::default())
}

async fn new_key(administration: &Administration) -> NewKey {
    administration.create_account("test", "acme", "team").await.unwrap();
    let (account, name) = ("acme".to_owned(), "k".to_owned());
    let creation = KeyCreation { account, name, ..KeyCreation::default() };
    administration.create_key("test", &creation).await.unwrap().made
}

/// Reads everything, and makes it effective.
async fn load(feed: &mut Feed) {
    feed.follow().await.unwrap();
    read_all(feed).await;
    feed.follow().await.unwrap();
    assert!(feed.load.is_none() && feed.is_loaded());
}

/// Applies all pages of the load.
async fn read_all(feed: &mut Feed) {
    while feed.load.as_ref().is_some_and(|load| !load.is_read) {
        let page = next_page(&mut feed.load).await;
        feed.apply_page(page);
    }
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
        load(&mut feed).await;
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
        load(&mut feed).await;
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

/// A revocation waited for the end of a load, which took 40 seconds with a million keys.
#[test]
fn a_revocation_takes_effect_during_a_load() {
    let folder = TempDir::new().unwrap();
    run(async {
        let administration = administration(&folder);
        let (early, late) = (new_key(&administration).await, second_key(&administration).await);
        let (mut feed, directory) = feed(&folder);
        load(&mut feed).await;
        // Everything is read again, as after a restored backup.
        execute(&folder, "UPDATE store_state SET revision = revision - 1").await;
        feed.follow().await.unwrap();
        assert!(feed.load.is_some());
        administration.revoke_key("test", &early.summary.id).await.unwrap();
        feed.follow().await.unwrap();
        assert!(directory.find(early.key.as_bytes()).is_none(), "it waits for the load");
        read_all(&mut feed).await;
        administration.revoke_key("test", &late.summary.id).await.unwrap();
        feed.follow().await.unwrap();
        assert!(feed.load.is_none(), "the load is finished");
        for key in [&early, &late] {
            assert!(directory.find(key.key.as_bytes()).is_none());
        }
    });
}

/// A key that is created during the first load belongs to an account that may not be read yet. Its row is not refused.
#[test]
fn a_key_that_is_created_during_the_first_load_is_known_after_it() {
    let folder = TempDir::new().unwrap();
    run(async {
        let administration = administration(&folder);
        new_key(&administration).await;
        let (mut feed, directory) = feed(&folder);
        feed.follow().await.unwrap();
        let second = second_key(&administration).await;
        feed.follow().await.unwrap();
        assert!(!feed.applier.has_applied_all(), "nobody is told that the key is in effect");
        read_all(&mut feed).await;
        feed.follow().await.unwrap();
        assert!(directory.find(second.key.as_bytes()).is_some());
        assert!(feed.applier.has_applied_all());
        assert_eq!(directory.feed_status().facts().bad_rows, 0);
    });
}

/// A copy that could not be written made the gateway read the whole store every minute.
#[test]
fn a_copy_that_failed_is_written_from_memory() {
    let folder = TempDir::new().unwrap();
    run(async {
        let new = new_key(&administration(&folder)).await;
        let (mut feed, directory) = feed(&folder);
        load(&mut feed).await;
        feed.connected();
        let path = copy_file::path(folder.path());
        let in_the_way = path.with_extension("copy.new");
        std::fs::create_dir(&in_the_way).unwrap();
        let (disk, task) =
            (DiskHealth::new(folder.path()), Supervisor::default().task("copy", WhenDown::Degraded));
        let mut copy = LocalCopy::new(path.clone(), Arc::clone(&directory), Arc::clone(&feed.copy), disk);
        feed.copy.stop();
        copy.run(&task);
        assert_eq!(directory.feed_status().facts().copy_failures, 1);
        std::fs::remove_dir(&in_the_way).unwrap();
        std::fs::remove_file(folder.path().join("callers.sqlite")).unwrap();
        copy.run(&task);
        let (_, read) = read_again(&path, folder.path());
        assert!(read.find(new.key.as_bytes()).is_some());
    });
}

/// While the first load ran, a question about changes was not answered in time, and the gateway used its copy. The pages of the
/// load that followed were dropped, and at its end the copy was taken for the store: what it lacked never took effect.
#[test]
fn the_load_begins_anew_after_the_copy_is_used() {
    let folder = TempDir::new().unwrap();
    run(async {
        let administration = administration(&folder);
        let new = new_key(&administration).await;
        let (mut before, directory) = feed(&folder);
        load(&mut before).await;
        before.connected();
        let (disk, task) =
            (DiskHealth::new(folder.path()), Supervisor::default().task("copy", WhenDown::Degraded));
        let path = copy_file::path(folder.path());
        before.copy.stop();
        LocalCopy::new(path, directory, Arc::clone(&before.copy), disk).run(&task);
        administration.revoke_key("test", &new.summary.id).await.unwrap();
        let (mut feed, directory) = feed(&folder);
        feed.follow().await.unwrap();
        assert!(feed.load.is_some());
        feed.use_copy();
        assert!(directory.find(new.key.as_bytes()).is_some(), "the copy does not have the revocation");
        load(&mut feed).await;
        assert!(directory.find(new.key.as_bytes()).is_none());
    });
}

/// The accounts of a page that was read before a suspension and applied after it were let in again until the end of the load.
#[test]
fn an_account_that_is_suspended_during_a_load_stays_suspended() {
    let folder = TempDir::new().unwrap();
    run(async {
        let administration = administration(&folder);
        let new = new_key(&administration).await;
        let (mut feed, directory) = feed(&folder);
        load(&mut feed).await;
        let account = Arc::clone(&directory.find(new.key.as_bytes()).unwrap().account);
        // Everything is read again, as after a restored backup.
        execute(&folder, "UPDATE store_state SET revision = revision - 1").await;
        feed.follow().await.unwrap();
        let read_before = next_page(&mut feed.load).await;
        administration.suspend_account("test", "acme").await.unwrap();
        feed.follow().await.unwrap();
        assert!(account.is_suspended());
        feed.apply_page(read_before);
        assert!(account.is_suspended());
        read_all(&mut feed).await;
        feed.follow().await.unwrap();
        assert!(feed.load.is_none() && account.is_suspended());
    });
}

/// The copy had no time until a minute after the first load, so a gateway that was killed before found it too old.
#[test]
fn the_first_copy_tells_when_the_store_was_followed() {
    let folder = TempDir::new().unwrap();
    run(async {
        new_key(&administration(&folder)).await;
        let (mut feed, _directory) = feed(&folder);
        load(&mut feed).await;
        let work = feed.copy.take(Instant::now(), false, || {});
        assert!(work.is_all && work.followed_at > 0, "{work:?}");
    });
}

/// Changes came first. While they came faster than they were followed, a load never went on, and nothing of it took effect.
#[test]
fn a_load_ends_although_changes_do_not() {
    let folder = TempDir::new().unwrap();
    run(async {
        new_key(&administration(&folder)).await;
        let (mut feed, directory) = feed(&folder);
        let (wake, first) = (Arc::clone(&feed.wake), sync_channel(1).0);
        let mut run = pin!(feed.run(&first));
        // Whenever the feed looks, there is another change.
        let loaded = poll_fn(|context| {
            wake.notify_one();
            if directory.stored().is_some() { Poll::Ready(()) } else { run.as_mut().poll(context) }
        });
        timeout(Duration::from_secs(60), loaded).await.expect("it is loaded");
    });
}

/// A gateway that had not reached the store for more changes than it remembers said that the store had lost changes of keys.
#[test]
fn changes_that_the_store_has_forgotten_do_not_count_as_lost() {
    let folder = TempDir::new().unwrap();
    run(async {
        let administration = administration(&folder);
        let new = new_key(&administration).await;
        let (mut feed, directory) = feed(&folder);
        load(&mut feed).await;
        execute(&folder, "UPDATE store_state SET revision = revision + 10001").await;
        administration.revoke_key("test", &new.summary.id).await.unwrap();
        feed.follow().await.unwrap();
        assert!(feed.load.as_ref().is_some_and(|load| !load.has_lost_changes));
        read_all(&mut feed).await;
        feed.follow().await.unwrap();
        assert!(directory.find(new.key.as_bytes()).is_none());
        assert_eq!(directory.feed_status().facts().lost_histories, 0);
    });
}

/// A directory with what the copy has.
fn read_again(path: &std::path::Path, folder: &std::path::Path) -> (i64, Arc<Directory>) {
    let directory = Arc::new(Directory::new(&[]));
    let network = folder.display().to_string();
    let mut applier =
        RowApplier::new(Arc::clone(&directory), Arc::default(), CurrentPlans::default(), network);
    let followed_at = read_copy(path, &mut applier).unwrap().unwrap();
    applier.finish_load(false);
    (followed_at, directory)
}

async fn second_key(administration: &Administration) -> NewKey {
    let creation =
        KeyCreation { account: "acme".to_owned(), name: "second".to_owned(), ..KeyCreation::default() };
    administration.create_key("test", &creation).await.unwrap().made
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
