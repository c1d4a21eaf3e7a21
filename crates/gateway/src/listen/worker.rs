//! One worker: accept, serve, and drain when it is time.

use std::io;
use std::net::TcpListener as StdListener;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::time::timeout;
use tokio_rustls::TlsAcceptor;

use super::connection::Connection;
use super::socket::Socket;
use super::{http1, http2};
use crate::edge::Edge;

pub(super) struct Worker {
    edge: Arc<Edge>,
    index: usize,
    tls: Option<TlsAcceptor>,
    stopping: watch::Receiver<bool>,
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
        stopping: watch::Receiver<bool>,
    ) -> Self {
        Self { edge, index, tls, stopping }
    }

    /// Serves until told to stop, and then until all is quiet.
    pub(super) fn run(self, listener: StdListener, threads: usize) {
        let runtime = if threads > 1 {
            tokio::runtime::Builder::new_multi_thread().worker_threads(threads).enable_all().build()
        } else {
            tokio::runtime::Builder::new_current_thread().enable_all().build()
        };
        let served = runtime.and_then(|runtime| {
            runtime.block_on(async {
                let listener = TcpListener::from_std(listener)?;
                let (stop, stopping) = watch::channel(false);
                self.accept(listener, stopping).await;
                let _nobody_listens = stop.send(true);
                self.drain().await;
                Ok(())
            })
        });
        if let Err(error) = served {
            tracing::error!(%error, "a worker could not start");
        }
    }

    /// Connections are told to stop by `stopping`, which is the worker's own: they ask it at every turn, and would get in
    /// each other's way across cores.
    async fn accept(&self, listener: TcpListener, stopping: watch::Receiver<bool>) {
        let mut told = self.stopping.clone();
        loop {
            let accepted = tokio::select! {
                biased;
                _ = told.wait_for(|&stop| stop) => break,
                accepted = listener.accept() => accepted,
            };
            match accepted {
                Ok((stream, _)) => self.welcome(stream, stopping.clone()),
                Err(error) => {
                    tracing::warn!(%error, "accept failed; pausing");
                    tokio::time::sleep(ACCEPT_REST).await;
                }
            }
        }
        // Who has connected already, as far as they can tell, is served like the others.
        while let Ok(Ok((stream, _))) = timeout(Duration::ZERO, listener.accept()).await {
            self.welcome(stream, stopping.clone());
        }
    }

    fn welcome(&self, stream: TcpStream, stopping: watch::Receiver<bool>) {
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
            if let Err(error) = greet(edge, index, stream, tls, stopping).await {
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
    stopping: watch::Receiver<bool>,
) -> Result<(), Error> {
    stream.set_nodelay(true)?;
    match tls {
        None => serve(edge, index, stream, stopping).await,
        // Boxed, like all that most connections have no use for: each takes the room of the largest.
        Some(tls) => Box::pin(greet_over_tls(edge, index, stream, tls, stopping)).await,
    }
}

async fn greet_over_tls(
    edge: Arc<Edge>,
    index: usize,
    stream: TcpStream,
    tls: TlsAcceptor,
    stopping: watch::Receiver<bool>,
) -> Result<(), Error> {
    let greeted = timeout(edge.limits.listen.header_timeout, tls.accept(stream)).await?;
    serve(edge, index, greeted?, stopping).await
}

/// Serves one connection until it ends or has to.
pub(super) async fn serve<S: Stream>(
    edge: Arc<Edge>,
    index: usize,
    stream: S,
    stopping: watch::Receiver<bool>,
) -> Result<(), Error> {
    let connection = Arc::new(Connection::new(Arc::clone(&edge), index));
    let (clock, limits) = (edge.clock, edge.limits.listen.clone());
    let mut socket = Socket::new(stream, Arc::clone(connection.state()), clock, limits);
    let mut stop = stopping.clone();
    let first = tokio::select! {
        biased;
        first = http2::first_bytes(&mut socket) => first?,
        // A connection that has not even said what it speaks when we stop loses nothing.
        _ = stop.wait_for(|&stop| stop) => return Ok(()),
    };
    if http2::begins(&first) {
        Box::pin(http2::serve(connection, socket, first, stopping)).await
    } else {
        Ok(http1::serve(&connection, socket, first, stopping).await?)
    }
}
