//! Changes that the store lost are not in effect, and those that it has are, at every point of a revocation.

use std::time::{Duration, Instant};

use callers::administration::{Administration, NewKey};
use callers::{ChangeEffect, Directory, KeysOrigin, Plans};
use store::{KeyStatus, Store, StoreLocation};

use crate::place::{Place, account_with_key, creation, run, wait_until};
use crate::postgres::PostgresServer;
use crate::stalling_proxy::StallingProxy;

fn knows(directory: &Directory, key: &NewKey) -> bool {
    directory.find(key.key.as_bytes()).is_some()
}

fn administration(url: &str) -> Administration {
    Administration::new(Store::new(StoreLocation::parse(url).unwrap()), Plans::default())
}

/// Makes a change until the store can be reached.
async fn until_made<T, E: std::fmt::Debug>(mut change: impl AsyncFnMut() -> Result<T, E>) -> T {
    let deadline = Instant::now() + Duration::from_secs(120);
    loop {
        match change().await {
            Ok(made) => return made,
            Err(error) => assert!(Instant::now() < deadline, "never made: {error:?}"),
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

/// Changes that the copy gets after it has taken the place of the store, in relation to those that it lacks.
#[derive(Clone, Copy, Debug)]
enum NewChanges {
    None,
    Fewer,
    AsMany,
    More,
}

/// A revocation was acknowledged. Then a copy without it took the place of the store, and got other changes. When their number was
/// that of the lost ones, the gateway saw nothing new: revocations that were made in the copy never took effect.
#[test]
fn a_copy_without_the_newest_changes_is_what_counts() {
    let Some(mut server) = PostgresServer::start() else { return };
    let url = server.url();
    for new_changes in [NewChanges::None, NewChanges::Fewer, NewChanges::AsMany, NewChanges::More] {
        let account = format!("{new_changes:?}");
        let [lost, kept, again] = run(async {
            let administration = administration(&url);
            let lost =
                until_made(async || administration.create_account("test", &account, "team").await).await;
            assert_eq!(lost.name, account);
            let mut keys = Vec::new();
            for name in ["lost", "kept", "again"] {
                keys.push(administration.create_key("test", &creation(&account, name)).await.unwrap().made);
            }
            <[NewKey; 3]>::try_from(keys).unwrap()
        });
        server.keep_copy();
        let place = Place::new();
        let (feed, directory) = place.follow_store(StoreLocation::parse(&url).unwrap(), None);
        run(async {
            let administration = administration(&url).with_feed(feed.handle());
            // Two changes that the copy lacks. Both are acknowledged and in effect.
            for key in [&lost, &again] {
                let revoked =
                    until_made(async || administration.revoke_key("test", &key.summary.id).await).await;
                assert_eq!(revoked.effect, ChangeEffect::Now);
                assert!(!knows(&directory, key));
            }
        });
        server.fail_over_to_copy();
        run(async {
            let administration = administration(&url).with_feed(feed.handle());
            let count = match new_changes {
                NewChanges::None => 0,
                NewChanges::Fewer => 1,
                NewChanges::AsMany => 2,
                NewChanges::More => 3,
            };
            for number in 0..count {
                let key = if number == 0 { &kept } else { &again };
                until_made(async || administration.revoke_key("test", &key.summary.id).await).await;
            }
            wait_until("the store is loaded again", || directory.feed_status().facts().lost_histories == 1);
            // The key whose revocation the store lost is accepted again, which the log says. The new revocations are in effect.
            wait_until("the lost revocation is undone", || knows(&directory, &lost));
            wait_until("the new revocations hold", || {
                knows(&directory, &kept) == (count == 0) && knows(&directory, &again) == (count < 2)
            });
            let revoked = administration.revoke_key("test", &lost.summary.id).await.unwrap();
            assert_eq!(revoked.effect, ChangeEffect::Now);
            assert!(!knows(&directory, &lost));
        });
    }
}

/// A connection that hung delayed changes by 5 to 15 seconds.
#[test]
fn changes_are_followed_although_connections_hang() {
    let Some(server) = PostgresServer::start() else { return };
    let proxy = StallingProxy::start(server.socket());
    let proxied = format!("postgres://chaingate@{}/postgres?sslmode=disable", proxy.address());
    run(async {
        let administration = administration(&server.url());
        let new = account_with_key(&administration, "acme").await;
        let place = Place::new();
        let (_feed, directory) = place.follow_store(StoreLocation::parse(&proxied).unwrap(), None);
        assert!(knows(&directory, &new));
        proxy.stall();
        let start = Instant::now();
        administration.revoke_key("test", &new.summary.id).await.unwrap();
        wait_until("the revoked key is refused", || !knows(&directory, &new));
        eprintln!("with connections that hang, a revocation takes {:?}", start.elapsed());
    });
}

/// A backup was put in the place of the file. The gateway read the deleted file for ever.
#[test]
fn a_file_that_is_restored_under_the_gateway_is_followed() {
    let place = Place::new();
    run(async {
        let (first, second) = {
            let administration = place.administration();
            let first = account_with_key(&administration, "acme").await;
            (first, administration.create_key("test", &creation("acme", "second")).await.unwrap())
        };
        place.execute("PRAGMA wal_checkpoint(TRUNCATE)").await;
        std::fs::copy(place.file("callers.sqlite"), place.file("backup")).unwrap();
        let (feed, directory) = place.follow();
        let administration = place.administration().with_feed(feed.handle());
        administration.revoke_key("test", &first.summary.id).await.unwrap();
        assert!(!knows(&directory, &first));
        for suffix in ["-wal", "-shm"] {
            let _absent = std::fs::remove_file(place.file(&format!("callers.sqlite{suffix}")));
        }
        std::fs::rename(place.file("backup"), place.file("callers.sqlite")).unwrap();
        wait_until("the backup is followed", || knows(&directory, &first));
        assert_eq!(directory.feed_status().facts().lost_histories, 1);
        let revoked = until_made(async || administration.revoke_key("test", &second.summary.id).await).await;
        assert_eq!(revoked.effect, ChangeEffect::Now);
        assert!(!knows(&directory, &second));
    });
}

/// A gateway that was started without its store served keys that had been revoked meanwhile, for as long as the store was down.
#[test]
fn a_copy_that_is_too_old_is_not_used() {
    let place = Place::new();
    let new = run(async {
        let (feed, _directory) = place.follow();
        account_with_key(&place.administration().with_feed(feed.handle()), "acme").await
    });
    place.hide_store();
    std::thread::sleep(Duration::from_millis(2_100));
    {
        let (_feed, directory) = place.follow_store(place.location(), Some(Duration::from_secs(1)));
        let reason = directory.feed_status().not_ready_because().unwrap();
        assert!(reason.contains("copy_age_max_s"), "{reason}");
        assert!(!knows(&directory, &new));
        assert_eq!(directory.feed_status().facts().origin, KeysOrigin::Nothing);
        place.show_store();
        wait_until("the store is used", || directory.feed_status().not_ready_because().is_none());
        assert!(knows(&directory, &new));
        place.hide_store();
    }
    let (_feed, directory) = place.follow_store(place.location(), Some(Duration::from_secs(3_600)));
    assert_eq!(directory.feed_status().not_ready_because(), None);
    assert!(knows(&directory, &new));
}

#[test]
fn a_gateway_that_has_not_followed_the_store_for_too_long_is_not_ready() {
    let place = Place::new();
    run(async {
        let new = account_with_key(&place.administration(), "acme").await;
        let (_feed, directory) = place.follow_store(place.location(), Some(Duration::from_secs(3)));
        wait_until("the gateway is ready", || directory.feed_status().not_ready_because().is_none());
        place.hide_store();
        wait_until("the gateway is not ready", || directory.feed_status().not_ready_because().is_some());
        assert!(knows(&directory, &new), "known callers are still served");
        place.show_store();
        wait_until("the gateway is ready again", || directory.feed_status().not_ready_because().is_none());
    });
}

/// Nobody could revoke a key while the store was down.
#[test]
fn a_key_is_revoked_on_one_gateway_while_the_store_is_down() {
    use callers::administration::LocalKey;

    let place = Place::new();
    let (named, by_id) = run(async {
        let (feed, _directory) = place.follow();
        let administration = place.administration().with_feed(feed.handle());
        let named = account_with_key(&administration, "acme").await;
        (named, administration.create_key("test", &creation("acme", "second")).await.unwrap())
    });
    place.hide_store();
    {
        let (feed, directory) = place.follow();
        let administration = place.administration().with_feed(feed.handle());
        assert!(knows(&directory, &named) && knows(&directory, &by_id));
        let name = LocalKey::Named { account: "acme".to_owned(), name: "first".to_owned() };
        assert_eq!(administration.revoke_key_here("ada", &name).unwrap(), named.summary.id);
        assert!(!knows(&directory, &named), "it takes effect at once");
        administration.revoke_key_here("ada", &LocalKey::Id(by_id.summary.id.clone())).unwrap();
        assert!(!knows(&directory, &by_id));
        let unknown = LocalKey::Named { account: "acme".to_owned(), name: "none".to_owned() };
        assert!(administration.revoke_key_here("ada", &unknown).is_err());
    }
    let (_feed, directory) = place.follow();
    assert!(!knows(&directory, &named) && !knows(&directory, &by_id), "it holds after a restart");
    place.show_store();
    run(async {
        let store = Store::new(place.location());
        for key in [&named, &by_id] {
            until_made(async || {
                let row = store.key(&key.summary.id).await.map_err(|error| error.to_string())?;
                row.filter(|row| row.status == KeyStatus::Revoked).ok_or_else(|| "not revoked yet".to_owned())
            })
            .await;
        }
        let entries = place.administration().audit_entries(None, None, 2).await.unwrap().rows;
        assert!(entries.iter().all(|entry| entry.action == "key.revoke" && entry.actor == "ada"));
        assert!(!knows(&directory, &named) && !knows(&directory, &by_id));
    });
}

/// Without a gateway that runs, a command said that there is no key with this name, although it had not looked for it.
#[test]
fn a_key_is_revoked_on_a_gateway_that_does_not_run() {
    use callers::LocalRevocations;
    use callers::administration::{AdministrationError, LocalKey};

    let place = Place::new();
    let new = run(async {
        let (feed, _directory) = place.follow();
        account_with_key(&place.administration().with_feed(feed.handle()), "acme").await
    });
    let store = place.file("callers.sqlite");
    let revoked = LocalRevocations::open(store.parent().unwrap()).unwrap();
    let administration = place.administration().with_local_revocations(revoked);
    let name = LocalKey::Named { account: "acme".to_owned(), name: "first".to_owned() };
    let refused = administration.revoke_key_here("ada", &name);
    assert!(matches!(refused, Err(AdministrationError::Invalid { field: "id", .. })), "{refused:?}");
    administration.revoke_key_here("ada", &LocalKey::Id(new.summary.id.clone())).unwrap();
    place.hide_store();
    let (_feed, directory) = place.follow();
    assert_eq!(directory.feed_status().facts().origin, KeysOrigin::Copy);
    assert!(!knows(&directory, &new));
}
