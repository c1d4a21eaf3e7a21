//! Keys that callers have already, from a file.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::json;

use crate::accounts::{failure, json as json_of, status, text};
use crate::demo::until;
use crate::process::Process;

const BACKEND: &str = "0123456789abcdef0123456789abcdef";
const WEB: &str = "fedcba9876543210fedcba9876543210";

fn file(folder: &Path, name: &str, text: &str) -> PathBuf {
    let path = folder.join(name);
    fs::write(&path, text).unwrap();
    path
}

fn import<'a>(path: &'a Path, more: &[&'a str]) -> Vec<&'a str> {
    [&["keys", "import", path.to_str().unwrap()], more].concat()
}

fn csv() -> String {
    format!(
        "account,plan,name,key,methods,credits_per_day\r\n\
         acme,custom,backend,{BACKEND},eth_blockNumber | eth_chainId,\r\n\
         acme,,\"web, \"\"new\"\"\",{WEB},eth_chainId,1000\r\n"
    )
}

/// Callers had to change their keys when they moved to this gateway.
#[test]
fn keys_of_another_gateway_are_accepted_by_one_that_runs() {
    let gateway = Process::start("127.0.0.1:0", "", "info");
    let (data, folder) = (gateway.data_dir(), tempfile::tempdir().unwrap());
    let path = file(folder.path(), "keys.csv", &csv());
    let dry = text(&data, &import(&path, &["--dry-run"]));
    assert_eq!(dry, "would import 2 keys and 1 new account; 0 keys there already\n");
    assert_eq!(status(&gateway, BACKEND), 401);
    let done = json_of(&data, &import(&path, &[]));
    assert_eq!(done, json!({"new_accounts": 1, "new_keys": 2, "existing_keys": 0, "dry_run": false}));
    until("the gateway has the keys", || status(&gateway, BACKEND) == 200);
    until("the allow-list holds", || status(&gateway, WEB) == 403);
    let again = json_of(&data, &import(&path, &[]));
    assert_eq!(again, json!({"new_accounts": 0, "new_keys": 0, "existing_keys": 2, "dry_run": false}));
    let listed = text(&data, &["keys", "list", "--account", "acme"]);
    assert!(listed.contains("web, \"new\"") && listed.contains("credits_per_day=1000"), "{listed}");
    for name in ["callers.sqlite", "callers.sqlite-wal"] {
        let bytes = fs::read(data.join(name)).unwrap_or_default();
        assert!(
            !bytes.windows(BACKEND.len()).any(|part| part == BACKEND.as_bytes()),
            "{name} has a key in clear"
        );
    }
}

#[test]
fn all_mistakes_are_told_with_their_lines_and_nothing_is_imported() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let text = format!(
        "account,plan,name,key,methods,origins\n\
         acme,custom,one,{BACKEND},,\n\
         acme,gold,two,{WEB},,\n\
         ,custom,three,{WEB},,\n\
         nobody,,four,aaaaaaaaaaaaaaaaaaaaaaaa,,\n\
         acme,custom,five,short,,\n\
         acme,custom,six,{BACKEND},,\n\
         acme,custom,seven,bbbbbbbbbbbbbbbbbbbbbbbb,eth_frobnicate,nonsense\n"
    );
    let path = file(folder.path(), "keys.csv", &text);
    let said = failure(&data, &import(&path, &[]));
    assert!(said.contains("6 mistakes, so nothing was imported"), "{said}");
    for (line, message) in [
        (3, "plan: account `acme` has the plan `custom`"),
        (4, "account: is missing"),
        (5, "there is no account `nobody`"),
        (6, "key: must have 20 to 128 characters"),
        (7, "key: it is in the file twice"),
        (8, "is not"),
    ] {
        let found = said.lines().find(|text| text.contains(&format!("keys.csv:{line}: ")));
        assert!(found.is_some_and(|text| text.contains(message)), "{line} {message}: {said}");
    }
    for secret in [BACKEND, WEB, "short", "aaaaaaaa"] {
        assert!(!said.contains(secret), "{said}");
    }
    assert_eq!(json_of(&data, &["accounts", "list"])["accounts"], json!([]));
}

#[test]
fn a_key_of_another_account_is_refused_and_one_of_the_same_stays_as_it_is() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let of = |account: &str, name: &str| {
        json!([{"account": account, "plan": "custom", "name": name, "key": BACKEND}]).to_string()
    };
    json_of(&data, &import(&file(folder.path(), "1.json", &of("acme", "backend")), &[]));
    let renamed = json_of(&data, &import(&file(folder.path(), "2.json", &of("acme", "other")), &[]));
    assert_eq!(renamed["existing_keys"], 1);
    assert_eq!(json_of(&data, &["keys", "list", "--account", "acme"])["keys"][0]["name"], "backend");
    let said = failure(&data, &import(&file(folder.path(), "3.json", &of("zeta", "backend")), &[]));
    assert!(said.contains("it belongs to another account already"), "{said}");
}
