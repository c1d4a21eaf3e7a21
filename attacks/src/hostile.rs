//! Connections of the attacker, and how long the gateway lets them live.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use tokio::net::{TcpSocket, TcpStream};
use tokio::time::timeout;

/// Another address than that of honest callers, as it would be on the Internet.
const SOURCE: Ipv4Addr = Ipv4Addr::new(127, 0, 0, 2);

/// As little as the kernel allows, so that a reply that is not read stays with the gateway.
const NARROW_BYTES: u32 = 4 << 10;

/// A gateway that accepts nothing for so long counts as refusing.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct HostileFigures {
    pub(crate) opened: u64,
    pub(crate) refused: u64,
    /// Ended by the gateway.
    pub(crate) cut: u64,
    /// The longest life of a connection, whether it was cut or not.
    pub(crate) longest: Duration,
    /// Requests that were answered, in attacks that count them.
    pub(crate) answered: u32,
}

/// Opens connections and counts what becomes of them.
#[derive(Clone, Debug)]
pub(crate) struct Attacker {
    pub(crate) target: SocketAddr,
    figures: Arc<Mutex<HostileFigures>>,
}

impl Attacker {
    pub(crate) fn new(target: SocketAddr) -> Self {
        Self { target, figures: Arc::default() }
    }

    /// The same attacker at another address of the gateway.
    pub(crate) fn at(&self, target: SocketAddr) -> Self {
        Self { target, ..self.clone() }
    }

    pub(crate) fn figures(&self) -> HostileFigures {
        *self.figures.lock()
    }

    pub(crate) async fn connect(&self) -> io::Result<HostileConnection> {
        self.connect_with(None).await
    }

    /// A connection whose own buffer takes next to nothing.
    pub(crate) async fn connect_narrow(&self) -> io::Result<HostileConnection> {
        self.connect_with(Some(NARROW_BYTES)).await
    }

    async fn connect_with(&self, buffer: Option<u32>) -> io::Result<HostileConnection> {
        let connected = timeout(CONNECT_TIMEOUT, open(self.target, buffer)).await;
        match connected.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into())) {
            Ok(stream) => {
                self.figures.lock().opened += 1;
                Ok(HostileConnection {
                    stream,
                    since: Instant::now(),
                    figures: Some(Arc::clone(&self.figures)),
                })
            }
            Err(error) => {
                self.figures.lock().refused += 1;
                Err(error)
            }
        }
    }

    /// Counts a request that was answered.
    pub(crate) fn count_request(&self) {
        self.figures.lock().answered += 1;
    }

    /// Records lives that only the gateway's metrics show: a peer that does not read does not see its connection end.
    pub(crate) fn record_life(&self, life: Duration, cut: u64) {
        let mut figures = self.figures.lock();
        figures.longest = figures.longest.max(life);
        figures.cut += cut;
    }
}

async fn open(target: SocketAddr, buffer: Option<u32>) -> io::Result<TcpStream> {
    let socket = TcpSocket::new_v4()?;
    if let Some(bytes) = buffer {
        socket.set_recv_buffer_size(bytes)?;
    }
    socket.bind((SOURCE, 0).into())?;
    socket.connect(target).await
}

/// A connection whose life is recorded when it is cut or dropped.
#[derive(Debug)]
pub(crate) struct HostileConnection {
    pub(crate) stream: TcpStream,
    since: Instant,
    figures: Option<Arc<Mutex<HostileFigures>>>,
}

impl HostileConnection {
    /// The gateway has ended it.
    pub(crate) fn was_cut(self) {
        if let Some(figures) = &self.figures {
            figures.lock().cut += 1;
        }
    }

    /// Its life is recorded otherwise.
    pub(crate) fn without_record(mut self) -> Self {
        self.figures = None;
        self
    }
}

impl Drop for HostileConnection {
    fn drop(&mut self) {
        if let Some(figures) = &self.figures {
            let mut figures = figures.lock();
            figures.longest = figures.longest.max(self.since.elapsed());
        }
    }
}
