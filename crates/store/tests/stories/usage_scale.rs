//! Days with so many rows of usage that no statement may read them all.
//!
//! `CHAINGATE_USAGE_ROWS=1000000` makes that many rows of one day, prints how long each statement took, and fails if one of a
//! report took more than 200 ms.

use std::env;
use std::thread;
use std::time::Duration;

use store::{
    Store, UsageCounts, UsageDimension, UsageFlush, UsageGroup, UsageQuery, UsageRow, UsageStep, UsedKey,
};

use crate::databases::{Database, run};
use crate::postgres::PostgresServer;
use crate::versions::execute;

/// 2026-11-17T00:00:00Z
const DAY: u64 = 1_794_873_600;

/// Rows of each table in every run of the tests.
const FEW_ROWS: u64 = 30_000;

/// Rows of one key: methods.
const METHODS: u64 = 10;

/// Keys of one account.
const KEYS: u64 = 10;

/// How long a statement of a report may take in PostgreSQL.
const STATEMENT_MS_MAX: f64 = 200.0;

fn row(account: &str, key: &str) -> UsageRow {
    let group = UsageGroup {
        starts_at: DAY,
        network: "demo".into(),
        account: account.into(),
        key: key.into(),
        method: "eth_0".into(),
        outcome: "ok".into(),
        tag: "".into(),
    };
    UsageRow { group, counts: UsageCounts { calls: 1, credits: 5, latency_ns: 13, ..UsageCounts::default() } }
}

fn query(by: &[UsageDimension]) -> UsageQuery {
    UsageQuery {
        step: UsageStep::Day,
        since: DAY,
        until: DAY + 86_400,
        account: None,
        key: None,
        network: None,
        tag: None,
        by: by.iter().copied().collect(),
        accounts: None,
        keys: None,
    }
}

async fn calls(store: &Store, by: UsageDimension) -> u64 {
    let rows = store.usage(&query(&[by]), usize::MAX).await.unwrap();
    rows.iter().map(|row| row.counts.calls).sum()
}

async fn add(store: &Store, sequence: u64, rows: &[UsageRow]) {
    let (instance, after) = ("00000000000000aa", sequence - 1);
    let flush = UsageFlush { instance, epoch: 1, after, through: sequence, rows };
    store.add_usage(&flush, DAY).await.unwrap();
}

/// The tables as an earlier version has left them.
const WITHOUT_SUMS: &str = "DELETE FROM usage_account_minutes; DELETE FROM usage_account_hours; \
    DELETE FROM usage_account_days; DELETE FROM usage_network_minutes; DELETE FROM usage_network_hours; \
    DELETE FROM usage_network_days; DELETE FROM usage_day_accounts; DELETE FROM usage_day_keys WHERE account <> ''; \
    INSERT INTO usage_fills (step, account, starts_at) VALUES ('minute', '', 0), ('hour', '', 0), ('day', '', 0)";

/// The sums of one account, which were made before the upgrade.
const PART_OF_SUMS: &str = "INSERT INTO usage_day_accounts (account, day, credits) VALUES ('account 0', 1794873600, 10); \
    INSERT INTO usage_day_keys (account, key_id, day, credits) VALUES ('account 0', 'k_0', 1794873600, 5); \
    UPDATE usage_fills SET account = 'account 0', starts_at = 1794873600 WHERE step = 'day'";

/// Sums up all usage, as after an upgrade.
const SUM_UP: &str = include_str!("../../src/migrations/7.sql");

