//! Tests that leave themselves out, because something that they need is not installed.
//!
//! Nothing but the standard library is used here: crates that must not depend on this one include the file by its path.

use std::fs::OpenOptions;
use std::io::{Write, stderr};
use std::path::PathBuf;

/// The file to which every skipped test adds a line, so that `./test` can count them.
const SKIP_FILE: &str = "CHAINGATE_SKIP_FILE";

/// The folder of the recorded chains, or [`WITHOUT_RECORDED_CHAINS`].
const RECORDED_CHAINS: &str = "CHAINGATE_CONFORMANCE";

/// The value that says that the recorded chains are left out on purpose, also in continuous integration.
const WITHOUT_RECORDED_CHAINS: &str = "none";

/// Reports that the calling test is skipped. Panics under `CI=true`, where every prerequisite must be installed.
pub fn missing(reason: &str) {
    assert!(
        std::env::var_os("CI").is_none_or(|value| value != "true"),
        "no test may be skipped under CI=true, but {reason}"
    );
    report(reason);
}

/// The folder of the recorded chains. `None` means that the calling test is skipped, which has been reported.
pub fn recorded_chains() -> Option<PathBuf> {
    let Some(folder) = std::env::var_os(RECORDED_CHAINS) else {
        missing("CHAINGATE_CONFORMANCE does not name the folder of the recorded chains");
        return None;
    };
    if folder == WITHOUT_RECORDED_CHAINS {
        report("CHAINGATE_CONFORMANCE leaves the recorded chains out");
        return None;
    }
    let folder = PathBuf::from(folder);
    assert!(folder.is_dir(), "CHAINGATE_CONFORMANCE is not a folder: {}", folder.display());
    Some(folder)
}

/// Reports that the calling test is skipped, which is in order everywhere.
pub fn report(reason: &str) {
    // The macros of the standard library are not used, because the test harness hides what they print when a test
    // passes.
    let thread = std::thread::current();
    let line = format!("skipped: {}: {reason}\n", thread.name().unwrap_or("a test"));
    stderr().write_all(line.as_bytes()).expect("standard error can be written to");
    if let Some(path) = std::env::var_os(SKIP_FILE) {
        let file = OpenOptions::new().create(true).append(true).open(&path);
        file.and_then(|mut file| file.write_all(line.as_bytes())).expect("the skip file can be written to");
    }
}
