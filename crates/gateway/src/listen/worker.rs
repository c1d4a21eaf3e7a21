//! One worker: accept, serve, and drain when it is time.

use std::io;
use std::net::IpAddr;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

#[cfg(target_os = "linux")]
use socket2::{SockFilter, SockRef};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::{Builder, Runtime};
use tokio::sync::watch;
use tokio::time::{Instant, timeout, timeout_at};
use tokio_rustls::TlsAcceptor;

use super::connection::{Connection, Peer, State};
use super::peers::CountedAddress;
use super::socket::Socket;
use super::{http1, http2};
use crate::edge::Edge;

pub(super) struct Worker {
    edge: Arc<Edge>,
    index: usize,
    tls: Option<TlsAcceptor>,
    stopping: watch::Receiver<Option<Duration>>,
}

/// How far the drain of a worker has come, as its connections see it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum DrainStage {
    Serving,
    /// Every request is still answered, and callers are told to go elsewhere for the next one.
    Draining,
    /// Connections without a request are closed.
    Closing,
}

/// Waits until a worker has reached the stage `wanted`.
pub(super) async fn reached(stage: &mut watch::Receiver<DrainStage>, wanted: DrainStage) {
    // A worker that has ended has passed every stage.
    let _gone = stage.wait_for(|&stage| stage >= wanted).await.is_err();
}

/// Waits until a worker has gone further than `reached`.
pub(super) async fn next_stage(stage: &mut watch::Receiver<DrainStage>, reached: DrainStage) -> DrainStage {
    let next = stage.wait_for(|&stage| stage > reached).await.map(|stage| *stage);
    match next {
        Ok(next) => next,
        Err(_) if reached < DrainStage::Closing => DrainStage::Closing,
        Err(_) => std::future::pending().await,
    }
}

/// How long accepting rests when the process is out of file descriptors. Long enough to let some go, short enough that
/// nobody notices.
const ACCEPT_REST: Duration = Duration::from_millis(50);

/// How often a draining worker looks whether its connections are done.
const DRAIN_LOOK: Duration = Duration::from_millis(5);

