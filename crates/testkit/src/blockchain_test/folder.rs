//! Runs every test below a folder, on all cores.

use super::{BlockchainTest, Verdict, network, run};
use crate::skip;
use serde_json::Value;
use std::{
    fmt, io,
    path::{Path, PathBuf},
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
};

/// Names the folder of Ethereum's official blockchain tests.
const OFFICIAL_TESTS: &str = "CHAINGATE_BLOCKCHAIN_TESTS";

/// The outcomes of many tests.
#[derive(Debug, Default)]
pub struct Summary {
    /// Files that held tests.
    pub files: usize,
    /// Tests that passed.
    pub passed: usize,
    /// Tests for chains that the archive refuses, each with its reason.
    pub unsupported: Vec<String>,
    /// Tests with a block that only a check of seals or difficulty would refuse, each with that block.
    pub unchecked: Vec<String>,
    /// Tests that failed, each with its reason.
    pub failed: Vec<String>,
}

/// The folder of the official tests. `None` means that the calling test is skipped, which has been reported. They take
/// hours and gigabytes, so they may be missing in continuous integration, too.
pub fn official_tests() -> Option<PathBuf> {
    let Some(folder) = std::env::var_os(OFFICIAL_TESTS).map(PathBuf::from) else {
        skip::report("CHAINGATE_BLOCKCHAIN_TESTS does not name the folder of the official blockchain tests");
        return None;
    };
    assert!(folder.is_dir(), "CHAINGATE_BLOCKCHAIN_TESTS is not a folder: {}", folder.display());
    Some(folder)
}

/// Runs the tests in all `.json` files of a folder and its subfolders.
pub fn run_folder(folder: &Path) -> io::Result<Summary> {
    let mut files = Vec::new();
    collect(folder, &mut files)?;
    files.sort();
    let (next, summary) = (AtomicUsize::new(0), Mutex::new(Summary::default()));
    thread::scope(|scope| {
        let threads = thread::available_parallelism().map_or(1, usize::from);
        for _ in 0..threads {
            scope.spawn(|| {
                while let Some(file) = files.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let verdicts = run_file(file);
                    let mut summary = summary.lock().unwrap_or_else(PoisonError::into_inner);
                    summary.add(file, verdicts);
                }
            });
        }
    });
    Ok(summary.into_inner().unwrap_or_else(PoisonError::into_inner))
}

fn collect(folder: &Path, files: &mut Vec<PathBuf>) -> io::Result<()> {
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        // Folders such as `.meta` describe the tests.
        let hidden = path.file_name().is_some_and(|name| name.to_string_lossy().starts_with('.'));
        if hidden {
            continue;
        }
        if path.is_dir() {
            collect(&path, files)?;
        } else if path.extension().is_some_and(|extension| extension == "json") {
            files.push(path);
        }
    }
    Ok(())
}

fn run_file(path: &Path) -> Vec<(String, Verdict)> {
    let failed = |reason: String| vec![(String::new(), Verdict::Failed(reason))];
    let text = match std::fs::read_to_string(path) {
        Ok(text) => text,
        Err(error) => return failed(error.to_string()),
    };
    let tests: serde_json::Map<String, Value> = match serde_json::from_str(&text) {
        Ok(tests) => tests,
        Err(error) => return failed(error.to_string()),
    };
    let tests = tests.iter().filter(|(_, test)| test.get("blocks").is_some());
    let verdicts = tests.map(|(name, test)| {
        let verdict = match BlockchainTest::from_json(name, test, default_network(path)) {
            Ok(test) => run(&test),
            Err(reason) => Verdict::Failed(reason),
        };
        (name.clone(), verdict)
    });
    verdicts.collect()
}

/// Before 2017 the folder said which network a test is for.
fn default_network(path: &Path) -> &'static str {
    match path.parent().and_then(Path::file_name).and_then(|name| name.to_str()) {
        Some("Homestead") => "Homestead",
        Some("EIP150") => "EIP150",
        Some("TestNetwork") => network::TEST_NETWORK,
        _ => "Frontier",
    }
}

impl Summary {
    fn add(&mut self, file: &Path, verdicts: Vec<(String, Verdict)>) {
        self.files += usize::from(!verdicts.is_empty());
        for (name, verdict) in verdicts {
            let named = |reason: String| format!("{} {name}: {reason}", file.display());
            match verdict {
                Verdict::Passed => self.passed += 1,
                Verdict::Unsupported(reason) => self.unsupported.push(named(reason)),
                Verdict::Unchecked(what) => self.unchecked.push(named(what)),
                Verdict::Failed(reason) => self.failed.push(named(reason)),
            }
        }
    }
}

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { files, passed, unsupported, unchecked, failed } = self;
        let tests = passed + unsupported.len() + unchecked.len() + failed.len();
        writeln!(f, "{tests} blockchain tests in {files} files: {passed} passed, {} failed", failed.len())?;
        writeln!(f, "{} are for chains that are refused as a whole", unsupported.len())?;
        writeln!(f, "{} have a block that is wrong only in its seal or difficulty", unchecked.len())?;
        failed.iter().try_for_each(|failure| writeln!(f, "failed: {failure}"))
    }
}
