//! A real Redis, where there is one.
//!
//! Nothing but the standard library, `tempfile`, `ports` and `skip` is used here: crates that must not depend on this one
//! include the file by its path, next to those.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::Duration;

use tempfile::TempDir;

use super::ports::free_port;
use super::skip;

/// The program of Debian's package.
const PROGRAM: &str = "redis-server";

/// Starts until a free port was still free when the server took it.
const STARTS_MAX: usize = 20;

/// A server of its own that is ended when it is dropped. It keeps nothing on disk.
#[derive(Debug)]
pub struct RedisServer {
    child: Child,
    address: SocketAddr,
    folder: TempDir,
}

impl RedisServer {
    /// Starts a server at a free port. `None` means that the calling test is skipped, which has been reported.
    pub fn start() -> Option<Self> {
        if Command::new(PROGRAM).arg("--version").stdout(Stdio::null()).status().is_err() {
            skip::missing("redis-server is not installed (Debian's package redis-server)");
            return None;
        }
        let folder = tempfile::tempdir().expect("a temporary folder");
        let (child, address) = (0..STARTS_MAX)
            .find_map(|_| {
                let address = SocketAddr::from((Ipv4Addr::LOCALHOST, free_port()));
                Some((serve(address, &folder)?, address))
            })
            .expect("Redis serves");
        Some(Self { child, address, folder })
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }

    pub fn url(&self) -> String {
        format!("redis://{}/0", self.address)
    }

    /// Ends the server at once, as `kill -9` does.
    pub fn kill(&mut self) {
        self.child.kill().expect("the server can be killed");
        self.child.wait().expect("the server ends");
    }

    /// Starts the server again at the same address, without what it knew.
    pub fn restart(&mut self) {
        let started = (0..STARTS_MAX).find_map(|_| serve(self.address, &self.folder));
        self.child = started.expect("Redis serves again");
    }

    /// Sends a signal: `STOP`, `CONT`.
    pub fn signal(&self, name: &str) {
        let kill = format!("kill -{name} {}", self.child.id());
        let sent = Command::new("sh").args(["-c", &kill]).status().expect("a shell is there");
        assert!(sent.success());
    }

    /// Everything that it knows, in its own format.
    pub fn snapshot(&self) -> Vec<u8> {
        assert_eq!(self.command("SAVE"), "+OK");
        std::fs::read(self.folder.path().join("dump.rdb")).expect("SAVE writes this file")
    }

    /// Sends a command of a single line, and gives the first line of the reply.
    pub fn command(&self, line: &str) -> String {
        ask(self.address, line).expect("Redis answers")
    }
}

impl Drop for RedisServer {
    fn drop(&mut self) {
        // One that has ended already cannot be killed, which is as good.
        let _gone = self.child.kill();
        let _gone = self.child.wait();
    }
}

/// A server at this address; `None` if it ended, because the port is taken.
fn serve(address: SocketAddr, folder: &TempDir) -> Option<Child> {
    let mut child = Command::new(PROGRAM)
        .args(["--bind", "127.0.0.1", "--port", &address.port().to_string()])
        .args(["--save", "", "--appendonly", "no", "--dir"])
        .arg(folder.path())
        .stdout(Stdio::null())
        .spawn()
        .expect("redis-server can be started");
    loop {
        if child.try_wait().expect("the server can be watched").is_some() {
            return None;
        }
        if ask(address, "PING").is_some_and(|reply| reply == "+PONG") {
            return Some(child);
        }
        sleep(Duration::from_millis(10));
    }
}

fn ask(address: SocketAddr, line: &str) -> Option<String> {
    let mut connection = TcpStream::connect(address).ok()?;
    connection.write_all(format!("{line}\r\n").as_bytes()).ok()?;
    let (mut reply, mut byte) = (Vec::new(), [0]);
    while connection.read_exact(&mut byte).is_ok() && byte != *b"\n" {
        reply.push(byte[0]);
    }
    Some(String::from_utf8_lossy(&reply).trim_end().to_owned()).filter(|reply| !reply.is_empty())
}
