//! Accounts and keys that operators create and change with the command line, while a gateway runs and while none does.

use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;
use testkit::http::post;

use crate::demo::until;
use crate::gateway_under_test::call;
use crate::process::Process;

/// Runs `chaingate` with this data directory.
fn command(data_dir: &Path, arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_chaingate"))
        .args(arguments)
        .arg("--data-dir")
        .arg(data_dir)
        .env("RUST_LOG", "info")
        .env("USER", "alice")
        .env_remove("SUDO_USER")
        .output()
        .unwrap()
}

/// The JSON that a successful command prints, which is all that it prints.
pub(crate) fn json(data_dir: &Path, arguments: &[&str]) -> Value {
    let output = command(data_dir, &[arguments, &["--json"]].concat());
    let (out, err) = (String::from_utf8(output.stdout).unwrap(), String::from_utf8(output.stderr).unwrap());
    assert!(output.status.success(), "{arguments:?}: {err}");
    serde_json::from_str(&out).unwrap_or_else(|error| panic!("{arguments:?}: {error}: {out}"))
}

/// Runs a command that must fail, and returns its standard error.
pub(crate) fn failure(data_dir: &Path, arguments: &[&str]) -> String {
    let output = command(data_dir, arguments);
    assert_eq!(output.status.code(), Some(1), "{arguments:?}");
    assert!(output.stdout.is_empty(), "{arguments:?}");
    String::from_utf8(output.stderr).unwrap()
}

