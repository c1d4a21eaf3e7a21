//! Accounts and keys that operators create and change with the command line, while a gateway runs and while none does.

use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;

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

/// What a command that fails says.
fn failure(data_dir: &Path, arguments: &[&str]) -> String {
    let output = command(data_dir, arguments);
    assert_eq!(output.status.code(), Some(1), "{arguments:?}");
    assert!(output.stdout.is_empty(), "{arguments:?}");
    String::from_utf8(output.stderr).unwrap()
}

fn text(data_dir: &Path, arguments: &[&str]) -> String {
    let output = command(data_dir, arguments);
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// A new account with one key: the key and its id.
pub(crate) fn account_with_key(data_dir: &Path, account: &str) -> (String, String) {
    json(data_dir, &["accounts", "create", "--name", account, "--plan", "core"]);
    new_key(data_dir, account, "web")
}

fn new_key(data_dir: &Path, account: &str, name: &str) -> (String, String) {
    let new = json(data_dir, &["keys", "create", "--account", account, "--name", name]);
    (new["key"].as_str().unwrap().to_owned(), new["id"].as_str().unwrap().to_owned())
}

#[test]
fn a_command_that_fails_says_why_and_changes_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let data_dir = folder.path().join("data");
    account_with_key(&data_dir, "acme");
    for (arguments, said) in [
        (&["accounts", "create", "--name", "acme", "--plan", "core"][..], "`acme` already"),
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
