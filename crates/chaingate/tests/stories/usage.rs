//! The ledger of usage: nothing is lost, nothing is counted twice, whatever happens to the gateway, its disk and its store.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::thread;
use std::time::Duration;

use callers::usage::{UsageDimension, UsageReport, UsageReportRequest, UsageSettings, UsageStep};
use rustix::process::{Pid, Resource, Rlimit, getrlimit, prlimit};
use serde_json::{Value, json};
use store::{Store, StoreLocation, UsageCounts, UsageFlush, UsageGroup, UsageRow};
use testkit::http::{TestConnection, post, request};
use testkit::postgres::PostgresServer;

use crate::demo::{endless, metric, until};
use crate::gateway_under_test::{call, chain_id};
use crate::process::Process;

const LOCAL: &str = "127.0.0.1:0";

/// The usage of the account of the demo key in the store of a data directory, by the given dimensions.
fn stored(data_dir: &Path, by: &[UsageDimension]) -> UsageReport {
    on_runtime(async {
        let store = Store::new(StoreLocation::in_data_dir(data_dir));
        let (account, since) = (Some("demo".to_owned()), Some("1d".to_owned()));
        let by = by.iter().copied().collect();
        let request = UsageReportRequest { account, since, by, ..UsageReportRequest::default() };
        let report = UsageReport::read(&store, &UsageSettings::default(), &request, now()).await.unwrap();
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

/// Replaces the database by a folder, which cannot be opened. Returns the path of the database.
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

/// Calls that never end by themselves are still running when their callers hang up.
const LONG_CALLS: &str = "[limits]\ncall_timeout_ms = 120000\ncall_gas_multiple = 1000000000\n";

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
    let gateway = Process::start(LOCAL, LONG_CALLS, "info");
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
    let of_account = |name: &str| metric(gateway.operator, &format!("{name}{{account=\"demo\"}}")) as u64;
    assert_eq!(of_account("chaingate_account_calls_total"), answered + CALLERS as u64);
    assert_eq!(of_account("chaingate_account_credits_total"), credits);
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
    let gateway = Process::start(LOCAL, LONG_CALLS, "info");
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
    until("everything is stored", || stored(&gateway.data_dir(), &[]).total.calls == 10);
    assert_eq!(metric(gateway.operator, "chaingate_usage_lost_calls_total"), 0.0);
}

/// The ledger lacked 3,802 of 7,500 calls after an orderly stop with a full disk, and a store that was well got nothing before.
#[test]
fn an_orderly_stop_with_a_full_disk_loses_nothing() {
    // Nothing can be created in the folder of usage, as on a full disk.
    let gateway = Process::start_with_data("", "info", "", |data| {
        fs::create_dir_all(data).unwrap();
        fs::write(data.join("usage"), "not a folder").unwrap();
    });
    for _ in 0..25 {
        assert_eq!(post(gateway.public, "/v3/demo", chain_id("1")).status, 200);
    }
    until("usage is stored from memory", || stored(&gateway.data_dir(), &[]).total.calls == 25);
    for _ in 0..25 {
        assert_eq!(post(gateway.public, "/v3/demo", chain_id("1")).status, 200);
    }
    let data = gateway.data();
    gateway.terminate();
    let (status, log) = gateway.ended();
    assert!(status.success());
    assert_eq!(stored(&data.path(), &[]).total.calls, 50);
    assert!(!log.iter().any(|line| line.contains("lost_calls") || line.contains("stays on disk")), "{log:?}");
}

/// The ledger lacked 4,129 of 6,000 calls after a stop with a full spool, and the log said that they stay on disk.
#[test]
fn an_orderly_stop_with_a_full_spool_stores_what_waits_or_counts_it_as_lost() {
    let config = "[usage]\nspool_bytes_max = 1\n";
    for is_store_back in [true, false] {
        let gateway = Process::start_with_data(config, "info", "", |data| drop(break_store(data)));
        for _ in 0..25 {
            assert_eq!(post(gateway.public, "/v3/demo", chain_id("1")).status, 200);
        }
        until("usage waits in memory", || metric(gateway.operator, "chaingate_usage_waiting_bytes") > 0.0);
        let (data, file) = (gateway.data(), gateway.data_dir().join("callers.sqlite"));
        if is_store_back {
            fs::remove_dir(&file).unwrap();
        }
        gateway.terminate();
        let (status, log) = gateway.ended();
        assert!(status.success());
        let lost =
            log.iter().any(|line| line.contains("usage is lost") && line.contains("\"lost_calls\":25"));
        assert_eq!(lost, !is_store_back, "{log:?}");
        assert!(!log.iter().any(|line| line.contains("stays on disk")), "{log:?}");
        if is_store_back {
            assert_eq!(stored(&data.path(), &[]).total.calls, 25);
        }
    }
}

/// The output of `chaingate keys usage`.
fn shown(data_dir: &Path, arguments: &[&str]) -> String {
    let mut command = Command::new(env!("CARGO_BIN_EXE_chaingate"));
    let output =
        command.args(["keys", "usage", "--data-dir"]).arg(data_dir).args(arguments).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn the_command_shows_usage_while_the_gateway_runs_and_after_it_was_killed() {
    let gateway = Process::start(LOCAL, "", "info");
    let json = |data_dir: &Path| -> Value {
        serde_json::from_str(&shown(data_dir, &["--account", "demo", "--json"])).unwrap()
    };
    assert_eq!(post(gateway.public, "/v3/demo", chain_id("1")).status, 200);
    until("usage is shown", || json(&gateway.data_dir())["calls"] == 1);
    assert_eq!(post(gateway.public, "/v3/demo", chain_id("1")).status, 200);
    until_written(&gateway, 2);
    let data = gateway.kill();
    let report = json(&data.path());
    assert_eq!(
        (&report["calls"], &report["credits"], &report["account"]),
        (&json!(2), &json!(10), &json!("demo"))
    );
    let row = &report["rows"][0];
    assert_eq!(
        (&row["key"], &row["method"], &row["outcome"]),
        (&json!("static:demo"), &json!("eth_chainId"), &json!("ok"))
    );
    let csv = shown(&data.path(), &["--by", "time,account", "--step", "day", "--format", "csv"]);
    assert!(csv.starts_with("time,account,calls,credits,") && csv.lines().count() == 2, "{csv}");
    let lines = shown(&data.path(), &["--by", "network", "--format", "jsonl"]);
    assert_eq!(serde_json::from_str::<Value>(lines.trim_end()).unwrap()["network"], "demo");
    assert!(shown(&data.path(), &[]).contains("total"));
}

/// One folder that could not be read kept the command from reporting anything.
#[test]
fn the_command_shows_usage_although_a_folder_cannot_be_read() {
    let data = tempfile::tempdir().unwrap();
    let unreadable = data.path().join("usage/00000000000000aa-1");
    fs::create_dir(data.path().join("usage")).unwrap();
    fs::write(&unreadable, "not a folder").unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_chaingate"));
    let output = command.args(["keys", "usage", "--data-dir"]).arg(data.path()).output().unwrap();
    let (out, err) = (String::from_utf8(output.stdout).unwrap(), String::from_utf8(output.stderr).unwrap());
    assert!(output.status.success() && out.contains("total"), "{out} {err}");
    assert!(
        err.starts_with(&format!("chaingate: warning: usage stays in {}: ", unreadable.display())),
        "{err}"
    );
}

#[test]
fn the_admin_api_reports_usage() {
    let gateway = Process::start(LOCAL, "", "info");
    assert_eq!(post(gateway.public, "/v3/demo", chain_id("1")).status, 200);
    let token = fs::read_to_string(gateway.data_dir().join("admin-token")).unwrap();
    let ask = |query: &str| {
        let head = format!(
            "GET /admin/v1/usage?{query} HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {}\r\n\r\n",
            gateway.operator,
            token.trim()
        );
        TestConnection::connect(gateway.operator).send(head).reply()
    };
    until("usage is reported", || ask("account=demo&by=method").json()["calls"] == 1);
    assert_eq!(ask("account=demo&by=method").json()["rows"][0]["method"], "eth_chainId");
    let wrong = ask("since=yesterday");
    assert_eq!((wrong.status, &wrong.json()["error"]["field"]), (422, &json!("since")));
    assert_eq!(ask("by=colour").json()["error"]["field"], "by");
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
    let config = "[usage]\nminutes_kept_days = 2\nhours_kept_days = 4\n";
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
                tag: None,
                by: [].into(),
                accounts: None,
                keys: None,
            };
            let calls = store.usage(&query, 1).await.unwrap()[0].counts.calls;
            store.close().await;
            calls
        })
    };
    until("old usage is deleted", || UsageStep::ALL.map(kept) == [1, 2, 4]);
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
        tag: text(""),
    };
    UsageRow { group, counts: UsageCounts { calls: 1, credits: 5, ..UsageCounts::default() } }
}

