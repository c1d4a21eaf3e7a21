//! Step 1: sockets → connections.
//!
//! One thread per core, each with its own runtime and its own listener on the shared port (`SO_REUSEPORT`), so that a
//! connection lives on one core and its requests share nothing with other cores but a few counters. The same code runs
//! on one work-stealing runtime when the configuration says so; which of the two is better is a matter of measuring.

mod connection; // one connection, as its requests see it
mod http1; // requests one after another
mod http2; // requests side by side
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

pub(crate) use connection::{Connection, RequestId};
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
        }
    }
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
    /// How long a new connection may say nothing.
    pub first_byte_timeout: Duration,
    /// How long the head of a request may take, from its first byte to its last.
    pub header_timeout: Duration,
    /// How long the body may take, from the end of the head.
    pub body_timeout: Duration,
    /// How long a reply may wait for the caller to read on.
    pub write_timeout: Duration,
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
    /// How long running answers may take after the signal to stop.
    pub drain_timeout: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            connections_max: 10_000,
            first_byte_timeout: Duration::from_secs(10),
            header_timeout: Duration::from_secs(10),
            body_timeout: Duration::from_secs(10),
            write_timeout: Duration::from_secs(15),
            keep_alive_timeout: Duration::from_secs(75),
            requests_per_connection_max: 1_000_000,
            header_bytes_max: 16 << 10,
            headers_max: 100,
            h2_streams_max: 100,
            drain_timeout: Duration::from_secs(30),
        }
    }
}

impl Limits {
    pub(crate) fn read(section: &mut Section<'_>) -> Self {
        let usual = Self::default();
        Self {
            connections_max: section.size("connections_max", usual.connections_max),
            first_byte_timeout: section.milliseconds("first_byte_timeout_ms", usual.first_byte_timeout),
            header_timeout: section.milliseconds("header_timeout_ms", usual.header_timeout),
            body_timeout: section.milliseconds("body_timeout_ms", usual.body_timeout),
            write_timeout: section.milliseconds("write_timeout_ms", usual.write_timeout),
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
    stop: watch::Sender<bool>,
    workers: Vec<JoinHandle<()>>,
}

impl Server {
    /// Binds both addresses and begins to serve.
    pub fn start(config: &Config, edge: Arc<Edge>) -> io::Result<Self> {
        let (stop, stopping) = watch::channel(false);
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
        let operator = operator::start(bind(config.operator)?, Arc::clone(&edge), stopping.clone())?;
        let threads = if config.runtime == Runtime::PerCore { 1 } else { config.workers };
        let mut workers = Vec::new();
        for (index, listener) in listeners.into_iter().enumerate() {
            let worker = worker::Worker::new(Arc::clone(&edge), index, tls.clone(), stopping.clone());
            let run = move || worker.run(listener, threads);
            workers.push(thread::Builder::new().name(format!("worker-{index}")).spawn(run)?);
        }
        Ok(Self { edge, public, operator, stop, workers })
    }

    /// Where callers connect to; tells the port when the configuration left it open.
    pub fn public(&self) -> SocketAddr {
        self.public
    }

    pub fn operator(&self) -> SocketAddr {
        self.operator
    }

    /// Not ready from now on; answers under way are finished, idle connections closed. Returns when all is quiet, or
    /// when the time for it is over.
    pub fn drain(self) {
        self.edge.connections.draining.store(true, Relaxed);
        self.stop.send_replace(true);
        for worker in self.workers {
            if worker.join().is_err() {
                tracing::error!("a worker had panicked");
            }
        }
    }
}

/// Serves one connection over any stream, as the workers serve those that they accept, until it ends.
pub async fn serve_stream<S>(edge: Arc<Edge>, stream: S)
where
    S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
{
    // Nobody stops it before its time: the sender is kept to the end.
    let (_never, stopping) = watch::channel(false);
    if let Err(error) = worker::serve(edge, 0, stream, stopping).await {
        tracing::debug!(%error, "a connection ended early");
    }
}

/// Connections that the kernel may hold for us; more than a burst of reconnecting callers.
const BACKLOG: i32 = 1_024;

fn bind(address: SocketAddr) -> io::Result<std::net::TcpListener> {
    let listen = || {
        let socket = bound(address, true)?;
        socket.set_nonblocking(true)?;
        socket.listen(BACKLOG)?;
        Ok(socket.into())
    };
    listen().map_err(|error| named(address, error))
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
    io::Error::new(error.kind(), format!("{address}: {error}"))
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
