//! Tells a service manager such as systemd how the gateway is, with the datagrams of sd_notify(3).

use std::ffi::OsStr;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::UnixDatagram;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use resources::{RepeatedWarning, Supervisor, TaskReport, WhenDown};

/// A supervised task shows a sign of life every second.
const BEAT_MAX: Duration = Duration::from_secs(1);

/// A service manager that does not read must not stop the gateway.
const SEND_TIMEOUT: Duration = Duration::from_secs(1);

/// The service manager that has started this process.
#[derive(Debug)]
pub(super) struct ServiceManager {
    socket: UnixDatagram,
    /// How often it expects a sign of life; `None` if it expects none.
    watchdog: Option<Duration>,
    failures: RepeatedWarning,
}

impl ServiceManager {
    /// `None` if no service manager wants to hear from this process, or it cannot be reached.
    pub(super) fn from_environment() -> Option<Self> {
        let variable = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
        let address = variable("NOTIFY_SOCKET")?;
        let number = |name: &str| variable(name)?.to_str()?.parse::<u64>().ok();
        let is_for_us = number("WATCHDOG_PID").is_none_or(|id| id == u64::from(std::process::id()));
        let watchdog = number("WATCHDOG_USEC").filter(|&us| is_for_us && us > 0).map(Duration::from_micros);
        let connected = Self::connect(&address, watchdog);
        let logged = connected.inspect_err(|error| {
            tracing::warn!(socket = %address.display(), %error, "cannot reach the service manager");
        });
        logged.ok()
    }

    fn connect(address: &OsStr, watchdog: Option<Duration>) -> io::Result<Self> {
        let socket = UnixDatagram::unbound()?;
        match address.as_bytes().strip_prefix(b"@") {
            None => socket.connect(address)?,
            Some(name) => connect_to_abstract(&socket, name)?,
        }
        socket.set_write_timeout(Some(SEND_TIMEOUT))?;
        Ok(Self { socket, watchdog, failures: RepeatedWarning::default() })
    }

    /// The gateway serves.
    pub(super) fn ready(&self) {
        self.send("READY=1");
    }

    /// The gateway drains, and ends by itself.
    pub(super) fn stopping(&self) {
        self.send("STOPPING=1");
    }

    /// Shows signs of life until the process ends, but none while a thread hangs that callers need: only a restart ends that.
    pub(super) fn watch(self: &Arc<Self>, supervisor: &Supervisor) -> io::Result<()> {
        let Some(watchdog) = self.watchdog else { return Ok(()) };
        let (manager, supervisor) = (Arc::clone(self), supervisor.clone());
        let task = supervisor.task("watchdog of the service manager", WhenDown::Degraded);
        // Twice as often as expected, as systemd recommends.
        let interval = (watchdog / 2).min(BEAT_MAX);
        let beat = move || {
            task.run_blocking(|task| {
                loop {
                    task.alive();
                    if !is_hanging(&supervisor.report()) {
                        manager.send("WATCHDOG=1");
                    }
                    thread::sleep(interval);
                }
            });
        };
        thread::Builder::new().name("watchdog".to_owned()).spawn(beat).map(drop)
    }

    fn send(&self, state: &str) {
        if let Err(error) = self.socket.send(state.as_bytes())
            && self.failures.count(Instant::now()).is_some()
        {
            tracing::warn!(%error, state, "cannot reach the service manager");
        }
    }
}

/// Whether a task that callers need hangs. One that panics is started again all the time, and a new process would panic, too.
fn is_hanging(tasks: &[TaskReport]) -> bool {
    tasks.iter().any(|task| task.when_down == WhenDown::NotReady && task.is_silent)
}

#[cfg(target_os = "linux")]
fn connect_to_abstract(socket: &UnixDatagram, name: &[u8]) -> io::Result<()> {
    use std::os::linux::net::SocketAddrExt;
    use std::os::unix::net::SocketAddr;

    socket.connect_addr(&SocketAddr::from_abstract_name(name)?)
}

#[cfg(not(target_os = "linux"))]
fn connect_to_abstract(_socket: &UnixDatagram, _name: &[u8]) -> io::Result<()> {
    Err(io::Error::new(io::ErrorKind::Unsupported, "this system has no abstract sockets"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn received(socket: &UnixDatagram) -> String {
        let mut bytes = [0; 64];
        let length = socket.recv(&mut bytes).unwrap();
        String::from_utf8(bytes[..length].to_vec()).unwrap()
    }

    #[test]
    fn each_state_is_one_datagram() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("notify");
        let socket = UnixDatagram::bind(&path).unwrap();
        let watchdog = Some(Duration::from_millis(20));
        let manager = Arc::new(ServiceManager::connect(path.as_os_str(), watchdog).unwrap());
        manager.ready();
        manager.stopping();
        assert_eq!([received(&socket), received(&socket)], ["READY=1", "STOPPING=1"]);
        let supervisor = Supervisor::default();
        manager.watch(&supervisor).unwrap();
        assert_eq!([received(&socket), received(&socket)], ["WATCHDOG=1", "WATCHDOG=1"]);
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn the_socket_may_have_an_abstract_name() {
        use std::os::linux::net::SocketAddrExt;
        use std::os::unix::net::SocketAddr;

        let name = format!("chaingate-test-{}", std::process::id());
        let socket = UnixDatagram::bind_addr(&SocketAddr::from_abstract_name(&name).unwrap()).unwrap();
        ServiceManager::connect(format!("@{name}").as_ref(), None).unwrap().ready();
        assert_eq!(received(&socket), "READY=1");
    }

    #[test]
    fn only_a_task_that_hangs_and_that_callers_need_calls_for_a_restart() {
        let supervisor = Supervisor::default();
        let _tasks =
            [WhenDown::NotReady, WhenDown::Degraded].map(|when_down| supervisor.task("a", when_down));
        let reports = supervisor.report();
        assert!(!is_hanging(&reports));
        let with = |change: fn(&mut Vec<TaskReport>)| {
            let mut reports = reports.clone();
            change(&mut reports);
            is_hanging(&reports)
        };
        assert!(with(|tasks| (tasks[0].is_down, tasks[0].is_silent) = (true, true)));
        assert!(!with(|tasks| tasks[0].is_down = true), "it panics");
        assert!(!with(|tasks| (tasks[1].is_down, tasks[1].is_silent) = (true, true)), "callers are served");
    }
}
