//! One worker: accept, serve, and drain when it is time.

use std::io;
use std::net::IpAddr;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

#[cfg(target_os = "linux")]
use socket2::{SockFilter, SockRef};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::{Builder, Runtime};
use tokio::sync::watch;
use tokio::time::{Instant, timeout, timeout_at};
use tokio_rustls::TlsAcceptor;

use crate::connection::{Connection, Peer};
use crate::connection_state::State;
use crate::drain::{DrainStage, LAST_REQUEST_TIME, reached};
use crate::peers::CountedAddress;
use crate::server_state::ServerState;
use crate::service::Service;
use crate::socket::{Socket, Stream};
use crate::{BoxError as Error, http1, http2};

pub(super) struct Worker<V> {
    server: Arc<ServerState>,
    service: Arc<V>,
    index: usize,
    tls: Option<TlsAcceptor>,
    stopping: watch::Receiver<Option<Duration>>,
}

/// How long accepting rests when the process is out of file descriptors. Long enough to let some go, short enough that
/// nobody notices.
const ACCEPT_REST: Duration = Duration::from_millis(50);

/// How often a draining worker looks whether its connections are done.
const DRAIN_LOOK: Duration = Duration::from_millis(5);

impl<V: Service> Worker<V> {
    pub(super) fn new(
        server: Arc<ServerState>,
        service: Arc<V>,
        index: usize,
        tls: Option<TlsAcceptor>,
        stopping: watch::Receiver<Option<Duration>>,
    ) -> Self {
        Self { server, service, index, tls, stopping }
    }

    /// Serves until told to stop, and then until no connection is left.
    pub(super) fn run(self, runtime: &Runtime, listener: TcpListener) {
        runtime.block_on(async {
            // Each worker has a channel of its own: connections look at it for every request, and one channel for all of
            // them would be contended across cores.
            let (stage, _) = watch::channel(DrainStage::Serving);
            self.accept(listener, &stage).await;
            stage.send_replace(DrainStage::Closing);
            self.drain().await;
        });
    }

    /// Accepts until told to stop, and then for as long as callers are still let in.
    async fn accept(&self, listener: TcpListener, stage: &watch::Sender<DrainStage>) {
        let mut stopping = self.stopping.clone();
        let told = async { stopping.wait_for(Option::is_some).await.ok().and_then(|delay| *delay) };
        let delay = self.accept_until(&listener, stage, told).await.unwrap_or_default();
        stage.send_replace(DrainStage::Draining);
        self.accept_until(&listener, stage, tokio::time::sleep(delay)).await;
        refuse_new_connections(&listener);
        self.accept_until(&listener, stage, tokio::time::sleep(HANDSHAKE_TIME.min(delay))).await;
        // Connections that the kernel has established are served like the others; closing the listener would reset them.
        while let Ok(Ok((stream, peer))) = timeout(Duration::ZERO, listener.accept()).await {
            self.welcome(stream, peer.ip(), stage.subscribe());
        }
    }

    async fn accept_until<T>(
        &self,
        listener: &TcpListener,
        stage: &watch::Sender<DrainStage>,
        end: impl Future<Output = T>,
    ) -> T {
        let mut end = pin!(end);
        loop {
            let accepted = tokio::select! {
                biased;
                ended = end.as_mut() => return ended,
                accepted = listener.accept() => accepted,
            };
            match accepted {
                Ok((stream, peer)) => self.welcome(stream, peer.ip(), stage.subscribe()),
                Err(error) => {
                    if let Some(failures) =
                        self.server.connections.accept_failures.count(Instant::now().into_std())
                    {
                        tracing::warn!(%error, failures, "accept failed; pausing");
                    }
                    tokio::time::sleep(ACCEPT_REST).await;
                }
            }
        }
    }

