//! The program itself, in a process of its own.

use std::io::{BufRead, BufReader};
use std::net::{SocketAddr, TcpListener};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::sync::Arc;
use std::thread::{self, JoinHandle};

use parking_lot::Mutex;
use serde_json::Value;
use tempfile::TempDir;

use crate::demo::until;

/// The data directory of a process, which is kept when the process has ended.
pub(crate) struct DataDirectory(Arc<TempDir>);

impl DataDirectory {
    pub(crate) fn path(&self) -> PathBuf {
        self.0.path().join("data")
    }
}

const CONFIG: &str = "chaingate.toml";

pub(crate) struct Process {
    child: Child,
    log: Arc<Mutex<Vec<String>>>,
    reader: Option<JoinHandle<()>>,
    pub(crate) public: SocketAddr,
    pub(crate) operator: SocketAddr,
    pub(crate) console: Option<SocketAddr>,
    directory: Arc<TempDir>,
}

impl Process {
    /// Starts `chaingate` on the demo chain. `public` is where it listens, `rest` any other part of its configuration.
    pub(crate) fn start(public: &str, rest: &str, log: &str) -> Self {
        Self::run(configured(public, rest), log, "")
    }

    /// Like [`start`](Self::start), with at most this many open files.
    pub(crate) fn start_with_open_files(open_files_max: u32, rest: &str, log: &str) -> Self {
        Self::run(configured("127.0.0.1:0", rest), log, &format!("ulimit -n {open_files_max};"))
    }

    /// Like [`start`](Self::start), but exceeding the limit of file sizes is an error and does not end the process.
    pub(crate) fn start_without_file_size_signal(rest: &str, log: &str) -> Self {
        Self::run(configured("127.0.0.1:0", rest), log, "trap '' XFSZ;")
    }

    /// Like [`start`](Self::start). `prepare` fills the data directory, and the shell runs the commands `before` the program.
    pub(crate) fn start_with_data(rest: &str, log: &str, before: &str, prepare: impl Fn(&Path)) -> Self {
        let directory = configured("127.0.0.1:0", rest);
        prepare(&directory.path().join("data"));
        Self::run(directory, log, before)
    }

    /// Kills the process, and returns its data directory.
    pub(crate) fn kill(mut self) -> DataDirectory {
        let _gone = self.child.kill();
        let _gone = self.child.wait();
        DataDirectory(Arc::clone(&self.directory))
    }

    pub(crate) fn data_dir(&self) -> PathBuf {
        self.data().path()
    }

    /// The data directory, for when the process has ended.
    pub(crate) fn data(&self) -> DataDirectory {
        DataDirectory(Arc::clone(&self.directory))
    }

    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// Kills the process, and starts it again with the same data directory.
    pub(crate) fn start_again(&mut self, log: &str) {
        // A process that has ended already cannot be killed, which is as good.
        let _gone = self.child.kill();
        let _gone = self.child.wait();
        *self = Self::run(Arc::clone(&self.directory), log, "");
    }

    /// Like [`start`](Self::start), with a console, which has an address of its own.
    pub(crate) fn start_with_console(rest: &str, log: &str) -> Self {
        Self::run_with_console(configured("127.0.0.1:0", rest), log, "", "127.0.0.1:0")
    }

    /// Starts one that takes over the one that runs with this data directory.
    pub(crate) fn take_over(data: &DataDirectory) -> Self {
        let mut command = command(&data.0, "info", "", "off");
        command.arg("--take-over");
        Self::spawn(command, Arc::clone(&data.0))
    }

    /// Starts it as a service manager does that has opened the sockets for callers and the operator, with the data of one before.
    pub(crate) fn start_on_sockets(
        sockets: [&TcpListener; 2],
        rest: &str,
        data: Option<&DataDirectory>,
    ) -> Self {
        let directory = data.map(|data| Arc::clone(&data.0));
        let directory = directory.unwrap_or_else(|| configured("127.0.0.1:0", rest));
        let pass = "exec 3<&0 4<&1 </dev/null >/dev/null; export LISTEN_FDS=2 LISTEN_PID=$$ LISTEN_FDNAMES=public:operator;";
        let mut command = command(&directory, "info", pass, "off");
        let [public, operator] =
            sockets.map(|socket| Stdio::from(OwnedFd::from(socket.try_clone().unwrap())));
        command.stdin(public).stdout(operator);
        Self::spawn(command, directory)
    }

    /// Runs the program in a shell, after the commands `before`.
    fn run(directory: Arc<TempDir>, log: &str, before: &str) -> Self {
        Self::run_with_console(directory, log, before, "off")
    }

    fn run_with_console(directory: Arc<TempDir>, log: &str, before: &str, console: &str) -> Self {
        Self::spawn(command(&directory, log, before, console), directory)
    }

