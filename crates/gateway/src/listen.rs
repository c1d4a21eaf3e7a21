//! Step 1: sockets → connections.
//!
//! One thread per core, each with its own runtime and its own listener on the shared port (`SO_REUSEPORT`), so that a
//! connection lives on one core and its requests share nothing with other cores but a few counters. The same code runs
//! on one work-stealing runtime when the configuration says so; which of the two is better is a matter of measuring.

mod connection; // one connection, as its requests see it
mod date; // the date of replies
mod http1; // requests one after another
mod http2; // requests side by side
pub(crate) mod peers; // what one address may take
mod socket; // timeouts that are really armed
mod tls; // certificates
mod worker; // accept, serve, drain

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use socket2::{Domain, Protocol, Socket, Type};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::watch;

use crate::config::Section;
use crate::edge::Edge;
use crate::operator;

use self::connection::Peer;
use self::worker::Worker;

pub(crate) use connection::{Connection, RequestId};
pub use http1::{FramedRequest, framed_requests};
pub use peers::{AddressHeader, AddressSet, ProxyConfig, TooManyUnauthenticated};
pub use tls::Tls;

/// Where to listen and with what.
#[derive(Clone, Debug)]
pub struct Config {
    pub public: SocketAddr,
    pub operator: SocketAddr,
    /// Threads that serve connections.
    pub workers: usize,
    pub runtime: Runtime,
    pub tls: Option<Tls>,
    /// Host names under which the operator's listener answers, besides `localhost` and IP addresses.
    pub operator_hosts: Vec<String>,
    pub proxies: ProxyConfig,
}

/// How connections are spread over the workers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Runtime {
    PerCore,
    WorkStealing,
}

impl Config {
    pub(crate) fn read(section: &mut Section<'_>) -> Self {
        let loopback = |port| SocketAddr::from(([127, 0, 0, 1], port));
        let cores = thread::available_parallelism().map_or(1, usize::from);
        let runtime = match section.text("runtime", "per-core").as_str() {
            "work-stealing" => Runtime::WorkStealing,
            "per-core" => Runtime::PerCore,
            _ => {
                section.mistake("runtime", "must be per-core or work-stealing");
                Runtime::PerCore
            }
        };
        Self {
            public: section.address("public", loopback(8545)),
            operator: section.address("operator", loopback(8546)),
            workers: section.size_up_to("workers", cores, THREADS_MAX),
            runtime,
            tls: Tls::read(section),
            operator_hosts: read_operator_hosts(section),
            proxies: ProxyConfig::read(section),
        }
    }
}

fn read_operator_hosts(section: &mut Section<'_>) -> Vec<String> {
    let hosts = section.texts("operator_hosts").unwrap_or_default();
    if let Some(mistake) = hosts.iter().find_map(|host| operator::hosts::host_mistake(host)) {
        section.mistake("operator_hosts", mistake);
    }
    hosts
}

impl Config {
    /// What is wrong if callers and the operator would share an address: callers would reach the operator's pages.
    pub(crate) fn address_conflict(&self) -> Option<String> {
        let (public, operator) = (self.public, self.operator);
        overlap(public, operator).then(|| {
            format!(
                "listen.public ({public}) and listen.operator ({operator}) must not share an address and port"
            )
        })
    }

    /// Why one of the addresses cannot be listened on. Being in use is no reason: the gateway may be running while its
    /// configuration is checked.
    pub(crate) fn unusable_address(&self) -> Option<String> {
        let errors = [self.public, self.operator].into_iter().filter_map(|address| check_free(address).err());
        let mut unusable = errors.filter(|error| error.kind() != io::ErrorKind::AddrInUse);
        unusable.next().map(|error| error.to_string())
    }
}

/// Whether two listeners would share a port; port 0 is a new one for each.
fn overlap(one: SocketAddr, other: SocketAddr) -> bool {
    // `[::]` also takes IPv4, where the system does not say otherwise.
    let covers = |one: IpAddr, other: IpAddr| one.is_unspecified() && (one.is_ipv6() || other.is_ipv4());
    let (ip, other_ip) = (one.ip().to_canonical(), other.ip().to_canonical());
    one.port() == other.port()
        && one.port() != 0
        && (ip == other_ip || covers(ip, other_ip) || covers(other_ip, ip))
}