    /// Serves a new connection, if there is a place for it.
    fn welcome(&self, stream: TcpStream, address: IpAddr, stage: watch::Receiver<DrainStage>) {
        let (server, index, tls) = (&self.server, self.index, self.tls.clone());
        let counts = &server.counts[index];
        // Behind such a proxy, the caller's address is counted when the header has come.
        let is_counted_later = server.peers.starts_with_proxy_header(address);
        let counted = if is_counted_later { Some(CountedAddress::NONE) } else { server.peers.enter(address) };
        let Some(counted) = counted else {
            counts.address_refused.fetch_add(1, Relaxed);
            return self.refuse(stream);
        };
        let place = Place::take(Arc::clone(server), counted);
        let service = Arc::clone(&self.service);
        if server.connections.open.load(Relaxed) > server.limits.connections_max {
            if !server.connections.closable.close_one() {
                counts.turned_away.fetch_add(1, Relaxed);
                return self.refuse(stream);
            }
            counts.closed_for_others.fetch_add(1, Relaxed);
        }
        counts.connections.fetch_add(1, Relaxed);
        let must_close = server.connections.closable.add(place.number);
        tokio::spawn(async move {
            tokio::select! {
                // A request that arrives after the decision to close is not begun.
                biased;
                () = must_close.wait() => tracing::debug!("a connection was closed to make room for another"),
                served = greet(service, place, index, address, stream, tls, stage) => {
                    if let Err(error) = served {
                        tracing::debug!(%error, "a connection ended early");
                    }
                }
            }
        });
    }

    /// Tells a caller that there is no place, unless many are being told already or a TLS handshake would be needed, which
    /// costs more than a call.
    fn refuse(&self, stream: TcpStream) {
        let refusal = Refusal::start(Arc::clone(&self.server));
        if self.tls.is_none() && refusal.number < REFUSALS_MAX {
            let message = http1::over_capacity(&self.server, &*self.service);
            tokio::spawn(async move {
                let _refusal = refusal;
                let _told = timeout(REFUSAL_TIMEOUT, turn_away(stream, message)).await;
            });
        }
    }

    async fn drain(&self) {
        let time = self.server.limits.drain_timeout;
        let quiet = async {
            while self.server.connections.open.load(Relaxed) > 0 {
                tokio::time::sleep(DRAIN_LOOK).await;
            }
        };
        if timeout(time, quiet).await.is_err() {
            let left = self.server.connections.open.load(Relaxed);
            tracing::warn!(left, "connections were cut off: the time to drain is over");
        }
    }
}

/// The runtime of a worker.
pub(super) fn runtime(threads: usize) -> io::Result<Runtime> {
    if threads > 1 {
        Builder::new_multi_thread().worker_threads(threads).enable_all().build()
    } else {
        Builder::new_current_thread().enable_all().build()
    }
}

/// How long connections that are being opened when the listener closes may take for the last step of the TCP handshake:
/// longer than a packet takes around the world.
const HANDSHAKE_TIME: Duration = Duration::from_millis(250);

/// Lets nobody open a connection any more, while the listener can still accept those that are open.
///
/// Closing a listener resets the connections that it has not accepted yet, and there is always a moment between the last
/// accept and the close. So packets that open a connection are dropped first. Their senders try again a second later, and
/// are refused then.
#[cfg(target_os = "linux")]
fn refuse_new_connections(listener: &TcpListener) {
    /// Loads the byte with the flags of TCP; then drops (0) packets with SYN and keeps the others whole.
    const FLAGS: u32 = 13;
    const SYN: u32 = 0x02;
    let program = [
        SockFilter::new(0x30, 0, 0, FLAGS),
        SockFilter::new(0x45, 0, 1, SYN),
        SockFilter::new(0x06, 0, 0, 0),
        SockFilter::new(0x06, 0, 0, u32::MAX),
    ];
    if let Err(error) = SockRef::from(listener).attach_filter(&program) {
        tracing::warn!(%error, "connections that are opened right now may be reset");
    }
}

#[cfg(not(target_os = "linux"))]
fn refuse_new_connections(_: &TcpListener) {}

/// One counted connection, until it is dropped.
struct Place {
    server: Arc<ServerState>,
    /// The number of the connection.
    number: u64,
    counted: CountedAddress,
    state: Arc<State>,
}

impl Place {
    fn take(server: Arc<ServerState>, counted: CountedAddress) -> Self {
        server.connections.open.fetch_add(1, Relaxed);
        let number = server.connections.seen.fetch_add(1, Relaxed);
        Self { server, number, counted, state: Arc::default() }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let counted = std::mem::replace(&mut self.counted, CountedAddress::NONE);
        self.server.peers.leave(counted);
        self.server.connections.closable.remove(self.number, &self.state);
        self.server.connections.open.fetch_sub(1, Relaxed);
    }
}

/// Connections that are refused with a reply at the same time. Each takes a file descriptor for up to a second.
const REFUSALS_MAX: usize = 100;

const REFUSAL_TIMEOUT: Duration = Duration::from_secs(1);

