//! Tests in the format of Ethereum's official suites: a small selection of our own, and the suites themselves where
//! `CHAINGATE_BLOCKCHAIN_TESTS` names a folder with them.

use std::path::Path;
use testkit::blockchain_test::{official_tests, run_folder, selection};

/// Where the selection is stored.
const SELECTION: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/blockchain_tests");

/// The archive stored blocks that no client accepts: Prague blocks without request contracts, system calls that took
/// more than 30,000,000 gas, deposit logs of any layout. And it refused every chain with a transaction in the DAO
/// fork's block that looks at a drained account.
#[test]
fn the_selection_passes() {
    let summary = run_folder(Path::new(SELECTION)).unwrap();
    eprintln!("{summary}");
    assert!(summary.failed.is_empty() && summary.unchecked.is_empty() && summary.unsupported.is_empty());
    assert_eq!(summary.files, selection().len());
}

/// `CHAINGATE_WRITE_BLOCKCHAIN_TESTS=1` writes the files anew.
#[test]
fn the_selection_is_what_the_generator_makes() {
    let write = std::env::var_os("CHAINGATE_WRITE_BLOCKCHAIN_TESTS").is_some();
    for (file, tests) in selection() {
        let path = Path::new(SELECTION).join(file);
        let made = format!("{:#}\n", serde_json::Value::Object(tests));
        if write {
            std::fs::write(&path, &made).unwrap();
        }
        let stored = std::fs::read_to_string(&path).unwrap();
        assert!(stored == made, "{file} is not what the generator makes");
    }
}

#[test]
fn the_official_tests_pass() {
    let Some(folder) = official_tests() else { return };
    let summary = run_folder(&folder).unwrap();
    eprintln!("{summary}");
    assert!(summary.files > 0, "there are no tests in {}", folder.display());
    assert!(summary.failed.is_empty(), "{} tests failed", summary.failed.len());
}