pub(crate) fn text(data_dir: &Path, arguments: &[&str]) -> String {
    let output = command(data_dir, arguments);
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// A new account with one key: the key and its id.
pub(crate) fn account_with_key(data_dir: &Path, account: &str) -> (String, String) {
    json(data_dir, &["accounts", "create", "--name", account, "--plan", "custom"]);
    new_key(data_dir, account, "web")
}

fn new_key(data_dir: &Path, account: &str, name: &str) -> (String, String) {
    let new = json(data_dir, &["keys", "create", "--account", account, "--name", name]);
    (new["key"].as_str().unwrap().to_owned(), new["id"].as_str().unwrap().to_owned())
}

/// The status of a call with a key.
pub(crate) fn status(gateway: &Process, key: &str) -> u16 {
    post(gateway.public, &format!("/v3/{key}"), call("eth_blockNumber", "[]")).status
}

/// Waits until calls with a key get this status. Changes through a gateway take effect there before the command ends, unless the
/// machine is too busy to apply them in time.
fn until_status(gateway: &Process, key: &str, expected: u16) {
    until(&format!("calls get {expected}"), || status(gateway, key) == expected);
}

fn gateway() -> Process {
    Process::start("127.0.0.1:0", "", "info")
}

/// An account of the store with the name of one in the configuration saw its usage and shared its daily credits.
#[test]
fn the_names_of_accounts_in_the_configuration_are_taken() {
    let key = "[[key]]\nkey = \"k1\"\nname = \"one\"\naccount = \"acme\"\n";
    // Created before the configuration had such an account.
    let gateway = Process::start_with_data(key, "info", "", |data| drop(account_with_key(data, "acme")));
    until("the operator is warned", || {
        gateway.lines_with_all(&["same name as one of [[key]]", "\"account\":\"acme\""]) == 1
    });
    let refused = failure(&gateway.data_dir(), &["accounts", "create", "--name", "demo", "--plan", "core"]);
    assert_eq!(refused, "chaingate: the account `demo` exists already\n");
}

#[test]
fn a_new_key_is_accepted_and_a_revoked_one_refused_while_the_gateway_runs() {
    let gateway = gateway();
    let data_dir = gateway.data_dir();
    let (key, id) = account_with_key(&data_dir, "acme");
    assert_eq!(key.len(), 32);
    until_status(&gateway, &key, 200);
    let (other, other_id) = new_key(&data_dir, "acme", "backend");
    assert_eq!(json(&data_dir, &["keys", "revoke", &id])["status"], "revoked");
    until_status(&gateway, &key, 401);
    until_status(&gateway, &other, 200);
    let revoked = json(&data_dir, &["keys", "revoke", "--account", "acme", "--name", "backend"]);
    assert_eq!(revoked["id"], other_id.as_str());
    until_status(&gateway, &other, 401);
    let listed = json(&data_dir, &["keys", "list", "--account", "acme"]);
    assert_eq!(listed["keys"].as_array().unwrap().len(), 2);
    assert!(!listed.to_string().contains(&key), "a key is shown once");
}

#[test]
fn the_keys_of_a_suspended_account_are_refused_until_it_is_resumed() {
    let gateway = gateway();
    let data_dir = gateway.data_dir();
    let (key, _) = account_with_key(&data_dir, "acme");
    assert_eq!(json(&data_dir, &["accounts", "suspend", "acme"])["status"], "suspended");
    until_status(&gateway, &key, 401);
    assert_eq!(json(&data_dir, &["accounts", "resume", "--name", "acme"])["status"], "active");
    until_status(&gateway, &key, 200);
}

#[test]
fn a_rotated_key_stays_valid_for_the_overlap() {
    let gateway = gateway();
    let data_dir = gateway.data_dir();
    let (old, id) = account_with_key(&data_dir, "acme");
    let rotated = json(&data_dir, &["keys", "rotate", &id, "--overlap-hours", "1"]);
    let (new, new_id) = (rotated["key"].as_str().unwrap(), rotated["id"].as_str().unwrap());
    until_status(&gateway, new, 200);
    assert_eq!(status(&gateway, &old), 200);
    let again = json(&data_dir, &["keys", "rotate", new_id, "--overlap-seconds", "1"]);
    until_status(&gateway, new, 401);
    until_status(&gateway, again["key"].as_str().unwrap(), 200);
    assert_eq!(status(&gateway, &old), 200);
}

#[test]
fn limits_and_allow_lists_of_a_key_take_effect_and_can_be_removed() {
    let gateway = gateway();
    let data_dir = gateway.data_dir();
    let (key, id) = account_with_key(&data_dir, "acme");
    json(&data_dir, &["keys", "allow", &id, "--methods", "eth_chainId,eth_call"]);
    until_status(&gateway, &key, 403);
    json(&data_dir, &["keys", "allow", &id, "--any", "methods"]);
    until_status(&gateway, &key, 200);
    json(&data_dir, &["keys", "limits", &id, "--credits-per-day", "100"]);
    until_status(&gateway, &key, 402);
    let unlimited = json(&data_dir, &["keys", "limits", &id, "--credits-per-day", "0"]);
    assert_eq!(unlimited["settings"], serde_json::json!({"has_secret": false}));
    until_status(&gateway, &key, 200);
}

#[test]
fn without_a_running_gateway_the_store_is_changed_directly() {
    let mut gateway = gateway();
    let data_dir = gateway.data_dir();
    let (_, revoked_id) = account_with_key(&data_dir, "first");
    let (kept, _) = new_key(&data_dir, "first", "kept");
    gateway.signal("KILL");
    until("it has ended", || gateway.has_ended());
    let (key, _) = account_with_key(&data_dir, "second");
    json(&data_dir, &["keys", "revoke", &revoked_id]);
    gateway.start_again("info");
    assert_eq!((status(&gateway, &key), status(&gateway, &kept)), (200, 200));
    let accounts = json(&data_dir, &["accounts", "list"]);
    let names: Vec<_> =
        accounts["accounts"].as_array().unwrap().iter().map(|account| &account["name"]).collect();
    assert_eq!(names, ["first", "second"]);
}

#[test]
fn a_command_that_fails_says_why_and_changes_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let data_dir = folder.path().join("data");
    account_with_key(&data_dir, "acme");
    for (arguments, said) in [
        (&["accounts", "create", "--name", "acme", "--plan", "core"][..], "`acme` exists already"),
        (&["accounts", "create", "--name", "b", "--plan", "golden"], "unknown plan `golden`; must be one of"),
        (&["accounts", "suspend", "nobody"], "`nobody`"),
        (&["keys", "create", "--account", "nobody", "--name", "k"], "`nobody`"),
        (&["keys", "revoke", "k_000000000000"], "`k_000000000000`"),
        (&["keys", "revoke", "--account", "acme", "--name", "none"], "has no key named \"none\""),
        (
            &["keys", "create", "--account", "acme", "--name", "k", "--methods", "eth_cal"],
            "`eth_cal` is not a method",
        ),
        (&["keys", "list", "--account", "nobody", "--json"], "`nobody`"),
    ] {
        let found = failure(&data_dir, arguments);
        assert!(found.contains(said) && found.starts_with("chaingate: "), "{arguments:?}: {found}");
    }
    assert_eq!(json(&data_dir, &["accounts", "list"])["accounts"].as_array().unwrap().len(), 1);
}

#[test]
fn people_get_tables_and_a_line_to_try_a_new_key_with() {
    let folder = tempfile::tempdir().unwrap();
    let data_dir = folder.path().join("data");
    assert!(text(&data_dir, &["accounts", "list"]).starts_with("no accounts"));
    text(&data_dir, &["accounts", "create", "--name", "acme", "--plan", "core"]);
    let created = text(&data_dir, &["keys", "create", "--account", "acme", "--name", "web"]);
    assert!(created.contains("curl -s http://127.0.0.1:8545/v3/"), "{created}");
    let listed = text(&data_dir, &["keys", "list", "--account", "acme"]);
    assert!(listed.starts_with("ID ") && listed.contains(" web ") && listed.contains(" active "), "{listed}");
    let audit = text(&data_dir, &["accounts", "audit"]);
    let lines: Vec<_> = audit.lines().collect();
    assert_eq!(lines.len(), 3, "{audit}");
    assert!(lines[1].contains("key.create") && lines[1].contains("command line, user alice"), "{audit}");
    assert!(lines[2].contains("account.create") && lines[2].contains("acme"), "{audit}");
}