/// A connection that is being refused, until it is dropped.
struct Refusal {
    server: Arc<ServerState>,
    /// How many there were before it.
    number: usize,
}

impl Refusal {
    fn start(server: Arc<ServerState>) -> Self {
        let number = server.connections.being_refused.fetch_add(1, Relaxed);
        Self { server, number }
    }
}

impl Drop for Refusal {
    fn drop(&mut self) {
        self.server.connections.being_refused.fetch_sub(1, Relaxed);
    }
}

/// Tells one caller too many that there is no place, and waits for the other side to close: closing first, with
/// unread bytes, would reset the connection and take the message with it.
async fn turn_away(mut stream: TcpStream, told: Vec<u8>) -> io::Result<()> {
    stream.write_all(&told).await?;
    stream.shutdown().await?;
    let mut unread = [0; 1_024];
    while stream.read(&mut unread).await? > 0 {}
    Ok(())
}

async fn greet<V: Service>(
    service: Arc<V>,
    mut place: Place,
    index: usize,
    address: IpAddr,
    mut stream: TcpStream,
    tls: Option<TlsAcceptor>,
    stage: watch::Receiver<DrainStage>,
) -> Result<(), Error> {
    stream.set_nodelay(true)?;
    let server = Arc::clone(&place.server);
    let mut peer = Peer { number: place.number, address, state: Arc::clone(&place.state) };
    if server.peers.starts_with_proxy_header(address) {
        // Boxed because few connections need it: the task of every connection is as large as its largest state.
        peer.address = Box::pin(read_proxy_header(&mut place, index, address, &mut stream)).await?;
    }
    match tls {
        None => serve(&service, server, index, peer, stream, stage).await,
        Some(tls) => Box::pin(greet_over_tls(service, server, index, peer, stream, tls, stage)).await,
    }
}

/// The address of a caller behind a proxy that passes bytes on, counted like any other.
async fn read_proxy_header(
    place: &mut Place,
    index: usize,
    proxy: IpAddr,
    stream: &mut TcpStream,
) -> Result<IpAddr, Error> {
    let server = &place.server;
    let address =
        timeout(server.limits.header_timeout, server.peers.caller_of_connection(proxy, stream)).await??;
    let Some(counted) = server.peers.enter(address) else {
        server.counts[index].address_refused.fetch_add(1, Relaxed);
        return Err("too many connections from this address".into());
    };
    place.counted = counted;
    Ok(address)
}

async fn greet_over_tls<V: Service>(
    service: Arc<V>,
    server: Arc<ServerState>,
    index: usize,
    peer: Peer,
    stream: TcpStream,
    tls: TlsAcceptor,
    stage: watch::Receiver<DrainStage>,
) -> Result<(), Error> {
    let greeted = timeout(server.limits.header_timeout, tls.accept(stream)).await?;
    serve(&service, server, index, peer, greeted?, stage).await
}

/// Serves one connection until it ends or has to.
pub(super) async fn serve<V: Service, S: Stream>(
    service: &Arc<V>,
    server: Arc<ServerState>,
    index: usize,
    peer: Peer,
    stream: S,
    stage: watch::Receiver<DrainStage>,
) -> Result<(), Error> {
    let mut connection = Connection::new(Arc::clone(&server), index, peer);
    let (clock, limits) = (server.clock, server.limits.clone());
    let mut socket = Socket::new(stream, Arc::clone(connection.state()), clock, limits);
    let Some(first) = first_bytes(&mut socket, stage.clone()).await? else {
        socket.cut_short();
        return Ok(socket.shutdown().await?);
    };
    if http2::begins(&first) {
        connection.speak_http2();
        Box::pin(http2::serve(service, Arc::new(connection), socket, first, stage)).await
    } else {
        Ok(http1::serve(service, &connection, socket, first, stage).await?)
    }
}

/// The bytes that tell the protocol; `None` if they do not come before the gateway ends.
async fn first_bytes<S: Stream>(
    socket: &mut Socket<S>,
    mut stage: watch::Receiver<DrainStage>,
) -> io::Result<Option<Vec<u8>>> {
    let last_request = Instant::now() + LAST_REQUEST_TIME;
    let mut first = pin!(http2::first_bytes(socket));
    tokio::select! {
        biased;
        first = first.as_mut() => first.map(Some),
        () = reached(&mut stage, DrainStage::Closing) => {
            timeout_at(last_request, first).await.ok().transpose()
        }
    }
}
