use std::collections::BTreeSet;

use sqlx::AssertSqlSafe;

use super::*;
use crate::location::StoreLocation;

/// Rows of every table.
const ROWS: usize = 100_000;

/// A SQLite file with [`ROWS`] accounts, keys and users of one account, and entries of the audit log.
async fn large_store(folder: &tempfile::TempDir) -> Store {
    let store = Store::new(StoreLocation::in_data_dir(folder.path()));
    let numbers = format!(
        "WITH RECURSIVE numbers (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < {ROWS})"
    );
    let inserts = [
        "INSERT INTO accounts (name, plan, status, created_at, revision)
         SELECT 'Account ' || n, 'core', 'active', n, 1 FROM numbers",
        "INSERT INTO api_keys (id, account_id, name, prefix, hash, created_at, status, settings, revision)
         SELECT printf('k_%012x', n), 7, 'Key ' || n, printf('%06x', n * 31), randomblob(32), n / 3,
             CASE n % 4 WHEN 0 THEN 'revoked' ELSE 'active' END, '{}', 1 FROM numbers",
        "INSERT INTO users (email, role, account_id, status, created_at)
         SELECT 'user' || n || '@example.com', 'developer', 7, 'active', n FROM numbers",
        "INSERT INTO audit_entries (at, actor, action, subject, details)
         SELECT n, 'user:ada' || (n % 10) || '@example.com', CASE n % 2 WHEN 0 THEN 'key.create' ELSE 'key.revoke' END,
             'Subject ' || n, '{}' FROM numbers",
    ];
    let Ok(OnBackend::Sqlite(pool)) = store.pool().await else { panic!("no SQLite") };
    for insert in inserts {
        let (target, select) = insert.split_once("SELECT").unwrap();
        let statement = format!("{target} {numbers} SELECT {select}");
        sqlx::query(AssertSqlSafe(statement)).execute(pool).await.unwrap();
    }
    store
}

/// Reads a list to its end; `read` gives the page after a position.
async fn read_all<T: Clone, P>(
    read: impl AsyncFn(Option<P>) -> ListPage<T>,
    position: impl Fn(&T) -> P,
) -> Vec<T> {
    let (mut all, mut after) = (Vec::new(), None);
    loop {
        let page = read(after).await;
        after = page.next(&position);
        all.extend(page.rows);
        if after.is_none() {
            return all;
        }
    }
}

/// Lists ended at 500 rows, so that a leaked older key could not be found. Every row is on exactly one page.
#[tokio::test]
async fn every_row_of_a_long_list_is_on_one_page() {
    let folder = tempfile::tempdir().unwrap();
    let store = large_store(&folder).await;
    let keys = read_all(
        async |after: Option<KeyAgePosition>| store.keys_by_age(7, after.as_ref(), 5_000).await.unwrap(),
        KeyAgePosition::of,
    )
    .await;
    assert_eq!(keys.iter().map(|key| &key.id).collect::<BTreeSet<_>>().len(), ROWS);
    assert_eq!(store.key_counts(7, 0).await.unwrap(), KeyCounts { all: 100_000, valid: 75_000 });
    let order = |key: &KeyRecord| (KeyAgePosition::of(key).is_active, key.created_at);
    assert!(keys.is_sorted_by(|before, after| order(before) >= order(after)));
    let named = read_all(
        async |after: Option<NamePosition<String>>| {
            store.keys_by_name(7, "KEY 99", after.as_ref(), 100).await.unwrap()
        },
        |key: &KeyRecord| NamePosition::new(&key.name, key.id.clone()),
    )
    .await;
    assert_eq!(named.len() as i64, store.count_keys_by_name(7, "kEY 99").await.unwrap());
    assert_eq!(named.len(), 1_111, "99, 990 to 999, 9900 to 9999 and 99000 to 99999");
    let accounts = read_all(
        async |after: Option<NamePosition<i64>>| {
            store.accounts_by_name("aCCount 5", after.as_ref(), 5_000).await.unwrap()
        },
        |account: &AccountRecord| NamePosition::new(&account.name, account.id),
    )
    .await;
    assert_eq!(accounts.len() as i64, store.count_accounts("account 5").await.unwrap());
    assert_eq!(accounts.len(), 11_111);
    let entries = read_all(
        async |before: Option<i64>| {
            store.audit_entries(Some(&search()), before.unwrap_or(i64::MAX), 5_000).await.unwrap()
        },
        |entry: &AuditRecord| entry.id,
    )
    .await;
    assert_eq!(entries.len() as i64, store.count_audit_entries(Some(&search())).await.unwrap());
    assert_eq!(entries.len(), 60_000 + 1, "a tenth has the actor, half the action, and one more the subject");
    assert_eq!(store.count_audit_entries(None).await, Ok(100_000));
    let users = store.users_by_email(Some(7), "USER99999", None, 10).await.unwrap();
    assert_eq!((users.rows.len(), users.has_more), (1, false));
    assert_eq!(store.count_users(7, "").await, Ok(100_000));
}

fn search() -> AuditSearch {
    AuditSearch {
        subject: "SUBJECT 8".to_owned(),
        actor: "user:ada4@example.com".to_owned(),
        action: "key.revoke".to_owned(),
    }
}

#[tokio::test]
async fn a_key_is_found_by_its_first_characters_and_by_its_id() {
    let folder = tempfile::tempdir().unwrap();
    let store = large_store(&folder).await;
    for account in [None, Some(7)] {
        for start in ["00001F", "K_000000000001"] {
            let found = store.keys_by_prefix(account, start, 20).await.unwrap();
            assert_eq!(found.rows[0].id, "k_000000000001", "{start}");
            assert!(!found.has_more);
        }
        let found = store.keys_by_prefix(account, "0", 20).await.unwrap();
        assert!(found.rows.len() == 20 && found.has_more);
    }
    assert!(store.keys_by_prefix(Some(8), "00001f", 20).await.unwrap().rows.is_empty());
    assert!(store.keys_by_prefix(None, "\0", 20).await.unwrap().rows.is_empty());
}

/// A list that reads a whole table for each page occupies the store as soon as the table is large.
#[tokio::test]
async fn no_page_reads_a_whole_table() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::new(StoreLocation::in_data_dir(folder.path()));
    let Ok(OnBackend::Sqlite(pool)) = store.pool().await else { panic!("no SQLite") };
    for statement in [
        ACCOUNTS_BY_NAME,
        COUNT_ACCOUNTS,
        KEYS_BY_AGE,
        KEYS_BY_NAME,
        COUNT_KEYS_BY_NAME,
        KEYS_BY_PREFIX,
        KEYS_OF_ACCOUNT_BY_PREFIX,
        COUNT_KEYS,
        AUDIT_ENTRIES,
        FOUND_AUDIT_ENTRIES,
        COUNT_FOUND_AUDIT_ENTRIES,
    ] {
        let explained = sqlx::query(AssertSqlSafe(format!("EXPLAIN QUERY PLAN {statement}")));
        let plan = explained.fetch_all(pool).await.unwrap();
        let steps: Vec<String> = plan.iter().map(|step| step.get(3)).collect();
        for table in ["accounts", "api_keys", "audit_entries"] {
            assert!(
                !steps.iter().any(|step| step.starts_with(&format!("SCAN {table}"))),
                "{statement}: {steps:?}"
            );
        }
        let sorts_all = steps.iter().any(|step| step.contains("FOR ORDER BY"));
        assert!(!sorts_all || statement.contains("UNION"), "{statement}: {steps:?}");
    }
}