#[test]
fn usage_of_an_earlier_version_is_summed_up_once() {
    for database in Database::each() {
        run(async {
            let store = database.store();
            let rows: Vec<_> =
                (0..6_000).map(|key| row(&format!("account {}", key / 2), &format!("k_{key}"))).collect();
            add(&store, 1, &rows).await;
            add(&store, 2, &[row("", "partner:a")]).await;
            execute(&database, [WITHOUT_SUMS; 2]).await;
            // Sums that were made before the upgrade are not counted twice.
            execute(&database, [PART_OF_SUMS; 2]).await;
            execute(&database, [SUM_UP; 2]).await;
            add(&store, 3, &[row("account 0", "k_0"), row("account 2999", "k_5999")]).await;
            execute(&database, [SUM_UP; 2]).await;
            for by in [UsageDimension::Key, UsageDimension::Account, UsageDimension::Outcome] {
                assert_eq!(calls(&store, by).await, 6_002, "{by:?}");
            }
            let mut totals = Vec::new();
            store.credits_of_day(DAY, |total| totals.push(total)).await.unwrap();
            let (of_keys, of_accounts): (Vec<_>, Vec<_>) =
                totals.into_iter().partition(|total| total.key.is_some());
            let (of_gateway, of_keys): (Vec<_>, Vec<_>) =
                of_keys.into_iter().partition(|total| total.account.is_empty());
            assert_eq!((of_gateway.len(), of_keys.len(), of_accounts.len()), (1, 6_000, 3_000));
            for totals in [of_keys, of_accounts] {
                assert_eq!(totals.iter().map(|total| total.credits).sum::<u64>(), 5 * 6_002);
            }
        });
    }
}

/// Makes rows of one day: ten methods of each key, ten keys of each account.
fn make_rows(server: &PostgresServer, rows: u64) {
    let counts = (0..15).map(|bucket| format!("latency_{bucket}")).collect::<Vec<_>>().join(", ");
    let zeros = vec!["0"; 15].join(", ");
    for table in ["usage_minutes", "usage_hours", "usage_days"] {
        server.run(&format!(
            "INSERT INTO {table} (account, starts_at, network, key_id, method, outcome, calls, credits, bytes_in, \
             bytes_out, latency_ns, {counts}) SELECT 'account ' || lpad((k / {KEYS})::text, 8, '0'), {DAY}, 'demo', \
             'k_' || lpad(k::text, 8, '0'), 'eth_' || m, 'ok', 1, 5, 7, 11, 13, {zeros} \
             FROM generate_series(0, {} - 1) k, generate_series(0, {METHODS} - 1) m",
            rows / METHODS
        ));
    }
    server.run(
        "INSERT INTO usage_fills (step, account, starts_at) VALUES ('minute', '', 0), ('hour', '', 0), ('day', '', 0)",
    );
}

/// The questions of a gateway and its console about a day.
async fn ask_everything(store: &Store) {
    let time = (DAY, DAY + 86_400);
    for by in [&[][..], &[UsageDimension::Method], &[UsageDimension::Network, UsageDimension::Outcome]] {
        store.usage(&query(by), 1_000).await.unwrap();
    }
    let accounts = store.used_accounts(time, "account 00000020", 100).await.unwrap();
    let range = Some(("account 00000020".to_owned(), accounts.last().unwrap().clone()));
    let by_account = UsageQuery { accounts: range, ..query(&[UsageDimension::Account]) };
    assert_eq!(store.usage(&by_account, 1_000).await.unwrap().len(), 100);
    let after = UsedKey { account: "account 00000020".to_owned(), key: "k_00000205".to_owned() };
    assert_eq!(store.used_keys(time, None, &after, 100).await.unwrap().len(), 100);
    let account = Some("account 00000030".to_owned());
    let of_account = UsageQuery { account: account.clone(), ..query(&[UsageDimension::Method]) };
    assert_eq!(store.usage(&of_account, 1_000).await.unwrap().len(), METHODS as usize);
    let keys = store.used_keys(time, account.as_deref(), &UsedKey::default(), 5).await.unwrap();
    let range = Some((keys[0].key.clone(), keys[4].key.clone()));
    let by_key = UsageQuery { account: account.clone(), keys: range, ..query(&[UsageDimension::Key]) };
    assert_eq!(store.usage(&by_key, 1_000).await.unwrap().len(), 4);
    assert_eq!(store.accounts_with_key("k_00000300", 10).await.unwrap(), ["account 00000030"]);
    let key = Some("k_00000300".to_owned());
    assert_eq!(
        store.usage(&UsageQuery { account, key, ..query(&[]) }, 10).await.unwrap()[0].counts.calls,
        10
    );
    let rows: Vec<_> = (0..100).map(|key| row("account 00000001", &format!("k_{key:08}"))).collect();
    add(store, 1, &rows).await;
}

