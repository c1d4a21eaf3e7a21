//! Usage is counted once, summed up in three steps, reported and deleted.

use std::collections::BTreeSet;

use store::{
    DayTotal, Store, UsageCounts, UsageDimension, UsageFlush, UsageGroup, UsageQuery, UsageRow, UsageStep,
    UsedKey,
};

use crate::databases::on_each_database;

/// 2026-11-17T00:00:00Z
const DAY: u64 = 1_794_873_600;

fn row(starts_at: u64, key: &str, method: &str, calls: u64) -> UsageRow {
    let group = UsageGroup {
        starts_at,
        network: "demo".into(),
        account: "a".into(),
        key: key.into(),
        method: method.into(),
        outcome: "ok".into(),
        tag: "".into(),
    };
    let mut counts = UsageCounts {
        calls,
        credits: 5 * calls,
        bytes_in: 7 * calls,
        bytes_out: 11 * calls,
        latency_ns: 13 * calls,
        ..UsageCounts::default()
    };
    counts.latency_buckets[0] = calls;
    UsageRow { group, counts }
}

fn flush(after: u64, through: u64, rows: &[UsageRow]) -> UsageFlush<'_> {
    UsageFlush { instance: "00000000000000aa", epoch: 1, after, through, rows }
}

fn query(step: UsageStep, by: &[UsageDimension]) -> UsageQuery {
    UsageQuery {
        step,
        since: DAY,
        until: DAY + 86_400,
        account: Some("a".to_owned()),
        key: None,
        network: None,
        tag: None,
        by: by.iter().copied().collect(),
        accounts: None,
        keys: None,
    }
}

async fn calls(store: &Store, step: UsageStep) -> u64 {
    store.usage(&query(step, &[]), 10).await.unwrap()[0].counts.calls
}

#[test]
fn a_batch_that_is_sent_again_counts_once() {
    on_each_database(|store| async move {
        let (first, second) = ([row(DAY, "k", "eth_call", 3)], [row(DAY, "k", "eth_call", 4)]);
        assert_eq!(store.add_usage(&flush(0, 2, &first), DAY).await.unwrap().through, 2);
        assert_eq!(
            store.add_usage(&flush(0, 2, &first), DAY).await.unwrap().through,
            2,
            "its reply was lost"
        );
        let both = [row(DAY, "k", "eth_call", 7)];
        assert_eq!(
            store.add_usage(&flush(0, 5, &both), DAY).await.unwrap().through,
            2,
            "some of it is stored"
        );
        assert_eq!(store.add_usage(&flush(2, 5, &second), DAY).await.unwrap().through, 5);
        let other = UsageFlush { epoch: 2, ..flush(0, 1, &first) };
        assert_eq!(
            store.add_usage(&other, DAY).await.unwrap().through,
            1,
            "another process has its own numbers"
        );
        for step in UsageStep::ALL {
            assert_eq!(calls(&store, step).await, 10, "{step:?}");
        }
    });
}

#[test]
fn usage_is_summed_up_by_minute_hour_and_day() {
    on_each_database(|store| async move {
        let starts = [DAY, DAY + 60, DAY + 3_600, DAY + 86_340, DAY + 86_400];
        let rows = starts.map(|starts_at| row(starts_at, "k", "eth_call", 1));
        store.add_usage(&flush(0, 1, &rows), DAY).await.unwrap();
        for (step, expected) in [(UsageStep::Minute, 4), (UsageStep::Hour, 3), (UsageStep::Day, 1)] {
            let rows = store.usage(&query(step, &[UsageDimension::Time]), 10).await.unwrap();
            assert_eq!(rows.len(), expected, "{step:?}");
            assert_eq!(rows.iter().map(|row| row.counts.calls).sum::<u64>(), 4, "{step:?}");
            assert!(rows.iter().all(|row| step.start(row.group.starts_at) == row.group.starts_at));
        }
    });
}

