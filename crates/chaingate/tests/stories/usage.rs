//! The ledger of usage: nothing is lost, nothing is counted twice, whatever happens to the gateway, its disk and its store.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::thread;

use callers::usage::{UsageDimension, UsageReport, UsageReportRequest, UsageSettings, UsageStep};
use rustix::process::{Pid, Resource, Rlimit, getrlimit, prlimit};
use store::{Store, StoreLocation, UsageCounts, UsageFlush, UsageGroup, UsageRow};
use testkit::http::{TestConnection, post, request};

use crate::demo::{endless, metric, until};
use crate::gateway_under_test::{call, chain_id};
use crate::process::Process;

const LOCAL: &str = "127.0.0.1:0";

/// What the store in a data directory has about the account of the demo key, by the dimensions that are asked for.
fn stored(data_dir: &Path, by: &[UsageDimension]) -> UsageReport {
    on_runtime(async {
        let store = Store::new(StoreLocation::in_data_dir(data_dir));
        let settings = settings::read_empty(UsageSettings::read);
        let (account, since) = (Some("demo".to_owned()), Some("1d".to_owned()));
        let by = by.iter().copied().collect();
        let request = UsageReportRequest { account, since, by, ..UsageReportRequest::default() };
        let report = UsageReport::read(&store, &settings, &request, now()).await.unwrap();
        store.close().await;
        report
    })
}

fn on_runtime<T>(work: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(work)
}

fn now() -> u64 {
    std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_secs()
}

fn calls_with(report: &UsageReport, outcome: &str) -> u64 {
    report.rows.iter().filter(|row| &*row.group.outcome == outcome).map(|row| row.counts.calls).sum()
}

/// Waits until the usage of this many calls is on disk.
fn until_written(gateway: &Process, calls: u64) {
    until("usage is written", || {
        metric(gateway.operator, "chaingate_usage_written_calls_total") as u64 >= calls
    });
}

/// The database becomes a folder, which cannot be opened. Gives the path of what was there.
fn break_store(data_dir: &Path) -> PathBuf {
    let file = data_dir.join("callers.sqlite");
    let moved = data_dir.join("moved.sqlite");
    fs::create_dir_all(data_dir).unwrap();
    if file.exists() {
        fs::rename(&file, &moved).unwrap();
    }
    fs::create_dir(&file).unwrap();
    file
}

const CALLERS: usize = 8;

/// Callers that leave while their calls are being answered.
fn hang_up_during_calls(gateway: &Process) {
    let leaving: Vec<_> = (0..CALLERS)
        .map(|number| {
            let mut wire = TestConnection::connect(gateway.public);
            wire.send(request("/v3/demo", "", endless(number).as_bytes()));
            wire
        })
        .collect();
    until("all calls are admitted", || {
        metric(gateway.operator, "chaingate_calls_in_flight") == CALLERS as f64
    });
    drop(leaving);
}

#[test]
fn the_sum_of_usage_is_what_the_callers_have_counted() {
    let gateway = Process::start(LOCAL, "", "info");
    let (answered, credits) = (AtomicU64::new(0), AtomicU64::new(0));
    thread::scope(|scope| {
        for _ in 0..CALLERS {
            scope.spawn(|| {
                let mut wire = TestConnection::connect(gateway.public);
                for _ in 0..50 {
                    wire.send(request("/v3/demo", "", chain_id("1").as_bytes()));
                    assert_eq!(wire.reply().status, 200);
                }
                let batch = format!("[{},{}]", chain_id("1"), call("eth_blockNumber", "[]"));
                assert_eq!(post(gateway.public, "/v3/demo", batch).status, 200);
                assert_eq!(post(gateway.public, "/v3/demo", call("eth_nonsense", "[]")).status, 200);
                assert_eq!(post(gateway.public, "/v3/demo", "nonsense").status, 400);
                answered.fetch_add(53, SeqCst);
                credits.fetch_add(50 * 5 + 5 + 5 + 80 + 160 + 5, SeqCst);
            });
        }
    });
    hang_up_during_calls(&gateway);
    credits.fetch_add(80 * CALLERS as u64, SeqCst);
    let (answered, credits) = (answered.into_inner(), credits.into_inner());
    until_written(&gateway, answered + CALLERS as u64);
    let data = gateway.data();
    gateway.terminate();
    let (status, _) = gateway.ended();
    assert!(status.success());
    let report = stored(&data.path(), &[UsageDimension::Outcome]);
    let callers = CALLERS as u64;
    assert_eq!((calls_with(&report, "ok"), calls_with(&report, "invalid")), (52 * callers, callers));
    assert_eq!(calls_with(&report, "abandoned"), callers);
    assert_eq!((report.total.calls, report.total.credits), (answered + callers, credits));
    let left: Vec<_> = fs::read_dir(data.path().join("usage")).unwrap().collect();
    assert!(left.is_empty(), "everything is in the store: {left:?}");
}