/// The database is killed while usage is moved to it, and callers go on calling.
#[test]
fn a_store_that_is_killed_during_flushes_loses_nothing_and_counts_nothing_twice() {
    let Some(mut postgres) = PostgresServer::start() else { return };
    let config = format!("[store]\nurl = \"{}\"\n", postgres.url());
    let gateway = Process::start(LOCAL, &config, "info");
    let (made, is_over) = (AtomicU64::new(0), AtomicBool::new(false));
    let value = |name: &str| metric(gateway.operator, name);
    thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                let mut wire = TestConnection::connect(gateway.public);
                while !is_over.load(SeqCst) {
                    wire.send(request("/v3/demo", "", chain_id("1").as_bytes()));
                    assert_eq!(wire.reply().status, 200);
                    made.fetch_add(1, SeqCst);
                    // The database needs processor time, too.
                    thread::sleep(Duration::from_millis(1));
                }
            });
        }
        for _ in 0..4 {
            let flushes = value("chaingate_usage_flushes_total");
            until("usage is stored", || value("chaingate_usage_flushes_total") > flushes);
            postgres.kill();
            until("the store does not answer", || value("chaingate_usage_store_failing") > 0.0);
            postgres.restart();
            until("usage is stored again", || value("chaingate_usage_store_failing") == 0.0);
        }
        is_over.store(true, SeqCst);
    });
    let made = made.into_inner();
    until_written(&gateway, made);
    let counted = || postgres.run("SELECT SUM(calls) FROM usage_days");
    until("everything is stored", || counted().parse().unwrap_or(0) >= made);
    for table in ["usage_minutes", "usage_hours", "usage_days"] {
        assert_eq!(postgres.run(&format!("SELECT SUM(calls) FROM {table}")), made.to_string(), "{table}");
    }
    assert_eq!(value("chaingate_usage_lost_calls_total"), 0.0);
}
