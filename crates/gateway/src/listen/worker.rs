//! One worker: accept, serve, and drain when it is time.

use std::io;
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

use super::connection::Connection;
use super::socket::Socket;
use super::{http1, http2};
use crate::edge::Edge;

pub(super) struct Worker {
    edge: Arc<Edge>,
    index: usize,
    tls: Option<TlsAcceptor>,
    stopping: watch::Receiver<Option<Duration>>,
}

/// How far a worker is on its way to its end, as its connections see it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum DrainStage {
    Serving,
    /// Every request is still answered, and callers are told to go elsewhere for the next one.
    Draining,
    /// Connections without a request are closed.
    Closing,
}

/// Waits until a worker is as far as this.
pub(super) async fn reached(stage: &mut watch::Receiver<DrainStage>, wanted: DrainStage) {
    // A worker that has gone is at its end, too.
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
        // Whoever is connected as far as they can tell is served like the others; closing the listener would reset them.
        while let Ok(Ok((stream, _))) = timeout(Duration::ZERO, listener.accept()).await {
            self.welcome(stream, stage.subscribe());
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
                Ok((stream, _)) => self.welcome(stream, stage.subscribe()),
                Err(error) => {
                    tracing::warn!(%error, "accept failed; pausing");
                    tokio::time::sleep(ACCEPT_REST).await;
                }
            }
        }
    }

    fn welcome(&self, stream: TcpStream, stage: watch::Receiver<DrainStage>) {
        let open = self.edge.connections.open.fetch_add(1, Relaxed) + 1;
        let place = Place(Arc::clone(&self.edge));
        let most = self.edge.limits.listen.connections_max;
        if open > most {
            self.edge.shards[self.index].http.turned_away.fetch_add(1, Relaxed);
            // Beyond twice the limit there is not even time to say so, and a handshake would cost more than a call.
            if open <= most.saturating_mul(2) && self.tls.is_none() {
                let told = http1::over_capacity(&self.edge);
                tokio::spawn(async move {
                    let _place = place;
                    let _told = timeout(TURN_AWAY_TIME, turn_away(stream, told)).await;
                });
            }
            return;
        }
        let (edge, index) = (Arc::clone(&self.edge), self.index);
        let tls = self.tls.clone();
        edge.shards[index].http.connections.fetch_add(1, Relaxed);
        tokio::spawn(async move {
            let _place = place;
            if let Err(error) = greet(edge, index, stream, tls, stage).await {
                tracing::debug!(%error, "a connection ended early");
            }
        });
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

/// How long connections that are being opened when the listener closes have for the last step of the TCP handshake: longer
/// than a packet takes around the world.
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

/// One counted connection.
struct Place(Arc<Edge>);

impl Drop for Place {
    fn drop(&mut self) {
        self.0.connections.open.fetch_sub(1, Relaxed);
    }
}

const TURN_AWAY_TIME: Duration = Duration::from_secs(1);

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
    edge: Arc<Edge>,
    index: usize,
    stream: TcpStream,
    tls: Option<TlsAcceptor>,
    stage: watch::Receiver<DrainStage>,
) -> Result<(), Error> {
    stream.set_nodelay(true)?;
    match tls {
        None => serve(edge, index, stream, stage).await,
        // Boxed, like all that most connections have no use for: each takes the room of the largest.
        Some(tls) => Box::pin(greet_over_tls(edge, index, stream, tls, stage)).await,
    }
}

async fn greet_over_tls(
    edge: Arc<Edge>,
    index: usize,
    stream: TcpStream,
    tls: TlsAcceptor,
    stage: watch::Receiver<DrainStage>,
) -> Result<(), Error> {
    let greeted = timeout(edge.limits.listen.header_timeout, tls.accept(stream)).await?;
    serve(edge, index, greeted?, stage).await
}

/// How long a connection without a request stays open after its last activity when the gateway is about to end: a request
/// may be on its way. Longer than a packet takes around the world.
pub(super) const LAST_REQUEST_TIME: Duration = Duration::from_millis(500);

/// Serves one connection until it ends or has to.
pub(super) async fn serve<S: Stream>(
    edge: Arc<Edge>,
    index: usize,
    stream: S,
    stage: watch::Receiver<DrainStage>,
) -> Result<(), Error> {
    let connection = Arc::new(Connection::new(Arc::clone(&edge), index));
    let (clock, limits) = (edge.clock, edge.limits.listen.clone());
    let mut socket = Socket::new(stream, Arc::clone(connection.state()), clock, limits);
    let Some(first) = first_bytes(&mut socket, stage.clone()).await? else {
        socket.cut_short();
        return Ok(socket.shutdown().await?);
    };
    if http2::begins(&first) {
        Box::pin(http2::serve(connection, socket, first, stage)).await
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