/// The calls of a batch that were not begun when its caller hung up were not counted at all.
#[test]
fn calls_of_a_batch_that_are_never_begun_are_counted() {
    let gateway = Process::start(LOCAL, "", "info");
    let batch = format!("[{},{},{}]", chain_id("1"), endless(1), chain_id("2"));
    let mut leaving = TestConnection::connect(gateway.public);
    leaving.send(request("/v3/demo", "", batch.as_bytes()));
    until("the second call is being answered", || {
        metric(gateway.operator, "chaingate_calls_in_flight") > 0.0
    });
    drop(leaving);
    until_written(&gateway, 3);
    let data = gateway.data();
    gateway.terminate();
    gateway.ended();
    let report = stored(&data.path(), &[UsageDimension::Outcome]);
    assert_eq!((calls_with(&report, "ok"), calls_with(&report, "abandoned")), (1, 2));
}

#[test]
fn a_gateway_that_is_killed_loses_nothing_that_was_written_and_counts_nothing_twice() {
    let mut gateway = Process::start(LOCAL, "", "info");
    let mut made = 0;
    for round in 0..6 {
        for _ in 0..20 + round {
            assert_eq!(post(gateway.public, "/v3/demo", chain_id("1")).status, 200);
            made += 1;
        }
        until_written(&gateway, 20 + round);
        // The flusher is anywhere between two transactions.
        gateway.start_again("info");
    }
    until("usage of all processes is in the store", || stored(&gateway.data_dir(), &[]).total.calls >= made);
    assert_eq!(stored(&gateway.data_dir(), &[]).total.calls, made);
}

#[test]
fn usage_waits_on_disk_while_the_store_is_down_also_over_restarts() {
    let mut gateway = Process::start_with_data("", "info", "", |data| drop(break_store(data)));
    let file = gateway.data_dir().join("callers.sqlite");
    for made in 1..=5 {
        assert_eq!(post(gateway.public, "/v3/demo", chain_id("1")).status, 200);
        until_written(&gateway, made);
    }
    gateway.start_again("info");
    assert_eq!(post(gateway.public, "/v3/demo", chain_id("1")).status, 200);
    until_written(&gateway, 1);
    until("the gateway knows", || metric(gateway.operator, "chaingate_usage_store_failing") > 0.0);
    fs::remove_dir(file).unwrap();
    until("the store is back", || metric(gateway.operator, "chaingate_usage_store_failing") == 0.0);
    until("everything is stored", || metric(gateway.operator, "chaingate_usage_waiting_bytes") == 0.0);
    assert_eq!(stored(&gateway.data_dir(), &[]).total.calls, 6);
    assert_eq!(metric(gateway.operator, "chaingate_usage_lost_calls_total"), 0.0);
}

