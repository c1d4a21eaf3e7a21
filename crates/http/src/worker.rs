//! One worker: accepts, serves and drains connections.

use std::future::pending;
use std::io;
use std::net::IpAddr;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use resources::{MonoTime, SupervisedTask};
#[cfg(target_os = "linux")]
use socket2::{SockFilter, SockRef};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::Runtime;
use tokio::sync::watch;
use tokio::time::{Instant, timeout, timeout_at};
use tokio_rustls::TlsAcceptor;

use crate::connection::Connection;
use crate::connection_state::ConnectionState;
use crate::drain::{DrainPlan, DrainStage, ListenerEnd, reached};
use crate::peers::{CountedAddress, Peers};
use crate::policy::{
    ACCEPT_PAUSE, DRAIN_POLL_INTERVAL, HANDSHAKE_TIME, LAST_REQUEST_TIME, REFUSAL_TIMEOUT, REFUSALS_MAX,
};
use crate::server_state::ServerState;
use crate::service::Service;
use crate::socket::{ByteStream, Socket};
use crate::tls::ALPN_HTTP2;
use crate::{BoxError as Error, http1, http2};

pub(super) struct HttpWorker<V> {
    server: Arc<ServerState>,
    service: Arc<V>,
    index: usize,
    stopping: watch::Receiver<Option<DrainPlan>>,
    task: SupervisedTask,
}

impl<V: Service> HttpWorker<V> {
    pub(super) fn new(
        server: Arc<ServerState>,
        service: Arc<V>,
        index: usize,
        stopping: watch::Receiver<Option<DrainPlan>>,
        task: SupervisedTask,
    ) -> Self {
        Self { server, service, index, stopping, task }
    }

    /// Serves until the server stops, and then until no connection is left.
    pub(super) fn run(self, runtime: &Runtime, listener: TcpListener) {
        runtime.block_on(async {
            // Each worker has a channel of its own, because connections read it for every request, and one channel for all
            // workers would be contended.
            let (stage, _) = watch::channel(DrainStage::Serving);
            let plan = self.serve(&listener, &stage).await;
            stage.send_replace(DrainStage::Draining);
            let end = match plan.listeners {
                ListenerEnd::Closed => self.close(listener, &stage, plan.delay).await,
                ListenerEnd::LeftOpen => self.leave_open(listener, &stage, plan.delay).await,
                ListenerEnd::TakenOver => {
                    drop(listener);
                    tokio::time::sleep(plan.delay).await;
                    self.begin_to_close(&stage)
                }
            };
            self.drain(end).await;
        });
    }

    /// Accepts until the server stops. Returns how it stops.
    async fn serve(&self, listener: &TcpListener, stage: &watch::Sender<DrainStage>) -> DrainPlan {
        let mut stopping = self.stopping.clone();
        tokio::select! {
            biased;
            stop = stopping.wait_for(Option::is_some) => stop.ok().and_then(|plan| *plan).unwrap_or_default(),
            // Connections are tasks of their own, so a panic here ends none of them.
            () = self.task.run(|| self.accept_until(listener, stage, pending())) => DrainPlan::default(),
        }
    }

    /// Accepts for `delay`, and closes the listener. Returns until when connections may take.
    async fn close(
        &self,
        listener: TcpListener,
        stage: &watch::Sender<DrainStage>,
        delay: Duration,
    ) -> Instant {
        self.accept_until(&listener, stage, tokio::time::sleep(delay)).await;
        refuse_new_connections(&listener);
        self.accept_until(&listener, stage, tokio::time::sleep(HANDSHAKE_TIME.min(delay))).await;
        // Connections that the kernel has already established are served; closing the listener would reset them.
        while let Ok(Ok((stream, peer))) = timeout(Duration::ZERO, listener.accept()).await {
            self.admit(stream, peer.ip(), stage.subscribe());
        }
        self.begin_to_close(stage)
    }

    /// Accepts for `delay`, and while the connections of before end: so only those wait for the next process that come when nothing else
    /// keeps this one. Returns until when connections may take.
    async fn leave_open(
        &self,
        listener: TcpListener,
        stage: &watch::Sender<DrainStage>,
        delay: Duration,
    ) -> Instant {
        self.accept_until(&listener, stage, tokio::time::sleep(delay)).await;
        let end = self.begin_to_close(stage);
        // Their first request is answered, and told to be the last. They see the end of the channel as the order to close.
        let (last, _) = watch::channel(DrainStage::Draining);
        let _all_ended = self.accept_until(&listener, &last, timeout_at(end, stage.closed())).await.is_ok();
        end
    }