/// Rows and entries of indexes that were read in tables of usage.
fn read_rows(server: &PostgresServer) -> u64 {
    // A session reports what it has read when it ends.
    while server.run("SELECT COUNT(*) FROM pg_stat_activity WHERE application_name = 'chaingate'") != "0" {
        thread::sleep(Duration::from_millis(50));
    }
    let read = server.run(
        "SELECT (SELECT COALESCE(SUM(seq_tup_read), 0) FROM pg_stat_user_tables WHERE relname LIKE 'usage%') \
         + (SELECT COALESCE(SUM(idx_tup_read), 0) FROM pg_stat_user_indexes WHERE relname LIKE 'usage%')",
    );
    read.parse().unwrap()
}

/// A report of all accounts read the whole day and was cancelled after ten seconds, and every gateway read all of it every half
/// minute to know the credits that were used.
#[test]
fn no_statement_reads_all_usage_of_a_day() {
    let Some(mut server) = PostgresServer::start() else { return };
    let wanted = env::var("CHAINGATE_USAGE_ROWS").ok().map(|rows| rows.parse::<u64>().unwrap());
    if wanted.is_some() {
        server.run("ALTER SYSTEM SET shared_preload_libraries = 'pg_stat_statements'");
        server.kill();
        server.restart();
        server.run("CREATE EXTENSION pg_stat_statements");
    }
    let rows = wanted.unwrap_or(FEW_ROWS);
    let database = Database::Postgres(server);
    let Database::Postgres(server) = &database else { return };
    run(async { database.store().prepare().await.unwrap() });
    make_rows(server, rows);
    server.run("ANALYZE");
    server.run(SUM_UP);
    server.run("ANALYZE");
    if wanted.is_some() {
        print_slowest(server, "filling");
    }
    let before = read_rows(server);
    run(async {
        let store = database.store();
        ask_everything(&store).await;
        store.close().await;
    });
    let read = read_rows(server) - before;
    assert!(read < FEW_ROWS / 3, "{read} rows were read");
    run(async {
        let store = database.store();
        let mut totals = 0;
        store.credits_of_day(DAY, |_| totals += 1).await.unwrap();
        assert!(totals >= rows / METHODS + rows / METHODS / KEYS);
        for step in UsageStep::ALL {
            assert!(store.delete_usage_before(step, DAY + 86_400).await.unwrap() <= 5 * 5_000);
        }
        store.close().await;
    });
    if wanted.is_some() {
        let slowest = print_slowest(server, "reports, flushes and deletions");
        assert!(slowest < STATEMENT_MS_MAX, "a statement took {slowest} ms");
    }
}

/// A report about a key by minute read what all keys of its account had used in that time.
#[test]
fn a_report_of_a_key_by_minute_reads_no_other_keys() {
    let Some(server) = PostgresServer::start() else { return };
    let database = Database::Postgres(server);
    let Database::Postgres(server) = &database else { return };
    const MINUTES: u64 = 2_000;
    const KEYS: u64 = 20;
    run(async { database.store().prepare().await.unwrap() });
    let zeros = vec!["0"; 15].join(", ");
    server.run(&format!(
        "INSERT INTO usage_minutes SELECT 'acme', {DAY} + 60 * m, 'demo', 'k_' || k, 'eth_0', 'ok', 1, 5, 7, 11, 13, {zeros} \
         FROM generate_series(0, {MINUTES} - 1) m, generate_series(1, {KEYS}) k"
    ));
    server.run("INSERT INTO usage_fills (step, account, starts_at) VALUES ('minute', '', 0)");
    server.run(SUM_UP);
    server.run("ANALYZE");
    let before = read_rows(server);
    run(async {
        let store = database.store();
        let (account, key) = (Some("acme".to_owned()), Some("k_7".to_owned()));
        let until = DAY + 2 * 86_400;
        let of_key =
            UsageQuery { step: UsageStep::Minute, until, account, key, ..query(&[UsageDimension::Time]) };
        let rows = store.usage(&of_key, usize::MAX).await.unwrap();
        assert!(rows.is_sorted_by_key(|row| row.group.starts_at));
        assert_eq!(rows.len() as u64, MINUTES);
        assert_eq!(store.usage(&of_key, 3).await.unwrap(), rows[..3]);
        let total = store.usage(&UsageQuery { by: [].into(), ..of_key }, 1).await.unwrap();
        assert_eq!((total.len(), total[0].counts.calls), (1, MINUTES));
        store.close().await;
    });
    let read = read_rows(server) - before;
    // Three reports, each of the minutes of one key, and the networks of those minutes.
    assert!(read < MINUTES * KEYS / 2, "{read} rows were read");
}

