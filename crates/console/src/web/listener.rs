//! The listener of the console. It has a thread of its own and a bounded number of connections, so that pages cannot slow
//! calls down.

use std::io;
use std::net::{SocketAddr, TcpListener as StdListener};
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use axum::body::Body;
use futures_util::StreamExt;
use http::Request;
use http_server::{IncomingBody, SmallListener, SmallListenerLimits};
use resources::WhenDown;
use tokio::time::{MissedTickBehavior, interval, sleep};

use super::dispatch::{ConsolePeer, Dispatch};
use super::site::ConsoleSite;

const LISTENER_LIMITS: SmallListenerLimits = SmallListenerLimits {
    // A browser opens up to six.
    connections_max: 128,
    head_timeout: Duration::from_secs(10),
    // The live view is one reply for as long as somebody watches it.
    connection_timeout: None,
    unread_timeout: Duration::from_secs(30),
    // Cookies and addresses of "Try it" have a few kilobytes.
    buffer_bytes_max: 32 << 10,
    keep_alive: true,
    drain_timeout: Duration::from_secs(2),
};

/// Time between two values of the live view.
const LIVE_INTERVAL: Duration = Duration::from_secs(1);

/// A chain that changes all the time, as in an import, is not shown more often than this.
const CHANGES_SHOWN_EVERY: Duration = Duration::from_millis(200);

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
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let listener = {
            let _context = runtime.enter();
            SmallListener::new("console", listener, LISTENER_LIMITS)?
        };
        let served = Arc::clone(&site);
        let serve = move || runtime.block_on(serve(listener, served));
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

async fn serve(listener: SmallListener, site: Arc<ConsoleSite>) {
    let dispatch = Dispatch::new(Arc::clone(&site));
    let service = move |request: Request<IncomingBody>, peer| {
        let dispatch = dispatch.clone();
        async move {
            let mut request = request.map(Body::new);
            request.extensions_mut().insert(ConsolePeer(peer));
            dispatch.respond(request).await
        }
    };
    let live = site.supervisor.task("live view of the console", WhenDown::Degraded);
    let accepting = site.supervisor.task("listener of the console", WhenDown::Degraded);
    tokio::select! {
        () = listener.serve(&accepting, site.stopping.subscribe(), service) => {}
        () = live.run(|| watch_live(&site)) => {}
    }
}

/// Reads the status of the gateway every second, and when its chain has changed, for everybody who watches.
async fn watch_live(site: &ConsoleSite) {
    let mut ticks = interval(LIVE_INTERVAL);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut changes = (site.live_source.changes)();
    loop {
        tokio::select! {
            _ = ticks.tick() => site.update_live(),
            Some(()) = changes.next() => {
                site.update_live_chain();
                sleep(CHANGES_SHOWN_EVERY).await;
            }
        }
    }
}