#[test]
fn a_report_has_the_groups_that_are_asked_for() {
    on_each_database(|store| async move {
        // More rows than one statement of each size adds.
        let mut all: Vec<_> = (0..150).map(|key| row(DAY, &format!("k_{key:03}"), "eth_call", 1)).collect();
        all.push(row(DAY, "k_000", "eth_chainId", 2));
        store.add_usage(&flush(0, 1, &all), DAY).await.unwrap();
        let by_method = store.usage(&query(UsageStep::Day, &[UsageDimension::Method]), 10).await.unwrap();
        let shown: Vec<_> =
            by_method.iter().map(|row| (&*row.group.method, &*row.group.key, row.counts.calls)).collect();
        assert_eq!(shown, [("eth_call", "", 150), ("eth_chainId", "", 2)]);
        let of_key = UsageQuery { key: Some("k_000".to_owned()), ..query(UsageStep::Hour, &[]) };
        let expected = UsageCounts { calls: 3, ..row(DAY, "", "", 3).counts };
        assert_eq!(store.usage(&of_key, 10).await.unwrap()[0].counts, expected);
        let mut by = BTreeSet::from(UsageDimension::ALL);
        by.remove(&UsageDimension::Tag);
        let rows = store.usage(&UsageQuery { by, ..query(UsageStep::Minute, &[]) }, 1_000).await.unwrap();
        all.sort_by(|one, other| one.group.cmp(&other.group));
        assert_eq!(rows, all, "everything is read as it was written");
        let nobody = UsageQuery { account: Some("b".to_owned()), ..query(UsageStep::Day, &[]) };
        assert_eq!(store.usage(&nobody, 10).await.unwrap()[0].counts, UsageCounts::default());
    });
}

/// Nobody could say which of several teams that share a key had used how much.
#[test]
fn what_is_tagged_is_summed_up_by_tag_and_counts_once_in_everything_else() {
    on_each_database(|store| async move {
        let tagged = |key: &str, method: &str, tag: &str, calls| {
            let row = row(DAY, key, method, calls);
            UsageRow { group: UsageGroup { tag: tag.into(), ..row.group }, ..row }
        };
        let rows = [
            tagged("k_1", "eth_call", "", 1),
            tagged("k_1", "eth_call", "nightly", 2),
            tagged("k_1", "eth_chainId", "nightly", 4),
            tagged("k_2", "eth_call", "nightly", 8),
            tagged("k_2", "eth_call", "web", 16),
        ];
        // Sent again, it counts once.
        for _ in 0..2 {
            store.add_usage(&flush(0, 1, &rows), DAY).await.unwrap();
        }
        for step in UsageStep::ALL {
            let sums = |query: UsageQuery| {
                let store = &store;
                async move {
                    let rows = store.usage(&query, 10).await.unwrap();
                    let sum = |row: &UsageRow| (row.group.tag.to_string(), row.counts.calls);
                    rows.iter().map(sum).collect::<Vec<_>>()
                }
            };
            let by_tag = sums(query(step, &[UsageDimension::Tag])).await;
            assert_eq!(by_tag, [("nightly".to_owned(), 14), ("web".to_owned(), 16)]);
            let of_key = UsageQuery { key: Some("k_1".to_owned()), ..query(step, &[UsageDimension::Tag]) };
            assert_eq!(sums(of_key).await, [("nightly".to_owned(), 6)]);
            let of_tag = UsageQuery { tag: Some("web".to_owned()), ..query(step, &[]) };
            assert_eq!(sums(of_tag).await, [(String::new(), 16)]);
            assert_eq!(sums(query(step, &[])).await, [(String::new(), 31)]);
            let of_account = UsageQuery { account: Some("a".to_owned()), ..query(step, &[]) };
            assert_eq!(sums(of_account).await, [(String::new(), 31)]);
        }
        for step in UsageStep::ALL {
            while store.delete_usage_before(step, 2 * DAY).await.unwrap() > 0 {}
            assert_eq!(store.usage(&query(step, &[UsageDimension::Tag]), 10).await.unwrap(), []);
        }
    });
}

/// The sum of the latencies of a busy account exceeded the largest number of the database, and there was no report at all.
#[test]
fn latencies_are_summed_up_beyond_the_largest_number_of_a_column() {
    on_each_database(|store| async move {
        let ns = 5_000_000_000_000_000_999;
        let rows = [DAY, DAY + 86_400].map(|starts_at| {
            let mut row = row(starts_at, "k", "eth_call", 1);
            row.counts.latency_ns = ns;
            row
        });
        store.add_usage(&flush(0, 1, &rows), DAY).await.unwrap();
        let both_days = UsageQuery { until: DAY + 2 * 86_400, ..query(UsageStep::Day, &[]) };
        let sum = &store.usage(&both_days, 10).await.unwrap()[0].counts;
        assert_eq!((sum.latency_ns, sum.calls, sum.latency_buckets[0]), (2 * ns, 2, 2));
    });
}