#[test]
fn usage_waits_within_its_bound_while_the_store_is_down() {
    let config = "[usage]\nspool_bytes_max = 1\n";
    let gateway = Process::start_with_data(config, "info", "", |data| drop(break_store(data)));
    assert_eq!(post(gateway.public, "/v3/demo", chain_id("1")).status, 200);
    until("nothing is written", || metric(gateway.operator, "chaingate_usage_write_failures_total") > 1.0);
    assert_eq!(metric(gateway.operator, "chaingate_usage_written_calls_total"), 0.0);
    assert_eq!(post(gateway.public, "/v3/demo", chain_id("1")).status, 200, "callers do not notice");
}

#[test]
fn usage_waits_in_memory_while_the_disk_is_full() {
    let gateway = Process::start_without_file_size_signal("", "info");
    until("the store is open", || stored(&gateway.data_dir(), &[]).total.calls == 0);
    let pid = Pid::from_raw(gateway.id().try_into().unwrap());
    let all = getrlimit(Resource::Fsize);
    prlimit(pid, Resource::Fsize, Rlimit { current: Some(0), ..all }).unwrap();
    for _ in 0..10 {
        assert_eq!(post(gateway.public, "/v3/demo", chain_id("1")).status, 200);
    }
    until("nothing is written", || metric(gateway.operator, "chaingate_usage_write_failures_total") > 1.0);
    prlimit(pid, Resource::Fsize, all).unwrap();
    until_written(&gateway, 10);
    until("everything is stored", || stored(&gateway.data_dir(), &[]).total.calls == 10);
    assert_eq!(metric(gateway.operator, "chaingate_usage_lost_calls_total"), 0.0);
}

/// A restart must not grant the credits of the day a second time.
#[test]
fn credits_of_the_day_stay_used_after_a_restart() {
    let key = "[plans.tiny]\ncredits_per_day = 12\n[[key]]\nkey = \"k1\"\nname = \"one\"\naccount = \"a\"\nplan = \"tiny\"\n";
    let mut gateway = Process::start(LOCAL, key, "info");
    let status = |gateway: &Process| post(gateway.public, "/v3/k1", chain_id("1")).status;
    assert_eq!((status(&gateway), status(&gateway), status(&gateway)), (200, 200, 402));
    until_written(&gateway, 3);
    gateway.start_again("info,callers=debug");
    until("the credits that were used are known", || gateway.lines_with("credits used today") > 0);
    assert_eq!(status(&gateway), 402);
}

#[test]
fn old_usage_is_deleted_when_it_is_older_than_the_configuration_says() {
    let day = 86_400;
    let ages = [1, 3, 5, 7];
    let config = "[usage]\nminutes_kept_days = 2\nhours_kept_days = 4\ndays_kept_days = 6\n";
    let gateway = Process::start_with_data(config, "info", "", |data| {
        let rows = ages.map(|age| usage(UsageStep::Day.start(now()) - age * day));
        on_runtime(async {
            let store = Store::new(StoreLocation::in_data_dir(data));
            let (instance, epoch, after, through, rows) = ("00000000000000aa", 1, 0, 1, &rows[..]);
            store.add_usage(&UsageFlush { instance, epoch, after, through, rows }, now()).await.unwrap();
            store.close().await;
        });
    });
    let kept = |step: UsageStep| {
        on_runtime(async {
            let store = Store::new(StoreLocation::in_data_dir(&gateway.data_dir()));
            let query = store::UsageQuery {
                step,
                since: 0,
                until: now() + day,
                account: None,
                key: None,
                network: None,
                by: [].into(),
            };
            let calls = store.usage(&query, 1).await.unwrap()[0].counts.calls;
            store.close().await;
            calls
        })
    };
    until("old usage is deleted", || UsageStep::ALL.map(kept) == [1, 2, 3]);
}

fn usage(starts_at: u64) -> UsageRow {
    let text = |text: &str| text.into();
    let group = UsageGroup {
        starts_at,
        network: text("demo"),
        account: text("demo"),
        key: text("static:demo"),
        method: text("eth_chainId"),
        outcome: text("ok"),
    };
    UsageRow { group, counts: UsageCounts { calls: 1, credits: 5, ..UsageCounts::default() } }
}
