//! The server: one thread per core, each with its own runtime and its own listener on the shared port (`SO_REUSEPORT`), so
//! that a connection lives on one core and its requests share nothing with other cores but a few counters. The same code
//! runs on one work-stealing runtime when the configuration says so; which of the two is better is a matter of measuring.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::watch;

use crate::bind::{bind, check_free, explained};
use crate::config::{Config, Runtime};
use crate::connection::Peer;
use crate::drain::DrainStage;
use crate::server_state::ServerState;
use crate::service::Service;
use crate::tls::Tls;
use crate::worker::{self, Worker};

/// The listener for callers and the threads behind it.
#[derive(Debug)]
pub struct Server {
    state: Arc<ServerState>,
    public: SocketAddr,
    /// Tells the workers to drain, and for how long callers are still let in.
    stop: watch::Sender<Option<Duration>>,
    workers: Vec<JoinHandle<()>>,
}

impl Server {
    /// Binds the public address and begins to serve: `service` answers the requests.
    pub fn start(config: &Config, state: Arc<ServerState>, service: &Arc<impl Service>) -> io::Result<Self> {
        let (stop, stopping) = watch::channel(None);
        let tls = config.tls.as_ref().map(Tls::acceptor).transpose()?;
        check_free(config.public)?;
        let first = bind(config.public)?;
        let public = first.local_addr()?;
        let mut listeners = vec![first];
        if config.runtime == Runtime::PerCore {
            for _ in 1..config.workers {
                listeners.push(bind(public)?);
            }
        }
        let threads = if config.runtime == Runtime::PerCore { 1 } else { config.workers };
        let mut workers = Vec::new();
        for (index, listener) in listeners.into_iter().enumerate() {
            let (state, service) = (Arc::clone(&state), Arc::clone(service));
            let worker = Worker::new(state, service, index, tls.clone(), stopping.clone());
            let started = start_worker(worker, index, threads, listener);
            workers.push(started.map_err(|error| explained(&format!("cannot start worker {index}"), error))?);
        }
        Ok(Self { state, public, stop, workers })
    }

    /// Where callers connect to; tells the port when the configuration left it open.
    pub fn public(&self) -> SocketAddr {
        self.public
    }

    /// Stops without losing requests: not ready from now on, but everything is still answered for `drain_delay`, and over
    /// HTTP/1 with `Connection: close`. Then idle connections are closed. Returns when no connection is left, or when
    /// `drain_timeout` is over.
    pub fn drain(self) {
        let delay = self.state.limits.drain_delay;
        self.drain_after(delay);
    }

    /// Drains without `drain_delay`, for when nobody else has to notice, as after Ctrl-C.
    pub fn drain_at_once(self) {
        self.drain_after(Duration::ZERO);
    }

    fn drain_after(self, delay: Duration) {
        self.state.connections.draining.store(true, Relaxed);
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
    worker: Worker<impl Service>,
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
// `Send` is stated because the compiler cannot infer it for the bodies of every service.
#[expect(clippy::manual_async_fn)]
pub fn serve_stream<S>(
    state: Arc<ServerState>,
    service: Arc<impl Service>,
    stream: S,
) -> impl Future<Output = ()> + Send
where
    S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
{
    async move {
        // The sender lives as long as the connection, so it is never told to close.
        let (_sender, stage) = watch::channel(DrainStage::Serving);
        let peer = Peer::unknown(&state);
        if let Err(error) = worker::serve(&service, state, 0, peer, stream, stage).await {
            tracing::debug!(%error, "a connection ended early");
        }
    }
}
