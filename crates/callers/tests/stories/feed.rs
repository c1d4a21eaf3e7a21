use std::io::Write;
use std::os::unix::fs::PermissionsExt;

use callers::administration::{Administration, KeyCreation};
use callers::{CallersFeed, Denied, Directory, KeyPatch, KeysOrigin};
use resources::WhenDown;
use store::{Store, StoreLocation};

use crate::place::{Place, account_with_key, creation, run, wait_until};
use crate::postgres::PostgresServer;

fn knows(directory: &Directory, key: &str) -> bool {
    directory.find(key.as_bytes()).is_some()
}

/// The administration of a gateway with this feed.
fn administration_of(place: &Place, feed: &CallersFeed) -> Administration {
    place.administration().with_feed(feed.handle())
}

#[test]
fn changes_hold_at_once_where_they_are_made() {
    let place = Place::new();
    let (feed, directory) = place.follow();
    let administration = administration_of(&place, &feed);
    run(async {
        let new = account_with_key(&administration, "acme").await;
        let found = directory.find(new.key.as_bytes()).unwrap();
        assert_eq!(
            (&*found.id, &*found.name, found.account.name.as_str()),
            (&*new.summary.id, "first", "acme")
        );
        administration.suspend_account("test", "acme").await.unwrap();
        assert!(!knows(&directory, &new.key));
        administration.resume_account("test", "acme").await.unwrap();
        assert!(knows(&directory, &new.key));
        let rotated = administration.rotate_key("test", &new.summary.id, 0, None).await.unwrap();
        assert!(!knows(&directory, &new.key) && knows(&directory, &rotated.key));
        let again = administration.rotate_key("test", &rotated.summary.id, 3_600, None).await.unwrap();
        assert!(knows(&directory, &rotated.key) && knows(&directory, &again.key));
        administration.revoke_key("test", &again.summary.id).await.unwrap();
        assert!(!knows(&directory, &again.key));
    });
}

/// How often a task has panicked.
fn panics(place: &Place, task: &str) -> u64 {
    let tasks = place.supervisor.report();
    tasks.iter().find(|report| report.name == task).map_or(0, |report| report.panics)
}

/// Whoever waited for notifications and panicked was gone until the feed panicked, too. Nobody was told.
#[test]
fn notifications_are_waited_for_after_a_panic_and_it_is_told_when_they_are_not() {
    const NOTIFICATIONS: &str = "notifications of the store";
    let Some(server) = PostgresServer::start() else { return };
    let place = Place::new();
    let (_feed, directory) = place.follow_store(StoreLocation::parse(&server.url()).unwrap(), None);
    place.supervisor.inject_panics(NOTIFICATIONS, 1);
    wait_until("it panics", || panics(&place, NOTIFICATIONS) == 1);
    assert_eq!(place.supervisor.why_down(NOTIFICATIONS), None);
    place.supervisor.inject_panics(NOTIFICATIONS, u32::MAX);
    wait_until("it is down", || place.supervisor.why_down(NOTIFICATIONS).is_some());
    assert!(directory.feed_status().not_ready_because().is_none(), "changes are found by polling");
}

/// After a panic, nobody wrote the copy any more: a start without the store let revoked keys in.
#[test]
fn the_local_copy_is_written_after_a_panic_and_it_is_told_when_it_is_not() {
    const COPY: &str = "local copy of accounts and keys";
    let place = Place::new();
    let (feed, directory) = place.follow();
    let (revoked, kept) = run(async {
        let administration = administration_of(&place, &feed);
        let revoked = account_with_key(&administration, "acme").await;
        place.supervisor.inject_panics(COPY, 1);
        wait_until("it panics", || panics(&place, COPY) == 1);
        let kept = account_with_key(&administration, "other").await;
        administration.revoke_key("test", &revoked.summary.id).await.unwrap();
        (revoked.key, kept.key)
    });
    drop((feed, directory));
    place.hide_store();
    let (_feed, directory) = place.follow();
    assert_eq!(directory.feed_status().facts().origin, KeysOrigin::Copy);
    assert_eq!((knows(&directory, &revoked), knows(&directory, &kept)), (false, true));
    place.supervisor.inject_panics(COPY, u32::MAX);
    wait_until("it is down", || place.supervisor.why_down(COPY).is_some());
    assert!(directory.feed_status().not_ready_because().is_none());
}

#[test]
fn a_store_without_notifications_has_no_task_for_them() {
    let place = Place::new();
    let (_feed, _directory) = place.follow();
    let names = || place.supervisor.report().into_iter().map(|task| task.name).collect::<Vec<_>>();
    wait_until("it has ended", || {
        names() == ["local copy of accounts and keys", "feed of accounts and keys"]
    });
}

