//! The gateways, and their command line.

use std::fs;
use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;
use testkit::http::{TestConnection, request};

use crate::gateway::{GatewayProcess, GatewayStart, LogTarget};

const GATEWAYS: usize = 3;

/// A key, a revocation or a record of usage that takes longer has not arrived.
const PATIENCE: Duration = Duration::from_secs(30);

const QUESTION: &[u8] = br#"{"jsonrpc":"2.0","id":1,"method":"eth_chainId","params":[]}"#;

/// A key as it was created.
#[derive(Debug)]
pub(super) struct CreatedKey {
    pub(super) id: String,
    pub(super) key: String,
}

/// Calls of an account as the store has them.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct StoredCalls {
    pub(super) answered: u64,
    pub(super) refused: u64,
}

impl StoredCalls {
    pub(super) fn calls(self) -> u64 {
        self.answered + self.refused
    }
}

pub(super) struct Gateways {
    program: PathBuf,
    /// One for each gateway.
    folders: Vec<PathBuf>,
    config: String,
    running: Vec<Option<GatewayProcess>>,
}

impl Gateways {
    /// Starts all of them with the same configuration, each with a data directory of its own.
    pub(super) fn start(program: &Path, folder: &Path, config: &str) -> io::Result<Self> {
        let folders: Vec<_> = (0..GATEWAYS).map(|number| folder.join(format!("gateway-{number}"))).collect();
        let mut gateways =
            Self { program: program.to_owned(), folders, config: config.to_owned(), running: Vec::new() };
        for number in 0..GATEWAYS {
            fs::create_dir(&gateways.folders[number])?;
            let started = gateways.spawn(number)?;
            gateways.running.push(Some(started));
        }
        Ok(gateways)
    }

    fn spawn(&self, number: usize) -> io::Result<GatewayProcess> {
        GatewayProcess::start(&GatewayStart {
            program: &self.program,
            folder: &self.folders[number],
            config: &self.config,
            open_files_max: None,
            log: LogTarget::File,
            log_level: "info",
        })
    }

    pub(super) fn addresses(&self) -> Vec<SocketAddr> {
        self.running.iter().flatten().map(|gateway| gateway.public).collect()
    }

    /// Ends one without a word.
    pub(super) fn kill(&mut self, number: usize) {
        self.running[number] = None;
    }

    pub(super) fn start_again(&mut self, number: usize) -> io::Result<SocketAddr> {
        let started = self.spawn(number)?;
        let address = started.public;
        self.running[number] = Some(started);
        Ok(address)
    }

    /// Runs a command with `--json`, as a script does.
    pub(super) fn command(&self, arguments: &[&str]) -> io::Result<Value> {
        let folder = &self.folders[0];
        let output = Command::new(&self.program)
            .args(arguments)
            .arg("--config")
            .arg(folder.join("chaingate.toml"))
            .arg("--data-dir")
            .arg(folder.join("data"))
            .arg("--json")
            .output()?;
        if !output.status.success() {
            let said = String::from_utf8_lossy(&output.stderr);
            return Err(io::Error::other(format!("chaingate {}: {said}", arguments.join(" "))));
        }
        serde_json::from_slice(&output.stdout).map_err(io::Error::other)
    }

    pub(super) fn create_key(&self, account: &str, name: &str) -> io::Result<String> {
        Ok(self.create_key_with_id(account, name)?.key)
    }

    pub(super) fn create_key_with_id(&self, account: &str, name: &str) -> io::Result<CreatedKey> {
        let created = self.command(&["keys", "create", "--account", account, "--name", name])?;
        let text = |field: &str| created[field].as_str().map(str::to_owned);
        let created = text("id").zip(text("key")).map(|(id, key)| CreatedKey { id, key });
        created.ok_or_else(|| io::Error::other("`keys create` shows no key"))
    }

    /// Waits until every gateway accepts the key.
    pub(super) fn wait_for_key(&self, key: &str) -> io::Result<()> {
        self.wait_for_status("the key is accepted", key, |status| status != 401)
    }

    pub(super) fn wait_until_refused(&self, key: &str) -> io::Result<()> {
        self.wait_for_status("the key is refused", key, |status| status == 401)
    }

    fn wait_for_status(&self, what: &str, key: &str, is_so: impl Fn(u16) -> bool) -> io::Result<()> {
        for address in self.addresses() {
            let mut connection = TestConnection::try_connect(address)?;
            let request = request(&format!("/v3/{key}"), "", QUESTION);
            wait_until(what, || {
                let reply = connection.send(&request).next_reply();
                reply.is_some_and(|reply| is_so(reply.status))
            })?;
        }
        Ok(())
    }

    /// The usage of an account once the store has so many calls, or after waiting for long.
    pub(super) fn settled_usage(&self, account: &str, calls: u64) -> io::Result<StoredCalls> {
        let mut usage = StoredCalls::default();
        let started = Instant::now();
        while usage.calls() < calls && started.elapsed() < PATIENCE {
            thread::sleep(Duration::from_millis(200));
            usage = self.usage(account)?;
        }
        Ok(usage)
    }

    fn usage(&self, account: &str) -> io::Result<StoredCalls> {
        let shown = self.command(&["keys", "usage", "--account", account, "--by", "outcome"])?;
        let mut usage = StoredCalls::default();
        for row in shown["rows"].as_array().into_iter().flatten() {
            let calls = row["calls"].as_u64().unwrap_or(0);
            match row["outcome"].as_str() {
                Some("refused") => usage.refused += calls,
                _ => usage.answered += calls,
            }
        }
        Ok(usage)
    }
}

fn wait_until(what: &str, mut is_so: impl FnMut() -> bool) -> io::Result<()> {
    let started = Instant::now();
    while !is_so() {
        if started.elapsed() > PATIENCE {
            return Err(io::Error::other(format!("it takes too long until {what}")));
        }
        thread::sleep(Duration::from_millis(5));
    }
    Ok(())
}