    /// Tells connections to close when they are idle. Returns until when they may take.
    fn begin_to_close(&self, stage: &watch::Sender<DrainStage>) -> Instant {
        stage.send_replace(DrainStage::Closing);
        Instant::now() + self.server.limits().drain_timeout
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
                Ok((stream, peer)) => self.admit(stream, peer.ip(), stage.subscribe()),
                Err(error) => {
                    if let Some(failures) =
                        self.server.connections.accept_failures.count(Instant::now().into_std())
                    {
                        tracing::warn!(%error, failures, "accept failed; pausing");
                    }
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                }
            }
        }
    }

    /// Serves a new connection, or refuses it.
    fn admit(&self, stream: TcpStream, address: IpAddr, stage: watch::Receiver<DrainStage>) {
        let (server, index) = (&self.server, self.index);
        let counts = &server.counts[index];
        // With the PROXY protocol, the address of the caller is counted when its header has arrived.
        let is_counted_later = server.peers.starts_with_proxy_header(address);
        let counted = if is_counted_later { Some(CountedAddress::NONE) } else { server.peers.enter(address) };
        let Some(counted) = counted else {
            counts.address_refused.fetch_add(1, Relaxed);
            return self.refuse(stream);
        };
        let slot = ConnectionSlot::take(Arc::clone(server), counted);
        let service = Arc::clone(&self.service);
        let connections_max = server.limits().connections_max;
        if server.connections.open.load(Relaxed) > connections_max {
            if !server.connections.closable.close_one(connections_max) {
                counts.refused.fetch_add(1, Relaxed);
                return self.refuse(stream);
            }
            counts.closed_for_others.fetch_add(1, Relaxed);
        }
        counts.connections.fetch_add(1, Relaxed);
        let must_close = server.connections.closable.add(slot.number);
        tokio::spawn(async move {
            tokio::select! {
                // A request that arrives after the decision to close is not started.
                biased;
                () = must_close.wait() => tracing::debug!("connection closed to make room for another"),
                served = start_connection(service, slot, index, address, stream, stage) => {
                    if let Err(error) = served {
                        tracing::debug!(%error, "a connection ended early");
                    }
                }
            }
        });
    }

    /// Refuses a connection. A reply is sent unless too many refusals are being sent already, or it would need a TLS
    /// handshake, which costs more than a call.
    fn refuse(&self, stream: TcpStream) {
        let refusal = RefusalGuard::start(Arc::clone(&self.server));
        if self.server.certificate.is_none() && refusal.number < REFUSALS_MAX {
            let message = http1::over_capacity(&self.server, &*self.service);
            tokio::spawn(async move {
                let _refusal = refusal;
                let _sent = timeout(REFUSAL_TIMEOUT, send_refusal(stream, message)).await;
            });
        }
    }

    async fn drain(&self, end: Instant) {
        let all_closed = async {
            while self.server.connections.open.load(Relaxed) > 0 {
                tokio::time::sleep(DRAIN_POLL_INTERVAL).await;
            }
        };
        if timeout_at(end, all_closed).await.is_err() {
            let left = self.server.connections.open.load(Relaxed);
            tracing::warn!(left, "drain_timeout_ms has passed; closing the remaining connections");
        }
    }
}

/// Drops packets that open new connections, while the listener still accepts established ones.
///
/// Closing a listener resets connections that it has not accepted, and one could be established between the last accept and
/// the close. Callers whose packets are dropped try again a second later, and are refused then.
#[cfg(target_os = "linux")]
fn refuse_new_connections(listener: &TcpListener) {
    /// Offset of the TCP flags.
    const FLAGS: u32 = 13;
    const SYN: u32 = 0x02;
    // Loads the flags, drops packets with SYN, and keeps all others.
    let program = [
        SockFilter::new(0x30, 0, 0, FLAGS),
        SockFilter::new(0x45, 0, 1, SYN),
        SockFilter::new(0x06, 0, 0, 0),
        SockFilter::new(0x06, 0, 0, u32::MAX),
    ];
    if let Err(error) = SockRef::from(listener).attach_filter(&program) {
        tracing::warn!(%error, "cannot drop new connections; those opened during the shutdown may be reset");
    }
}

#[cfg(not(target_os = "linux"))]
fn refuse_new_connections(_: &TcpListener) {}

/// An open connection, which is counted until this value is dropped.
struct ConnectionSlot {
    server: Arc<ServerState>,
    number: u64,
    counted: CountedAddress,
    accepted: MonoTime,
    state: Arc<ConnectionState>,
}

impl ConnectionSlot {
    fn take(server: Arc<ServerState>, counted: CountedAddress) -> Self {
        server.connections.open.fetch_add(1, Relaxed);
        let number = server.connections.seen.fetch_add(1, Relaxed);
        let accepted = server.clock.now();
        Self { server, number, counted, accepted, state: Arc::default() }
    }
}

impl Drop for ConnectionSlot {
    fn drop(&mut self) {
        let counted = std::mem::replace(&mut self.counted, CountedAddress::NONE);
        self.server.peers.leave(counted);
        self.server.connections.closable.remove(self.number, &self.state);
        self.server.connections.open.fetch_sub(1, Relaxed);
    }
}

