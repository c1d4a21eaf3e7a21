//! A disk that is full: calls are answered, and everybody is told what cannot be written.

use rustix::process::{Pid, Resource, Rlimit, getrlimit, prlimit};
use serde_json::Value;
use testkit::http::{get, post};

use crate::demo::{metric, until};
use crate::gateway_under_test::chain_id;
use crate::process::Process;

/// While 83 writes had failed, `/ready` and `/status` said that all was well, and no metric was about the disk.
#[test]
fn a_disk_that_cannot_be_written_is_shown_while_calls_are_answered() {
    let gateway = Process::start_without_file_size_signal("", "info");
    let disk = || get(gateway.operator, "/status").json()["disk"].clone();
    let usage = || disk()["writers"][0].clone();
    let failing = || metric(gateway.operator, "chaingate_disk_write_failing{writer=\"usage\"}");
    let free = disk()["free_bytes"].as_u64().unwrap();
    assert!(free > 0 && disk()["size_bytes"].as_u64().unwrap() >= free);
    assert!(metric(gateway.operator, "chaingate_disk_free_bytes") > 0.0);
    assert_eq!((&disk()["state"], &usage()["error"]), (&"ok".into(), &Value::Null));

    let pid = Pid::from_raw(gateway.id().try_into().unwrap());
    let all = getrlimit(Resource::Fsize);
    prlimit(pid, Resource::Fsize, Rlimit { current: Some(0), ..all }).unwrap();
    assert_eq!(post(gateway.public, "/v3/demo", chain_id("1")).status, 200);
    until("the failure is counted", || failing() > 0.0);
    assert!(metric(gateway.operator, "chaingate_disk_write_failures_total{writer=\"usage\"}") >= 1.0);
    let shown = usage();
    assert_eq!((&disk()["state"], &shown["name"]), (&"cannot be written".into(), &"usage".into()));
    assert!(shown["error"].is_string() && shown["failing_seconds"].is_u64(), "{shown}");
    assert!(shown["failures"].as_u64().unwrap() >= 1, "{shown}");
    let ready = get(gateway.operator, "/ready");
    let expected = "ready, but usage cannot be written to data_dir, see /status\n";
    assert_eq!((ready.status, ready.text()), (200, expected));
    assert!(post(gateway.public, "/v3/demo", chain_id("1")).json()["result"].is_string());

    prlimit(pid, Resource::Fsize, all).unwrap();
    until("it can be written again", || failing() == 0.0);
    assert_eq!(get(gateway.operator, "/ready").text(), "ready\n");
}
