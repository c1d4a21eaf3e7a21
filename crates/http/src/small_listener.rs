//! A listener for people and probes: the operator's port and the console. It serves few connections on one thread.
//!
//! When all places are taken, connections that have sent no complete request for some time are closed, those of the address
//! with the most connections first. As long as there are none, new connections wait in the kernel's backlog: a burst of probes
//! is answered one after the other.

mod answered_body; // a body that says when it was sent
mod incoming_body; // a body that says when it was received

use std::collections::HashMap;
use std::convert::Infallible;
use std::io;
use std::net::{IpAddr, SocketAddr, TcpListener as StdListener};
use std::pin::pin;
use std::sync::Arc;
use std::time::{Duration, Instant};

use http::{Request, Response};
use hyper::body::{Body, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use parking_lot::Mutex;
use resources::{RepeatedWarning, SupervisedTask};
use socket2::SockRef;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Notify, watch};
use tokio::task::AbortHandle;
use tokio::time::timeout;

use crate::BoxError;
use crate::policy::{ACCEPT_PAUSE, REQUEST_GRACE};
use answered_body::AnsweredBody;
pub use incoming_body::IncomingBody;

/// How many connections there may be, and how long they may take.
#[derive(Clone, Copy, Debug)]
pub struct SmallListenerLimits {
    pub connections_max: usize,
    /// How long the head of a request may take, and how long a connection may wait for one.
    pub head_timeout: Duration,
    /// How long a connection may take as a whole, if that is limited.
    pub connection_timeout: Option<Duration>,
    /// How long a client may take to receive what is on its way to it. A reply that nobody reads would stay in memory otherwise.
    pub unread_timeout: Duration,
    /// Bytes of a head and of what is read ahead.
    pub buffer_bytes_max: usize,
    /// Whether a connection is used for several requests.
    pub keep_alive: bool,
    /// How long replies that are under way may take at the end.
    pub drain_timeout: Duration,
}

/// A listener with few connections.
#[derive(Debug)]
pub struct SmallListener {
    /// Its name in the log.
    name: &'static str,
    listener: TcpListener,
    limits: SmallListenerLimits,
    open: Arc<OpenConnections>,
    accept_failures: RepeatedWarning,
}

#[derive(Debug, Default)]
struct OpenConnections {
    /// The oldest first.
    list: Mutex<Vec<Arc<OpenConnection>>>,
    /// Notified when one has ended.
    ended: Notify,
}

#[derive(Debug)]
struct OpenConnection {
    address: IpAddr,
    /// Since when it has sent no complete head, or no complete body; `None` while a request is being answered.
    incomplete_since: Mutex<Option<Instant>>,
    task: Mutex<Option<AbortHandle>>,
}

/// Whether another connection can be accepted.
#[derive(Debug, PartialEq, Eq)]
enum RoomForOne {
    Free,
    /// Once the connection at this position is closed.
    AfterClosing(usize),
    /// Not before this time, or the end of a connection.
    NotBefore(Option<Instant>),
}

impl SmallListener {
    /// Takes over a listener that does not block. Must be called within the runtime that serves.
    pub fn new(name: &'static str, listener: StdListener, limits: SmallListenerLimits) -> io::Result<Self> {
        let listener = TcpListener::from_std(listener)?;
        Ok(Self { name, listener, limits, open: Arc::default(), accept_failures: RepeatedWarning::default() })
    }

    /// Serves until `stop` is true or its sender is gone. Then requests under way are finished.
    pub async fn serve<S, F, B>(self, task: &SupervisedTask, mut stop: watch::Receiver<bool>, service: S)
    where
        S: Fn(Request<IncomingBody>, SocketAddr) -> F + Clone + Send + Sync + 'static,
        F: Future<Output = Response<B>> + Send + 'static,
        B: Body<Error: Into<BoxError>, Data: Send> + Send + Unpin + 'static,
    {
        let stopping = stop.clone();
        tokio::select! {
            () = stopped(&mut stop) => {}
            // Connections are tasks of their own, so a panic here ends none of them.
            () = task.run(|| self.accept(&stopping, &service)) => {}
        }
        let Self { listener, limits, open, .. } = self;
        drop(listener);
        let all_ended = async {
            loop {
                let ended = open.ended.notified();
                if open.list.lock().is_empty() {
                    return;
                }
                ended.await;
            }
        };
        // Connections that take longer end with the runtime.
        let _late = timeout(limits.drain_timeout, all_ended).await;
    }

    async fn accept<S, F, B>(&self, stopping: &watch::Receiver<bool>, service: &S)
    where
        S: Fn(Request<IncomingBody>, SocketAddr) -> F + Clone + Send + Sync + 'static,
        F: Future<Output = Response<B>> + Send + 'static,
        B: Body<Error: Into<BoxError>, Data: Send> + Send + Unpin + 'static,
    {
        loop {
            self.make_room().await;
            match self.listener.accept().await {
                Ok((stream, peer)) => self.begin(stream, peer, stopping.clone(), service.clone()),
                Err(error) => {
                    if let Some(failures) = self.accept_failures.count(Instant::now()) {
                        tracing::warn!(%error, failures, listener = self.name, "accept failed; pausing");
                    }
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                }
            }
        }
    }

