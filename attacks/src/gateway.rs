//! The process under attack: started, watched and ended here.

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use testkit::ports::free_port;

pub(crate) const HONEST_KEY: &str = "honest-caller-0000000000000000000";
pub(crate) const HOSTILE_KEY: &str = "hostile-caller-000000000000000000";

/// The demo chain is made during the first start, which takes a while without optimisation.
const START_TIMEOUT: Duration = Duration::from_secs(120);

/// The drain lasts 30 s at most by default.
const END_TIMEOUT: Duration = Duration::from_secs(45);

const PROBE_TIMEOUT: Duration = Duration::from_secs(2);

/// Ticks per second in /proc, which is 100 on every Linux that is in use.
const TICKS_PER_SECOND: f64 = 100.0;

/// Where the gateway's log goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LogTarget {
    File,
    /// Every write fails.
    FullDevice,
    /// The reader ends once the gateway serves.
    ClosedPipe,
    /// The reader never reads.
    StuckPipe,
}

/// How a gateway is started.
#[derive(Clone, Debug)]
pub(crate) struct GatewayStart<'a> {
    pub(crate) program: &'a Path,
    /// Holds the configuration, the log and the archive, which the next gateway uses again.
    pub(crate) folder: &'a Path,
    /// Everything but `[listen]` and the keys.
    pub(crate) config: &'a str,
    pub(crate) open_files_max: Option<u64>,
    pub(crate) log: LogTarget,
    pub(crate) log_level: &'a str,
}

/// A running gateway; it is killed when this is dropped.
#[derive(Debug)]
pub(crate) struct GatewayProcess {
    child: Child,
    pub(crate) public: SocketAddr,
    pub(crate) operator: SocketAddr,
    log: PathBuf,
}

impl GatewayProcess {
    /// Starts a gateway and waits until it is ready.
    pub(crate) fn start(start: &GatewayStart<'_>) -> io::Result<Self> {
        let mut gateway = Self::spawn(start)?;
        gateway.wait_for_page("/ready")?;
        if start.log == LogTarget::ClosedPipe {
            drop(gateway.child.stderr.take());
        }
        Ok(gateway)
    }

    /// Starts a gateway that may never be ready, and waits until it listens.
    pub(crate) fn start_listening(start: &GatewayStart<'_>) -> io::Result<Self> {
        let mut gateway = Self::spawn(start)?;
        gateway.wait_for_page("/health")?;
        Ok(gateway)
    }

    fn spawn(start: &GatewayStart<'_>) -> io::Result<Self> {
        let [public, operator] = match start.log {
            LogTarget::File => [SocketAddr::from((Ipv4Addr::LOCALHOST, 0)); 2],
            LogTarget::FullDevice | LogTarget::ClosedPipe | LogTarget::StuckPipe => free_addresses(),
        };
        let config = start.folder.join("chaingate.toml");
        fs::write(&config, config_text(public, operator, start.config))?;
        let log = start.folder.join("log");
        // The log of the previous gateway is overwritten.
        fs::write(&log, "")?;
        let mut command = limited(start);
        command.args(["serve", "--config"]).arg(config).arg("--data-dir").arg(start.folder.join("data"));
        command
            .env("RUST_LOG", format!("{},chaingate=info", start.log_level))
            .env("CHAINGATE_CONSOLE", "off")
            .stdin(Stdio::null())
            .stdout(Stdio::null());
        command.stderr(match start.log {
            LogTarget::File => File::create(&log)?.into(),
            LogTarget::FullDevice => File::options().write(true).open("/dev/full")?.into(),
            LogTarget::ClosedPipe | LogTarget::StuckPipe => Stdio::piped(),
        });
        let mut gateway = Self { child: command.spawn()?, public, operator, log };
        if start.log == LogTarget::File {
            gateway.wait_until("serves", Self::read_addresses)?;
        }
        Ok(gateway)
    }

    /// Reads from the log where it serves, and whether it does.
    fn read_addresses(&mut self) -> bool {
        let log = self.log_text();
        let serving = log.lines().find(|line| line.contains("\"message\":\"serving\""));
        let found = serving.and_then(|line| Some((address(line, "public")?, address(line, "operator")?)));
        found.into_iter().for_each(|found| (self.public, self.operator) = found);
        found.is_some()
    }

    /// Waits until a page of the operator's listener has the status of success.
    fn wait_for_page(&mut self, path: &str) -> io::Result<()> {
        self.wait_until(&format!("has {path}"), |gateway| {
            gateway.operator_page(path).is_some_and(|page| page.starts_with("HTTP/1.1 200"))
        })
    }

