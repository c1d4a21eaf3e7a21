//! A real PostgreSQL server, where Debian's package is installed.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use tempfile::TempDir;

use crate::skip;

/// How long a server may take to start or to end on a busy machine.
const START_TIMEOUT: Duration = Duration::from_secs(120);

/// A server of its own with an empty database, in a temporary folder; it ends when it is dropped.
///
/// It listens on a socket in that folder only, so that it needs no port.
#[derive(Debug)]
pub struct PostgresServer {
    folder: TempDir,
    programs: PathBuf,
    server: Option<Child>,
}

/// The folder with `initdb` and `postgres` of the newest version. `None` means that the calling test is skipped, which has been
/// reported.
fn programs() -> Option<PathBuf> {
    let versions = fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
    let folders = versions.map(|version| version.path().join("bin"));
    let newest = folders.filter(|folder| folder.join("initdb").exists()).max();
    if newest.is_none() {
        skip::missing("PostgreSQL is not installed (Debian package postgresql)");
    }
    newest
}

impl PostgresServer {
    /// Starts a server with an empty database. `None` means that the calling test is skipped.
    pub fn start() -> Option<Self> {
        let programs = programs()?;
        let folder = tempfile::Builder::new().prefix("pg").tempdir_in("/tmp").expect("a temporary folder");
        let mut postgres = Self { folder, programs, server: None };
        postgres.give_to_unprivileged();
        let made = postgres
            .command("initdb")
            .args(["--username=chaingate", "--auth=trust", "--encoding=UTF8", "--no-sync", "--pgdata"])
            .arg(postgres.data())
            .stdout(Stdio::null())
            .status();
        assert!(made.expect("initdb can be started").success(), "initdb failed");
        postgres.restart();
        Some(postgres)
    }

    /// The address of its database.
    pub fn url(&self) -> String {
        format!("postgres:///postgres?user=chaingate&host={}", self.folder.path().display())
    }

    /// Starts it again after [`Self::kill`] or [`Self::stop`], and waits until it answers.
    pub fn restart(&mut self) {
        assert!(self.server.is_none(), "it runs already");
        let mut command = self.command("postgres");
        command.arg("-D").arg(self.data()).arg("-k").arg(self.folder.path());
        command.args(["-c", "listen_addresses=", "-c", "fsync=off", "-c", "shared_buffers=16MB"]);
        command.stdout(Stdio::null()).stderr(Stdio::null());
        self.server = Some(command.spawn().expect("postgres can be started"));
        let deadline = Instant::now() + START_TIMEOUT;
        while !self.is_ready() {
            assert!(Instant::now() < deadline, "PostgreSQL does not answer");
            thread::sleep(Duration::from_millis(50));
        }
    }

    fn is_ready(&self) -> bool {
        let mut command = self.command("pg_isready");
        command.arg("-h").arg(self.folder.path()).args(["-U", "chaingate", "-d", "postgres", "-q"]);
        command.status().is_ok_and(|status| status.success())
    }

    /// Ends it at once, like a crash: with all its processes.
    pub fn kill(&mut self) {
        let Some(mut server) = self.server.take() else { return };
        let children = format!("/proc/{0}/task/{0}/children", server.id());
        let children = fs::read_to_string(children).unwrap_or_default();
        // One that has ended already cannot be killed, which is as good.
        let _gone = server.kill();
        let _gone = server.wait();
        for child in children.split_whitespace() {
            let kill = format!("kill -KILL {child}");
            let _gone = Command::new("sh").args(["-c", &kill]).stderr(Stdio::null()).status();
        }
        // The next server refuses to start while a process of this one lives.
        let deadline = Instant::now() + START_TIMEOUT;
        while children
            .split_whitespace()
            .any(|child| Path::new("/proc").join(child).join("exe").read_link().is_ok())
        {
            assert!(Instant::now() < deadline, "a process of PostgreSQL does not end");
            thread::sleep(Duration::from_millis(20));
        }
    }

    /// Runs statements with `psql`, and returns what it prints.
    pub fn run(&self, statements: &str) -> String {
        let mut command = self.command("psql");
        command.arg("-h").arg(self.folder.path()).args(["-U", "chaingate", "-d", "postgres"]);
        command.args(["-X", "-q", "-t", "-A", "-v", "ON_ERROR_STOP=1", "-c", statements]);
        let done = command.output().expect("psql can be started");
        assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
        String::from_utf8_lossy(&done.stdout).trim().to_owned()
    }

    /// The socket on which it listens.
    pub fn socket(&self) -> PathBuf {
        self.folder.path().join(".s.PGSQL.5432")
    }

    /// Copies its files, as they are after a crash, as a replica has them that gets no newer changes.
    pub fn keep_copy(&mut self) {
        self.kill();
        replace_folder(&self.data(), &self.copy());
        self.restart();
    }

    /// Ends it, and starts its copy in its place.
    pub fn fail_over_to_copy(&mut self) {
        self.kill();
        replace_folder(&self.copy(), &self.data());
        self.restart();
    }

    fn copy(&self) -> PathBuf {
        self.folder.path().join("copy")
    }

    /// The folder with its files.
    pub fn data(&self) -> PathBuf {
        self.folder.path().join("data")
    }

    /// PostgreSQL refuses to run as root, so root runs it as Debian's user `postgres`.
    fn command(&self, program: &str) -> Command {
        let program = self.programs.join(program);
        let mut command = match is_root() {
            true => {
                let mut command = Command::new("setpriv");
                command.args(["--reuid=postgres", "--regid=postgres", "--clear-groups"]).arg(program);
                command
            }
            false => Command::new(program),
        };
        command.current_dir(self.folder.path());
        command
    }

    fn give_to_unprivileged(&self) {
        let open = fs::Permissions::from_mode(0o755);
        fs::set_permissions(self.folder.path(), open).expect("the folder is ours");
        if is_root() {
            let given = Command::new("chown").arg("postgres:postgres").arg(self.folder.path()).status();
            assert!(given.expect("chown can be started").success(), "there is no user postgres");
        }
    }
}

fn replace_folder(from: &Path, to: &Path) {
    let copied =
        Command::new("sh").args(["-c", "rm -rf \"$1\" && cp -a \"$0\" \"$1\""]).arg(from).arg(to).status();
    assert!(copied.expect("sh can be started").success(), "the files of PostgreSQL cannot be copied");
}

fn is_root() -> bool {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    status.lines().any(|line| line.starts_with("Uid:\t0\t"))
}

impl Drop for PostgresServer {
    fn drop(&mut self) {
        self.kill();
    }
}