    fn spawn(mut command: Command, directory: Arc<TempDir>) -> Self {
        let mut child = command.stderr(Stdio::piped()).spawn().unwrap();
        let stderr = BufReader::new(child.stderr.take().unwrap());
        let log = Arc::new(Mutex::new(Vec::new()));
        let lines = Arc::clone(&log);
        let reader = thread::spawn(move || stderr.lines().for_each(|line| lines.lock().push(line.unwrap())));
        let (public, operator, console) = addresses(&log);
        Self { child, log, reader: Some(reader), public, operator, console, directory }
    }

    /// Writes another configuration file, with a public listener on any free port.
    pub(crate) fn write_config(&self, rest: &str) {
        self.write_root_config("", rest);
    }

    /// The same with keys before the first section.
    pub(crate) fn write_root_config(&self, root: &str, rest: &str) {
        write_config(self.directory.path(), root, "127.0.0.1:0", rest);
    }

    /// Runs a command with the configuration and the data directory of this process.
    pub(crate) fn command(&self, name: &str) -> Output {
        let mut command = Command::new(env!("CARGO_BIN_EXE_chaingate"));
        command.arg(name).arg("--config").arg(self.directory.path().join(CONFIG));
        command.arg("--data-dir").arg(self.data_dir()).output().unwrap()
    }

    /// Asks the process to stop, as a supervisor does.
    pub(crate) fn terminate(&self) {
        self.signal("TERM");
    }

    /// Asks the process to stop, twice in the same instant.
    pub(crate) fn terminate_twice(&self) {
        let id = self.child.id();
        send_signal("TERM", &format!("{id} {id}"));
    }

    pub(crate) fn has_ended(&mut self) -> bool {
        self.child.try_wait().unwrap().is_some()
    }

    /// Sends a signal: `TERM`, `KILL`, `STOP`, `CONT`.
    pub(crate) fn signal(&self, name: &str) {
        send_signal(name, &self.child.id().to_string());
    }

    /// How many lines of its log so far contain this text.
    pub(crate) fn lines_with(&self, text: &str) -> usize {
        self.lines_with_all(&[text])
    }

    /// How many lines of its log so far contain all of these texts.
    pub(crate) fn lines_with_all(&self, texts: &[&str]) -> usize {
        self.log.lock().iter().filter(|line| texts.iter().all(|text| line.contains(text))).count()
    }

    /// Waits for the end of the process. Returns its exit status and everything that it has logged.
    pub(crate) fn ended(mut self) -> (ExitStatus, Vec<String>) {
        let status = self.child.wait().unwrap();
        self.reader.take().unwrap().join().unwrap();
        (status, std::mem::take(&mut self.log.lock()))
    }

    /// Bytes of memory that it has now.
    pub(crate) fn memory(&self) -> u64 {
        self.status("VmRSS:")
    }

    /// Bytes of memory that it has had at most.
    pub(crate) fn peak_memory(&self) -> u64 {
        self.status("VmHWM:")
    }

    fn status(&self, name: &str) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix(name)).unwrap();
        line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() << 10
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // A process that has ended already cannot be killed, which is as good.
        let _gone = self.child.kill();
        let _gone = self.child.wait();
    }
}

fn command(directory: &TempDir, log: &str, before: &str, console: &str) -> Command {
    let mut command = Command::new("sh");
    command.args(["-c", &format!("{before} exec \"$@\""), "sh", env!("CARGO_BIN_EXE_chaingate")]);
    command.args(["serve", "--config"]).arg(directory.path().join(CONFIG));
    command.arg("--data-dir").arg(directory.path().join("data"));
    command.env("RUST_LOG", log).env("CHAINGATE_CONSOLE", console).stdout(Stdio::null());
    command
}

/// Sends a signal to processes, with the shell's own `kill`: the program of that name is not installed everywhere.
pub(crate) fn send_signal(name: &str, ids: &str) {
    let sent = Command::new("sh").args(["-c", &format!("kill -{name} {ids}")]).status().unwrap();
    assert!(sent.success());
}

fn configured(public: &str, rest: &str) -> Arc<TempDir> {
    let directory = tempfile::tempdir().unwrap();
    write_config(directory.path(), "", public, rest);
    Arc::new(directory)
}

fn write_config(directory: &Path, root: &str, public: &str, rest: &str) {
    // The default is one worker per core. Memory and open files would then depend on the machine.
    let listen = format!("[listen]\npublic = \"{public}\"\noperator = \"127.0.0.1:0\"\nworkers = 2\n");
    std::fs::write(directory.join(CONFIG), format!("{root}{listen}{rest}")).unwrap();
}

/// The addresses of the listeners, which the log names when the program has started.
fn addresses(log: &Mutex<Vec<String>>) -> (SocketAddr, SocketAddr, Option<SocketAddr>) {
    let mut found = None;
    until("it serves", || {
        let lines = log.lock();
        let records = lines.iter().filter_map(|line| serde_json::from_str::<Value>(line).ok());
        found = records.map(|record| record["fields"].clone()).find(|fields| fields["message"] == "serving");
        found.is_some()
    });
    let fields = found.unwrap();
    let address = |name: &str| fields[name].as_str().map(|address| address.parse().unwrap());
    (address("public").unwrap(), address("operator").unwrap(), address("console"))
}