/// A feed that had panicked was gone for good: revocations took no effect, and the gateway stayed ready.
#[test]
fn a_feed_that_panics_follows_again_and_says_when_it_cannot() {
    const FEED: &str = "feed of accounts and keys";
    let place = Place::new();
    let (_feed, directory) = place.follow();
    run(async {
        let administration = place.administration();
        let new = account_with_key(&administration, "acme").await;
        wait_until("the new key is known", || knows(&directory, &new.key));
        let account = std::sync::Arc::clone(&directory.find(new.key.as_bytes()).unwrap().account);
        place.supervisor.inject_panics(FEED, 1);
        wait_until("it panics", || panics(&place, FEED) == 1);
        wait_until("it follows", || directory.feed_status().facts().is_connected);
        let same = std::sync::Arc::clone(&directory.find(new.key.as_bytes()).unwrap().account);
        assert!(std::sync::Arc::ptr_eq(&account, &same), "what the account has used is not forgotten");
        administration.revoke_key("test", &new.summary.id).await.unwrap();
        wait_until("the revoked key is refused", || !knows(&directory, &new.key));

        place.supervisor.inject_panics(FEED, u32::MAX);
        wait_until("it is down", || place.supervisor.first_down(WhenDown::NotReady).is_some());
        let facts = directory.feed_status().facts();
        assert!(!facts.is_connected && facts.error.unwrap().contains("panicked"));
    });
}

#[test]
fn changes_of_other_processes_are_found_by_polling() {
    let place = Place::new();
    let (_feed, directory) = place.follow();
    run(async {
        let administration = place.administration();
        let new = account_with_key(&administration, "acme").await;
        wait_until("the new key is known", || knows(&directory, &new.key));
        administration.revoke_key("test", &new.summary.id).await.unwrap();
        wait_until("the revoked key is refused", || !knows(&directory, &new.key));
    });
}

#[test]
fn an_account_keeps_what_it_has_used_through_changes() {
    let place = Place::new();
    let (feed, directory) = place.follow();
    let administration = administration_of(&place, &feed);
    run(async {
        let new = account_with_key(&administration, "acme").await;
        let account = std::sync::Arc::clone(&directory.find(new.key.as_bytes()).unwrap().account);
        assert_eq!(account.plan().credits_per_second, Some(40_000));
        administration.set_plan("test", "acme", "core").await.unwrap();
        let same = std::sync::Arc::clone(&directory.find(new.key.as_bytes()).unwrap().account);
        assert!(std::sync::Arc::ptr_eq(&account, &same));
        assert_eq!(account.plan().credits_per_second, Some(500));
    });
}

