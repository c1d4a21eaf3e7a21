//! The program, a chain in files, and a data directory for it.

use archive::{Archive, Block, Snapshot};
use std::{
    ops::RangeInclusive,
    path::{Path, PathBuf},
    process::{Child, Command, Output, Stdio},
    sync::Arc,
};
use tempfile::TempDir;
use testkit::{
    chain::{Size, random_chain},
    truth::Truth,
};

/// A chain, its files, and a data directory, which is not made yet.
pub(super) struct Workplace {
    pub(super) truth: Truth,
    folder: TempDir,
    files: Vec<PathBuf>,
    data_dirs: u32,
}

impl Workplace {
    /// A chain through all forks, in files of a few blocks. The program commits at the end of each file.
    pub(super) fn new(blocks_per_fork: u64, blocks_per_file: usize) -> Self {
        let truth = Truth::new(random_chain(1, Size { blocks_per_fork, transactions_per_block: 8 }));
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("genesis.json"), truth.model.genesis_json()).unwrap();
        let files = truth.model.blocks().chunks(blocks_per_file).enumerate().map(|(number, blocks)| {
            let path = folder.path().join(format!("{number:05}.rlp"));
            let bytes: Vec<u8> = blocks.iter().flat_map(|block| block.rlp()).collect();
            std::fs::write(&path, bytes).unwrap();
            path
        });
        let files = files.collect();
        Self { truth, folder, files, data_dirs: 0 }
    }

    /// A short chain in one file.
    pub(super) fn small() -> Self {
        Self::new(2, usize::MAX)
    }

    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// All files of the chain, in order.
    pub(super) fn files(&self) -> &[PathBuf] {
        &self.files
    }

    pub(super) fn data_dir(&self) -> PathBuf {
        self.path(&format!("data-{}", self.data_dirs))
    }

    /// From now on the data directory is another one, which is not made yet.
    pub(super) fn start_over(&mut self) {
        self.data_dirs += 1;
    }

    pub(super) fn write(&self, name: &str, bytes: impl AsRef<[u8]>) -> PathBuf {
        let path = self.path(name);
        std::fs::write(&path, bytes).unwrap();
        path
    }

    /// A file with some blocks of the chain.
    pub(super) fn write_blocks(&self, name: &str, numbers: RangeInclusive<u64>) -> PathBuf {
        let blocks = numbers.flat_map(|number| self.truth.model.block(number).unwrap().rlp());
        self.write(name, blocks.collect::<Vec<u8>>())
    }

    pub(super) fn block(&self, number: u64) -> Block {
        self.truth.model.block(number).unwrap().block.clone()
    }

    /// `chaingate import` of these files, not started yet.
    pub(super) fn command<P: AsRef<Path>>(&self, files: impl IntoIterator<Item = P>) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_chaingate"));
        command.args(["import", "--data-dir"]).arg(self.data_dir());
        command.arg("--genesis").arg(self.path("genesis.json"));
        command.args(files.into_iter().map(|file| file.as_ref().to_owned()));
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    /// Imports these files to the end.
    pub(super) fn import<P: AsRef<Path>>(&self, files: impl IntoIterator<Item = P>) -> Ended {
        Ended::from(self.command(files).output().unwrap())
    }

    pub(super) fn import_all(&self) -> Ended {
        self.import(&self.files)
    }

    pub(super) fn start_import_of_all(&self) -> Child {
        self.command(&self.files).spawn().unwrap()
    }

    /// The archive as it is now.
    pub(super) fn open(&self) -> (Archive, Arc<Snapshot>) {
        let archive = Archive::open(&self.data_dir()).unwrap();
        let snapshot = archive.snapshot();
        (archive, snapshot)
    }

    pub(super) fn head(&self) -> u64 {
        self.open().1.head()
    }

    /// The archive holds the chain up to this block, and nothing else.
    pub(super) fn assert_holds(&self, head: u64) {
        let (_archive, snapshot) = self.open();
        assert_eq!(snapshot.head(), head);
        self.truth.check_sample(&snapshot, [head / 2]).unwrap();
    }
}

/// How the program ended.
#[derive(Debug)]
pub(super) struct Ended {
    /// None if a signal ended it.
    pub(super) code: Option<i32>,
    pub(super) stdout: String,
    pub(super) stderr: String,
}

impl From<Output> for Ended {
    fn from(output: Output) -> Self {
        Self {
            code: output.status.code(),
            stdout: String::from_utf8(output.stdout).unwrap(),
            stderr: String::from_utf8(output.stderr).unwrap(),
        }
    }
}

impl Ended {
    pub(super) fn assert_succeeded(&self) {
        assert_eq!(self.code, Some(0), "{self:?}");
    }

    /// It failed, and said all of this in so many words.
    pub(super) fn assert_failed_with(&self, texts: &[&str]) {
        assert_eq!(self.code, Some(1), "{self:?}");
        assert!(self.stderr.starts_with("chaingate import: "), "{self:?}");
        for text in texts {
            assert!(self.stderr.contains(text), "expected {text:?} in {:?}", self.stderr);
        }
    }
}