impl Worker {
    pub(super) fn new(
        edge: Arc<Edge>,
        index: usize,
        tls: Option<TlsAcceptor>,
        stopping: watch::Receiver<Option<Duration>>,
    ) -> Self {
        Self { edge, index, tls, stopping }
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
                        self.edge.connections.accept_failures.count(Instant::now().into_std())
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
        let (edge, index, tls) = (&self.edge, self.index, self.tls.clone());
        let counts = &edge.shards[index].http;
        // Behind such a proxy, the caller's address is counted when the header has come.
        let is_counted_later = edge.peers.starts_with_proxy_header(address);
        let counted = if is_counted_later { Some(CountedAddress::NONE) } else { edge.peers.enter(address) };
        let Some(counted) = counted else {
            counts.address_refused.fetch_add(1, Relaxed);
            return self.refuse(stream);
        };
        let place = Place::take(Arc::clone(edge), counted);
        if edge.connections.open.load(Relaxed) > edge.limits.listen.connections_max {
            if !edge.connections.closable.close_one() {
                counts.turned_away.fetch_add(1, Relaxed);
                return self.refuse(stream);
            }
            counts.closed_for_others.fetch_add(1, Relaxed);
        }
        counts.connections.fetch_add(1, Relaxed);
        let must_close = edge.connections.closable.add(place.number);
        tokio::spawn(async move {
            tokio::select! {
                // A request that arrives after the decision to close is not begun.
                biased;
                () = must_close.wait() => tracing::debug!("a connection was closed to make room for another"),
                served = greet(place, index, address, stream, tls, stage) => {
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
        let refusal = Refusal::start(Arc::clone(&self.edge));
        if self.tls.is_none() && refusal.number < REFUSALS_MAX {
            let message = http1::over_capacity(&self.edge);
            tokio::spawn(async move {
                let _refusal = refusal;
                let _told = timeout(REFUSAL_TIMEOUT, turn_away(stream, message)).await;
            });
        }
    }

    async fn drain(&self) {
        let time = self.edge.limits.listen.drain_timeout;
        let quiet = async {
            while self.edge.connections.open.load(Relaxed) > 0 {
                tokio::time::sleep(DRAIN_LOOK).await;
            }
        };
        if timeout(time, quiet).await.is_err() {
            let left = self.edge.connections.open.load(Relaxed);
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
    edge: Arc<Edge>,
    /// The number of the connection.
    number: u64,
    counted: CountedAddress,
    state: Arc<State>,
}

impl Place {
    fn take(edge: Arc<Edge>, counted: CountedAddress) -> Self {
        edge.connections.open.fetch_add(1, Relaxed);
        let number = edge.connections.seen.fetch_add(1, Relaxed);
        Self { edge, number, counted, state: Arc::default() }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let counted = std::mem::replace(&mut self.counted, CountedAddress::NONE);
        self.edge.peers.leave(counted);
        self.edge.connections.closable.remove(self.number, &self.state);
        self.edge.connections.open.fetch_sub(1, Relaxed);
    }
}

/// Connections that are refused with a reply at the same time. Each takes a file descriptor for up to a second.
const REFUSALS_MAX: usize = 100;

const REFUSAL_TIMEOUT: Duration = Duration::from_secs(1);

/// A connection that is being refused, until it is dropped.
struct Refusal {
    edge: Arc<Edge>,
    /// How many there were before it.
    number: usize,
}

impl Refusal {
    fn start(edge: Arc<Edge>) -> Self {
        let number = edge.connections.being_refused.fetch_add(1, Relaxed);
        Self { edge, number }
    }
}

impl Drop for Refusal {
    fn drop(&mut self) {
        self.edge.connections.being_refused.fetch_sub(1, Relaxed);
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

/// Bytes both ways, encrypted or not.
pub(super) trait Stream: AsyncRead + AsyncWrite + Send + Unpin + 'static {}

impl<S: AsyncRead + AsyncWrite + Send + Unpin + 'static> Stream for S {}

pub(super) type Error = Box<dyn std::error::Error + Send + Sync>;

async fn greet(
    mut place: Place,
    index: usize,
    address: IpAddr,
    mut stream: TcpStream,
    tls: Option<TlsAcceptor>,
    stage: watch::Receiver<DrainStage>,
) -> Result<(), Error> {
    stream.set_nodelay(true)?;
    let edge = Arc::clone(&place.edge);
    let mut peer = Peer { number: place.number, address, state: Arc::clone(&place.state) };
    if edge.peers.starts_with_proxy_header(address) {
        // Boxed because few connections need it: the task of every connection is as large as its largest state.
        peer.address = Box::pin(read_proxy_header(&mut place, index, address, &mut stream)).await?;
    }
    match tls {
        None => serve(edge, index, peer, stream, stage).await,
        Some(tls) => Box::pin(greet_over_tls(edge, index, peer, stream, tls, stage)).await,
    }
}

/// The address of a caller behind a proxy that passes bytes on, counted like any other.
async fn read_proxy_header(
    place: &mut Place,
    index: usize,
    proxy: IpAddr,
    stream: &mut TcpStream,
) -> Result<IpAddr, Error> {
    let edge = &place.edge;
    let address =
        timeout(edge.limits.listen.header_timeout, edge.peers.caller_of_connection(proxy, stream)).await??;
    let Some(counted) = edge.peers.enter(address) else {
        edge.shards[index].http.address_refused.fetch_add(1, Relaxed);
        return Err("too many connections from this address".into());
    };
    place.counted = counted;
    Ok(address)
}

async fn greet_over_tls(
    edge: Arc<Edge>,
    index: usize,
    peer: Peer,
    stream: TcpStream,
    tls: TlsAcceptor,
    stage: watch::Receiver<DrainStage>,
) -> Result<(), Error> {
    let greeted = timeout(edge.limits.listen.header_timeout, tls.accept(stream)).await?;
    serve(edge, index, peer, greeted?, stage).await
}

/// How long a connection without a request stays open after its last activity when the gateway is about to end: a request
/// may be on its way. Longer than a packet takes around the world.
pub(super) const LAST_REQUEST_TIME: Duration = Duration::from_millis(500);

/// Serves one connection until it ends or has to.
pub(super) async fn serve<S: Stream>(
    edge: Arc<Edge>,
    index: usize,
    peer: Peer,
    stream: S,
    stage: watch::Receiver<DrainStage>,
) -> Result<(), Error> {
    let mut connection = Connection::new(Arc::clone(&edge), index, peer);
    let (clock, limits) = (edge.clock, edge.limits.listen.clone());
    let mut socket = Socket::new(stream, Arc::clone(connection.state()), clock, limits);
    let Some(first) = first_bytes(&mut socket, stage.clone()).await? else {
        socket.cut_short();
        return Ok(socket.shutdown().await?);
    };
    if http2::begins(&first) {
        connection.speak_http2();
        Box::pin(http2::serve(Arc::new(connection), socket, first, stage)).await
    } else {
        Ok(http1::serve(&connection, socket, first, stage).await?)
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