    fn wait_until(&mut self, what: &str, is_so: impl Fn(&mut Self) -> bool) -> io::Result<()> {
        let started = Instant::now();
        while !is_so(self) {
            if let Some(status) = self.child.try_wait()? {
                return Err(io::Error::other(format!("the gateway ended: {status}; {}", self.log_text())));
            }
            if started.elapsed() > START_TIMEOUT {
                return Err(io::Error::other(format!("no gateway that {what}; {}", self.log_text())));
            }
            thread::sleep(Duration::from_millis(10));
        }
        Ok(())
    }

    /// A whole reply of the operator's listener, if it gives one.
    pub(crate) fn operator_page(&self, path: &str) -> Option<String> {
        self.operator_page_as(path, &self.operator.to_string())
    }

    /// Like [`operator_page`](Self::operator_page), with another `Host`.
    pub(crate) fn operator_page_as(&self, path: &str, host: &str) -> Option<String> {
        let mut stream = TcpStream::connect_timeout(&self.operator, PROBE_TIMEOUT).ok()?;
        stream.set_read_timeout(Some(PROBE_TIMEOUT)).ok()?;
        write!(stream, "GET {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n").ok()?;
        let mut page = String::new();
        stream.read_to_string(&mut page).ok()?;
        Some(page)
    }

    /// The gateway's exit status, if it has ended.
    pub(crate) fn ended(&mut self) -> Option<ExitStatus> {
        self.child.try_wait().ok().flatten()
    }

    pub(crate) fn terminate(&self) -> io::Result<()> {
        let id = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw);
        let id = id.ok_or_else(|| io::Error::other("no process id"))?;
        Ok(kill_process(id, Signal::TERM)?)
    }

    /// How it ends after SIGTERM; killed if it does not.
    pub(crate) fn stop(mut self) -> String {
        if let Err(error) = self.terminate() {
            return format!("no signal could be sent: {error}");
        }
        self.wait_for_end()
    }

    pub(crate) fn wait_for_end(&mut self) -> String {
        let started = Instant::now();
        while started.elapsed() < END_TIMEOUT {
            if let Some(status) = self.ended() {
                return status.to_string();
            }
            thread::sleep(Duration::from_millis(20));
        }
        "still running 45 s after SIGTERM".to_owned()
    }

    pub(crate) fn memory_bytes(&self) -> u64 {
        let status = fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap_or_default();
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
        line.and_then(|line| line.trim().trim_end_matches(" kB").parse::<u64>().ok()).unwrap_or(0) << 10
    }

    pub(crate) fn cpu_seconds(&self) -> f64 {
        let stat = fs::read_to_string(format!("/proc/{}/stat", self.child.id())).unwrap_or_default();
        let fields: Vec<&str> = stat.rsplit(") ").next().unwrap_or_default().split(' ').collect();
        let ticks = [11, 12].iter().filter_map(|field| fields.get(*field)?.parse::<f64>().ok());
        ticks.sum::<f64>() / TICKS_PER_SECOND
    }

    pub(crate) fn log_text(&self) -> String {
        fs::read_to_string(&self.log).unwrap_or_default()
    }
}

impl Drop for GatewayProcess {
    fn drop(&mut self) {
        // One that has ended already needs no killing.
        let _gone = self.child.kill();
        let _reaped = self.child.wait();
    }
}

/// The program itself, or a shell that lowers the limit first and then becomes the program.
fn limited(start: &GatewayStart<'_>) -> Command {
    let Some(files) = start.open_files_max else { return Command::new(start.program) };
    let mut shell = Command::new("sh");
    shell.args(["-c", &format!("ulimit -n {files} && exec \"$0\" \"$@\"")]).arg(start.program);
    shell
}

fn config_text(public: SocketAddr, operator: SocketAddr, rest: &str) -> String {
    let key = |key: &str, account: &str| {
        format!("[[key]]\nkey = \"{key}\"\naccount = \"{account}\"\nplan = \"custom\"\n")
    };
    let listen = format!("[listen]\npublic = \"{public}\"\noperator = \"{operator}\"\nworkers = 2\n");
    [listen, key(HONEST_KEY, "honest"), key(HOSTILE_KEY, "hostile"), rest.to_owned()].concat()
}

/// An address in a line of the log.
fn address(line: &str, name: &str) -> Option<SocketAddr> {
    line.split_once(&format!("\"{name}\":\""))?.1.split('"').next()?.parse().ok()
}

/// Two addresses where nobody listens, for a gateway whose log cannot be read.
fn free_addresses() -> [SocketAddr; 2] {
    [(); 2].map(|()| SocketAddr::from((Ipv4Addr::LOCALHOST, free_port())))
}