/// Most threads of one kind; more than any machine has cores.
pub(crate) const THREADS_MAX: usize = 1_024;

/// Bound of the limits on a request's head, which is held in memory while it arrives.
const HEADER_BYTES_BOUND: usize = 16 << 20;

/// The limits of this step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Connections at once. An idle one costs some 10 KB.
    pub connections_max: usize,
    /// Connections at once from one address; a tenth of all, so that no single address shuts out the others.
    pub connections_per_address_max: Option<u64>,
    /// Requests without a valid key from one address; far more than mistakes and far less than a flood.
    pub unauthenticated_per_second_max: Option<u64>,
    /// Addresses without such limits: this machine, where a proxy or a tunnel may speak for many callers.
    pub address_limits_exempt: AddressSet,
    /// How long a new connection may say nothing.
    pub first_byte_timeout: Duration,
    /// How long the head of a request may take, from its first byte to its last.
    pub header_timeout: Duration,
    /// How long the body may take, from the end of the head.
    pub body_timeout: Duration,
    /// Over how long the rate at which a caller reads its replies is measured.
    pub write_timeout: Duration,
    /// Bytes per second that a caller has to read while a reply waits for it. Slower readers are disconnected: they hold
    /// the memory of their reply (slow-read attack). About the slowest mobile connection.
    pub read_rate_min_bytes: u64,
    /// How long a connection may idle between requests; above the 60 s of common load balancers.
    pub keep_alive_timeout: Duration,
    /// Requests on one connection, so that load balancers spread again now and then.
    pub requests_per_connection_max: u64,
    /// Bytes of a request's head.
    pub header_bytes_max: usize,
    /// Headers of a request.
    pub headers_max: usize,
    /// Requests at once on one HTTP/2 connection.
    pub h2_streams_max: u32,
    /// How long callers are still let in after the signal to stop, so that load balancers can notice that `/ready` says no.
    pub drain_delay: Duration,
    /// How long running answers may take after that.
    pub drain_timeout: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            connections_max: 10_000,
            connections_per_address_max: Some(1_000),
            unauthenticated_per_second_max: Some(100),
            address_limits_exempt: AddressSet::loopback(),
            first_byte_timeout: Duration::from_secs(10),
            header_timeout: Duration::from_secs(10),
            body_timeout: Duration::from_secs(10),
            write_timeout: Duration::from_secs(15),
            read_rate_min_bytes: 4 << 10,
            keep_alive_timeout: Duration::from_secs(75),
            requests_per_connection_max: 1_000_000,
            header_bytes_max: 16 << 10,
            headers_max: 100,
            h2_streams_max: 100,
            drain_delay: Duration::from_secs(5),
            drain_timeout: Duration::from_secs(30),
        }
    }
}

impl Limits {
    pub(crate) fn read(section: &mut Section<'_>) -> Self {
        let usual = Self::default();
        Self {
            connections_max: section.size("connections_max", usual.connections_max),
            connections_per_address_max: section
                .limit("connections_per_address_max", usual.connections_per_address_max),
            unauthenticated_per_second_max: section
                .limit("unauthenticated_per_second_max", usual.unauthenticated_per_second_max),
            address_limits_exempt: AddressSet::read(section, "address_limits_exempt")
                .unwrap_or(usual.address_limits_exempt),
            first_byte_timeout: section.milliseconds("first_byte_timeout_ms", usual.first_byte_timeout),
            header_timeout: section.milliseconds("header_timeout_ms", usual.header_timeout),
            body_timeout: section.milliseconds("body_timeout_ms", usual.body_timeout),
            write_timeout: section.milliseconds("write_timeout_ms", usual.write_timeout),
            read_rate_min_bytes: section.number("read_rate_min_bytes", usual.read_rate_min_bytes),
            keep_alive_timeout: section.milliseconds("keep_alive_timeout_ms", usual.keep_alive_timeout),
            requests_per_connection_max: section
                .number("requests_per_connection_max", usual.requests_per_connection_max),
            header_bytes_max: section.size_up_to(
                "header_bytes_max",
                usual.header_bytes_max,
                HEADER_BYTES_BOUND,
            ),
            headers_max: section.size_up_to("headers_max", usual.headers_max, HEADER_BYTES_BOUND),
            h2_streams_max: section.number_up_to(
                "h2_streams_max",
                usual.h2_streams_max.into(),
                u32::MAX.into(),
            ) as u32,
            drain_delay: section.delay("drain_delay_ms", usual.drain_delay),
            drain_timeout: section.milliseconds("drain_timeout_ms", usual.drain_timeout),
        }
    }
}

