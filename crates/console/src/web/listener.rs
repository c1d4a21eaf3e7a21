//! The listener of the console. It has a thread of its own and a bounded number of connections, so that pages cannot slow
//! calls down.

use std::collections::{HashMap, VecDeque};
use std::convert::Infallible;
use std::io;
use std::net::{IpAddr, SocketAddr, TcpListener as StdListener};
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use axum::body::Body;
use http::Request;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use resources::RepeatedWarning;
use socket2::SockRef;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinHandle as TaskHandle;
use tokio::time::{MissedTickBehavior, interval, timeout};

use super::dispatch::{ConsolePeer, Dispatch};
use super::site::ConsoleSite;

/// How long the head of a request may take, and how long a connection may wait for one.
const HEADER_TIMEOUT: Duration = Duration::from_secs(10);

/// Connections at once; beyond it, one of the address that has the most is closed. A browser opens up to six.
const CONNECTIONS_MAX: usize = 128;

/// How long a browser may take to receive what is on its way to it. A page that nobody reads would stay in memory otherwise.
const UNREAD_TIMEOUT: Duration = Duration::from_secs(30);

/// Bytes of a head and of what is read ahead. Cookies and addresses of "Try it" have a few kilobytes.
const BUFFER_BYTES_MAX: usize = 32 << 10;

/// How long accepting pauses when the process is out of file descriptors.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// How long pages that are being made may take when the process ends.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(2);

/// Time between two values of the live view.
const LIVE_INTERVAL: Duration = Duration::from_secs(1);

/// The running console.
#[derive(Debug)]
pub struct ConsoleServer {
    address: SocketAddr,
    site: Arc<ConsoleSite>,
    thread: JoinHandle<()>,
}

impl ConsoleServer {
    /// Begins to serve on a thread of its own.
    pub fn start(listener: StdListener, site: ConsoleSite) -> io::Result<Self> {
        let (address, site) = (listener.local_addr()?, Arc::new(site));
        let served = Arc::clone(&site);
        let serve = move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            let served = runtime.and_then(|runtime| runtime.block_on(serve(listener, served)));
            if let Err(error) = served {
                tracing::error!(%error, "the console stopped");
            }
        };
        let thread = thread::Builder::new().name("console".to_owned()).spawn(serve)?;
        Ok(Self { address, site, thread })
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Ends streams, finishes the pages that are being made, and returns.
    pub fn stop(self) {
        self.site.stopping.send_replace(true);
        if self.thread.join().is_err() {
            tracing::error!("the thread of the console has panicked");
        }
    }
}

async fn serve(listener: StdListener, site: Arc<ConsoleSite>) -> io::Result<()> {
    let listener = TcpListener::from_std(listener)?;
    let dispatch = Dispatch::new(Arc::clone(&site));
    let mut stopping = site.stopping.subscribe();
    let mut open = VecDeque::<OpenConnection>::new();
    tokio::select! {
        () = stopped(&mut stopping) => {}
        () = watch_live(&site) => {}
        () = accept(&listener, &dispatch, &site, &mut open) => {}
    }
    drop(listener);
    let finish = async {
        for connection in open {
            // A connection that has failed is finished as well.
            let _ended = connection.task.await;
        }
    };
    // What takes longer ends with the runtime.
    let _all_finished = timeout(DRAIN_TIMEOUT, finish).await;
    Ok(())
}

/// Reads the status of the gateway every second, for everybody who watches.
async fn watch_live(site: &ConsoleSite) {
    let mut ticks = interval(LIVE_INTERVAL);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        site.live.send_replace(Arc::new(site.live_source.status()));
    }
}

async fn accept(
    listener: &TcpListener,
    dispatch: &Dispatch,
    site: &ConsoleSite,
    open: &mut VecDeque<OpenConnection>,
) {
    let failures = RepeatedWarning::default();
    loop {
        match listener.accept().await {
            Ok((stream, peer)) => {
                make_room(open);
                if let Err(error) = SockRef::from(&stream).set_tcp_user_timeout(Some(UNREAD_TIMEOUT)) {
                    tracing::debug!(%error, "cannot limit how long a browser does not read");
                }
                let connection = connection(stream, peer, dispatch.clone(), site.stopping.subscribe());
                open.push_back(OpenConnection { address: peer.ip(), task: tokio::spawn(connection) });
            }
            Err(error) => {
                if let Some(failures) = failures.count(Instant::now()) {
                    tracing::warn!(%error, failures, "accept failed on the console's listener; pausing");
                }
                tokio::time::sleep(ACCEPT_PAUSE).await;
            }
        }
    }
}

/// A connection that may have ended.
struct OpenConnection {
    address: IpAddr,
    task: TaskHandle<()>,
}

/// Makes room for one more connection: the oldest one of the address with the most is closed, so that one address cannot keep
/// others out. Browsers open another when they need one.
fn make_room(open: &mut VecDeque<OpenConnection>) {
    open.retain(|connection| !connection.task.is_finished());
    if open.len() < CONNECTIONS_MAX {
        return;
    }
    let mut counts: HashMap<IpAddr, usize> = HashMap::new();
    open.iter().for_each(|connection| *counts.entry(connection.address).or_default() += 1);
    let most = counts.into_iter().max_by_key(|(_, count)| *count).map(|(address, _)| address);
    let oldest = open.iter().position(|connection| Some(connection.address) == most);
    if let Some(closed) = oldest.and_then(|position| open.remove(position)) {
        closed.task.abort();
    }
}

/// Waits until the console stops.
async fn stopped(stopping: &mut watch::Receiver<bool>) {
    // The sender lives as long as the site.
    let _stops = stopping.wait_for(|stopping| *stopping).await.is_ok();
}

async fn connection(
    stream: TcpStream,
    peer: SocketAddr,
    dispatch: Dispatch,
    mut stopping: watch::Receiver<bool>,
) {
    let service = service_fn(move |request: Request<Incoming>| {
        let dispatch = dispatch.clone();
        async move {
            let mut request = request.map(Body::new);
            request.extensions_mut().insert(ConsolePeer(peer));
            Ok::<_, Infallible>(dispatch.respond(request).await)
        }
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEADER_TIMEOUT)
        .max_buf_size(BUFFER_BYTES_MAX)
        .serve_connection(TokioIo::new(stream), service);
    let mut connection = std::pin::pin!(connection);
    let ended = tokio::select! {
        ended = connection.as_mut() => ended,
        () = stopped(&mut stopping) => {
            connection.as_mut().graceful_shutdown();
            connection.await
        }
    };
    if let Err(error) = ended {
        tracing::debug!(%error, "a connection to the console ended early");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One address could take all connections, and cut those of others.
    #[tokio::test]
    async fn room_is_made_by_the_address_with_the_most_connections() {
        let connection = |last: u8| OpenConnection {
            address: [192, 0, 2, last].into(),
            task: tokio::spawn(std::future::pending()),
        };
        let mut open = VecDeque::from([connection(1)]);
        open.extend((1..CONNECTIONS_MAX).map(|_| connection(2)));
        for _ in 0..10 {
            make_room(&mut open);
            assert_eq!(open.len(), CONNECTIONS_MAX - 1);
            open.push_back(connection(2));
        }
        assert_eq!(open[0].address, IpAddr::from([192, 0, 2, 1]), "the others keep theirs");
    }
}
