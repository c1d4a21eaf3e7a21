use std::collections::BTreeSet;
use std::time::Duration;

use store::{AccountStatus, AuditRecord, KEY_PAGE_ROWS, KeyStatus, RowPosition, Store, StoreFailure};

use crate::databases::{Database, account, key, on_each_database, run};

#[test]
fn what_was_committed_is_read_and_the_rest_is_not() {
    on_each_database(|store| async move {
        let mut change = store.begin_change().await.unwrap();
        let id = change.insert_account(&account("acme")).await.unwrap();
        change.insert_key(&key(id, 1)).await.unwrap();
        let entry = AuditRecord {
            id: 0,
            at: 5,
            actor: "cli".to_owned(),
            action: "account.create".to_owned(),
            subject: "acme".to_owned(),
            details: "{}".to_owned(),
        };
        change.add_audit_entry(&entry).await.unwrap();
        assert_eq!(change.commit().await, Ok(1));
        let mut change = store.begin_change().await.unwrap();
        change.insert_account(&account("beta")).await.unwrap();
        drop(change);
        assert_eq!(store.newest_change().await.unwrap().0.revision, 1);
        let accounts = store.accounts_after(0).await.unwrap().rows;
        assert_eq!(accounts.iter().map(|account| account.name.as_str()).collect::<Vec<_>>(), ["acme"]);
        assert_eq!(store.keys_of(id, "").await.unwrap().rows, [key(id, 1)]);
        assert_eq!(store.account_named("beta").await, Ok(None));
        let entries = store.audit_entries(None, i64::MAX, 10).await.unwrap().rows;
        assert_eq!(
            entries.into_iter().map(|found| AuditRecord { id: 0, ..found }).collect::<Vec<_>>(),
            [entry]
        );
        store.close().await;
    });
}

#[test]
fn names_are_unique() {
    on_each_database(|store| async move {
        let mut change = store.begin_change().await.unwrap();
        change.insert_account(&account("acme")).await.unwrap();
        change.commit().await.unwrap();
        let mut change = store.begin_change().await.unwrap();
        let again = change.insert_account(&account("acme")).await;
        assert_eq!(again, Err(StoreFailure::AlreadyExists));
        drop(change);
        assert_eq!(store.newest_change().await.unwrap().0.revision, 1);
    });
}

#[test]
fn changed_rows_come_again_with_their_new_values() {
    on_each_database(|store| async move {
        let mut change = store.begin_change().await.unwrap();
        let id = change.insert_account(&account("acme")).await.unwrap();
        change.insert_key(&key(id, 1)).await.unwrap();
        change.insert_key(&key(id, 2)).await.unwrap();
        change.commit().await.unwrap();
        let seen = RowPosition { revision: 1, id: "k_000000000002".to_owned() };
        assert_eq!(store.keys_changed_after(&seen, KEY_PAGE_ROWS).await.unwrap(), []);
        let mut change = store.begin_change().await.unwrap();
        let mut revoked = change.key("k_000000000001").await.unwrap().unwrap();
        (revoked.status, revoked.expires_at) = (KeyStatus::Revoked, Some(7));
        change.update_key(&revoked).await.unwrap();
        let mut suspended = change.account(id).await.unwrap().unwrap();
        suspended.status = AccountStatus::Suspended;
        change.update_account(&suspended).await.unwrap();
        assert_eq!(change.count_valid_keys(id, 6).await, Ok(1));
        change.commit().await.unwrap();
        let changed = store.keys_changed_after(&seen, KEY_PAGE_ROWS).await.unwrap();
        assert_eq!(changed, [(RowPosition { revision: 2, id: revoked.id.clone() }, revoked)]);
        let accounts = store.accounts_changed_after(&RowPosition { revision: 1, id }).await.unwrap();
        assert_eq!(accounts, [(RowPosition { revision: 2, id }, suspended)]);
    });
}

/// Keys were read in pages of 5,000 rows: with long settings, one page took more than 300 MiB.
#[test]
fn many_keys_are_read_in_pages() {
    on_each_database(|store| async move {
        let count = u32::try_from(KEY_PAGE_ROWS).unwrap() + 1;
        let mut change = store.begin_change().await.unwrap();
        let id = change.insert_account(&account("acme")).await.unwrap();
        for number in 0..count {
            change.insert_key(&key(id, number)).await.unwrap();
        }
        change.commit().await.unwrap();
        let (pages, rows) = follow(&store, &mut RowPosition::default()).await;
        assert_eq!((pages, rows.len()), (2, count as usize));
        let first = store.keys_of(id, "").await.unwrap().rows;
        assert_eq!(first.len(), KEY_PAGE_ROWS as usize);
        assert_eq!(store.keys_of(id, &first.last().unwrap().id).await.unwrap().rows.len(), 1);
    });
}