/// The listeners and the threads behind them.
#[derive(Debug)]
pub struct Server {
    edge: Arc<Edge>,
    public: SocketAddr,
    operator: SocketAddr,
    /// Tells the workers to drain, and for how long callers are still let in.
    stop: watch::Sender<Option<Duration>>,
    /// The operator listener ends when this is dropped.
    _operator_stop: watch::Sender<bool>,
    workers: Vec<JoinHandle<()>>,
}

impl Server {
    /// Binds both addresses and begins to serve.
    pub fn start(config: &Config, edge: Arc<Edge>) -> io::Result<Self> {
        let (stop, stopping) = watch::channel(None);
        let (operator_stop, operator_stopping) = watch::channel(false);
        let tls = config.tls.as_ref().map(Tls::acceptor).transpose()?;
        for address in [config.public, config.operator] {
            check_free(address)?;
        }
        let first = bind(config.public)?;
        let public = first.local_addr()?;
        let mut listeners = vec![first];
        if config.runtime == Runtime::PerCore {
            for _ in 1..config.workers {
                listeners.push(bind(public)?);
            }
        }
        let operator = operator::start(
            bind(config.operator)?,
            &config.operator_hosts,
            Arc::clone(&edge),
            operator_stopping,
        )
        .map_err(|error| explained("cannot start the operator's thread", error))?;
        let threads = if config.runtime == Runtime::PerCore { 1 } else { config.workers };
        let mut workers = Vec::new();
        for (index, listener) in listeners.into_iter().enumerate() {
            let worker = Worker::new(Arc::clone(&edge), index, tls.clone(), stopping.clone());
            let started = start_worker(worker, index, threads, listener);
            workers.push(started.map_err(|error| explained(&format!("cannot start worker {index}"), error))?);
        }
        Ok(Self { edge, public, operator, stop, _operator_stop: operator_stop, workers })
    }

    /// Where callers connect to; tells the port when the configuration left it open.
    pub fn public(&self) -> SocketAddr {
        self.public
    }

    pub fn operator(&self) -> SocketAddr {
        self.operator
    }

    /// Stops without losing requests: not ready from now on, but everything is still answered for `drain_delay`, and over
    /// HTTP/1 with `Connection: close`. Then idle connections are closed. Returns when no connection is left, or when
    /// `drain_timeout` is over.
    pub fn drain(self) {
        let delay = self.edge.limits.listen.drain_delay;
        self.drain_after(delay);
    }

    /// Drains without `drain_delay`, for when nobody else has to notice, as after Ctrl-C.
    pub fn drain_at_once(self) {
        self.drain_after(Duration::ZERO);
    }

    fn drain_after(self, delay: Duration) {
        self.edge.connections.draining.store(true, Relaxed);
        self.stop.send_replace(Some(delay));
        for worker in self.workers {
            if worker.join().is_err() {
                tracing::error!("a worker had panicked");
            }
        }
    }
}

/// Starts the thread of a worker.
fn start_worker(
    worker: Worker,
    index: usize,
    threads: usize,
    listener: std::net::TcpListener,
) -> io::Result<JoinHandle<()>> {
    let runtime = worker::runtime(threads)?;
    let listener = {
        let _context = runtime.enter();
        tokio::net::TcpListener::from_std(listener)?
    };
    let run = move || worker.run(&runtime, listener);
    thread::Builder::new().name(format!("worker-{index}")).spawn(run)
}