/// A connection that is being refused, which is counted until this value is dropped.
struct RefusalGuard {
    server: Arc<ServerState>,
    /// The number of other refusals when it was started.
    number: usize,
}

impl RefusalGuard {
    fn start(server: Arc<ServerState>) -> Self {
        let number = server.connections.being_refused.fetch_add(1, Relaxed);
        Self { server, number }
    }
}

impl Drop for RefusalGuard {
    fn drop(&mut self) {
        self.server.connections.being_refused.fetch_sub(1, Relaxed);
    }
}

/// Sends a refusal and waits until the caller closes the connection. Closing first, with unread bytes, would reset the
/// connection, and the caller could lose the message.
async fn send_refusal(mut stream: TcpStream, message: Vec<u8>) -> io::Result<()> {
    stream.write_all(&message).await?;
    stream.shutdown().await?;
    let mut unread = [0; 1_024];
    while stream.read(&mut unread).await? > 0 {}
    Ok(())
}

async fn start_connection<V: Service>(
    service: Arc<V>,
    mut slot: ConnectionSlot,
    worker: usize,
    mut address: IpAddr,
    mut stream: TcpStream,
    stage: watch::Receiver<DrainStage>,
) -> Result<(), Error> {
    stream.set_nodelay(true)?;
    if slot.server.peers.starts_with_proxy_header(address) {
        // Boxed because few connections need it, and it would enlarge the task of every connection.
        address = Box::pin(read_proxy_header(&mut slot, worker, address, &mut stream)).await?;
    }
    let (number, accepted) = (slot.number, slot.accepted);
    let (server, state) = (Arc::clone(&slot.server), Arc::clone(&slot.state));
    let acceptor = server.certificate.as_ref().map(|certificate| certificate.acceptor());
    let limits = Arc::clone(&server.limits());
    let connection = Connection { server, limits, worker, number, address, accepted, state, uncharged: None };
    match acceptor {
        None => serve(&service, connection, stream, None, stage).await,
        Some(tls) => Box::pin(accept_tls(service, connection, stream, tls, stage)).await,
    }
}

/// Reads the address of a caller from the PROXY protocol header, and counts it.
async fn read_proxy_header(
    slot: &mut ConnectionSlot,
    worker: usize,
    proxy: IpAddr,
    stream: &mut TcpStream,
) -> Result<IpAddr, Error> {
    let server = &slot.server;
    let deadline = server.step_deadline(slot.accepted);
    let address = timeout_at(deadline, Peers::caller_of_connection(proxy, stream)).await??;
    let Some(counted) = server.peers.enter(address) else {
        server.counts[worker].address_refused.fetch_add(1, Relaxed);
        return Err("too many connections from this address".into());
    };
    slot.counted = counted;
    Ok(address)
}

async fn accept_tls<V: Service>(
    service: Arc<V>,
    connection: Connection,
    stream: TcpStream,
    tls: TlsAcceptor,
    stage: watch::Receiver<DrainStage>,
) -> Result<(), Error> {
    let deadline = connection.server.step_deadline(connection.accepted);
    let encrypted = timeout_at(deadline, tls.accept(stream)).await??;
    let chosen = encrypted.get_ref().1.alpn_protocol().map(ChosenProtocol::of_alpn);
    serve(&service, connection, encrypted, chosen, stage).await
}

/// The protocol that a TLS handshake has chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ChosenProtocol {
    Http1,
    Http2,
}

impl ChosenProtocol {
    fn of_alpn(name: &[u8]) -> Self {
        if name == ALPN_HTTP2 { Self::Http2 } else { Self::Http1 }
    }
}

/// Serves one connection until it ends, in the chosen protocol, or else in the one with which it begins.
pub(super) async fn serve<V: Service, S: ByteStream>(
    service: &Arc<V>,
    mut connection: Connection,
    stream: S,
    chosen: Option<ChosenProtocol>,
    stage: watch::Receiver<DrainStage>,
) -> Result<(), Error> {
    let (clock, limits) = (connection.server.clock, Arc::clone(&connection.limits));
    let mut socket = Socket::new(stream, Arc::clone(&connection.state), connection.accepted, clock, limits);
    let Some(first) = first_bytes(&mut socket, stage.clone()).await? else {
        socket.linger_on_close();
        return Ok(socket.shutdown().await?);
    };
    let begins_as_http2 = http2::is_http2(&first);
    if chosen.map_or(begins_as_http2, |chosen| chosen == ChosenProtocol::Http2) {
        connection.switch_to_http2();
        Box::pin(http2::serve(service, Arc::new(connection), socket, first, stage)).await
    } else {
        Ok(http1::serve(service, &connection, socket, first, stage).await?)
    }
}

/// Reads the bytes that identify the protocol; `None` if they do not arrive before the gateway ends.
async fn first_bytes<S: ByteStream>(
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
