//! The server. It has one thread per core, each with its own runtime, so a connection stays on one core, and its requests share only a
//! few counters with other cores.
//!
//! A port that the server opens itself has one listener per thread (`SO_REUSEPORT`), over which the kernel spreads the connections.
//! Listeners of another process are used as they are: with fewer of them than threads, several threads accept from one.

use std::io;
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use resources::{Supervisor, WhenDown};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::watch;

use crate::bind::with_context;
use crate::connection::Connection;
use crate::drain::{DrainPlan, DrainStage, ListenerEnd};
use crate::server_state::ServerState;
use crate::service::Service;
use crate::worker::{self, HttpWorker};

/// The public listeners and their threads.
#[derive(Debug)]
pub struct HttpServer {
    state: Arc<ServerState>,
    public: SocketAddr,
    /// Makes the workers drain.
    stop: watch::Sender<Option<DrainPlan>>,
    workers: Vec<JoinHandle<()>>,
}

impl HttpServer {
    /// Starts serving the connections of `listeners`, of which there is at least one. All of them are accepted from only if there are at
    /// least as many workers.
    pub fn start(
        listeners: &[TcpListener],
        state: Arc<ServerState>,
        service: &Arc<impl Service>,
        supervisor: &Supervisor,
    ) -> io::Result<Self> {
        let first = listeners.first().ok_or(io::ErrorKind::InvalidInput)?;
        let public = first.local_addr()?;
        let (stop, stopping) = watch::channel(None);
        let mut workers = Vec::new();
        for (index, listener) in listeners.iter().cycle().take(state.counts.len()).enumerate() {
            let (state, service) = (Arc::clone(&state), Arc::clone(service));
            let task = supervisor.task(format!("worker {index}"), WhenDown::NotReady);
            let worker = HttpWorker::new(state, service, index, stopping.clone(), task);
            let started = listener.try_clone().and_then(|listener| start_worker(worker, index, listener));
            workers
                .push(started.map_err(|error| with_context(&format!("cannot start worker {index}"), error))?);
        }
        Ok(Self { state, public, stop, workers })
    }

    /// The address of the listener, with the actual port if the configured one is 0.
    pub fn public(&self) -> SocketAddr {
        self.public
    }

    /// Stops without losing requests. `/ready` fails at once. For `drain_delay`, all requests are still answered, over HTTP/1
    /// with `Connection: close`; then idle connections are closed. Returns when no connection is left, or after
    /// `drain_timeout`.
    pub fn drain(self, listeners: ListenerEnd) {
        let delay = self.state.limits().drain_delay;
        self.drain_as(DrainPlan { delay, listeners });
    }

    /// Drains without `drain_delay`, for Ctrl-C.
    pub fn drain_at_once(self, listeners: ListenerEnd) {
        self.drain_as(DrainPlan { delay: Duration::ZERO, listeners });
    }

    fn drain_as(self, plan: DrainPlan) {
        self.state.connections.draining.store(true, Relaxed);
        self.stop.send_replace(Some(plan));
        for worker in self.workers {
            if worker.join().is_err() {
                tracing::error!("a worker thread panicked");
            }
        }
    }
}

/// Starts the thread of a worker.
fn start_worker(
    worker: HttpWorker<impl Service>,
    index: usize,
    listener: TcpListener,
) -> io::Result<JoinHandle<()>> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let listener = {
        let _context = runtime.enter();
        tokio::net::TcpListener::from_std(listener)?
    };
    let run = move || worker.run(&runtime, listener);
    thread::Builder::new().name(format!("worker-{index}")).spawn(run)
}

/// Serves one connection over any stream until it ends.
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
        // The sender lives as long as the connection, so the connection is not drained.
        let (_sender, stage) = watch::channel(DrainStage::Serving);
        let connection = Connection::of_stream(state);
        if let Err(error) = worker::serve(&service, connection, stream, None, stage).await {
            tracing::debug!(%error, "a connection ended early");
        }
    }
}
