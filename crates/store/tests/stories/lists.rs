//! Lists for people have the same order in both kinds of databases.

use store::{AuditRecord, AuditSearch, KeyAgePosition, KeyCounts, KeyDaySum, KeyStatus, NamePosition, Store};

use crate::databases::{account, key, on_each_database, user};

/// Two accounts; the first one has 30 keys, of which ten are revoked, and two users.
async fn fill(store: &Store) -> i64 {
    let mut change = store.begin_change().await.unwrap();
    let acme = change.insert_account(&account("Acme Ltd")).await.unwrap();
    change.insert_account(&account("acme labs")).await.unwrap();
    for number in 0..30 {
        let mut key = key(acme, number);
        (key.name, key.prefix) = (format!("Key {number:02}"), format!("{number:02x}a1b2"));
        key.created_at += i64::from(number / 2);
        if number % 3 == 0 {
            key.status = KeyStatus::Revoked;
        }
        change.insert_key(&key).await.unwrap();
        let entry = AuditRecord {
            id: 0,
            at: 5,
            actor: "user:ada@example.com".to_owned(),
            action: "key.create".to_owned(),
            subject: key.id,
            details: "{}".to_owned(),
        };
        change.add_audit_entry(&entry).await.unwrap();
    }
    for email in ["bob@example.com", "ada@example.com"] {
        change.insert_user(&user(email, Some(acme))).await.unwrap();
    }
    change.commit().await.unwrap();
    acme
}

#[test]
fn keys_that_are_not_revoked_come_first_and_the_newest_before_the_others() {
    on_each_database(|store| async move {
        let acme = fill(&store).await;
        let (mut keys, mut after) = (Vec::new(), None);
        loop {
            let page = store.keys_by_age(acme, after.as_ref(), 7).await.unwrap();
            after = page.next(KeyAgePosition::of);
            keys.extend(page.rows);
            if after.is_none() {
                break;
            }
        }
        assert_eq!(keys.len(), 30);
        let order =
            |key: &store::KeyRecord| (key.status == KeyStatus::Active, key.created_at, key.id.clone());
        assert!(keys.is_sorted_by(|before, after| order(before) > order(after)));
        assert_eq!(store.key_counts(acme, 0).await, Ok(KeyCounts { all: 30, valid: 20 }));
    });
}

#[test]
fn rows_are_found_whatever_the_case_of_the_search() {
    on_each_database(|store| async move {
        let acme = fill(&store).await;
        let accounts = store.accounts_by_name("ACME", None, 1).await.unwrap();
        assert!(accounts.rows[0].name == "acme labs" && accounts.has_more);
        let next = NamePosition::new(&accounts.rows[0].name, accounts.rows[0].id);
        let rest = store.accounts_by_name("ACME", Some(&next), 1).await.unwrap();
        assert!(rest.rows[0].id == acme && !rest.has_more);
        assert_eq!(store.count_accounts("acme l").await, Ok(2));
        assert_eq!(store.keys_by_name(acme, "kEY 1", None, 20).await.unwrap().rows.len(), 10);
        assert_eq!(store.count_keys_by_name(acme, "key 1").await, Ok(10));
        for account in [None, Some(acme)] {
            let found = store.keys_by_prefix(account, "1DA1", 5).await.unwrap();
            assert_eq!(found.rows[0].name, "Key 29");
            assert_eq!(store.keys_by_prefix(account, "K_00000000001d", 5).await.unwrap(), found);
        }
        let users = store.users_by_email(Some(acme), "A", None, 5).await.unwrap();
        assert_eq!(users.rows[0].user.email, "ada@example.com");
        assert_eq!(store.users_by_email(None, "", None, 5).await.unwrap().rows.len(), 2);
        assert_eq!(store.count_users(acme, "").await, Ok(2));
    });
}

#[test]
fn audit_entries_are_found_by_subject_actor_and_action() {
    on_each_database(|store| async move {
        fill(&store).await;
        for (subject, actor, action, count) in [
            ("K_00000000001d", "", "", 1),
            ("", "user:ada@example.com", "", 30),
            ("", "", "key.create", 30),
            ("", "user:ada", "key.revoke", 0),
        ] {
            let search = [subject, actor, action].map(str::to_owned);
            let [subject, actor, action] = search;
            let search = AuditSearch { subject, actor, action };
            let page = store.audit_entries(Some(&search), i64::MAX, 20).await.unwrap();
            assert_eq!((page.rows.len(), page.has_more), (count.min(20), count > 20));
            assert_eq!(store.count_audit_entries(Some(&search)).await, Ok(count as i64));
        }
        assert_eq!(store.count_audit_entries(None).await, Ok(30));
    });
}

#[test]
fn the_usage_of_the_keys_of_a_page_is_read_alone() {
    on_each_database(|store| async move {
        let sums: Vec<KeyDaySum> = store.key_day_sums("Acme Ltd", &["k_1"], 0).await.unwrap();
        assert_eq!(sums, []);
    });
}