/// A page of a report about a day read all accounts or keys of that day, or those of all other days before them.
#[test]
fn a_page_of_accounts_or_keys_reads_no_others() {
    const DAYS: u64 = 30;
    const USED: u64 = 1_000;
    let Some(server) = PostgresServer::start() else { return };
    let database = Database::Postgres(server);
    let Database::Postgres(server) = &database else { return };
    run(async { database.store().prepare().await.unwrap() });
    for (letter, days) in [('a', format!("1, {DAYS}")), ('b', "0, 0".to_owned())] {
        let used = format!("generate_series(0, {USED} - 1) k, generate_series({days}) d");
        let (account, day) = (format!("'{letter} ' || lpad(k::text, 4, '0')"), format!("{DAY} - 86400 * d"));
        server.run(&format!("INSERT INTO usage_day_accounts SELECT {account}, {day}, 1 FROM {used}"));
        server.run(&format!("INSERT INTO usage_day_keys SELECT {account}, 'k_' || k, {day}, 1 FROM {used}"));
    }
    server.run("ANALYZE");
    let (today, no_key) = ((DAY, DAY + 86_400), UsedKey::default());
    let before = read_rows(server);
    run(async {
        let store = database.store();
        let accounts = store.used_accounts(today, "", 10).await.unwrap();
        assert_eq!((accounts.len(), accounts[0].as_str(), accounts[9].as_str()), (10, "b 0000", "b 0009"));
        assert_eq!(store.used_accounts(today, &accounts[9], 10).await.unwrap()[0], "b 0010");
        let keys = store.used_keys(today, None, &no_key, 10).await.unwrap();
        assert_eq!((keys.len(), keys[0].key.as_str(), keys[9].key.as_str()), (10, "k_0", "k_9"));
        assert_eq!(store.used_keys(today, None, &keys[9], 10).await.unwrap()[0].key, "k_10");
        assert_eq!(store.used_keys(today, Some("b 0002"), &no_key, 10).await.unwrap().len(), 1);
        store.close().await;
    });
    let read = read_rows(server) - before;
    assert!(read < USED / 2, "{read} rows were read");
    run(async {
        let store = database.store();
        let (week, ever, never) = ((DAY - 6 * 86_400 + 1, DAY + 1), (0, DAY + 1), (DAY, DAY));
        for (time, used) in [(today, USED), (week, 2 * USED), (ever, 2 * USED), (never, 0)] {
            assert_eq!(store.used_accounts(time, "", 5_000).await.unwrap().len() as u64, used, "{time:?}");
            assert_eq!(
                store.used_keys(time, None, &no_key, 5_000).await.unwrap().len() as u64,
                used,
                "{time:?}"
            );
        }
        assert_eq!(store.used_accounts(week, "a 0990", 20).await.unwrap()[8..10], ["a 0999", "b 0000"]);
        store.close().await;
    });
}

/// Prints the slowest statements since the last time. Returns the milliseconds of the slowest.
fn print_slowest(server: &PostgresServer, what: &str) -> f64 {
    let slowest = server.run(
        "SELECT round(max_exec_time::numeric, 1), calls, left(regexp_replace(query, '\\s+', ' ', 'g'), 150) \
         FROM pg_stat_statements WHERE query LIKE '%usage%' AND query NOT LIKE '%pg_stat%' \
         AND query NOT LIKE '%generate_series%' ORDER BY max_exec_time DESC LIMIT 12",
    );
    eprintln!("{what}: milliseconds, calls, statement\n{slowest}");
    server.run("SELECT pg_stat_statements_reset()");
    slowest.split('|').next().and_then(|ms| ms.parse().ok()).unwrap_or(0.0)
}