/// Serves one connection over any stream, as the workers serve those that they accept, until it ends.
pub async fn serve_stream<S>(edge: Arc<Edge>, stream: S)
where
    S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
{
    // The sender lives as long as the connection, so it is never told to close.
    let (_sender, stage) = watch::channel(worker::DrainStage::Serving);
    let peer = Peer::unknown(&edge);
    if let Err(error) = worker::serve(edge, 0, peer, stream, stage).await {
        tracing::debug!(%error, "a connection ended early");
    }
}

/// Connections that the kernel may hold for us; more than a burst of reconnecting callers.
const BACKLOG: i32 = 1_024;

fn bind(address: SocketAddr) -> io::Result<std::net::TcpListener> {
    let listen = || {
        let socket = bound(address, true)?;
        socket.set_nonblocking(true)?;
        limit_unsent_bytes(&socket)?;
        socket.listen(BACKLOG)?;
        Ok(socket.into())
    };
    listen().map_err(|error| named(address, error))
}

/// Bytes of replies that the kernel takes before the network does. Without this limit it takes megabytes, and whether a
/// caller reads at all is seen much too late.
#[cfg(target_os = "linux")]
const UNSENT_BYTES_MAX: u32 = 64 << 10;

/// Sets the limit for all connections that the listener will accept; they inherit it.
#[cfg(target_os = "linux")]
fn limit_unsent_bytes(listener: &Socket) -> io::Result<()> {
    listener.set_tcp_notsent_lowat(UNSENT_BYTES_MAX)
}

/// Other systems have no such limit. Their send buffers are smaller, too.
#[cfg(not(target_os = "linux"))]
fn limit_unsent_bytes(_: &Socket) -> io::Result<()> {
    Ok(())
}

/// Whether nobody else listens there. Listeners that share a port, as those of the workers do, are not told of each
/// other: two gateways would each get some of the connections, and nobody would know.
fn check_free(address: SocketAddr) -> io::Result<()> {
    bound(address, false).map(drop).map_err(|error| named(address, error))
}

fn bound(address: SocketAddr, shared: bool) -> io::Result<Socket> {
    let socket = Socket::new(Domain::for_address(address), Type::STREAM, Some(Protocol::TCP))?;
    socket.set_reuse_address(true)?;
    socket.set_reuse_port(shared)?;
    socket.bind(&address.into())?;
    Ok(socket)
}

fn named(address: SocketAddr, error: io::Error) -> io::Error {
    explained(&format!("cannot listen on {address}"), error)
}

/// The same error, with what could not be done.
fn explained(what: &str, error: io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("{what}: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_overlap_where_one_socket_would_get_the_connections_of_the_other() {
        let overlaps = |one: &str, other: &str| {
            let (one, other) = (one.parse().unwrap(), other.parse().unwrap());
            assert_eq!(overlap(one, other), overlap(other, one));
            overlap(one, other)
        };
        for (one, other) in [
            ("127.0.0.1:80", "127.0.0.1:80"),
            ("0.0.0.0:80", "127.0.0.1:80"),
            ("[::]:80", "[::1]:80"),
            ("[::]:80", "127.0.0.1:80"),
            ("[::]:80", "0.0.0.0:80"),
            ("[::ffff:127.0.0.1]:80", "127.0.0.1:80"),
        ] {
            assert!(overlaps(one, other), "{one} {other}");
        }
        for (one, other) in [
            ("127.0.0.1:80", "127.0.0.1:81"),
            ("127.0.0.1:80", "127.0.0.2:80"),
            ("0.0.0.0:80", "[::1]:80"),
            ("127.0.0.1:0", "127.0.0.1:0"),
            ("0.0.0.0:0", "127.0.0.1:0"),
        ] {
            assert!(!overlaps(one, other), "{one} {other}");
        }
    }
}