/// PostgreSQL refuses texts with the character NUL, so a report about such a name failed as if the store were down.
#[test]
fn nothing_is_used_by_a_name_with_nul() {
    on_each_database(|store| async move {
        store.add_usage(&flush(0, 1, &[row(DAY, "k", "eth_call", 1)]), DAY).await.unwrap();
        let nobody = UsageQuery { account: Some("a\0".to_owned()), ..query(UsageStep::Day, &[]) };
        assert_eq!(store.usage(&nobody, 10).await.unwrap()[0].counts, UsageCounts::default());
        let by = BTreeSet::from([UsageDimension::Key]);
        assert!(store.usage(&UsageQuery { by, ..nobody }, 10).await.unwrap().is_empty());
    });
}

#[test]
fn credits_of_a_day_are_summed_up_over_networks_and_methods() {
    on_each_database(|store| async move {
        let mut elsewhere = row(DAY + 7_200, "k", "eth_call", 4);
        elsewhere.group.network = "other".into();
        let rows = [
            row(DAY, "k", "eth_call", 1),
            row(DAY, "l", "request", 2),
            row(DAY + 86_400, "k", "eth_call", 8),
            elsewhere,
        ];
        store.add_usage(&flush(0, 1, &rows), DAY).await.unwrap();
        let mut credits = Vec::new();
        store.credits_of_day(DAY, |total| credits.push(total)).await.unwrap();
        credits.sort();
        let total = |key: Option<&str>, credits| DayTotal {
            day: DAY,
            account: "a".into(),
            key: key.map(Into::into),
            credits,
        };
        assert_eq!(credits, [total(None, 35), total(Some("k"), 25), total(Some("l"), 10)]);
        let again = store.add_usage(&flush(1, 2, &rows[..1]), DAY).await.unwrap();
        assert_eq!(again.day_totals, [total(None, 40), total(Some("k"), 30)], "a flush tells the sums");
    });
}

#[test]
fn old_usage_is_deleted_step_by_step() {
    on_each_database(|store| async move {
        let minutes = 5_100;
        let rows: Vec<_> = (0..minutes).map(|minute| row(DAY + minute * 60, "k", "eth_call", 1)).collect();
        store.add_usage(&flush(0, 1, &rows), DAY).await.unwrap();
        let cutoff = DAY + (minutes - 10) * 60;
        let mut deleted = Vec::new();
        for _ in 0..3 {
            deleted.push(store.delete_usage_before(UsageStep::Minute, cutoff).await.unwrap());
        }
        // The rows of the key, of the account and of the network.
        assert_eq!(deleted, [3 * 5_000, 3 * 90, 0]);
        let all = |by: &[UsageDimension]| UsageQuery { until: u64::MAX, ..query(UsageStep::Minute, by) };
        for by in [&[][..], &[UsageDimension::Key]] {
            assert_eq!(store.usage(&all(by), 10).await.unwrap()[0].counts.calls, 10);
        }
        let days = UsageQuery { until: u64::MAX, ..query(UsageStep::Day, &[]) };
        assert_eq!(store.usage(&days, 10).await.unwrap()[0].counts.calls, minutes);
        assert_eq!(store.delete_usage_flushes_before(DAY).await.unwrap(), 0);
        assert_eq!(store.delete_usage_flushes_before(DAY + 1).await.unwrap(), 1);
    });
}

/// Usage of the gateway itself, such as calls to a partner, is no usage of callers.
#[test]
fn what_the_gateway_itself_uses_counts_only_for_the_day() {
    on_each_database(|store| async move {
        let mut own = row(DAY, "partner:acme", "partner", 3);
        own.group.account = "".into();
        let rows = [own, row(DAY, "k", "eth_call", 1)];
        let stored = store.add_usage(&flush(0, 1, &rows), DAY).await.unwrap();
        let of_gateway: Vec<_> = stored.day_totals.iter().filter(|total| total.account.is_empty()).collect();
        assert_eq!(of_gateway.len(), 1);
        assert_eq!((of_gateway[0].key.as_deref(), of_gateway[0].credits), (Some("partner:acme"), 15));
        for step in UsageStep::ALL {
            for by in [&[][..], &[UsageDimension::Key]] {
                let everybody = UsageQuery { account: None, ..query(step, by) };
                assert_eq!(store.usage(&everybody, 10).await.unwrap()[0].counts.calls, 1);
            }
        }
        assert_eq!(store.used_accounts((DAY, DAY + 1), "", 10).await.unwrap(), ["a"]);
        assert_eq!(store.used_keys((DAY, DAY + 1), None, &UsedKey::default(), 10).await.unwrap().len(), 1);
    });
}