#[test]
fn a_key_is_bound_to_its_networks_and_its_secret() {
    let place = Place::new();
    let (feed, directory) = place.follow();
    let administration = administration_of(&place, &feed);
    run(async {
        administration.create_account("test", "acme", "team").await.unwrap();
        let settings: KeyPatch =
            serde_json::from_str(r#"{"networks": ["mainnet"], "secret": "hunter2"}"#).unwrap();
        let new = KeyCreation { settings, ..creation("acme", "k") };
        let new = administration.create_key("test", &new).await.unwrap();
        let key = directory.find(new.key.as_bytes()).unwrap();
        let settings = key.settings.as_deref().unwrap();
        assert!(settings.check_request("", "").is_err(), "the feed follows for the network demo");
        // `:hunter2` and `:hunter3` in base64.
        assert_eq!(settings.credentials().check("Basic Omh1bnRlcjI="), Ok(()));
        assert_eq!(settings.credentials().check("Basic Omh1bnRlcjM="), Err(Denied::WrongSecret));
    });
}

#[test]
fn a_wrong_row_is_refused_and_what_was_in_effect_stays() {
    let place = Place::new();
    let (feed, directory) = place.follow();
    let administration = administration_of(&place, &feed);
    run(async {
        let new = account_with_key(&administration, "acme").await;
        let bad_rows = || directory.feed_status().facts().bad_rows;
        for statements in [
            "UPDATE store_state SET revision = revision + 1; \
             UPDATE api_keys SET settings = 'no JSON', revision = (SELECT revision FROM store_state);",
            "UPDATE store_state SET revision = revision + 1; UPDATE api_keys SET \
             settings = '{\"rules\":{\"credits_per_day\":-5}}', revision = (SELECT revision FROM store_state);",
            "UPDATE store_state SET revision = revision + 1; UPDATE accounts SET \
             plan = 'none', revision = (SELECT revision FROM store_state);",
        ] {
            place.execute(statements).await;
            let revision = run_revision(&place).await;
            wait_until("the row is read", || directory.feed_status().facts().revision >= revision);
            assert!(bad_rows() >= 1);
            assert!(knows(&directory, &new.key));
        }
        assert_eq!(bad_rows(), 2);
        administration.set_plan("test", "acme", "core").await.unwrap();
        assert_eq!(bad_rows(), 1);
        // A revocation holds whatever else is wrong with the row.
        administration.revoke_key("test", &new.summary.id).await.unwrap();
        assert!(!knows(&directory, &new.key));
        assert_eq!(bad_rows(), 0);
    });
}

async fn run_revision(place: &Place) -> i64 {
    Store::new(place.location()).newest_change().await.unwrap().0.revision
}

/// The keys of an account with an unknown plan were refused for ever, because only the row of the account changed again.
#[test]
fn an_account_that_is_put_right_brings_its_keys_back() {
    let place = Place::new();
    run(async {
        let administration = place.administration();
        let new = account_with_key(&administration, "acme").await;
        place.execute("UPDATE accounts SET plan = 'none'").await;
        let (feed, directory) = place.follow();
        assert!(!knows(&directory, &new.key));
        assert_eq!(directory.feed_status().facts().bad_rows, 2);
        administration_of(&place, &feed).set_plan("test", "acme", "team").await.unwrap();
        wait_until("the key is known", || knows(&directory, &new.key));
    });
}

#[test]
fn without_the_store_a_gateway_starts_with_its_copy() {
    let place = Place::new();
    let (new, revoked) = run(async {
        let (feed, directory) = place.follow();
        let administration = administration_of(&place, &feed);
        let new = account_with_key(&administration, "acme").await;
        let revoked = administration.create_key("test", &creation("acme", "second")).await.unwrap();
        administration.revoke_key("test", &revoked.summary.id).await.unwrap();
        assert!(knows(&directory, &new.key));
        (new, revoked)
    });
    let copy = place.file("callers.copy");
    assert_eq!(std::fs::metadata(&copy).unwrap().permissions().mode() & 0o777, 0o600);
    let bytes = std::fs::read(&copy).unwrap();
    assert!(!bytes.windows(32).any(|part| part == new.key.as_bytes()));
    place.hide_store();
    // The last record of a copy may have been written in part.
    std::fs::OpenOptions::new().append(true).open(&copy).unwrap().write_all(&[9, 0, 0, 0, 1]).unwrap();
    let (feed, directory) = place.follow();
    let facts = directory.feed_status().facts();
    assert_eq!((facts.origin, facts.is_connected, facts.keys), (KeysOrigin::Copy, false, 1));
    assert!(facts.error.is_some() && directory.feed_status().not_ready_because().is_none());
    assert!(knows(&directory, &new.key) && !knows(&directory, &revoked.key));
    place.show_store();
    wait_until("the store is used", || directory.feed_status().facts().origin == KeysOrigin::Store);
    let another =
        run(administration_of(&place, &feed).create_key("test", &creation("acme", "third"))).unwrap();
    assert!(knows(&directory, &another.key));
}

/// The suspension of an account whose plan the configuration did not have was in memory, but not in the copy: a restart
/// without the store accepted the account again.
#[test]
fn a_suspension_holds_without_the_store_whatever_else_is_wrong_with_the_row() {
    let place = Place::new();
    let new = run(async {
        let (feed, directory) = place.follow();
        let new = account_with_key(&administration_of(&place, &feed), "acme").await;
        place
            .execute(
                "UPDATE store_state SET revision = revision + 1; UPDATE accounts SET plan = 'none', status = 'suspended', \
                 revision = (SELECT revision FROM store_state);",
            )
            .await;
        let revision = run_revision(&place).await;
        wait_until("the row is read", || directory.feed_status().facts().revision >= revision);
        assert!(!knows(&directory, &new.key));
        new
    });
    place.hide_store();
    let (_feed, directory) = place.follow();
    let facts = directory.feed_status().facts();
    assert_eq!((facts.origin, facts.accounts, facts.keys), (KeysOrigin::Copy, 1, 1));
    assert!(!knows(&directory, &new.key));
}

#[test]
fn without_store_and_copy_a_gateway_waits() {
    let place = Place::new();
    let new = run(async { account_with_key(&place.administration(), "acme").await });
    place.hide_store();
    let (_feed, directory) = place.follow();
    assert!(directory.feed_status().not_ready_because().is_some());
    place.show_store();
    wait_until("the key is known", || knows(&directory, &new.key));
    // The status is written after the keys are effective.
    wait_until("the gateway is ready", || directory.feed_status().not_ready_because().is_none());
}

#[test]
fn a_damaged_copy_is_not_used() {
    let place = Place::new();
    run(async {
        let (feed, _directory) = place.follow();
        account_with_key(&administration_of(&place, &feed), "acme").await;
    });
    place.hide_store();
    let mut bytes = std::fs::read(place.file("callers.copy")).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    std::fs::write(place.file("callers.copy"), bytes).unwrap();
    let (_feed, directory) = place.follow();
    assert!(directory.feed_status().not_ready_because().is_some());
}

/// An operator restored a backup of the store: its revision was lower than the one that the gateway had seen.
#[test]
fn an_older_store_replaces_everything() {
    let place = Place::new();
    run(async {
        let (feed, directory) = place.follow();
        let administration = administration_of(&place, &feed);
        let kept = account_with_key(&administration, "acme").await;
        let lost = administration.create_key("test", &creation("acme", "lost")).await.unwrap();
        assert!(knows(&directory, &lost.key));
        place.execute("DELETE FROM api_keys WHERE name = 'lost'; UPDATE store_state SET revision = 2").await;
        wait_until("the lost key is refused", || !knows(&directory, &lost.key));
        assert!(knows(&directory, &kept.key));
    });
}