/// Reads all pages after a position: how many there were, and the ids in them.
async fn follow(store: &Store, position: &mut RowPosition<String>) -> (usize, BTreeSet<String>) {
    let (mut pages, mut ids) = (0, BTreeSet::new());
    loop {
        let page = store.keys_changed_after(position, KEY_PAGE_ROWS).await.unwrap();
        let Some((last, _)) = page.last() else { return (pages, ids) };
        *position = last.clone();
        pages += 1;
        ids.extend(page.into_iter().map(|(_, row)| row.id));
    }
}

/// With revisions from a sequence, a follower missed the change that committed later than a change with a higher number.
#[test]
fn a_follower_misses_no_change_of_many_writers() {
    for database in Database::each() {
        run(async {
            let stores = [database.store(), database.store()];
            let mut change = stores[0].begin_change().await.unwrap();
            let account_id = change.insert_account(&account("acme")).await.unwrap();
            change.commit().await.unwrap();
            let writers: Vec<_> = (0..4_u32)
                .map(|writer| {
                    let store = stores[writer as usize % 2].clone();
                    tokio::spawn(async move {
                        for number in 0..25 {
                            let mut change = store.begin_change().await.unwrap();
                            change.insert_key(&key(account_id, writer * 1_000 + number)).await.unwrap();
                            change.commit().await.unwrap();
                        }
                    })
                })
                .collect();
            let (mut position, mut seen) = (RowPosition::default(), BTreeSet::new());
            while !writers.iter().all(|writer| writer.is_finished()) {
                seen.extend(follow(&stores[1], &mut position).await.1);
            }
            seen.extend(follow(&stores[1], &mut position).await.1);
            for writer in writers {
                writer.await.unwrap();
            }
            assert_eq!(seen.len(), 100);
            assert_eq!(stores[0].newest_change().await.unwrap().0.revision, 101);
        });
    }
}

#[test]
fn the_last_use_of_a_key_never_goes_back_and_is_no_change() {
    on_each_database(|store| async move {
        let mut change = store.begin_change().await.unwrap();
        let id = change.insert_account(&account("acme")).await.unwrap();
        change.insert_key(&key(id, 1)).await.unwrap();
        change.commit().await.unwrap();
        for at in [100, 50, 200] {
            store.record_key_uses(&["k_000000000001"], at).await.unwrap();
        }
        store.record_key_uses(&["k_000000000001", "unknown", "\"]'"], 150).await.unwrap();
        store.record_key_uses(&[], 300).await.unwrap();
        assert_eq!(store.keys_of(id, "").await.unwrap().rows[0].last_used_at, Some(200));
        assert_eq!(store.newest_change().await.unwrap().0.revision, 1);
    });
}

#[test]
fn uses_of_many_keys_are_recorded_with_one_statement() {
    on_each_database(|store| async move {
        let mut change = store.begin_change().await.unwrap();
        let id = change.insert_account(&account("acme")).await.unwrap();
        for number in 0..400 {
            change.insert_key(&key(id, number)).await.unwrap();
        }
        change.commit().await.unwrap();
        let ids: Vec<String> = (0..399).map(|number| key(id, number).id).collect();
        let ids: Vec<&str> = ids.iter().map(String::as_str).collect();
        store.record_key_uses(&ids, 7).await.unwrap();
        let keys = store.keys_of(id, "").await.unwrap().rows;
        let used = |key: &&store::KeyRecord| key.last_used_at == Some(7);
        assert_eq!((keys.iter().filter(used).count(), keys[399].last_used_at), (399, None));
    });
}

/// PostgreSQL refuses texts with the character NUL, so a request for such a name was answered as if the store were down.
#[test]
fn a_name_with_nul_is_found_nowhere() {
    on_each_database(|store| async move {
        let mut change = store.begin_change().await.unwrap();
        let id = change.insert_account(&account("acme")).await.unwrap();
        change.insert_key(&key(id, 1)).await.unwrap();
        assert_eq!(change.account_named("ac\0me").await, Ok(None));
        assert_eq!(change.key("k_000000000001\0").await, Ok(None));
        assert_eq!(change.user_with_email("a\0@example.com").await, Ok(None));
        assert_eq!(change.delete_session(1, "\0").await, Ok(false));
        change.commit().await.unwrap();
        assert_eq!(store.account_named("ac\0me").await, Ok(None));
        assert_eq!(store.key("k_000000000001\0").await, Ok(None));
        assert_eq!(store.user_with_email("a\0@example.com").await, Ok(None));
        assert_eq!(store.keys_of(id, "\0").await.unwrap().rows, []);
    });
}

#[test]
fn changes_are_announced_by_postgresql() {
    for database in Database::each() {
        run(async {
            let (follower, writer) = (database.store(), database.store());
            let Some(mut listener) = follower.listen().await.unwrap() else { return };
            let mut change = writer.begin_change().await.unwrap();
            change.insert_account(&account("acme")).await.unwrap();
            change.commit().await.unwrap();
            let announced = tokio::time::timeout(Duration::from_secs(60), listener.changed()).await;
            assert_eq!(announced, Ok(Ok(())));
        });
    }
}