    /// Waits until there is a place for another connection.
    async fn make_room(&self) {
        loop {
            let ended = self.open.ended.notified();
            let room = room(&self.open.list.lock(), self.limits.connections_max, Instant::now());
            match room {
                RoomForOne::Free => return,
                RoomForOne::AfterClosing(position) => self.open.close(position),
                RoomForOne::NotBefore(None) => ended.await,
                RoomForOne::NotBefore(Some(time)) => _ = tokio::time::timeout_at(time.into(), ended).await,
            }
        }
    }

    /// Serves a connection on a task of its own.
    fn begin<S, F, B>(&self, stream: TcpStream, peer: SocketAddr, stopping: watch::Receiver<bool>, service: S)
    where
        S: Fn(Request<IncomingBody>, SocketAddr) -> F + Send + Sync + 'static,
        F: Future<Output = Response<B>> + Send + 'static,
        B: Body<Error: Into<BoxError>, Data: Send> + Send + Unpin + 'static,
    {
        let (name, limits) = (self.name, self.limits);
        if let Err(error) = SockRef::from(&stream).set_tcp_user_timeout(Some(limits.unread_timeout)) {
            tracing::debug!(%error, listener = name, "cannot limit how long a client does not read");
        }
        let connection = self.open.add(peer.ip());
        let guard = OpenConnectionGuard { open: Arc::clone(&self.open), connection: Arc::clone(&connection) };
        let task = tokio::spawn(async move {
            let served = serve_connection(stream, peer, limits, stopping, &guard.connection, service);
            match timeout(limits.connection_timeout.unwrap_or(Duration::MAX), served).await {
                Ok(Ok(())) => {}
                Ok(Err(error)) => tracing::debug!(%error, listener = name, "a connection ended early"),
                Err(_) => tracing::debug!(listener = name, "a connection took too long"),
            }
        });
        *connection.task.lock() = Some(task.abort_handle());
    }
}

impl OpenConnections {
    fn add(&self, address: IpAddr) -> Arc<OpenConnection> {
        let incomplete_since = Mutex::new(Some(Instant::now()));
        let connection = Arc::new(OpenConnection { address, incomplete_since, task: Mutex::default() });
        self.list.lock().push(Arc::clone(&connection));
        connection
    }

    fn close(&self, position: usize) {
        let closed = self.list.lock().remove(position);
        if let Some(task) = closed.task.lock().take() {
            task.abort();
        }
    }
}

/// A connection that is open until this is dropped, also by a panic.
struct OpenConnectionGuard {
    open: Arc<OpenConnections>,
    connection: Arc<OpenConnection>,
}

impl Drop for OpenConnectionGuard {
    fn drop(&mut self) {
        self.open.list.lock().retain(|other| !Arc::ptr_eq(other, &self.connection));
        self.open.ended.notify_waiters();
    }
}

async fn serve_connection<S, F, B>(
    stream: TcpStream,
    peer: SocketAddr,
    limits: SmallListenerLimits,
    mut stopping: watch::Receiver<bool>,
    connection: &Arc<OpenConnection>,
    service: S,
) -> Result<(), hyper::Error>
where
    S: Fn(Request<IncomingBody>, SocketAddr) -> F,
    F: Future<Output = Response<B>> + Send + 'static,
    B: Body<Error: Into<BoxError>, Data: Send> + Send + Unpin + 'static,
{
    let service = service_fn(|request: Request<Incoming>| {
        let request = request.map(|body| IncomingBody::new(body, Arc::clone(connection)));
        let (connection, reply) = (Arc::clone(connection), service(request, peer));
        async move {
            let reply = reply.await;
            Ok::<_, Infallible>(reply.map(|body| AnsweredBody::new(body, connection, limits.keep_alive)))
        }
    });
    let served = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(limits.head_timeout)
        .max_buf_size(limits.buffer_bytes_max)
        .keep_alive(limits.keep_alive)
        .serve_connection(TokioIo::new(stream), service);
    let mut served = pin!(served);
    tokio::select! {
        ended = served.as_mut() => ended,
        () = stopped(&mut stopping) => {
            served.as_mut().graceful_shutdown();
            served.await
        }
    }
}

/// Waits until the listener has to stop: the value is true, or its sender is gone.
async fn stopped(stop: &mut watch::Receiver<bool>) {
    let _is_told = stop.wait_for(|stop| *stop).await.is_ok();
}

/// Whether another connection can be accepted while these are open.
fn room(open: &[Arc<OpenConnection>], connections_max: usize, now: Instant) -> RoomForOne {
    if open.len() < connections_max {
        return RoomForOne::Free;
    }
    let mut counts: HashMap<IpAddr, usize> = HashMap::new();
    open.iter().for_each(|connection| *counts.entry(connection.address).or_default() += 1);
    let incomplete = open.iter().enumerate().filter_map(|(position, connection)| {
        let since = (*connection.incomplete_since.lock())?;
        Some((position, since + REQUEST_GRACE, counts.get(&connection.address).copied().unwrap_or(0)))
    });
    let incomplete: Vec<_> = incomplete.collect();
    let closable = incomplete.iter().filter(|(_, closable_at, _)| *closable_at <= now);
    // The oldest of the address with the most; `max_by_key` would take the newest of equals.
    match closable.min_by_key(|(position, _, count)| (std::cmp::Reverse(*count), *position)) {
        Some((position, ..)) => RoomForOne::AfterClosing(*position),
        None => RoomForOne::NotBefore(incomplete.iter().map(|(_, closable_at, _)| *closable_at).min()),
    }
}

#[cfg(test)]
mod tests;
